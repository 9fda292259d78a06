"""Two kinds of memory: a fast one with few slots, and a slow one where a boundary can wait until it is replayed.

A part whose schedule has an `offload` has its boundary in slow memory. A plan counts those boundaries apart:
how many wait at most, how many are written, and how many are read.

Three ways to choose them. `offloaded` sends the outermost boundaries of any schedule there. `multistage` takes
binomial checkpointing with all slots alike, counts how often each slot is written and read, and makes the
busiest ones the fast ones. `h_revolve` counts the transfers among the costs, and finds the least sum.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb, inf
from numbers import Real
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError, BudgetError
from .binomial import Binomial
from .schedule import Schedule, whole_number
from .segments import as_schedule

MOST_STEPS = 10**10  # of h_revolve's table: some seconds


@dataclass(frozen=True, repr=False)
class InSlowMemory(Schedule):
    """A checkpoint's schedule, with its boundary in slow memory."""

    schedule: Schedule
    offload: int = 1

    @property
    def label(self):
        return f"{self.schedule!r} from slow memory"

    @property
    def early_stop(self):
        return self.schedule.early_stop

    def split(self, n):
        return self.schedule.split(n)


@dataclass(frozen=True, repr=False)
class Offloaded(Schedule):
    schedule: Schedule
    window: int = 1

    @property
    def label(self):
        return f"offloaded({self.schedule!r}{'' if self.window == 1 else f', window={self.window}'})"

    @property
    def early_stop(self):
        return self.schedule.early_stop

    def split(self, n):
        parts = self.schedule.split(n)
        return [(length, inner if inner is None else InSlowMemory(inner, self.window)) for length, inner in parts]


def beta(snapshots, runs):
    """C(s + r, s): how long a chain can be if s snapshots are enough to advance over no layer more than r times."""
    return comb(snapshots + runs, runs) if snapshots >= 0 and runs >= 0 else 0


def first_part(n, snapshots):
    """How many of n > 1 layers come first: of the best splits those with the fewest writes, of these the longest.

    Griewank and Walther 2000 draw in their figure 4 for which n which lengths are best.
    """
    s = min(snapshots, n - 1)
    runs = Binomial(s + 1).fewest_runs(n, s + 1)
    rest = n - beta(s - 1, runs - 1)
    shorter = min(rest, beta(s, runs - 2) + beta(s - 1, runs - 2))
    return max(shorter, min(rest - beta(s - 2, runs - 1), beta(s, runs - 1)))


def first_parts(n, snapshots):
    """The lengths of all parts of n layers except the last one, which is a single layer."""
    lengths = []
    while n > 1:
        lengths.append(first_part(n, snapshots))
        n, snapshots = n - lengths[-1], snapshots - 1
    return lengths


def slot_accesses(n, slots):
    """How often each slot is written or read for n layers: a list of counts.

    Equal stretches in equal slots are counted together, the longest first: only a longer one contains them.
    """
    accesses = [0] * slots
    times = defaultdict(int)  # (minus the length, slot): how often that stretch is replayed
    waiting = []

    def hold(length, slot, often):
        if (-length, slot) not in times:
            heapq.heappush(waiting, (-length, slot))
        times[-length, slot] += often

    for slot, length in enumerate(first_parts(n, slots)):
        accesses[slot] += 1
        hold(length, slot, 1)
    while waiting:
        minus_length, slot = heapq.heappop(waiting)
        often = times[minus_length, slot]
        accesses[slot] += often
        for deeper, length in enumerate(first_parts(-minus_length, slots - slot)):
            accesses[slot + deeper] += often if deeper else 0  # the first part's boundary is there already
            hold(length, slot + deeper, often)
    return accesses


@dataclass(frozen=True, repr=False)
class MultistagePart(Schedule):
    """A stretch whose boundary is in slot number `slot` of `slots`; those after it are free."""

    slots: int
    slow_slots: frozenset
    slot: int
    early_stop: bool = True

    @property
    def label(self):
        return f"slot {self.slot} ({'slow' if self.slot in self.slow_slots else 'fast'})"

    @property
    def offload(self):
        return 1 if self.slot in self.slow_slots else None

    def split(self, n):
        parts = [
            (length, MultistagePart(self.slots, self.slow_slots, slot, self.early_stop))
            for slot, length in enumerate(first_parts(n, self.slots - self.slot), self.slot)
        ]
        return [*parts, (1, None)]


@dataclass(frozen=True, repr=False)
class Multistage(Schedule):
    fast: int
    slow: int
    early_stop: bool = True

    @property
    def label(self):
        return f"multistage({self.fast}, {self.slow}{'' if self.early_stop else ', early_stop=False'})"

    def split(self, n):
        slots = min(self.fast + self.slow, max(n - 1, 1))  # more are of no use
        accesses = slot_accesses(n, slots)
        busiest_first = sorted(range(slots), key=accesses.__getitem__, reverse=True)
        slow_slots = frozenset(busiest_first[self.fast :])
        return MultistagePart(slots, slow_slots, 0, self.early_stop).split(n)


class Transfers(NamedTuple):
    """What h_revolve does with l layers while m slow slots are free, for all l and m: two lists of arrays.

    first[m][l]   their boundary is in one of the m: the length of the first part; 0: all is for fast memory
    write[m][l]   their boundary is at hand: whether to write it to slow memory
    """

    first: list
    write: list


@lru_cache(maxsize=4)
def least_transfers(layers, fast, slow, write_cost, read_cost):
    """The least sum of advances and transfers, as Transfers, for up to `layers` layers. Dynamic programming:

        at_hand(l, m) = min(p(l, fast), write_cost + stored(l, m))
        stored(l, m)  = min(p(l, fast), min over j of  j + at_hand(l - j, m - 1) + read_cost + stored(j, m))

    p(l, fast) is what binomial checkpointing costs in fast memory, whose own transfers are free. The l follow one
    another, all j are tried at once, and the m end where one more slow slot is of no use.
    """
    in_fast = advances_up_to(layers, fast)
    at_hand = in_fast
    transfers = Transfers([np.zeros(layers + 1, np.int32)], [np.zeros(layers + 1, bool)])
    for _ in range(slow):
        stored, first = costs_when_stored(in_fast, at_hand, read_cost)
        transfers.first.append(first)
        transfers.write.append(write_cost + stored < in_fast)
        fewer_slots, at_hand = at_hand, np.minimum(in_fast, write_cost + stored)
        if np.array_equal(at_hand, fewer_slots):
            break
    return transfers


def costs_when_stored(in_fast, rest_at_hand, read_cost):
    """(stored(l, m), the best j or 0) for all l and one m; `rest_at_hand` is at_hand(l, m - 1)."""
    layers = len(in_fast) - 1
    stored, first = in_fast.copy(), np.zeros(layers + 1, np.int32)
    run_and_read = np.arange(layers + 1) + read_cost  # j + read_cost
    before = run_and_read + stored  # j + read_cost + stored(j, m), final below the length in hand
    after = rest_at_hand[::-1].copy()  # at_hand(length - j, m - 1) is number layers - length + j
    for length in range(2, layers + 1):
        costs = before[1:length] + after[layers - length + 1 : layers]
        best = costs.argmin()
        if costs[best] < in_fast[length]:
            stored[length], first[length] = costs[best], best + 1
            before[length] = run_and_read[length] + costs[best]
    return stored, first


def advances_up_to(layers, snapshots):
    """p(l, s), see `advances`, for l = 0, 1, ..., layers: as many runs for one layer more as there is room for."""
    slots, runs = Binomial(snapshots + 1), 1
    costs = np.zeros(layers + 1)
    for length in range(2, layers + 1):
        if slots.room(slots.slots, runs) < length:
            runs += 1
        costs[length] = costs[length - 1] + runs
    return costs


@dataclass(frozen=True, repr=False)
class HRevolve(Schedule):
    fast: int
    slow: int
    write_cost: float = 2
    read_cost: float = 2
    early_stop: bool = True

    @property
    def label(self):
        costs = f", write_cost={self.write_cost:g}, read_cost={self.read_cost:g}"
        return (
            f"h_revolve({self.fast}, {self.slow}{'' if self.write_cost == self.read_cost == 2 else costs}"
            f"{'' if self.early_stop else ', early_stop=False'})"
        )

    def split(self, n):
        slow = min(self.slow, n)
        if slow > MOST_STEPS // n**2:
            raise BudgetError(
                f"{self!r} needs a table of {n} x {n} x {slow} steps, which takes too long; for {n} layers at most "
                f"{MOST_STEPS // n**2} slow slots are possible. schedules.multistage needs no table"
            )
        transfers = least_transfers(n, self.fast, slow, self.write_cost, self.read_cost)
        slow = len(transfers.first) - 1  # more of them are of no use
        if transfers.write[slow][n]:
            return SlowStretch(self, slow, transfers).split(n)
        return self.in_fast_memory().split(n)

    def in_fast_memory(self):
        return Binomial(self.fast + 1, self.early_stop)


@dataclass(frozen=True, repr=False)
class SlowStretch(Schedule):
    """A stretch of h_revolve's whose boundary is in slow memory, in one of the `slots` that are free for it."""

    whole: HRevolve
    slots: int
    transfers: Transfers = field(compare=False)
    offload = 1

    @property
    def label(self):
        return f"{self.whole!r} from slow memory, slots={self.slots}"

    @property
    def early_stop(self):
        return self.whole.early_stop

    def split(self, n):
        parts, slots = [], self.slots
        while first := int(self.transfers.first[slots][n]):
            parts.append((first, SlowStretch(self.whole, slots, self.transfers)))
            n, slots = n - first, slots - 1
            if not self.transfers.write[slots][n]:
                break
        return parts + self.whole.in_fast_memory().split(n)


def offloaded(schedule, window: int = 1) -> Schedule:
    """Any schedule, with the boundaries of its outermost checkpoints in slow memory: it replays as much as before.

    schedule  a Schedule, or a number of segments
    window    how many boundaries are in fast memory while one of them is replayed: its own and the next ones,
              fetched ahead

    Each boundary is written once and read once. Of `every(1)` nothing is left in fast memory but the window, and
    nothing is replayed. Boundaries inside a replay stay in fast memory.

    Source: PyTorch's `save_on_cpu` and JAX's offload policies move activations like this.

    >>> from minigrad.schedules import every
    >>> plan = offloaded(every(1)).plan(100)
    >>> plan.peak, plan.extra_forwards, plan.writes, plan.reads
    (1, 0, 99, 99)
    """
    return Offloaded(as_schedule(schedule), whole_number(window, "the window of boundaries in fast memory"))


def multistage(fast: int, slow: int, early_stop: bool = True) -> Schedule:
    """Binomial checkpointing with slots in two kinds of memory: those that are accessed most are the fast ones.

    fast, slow  boundaries that each memory holds at most; beside them, fast memory holds what is running
    early_stop  a replay leaves out layers whose output nobody reads. False: each layer is run once more to be
                taped, and n layers are run n + p(n, fast + slow) times (see `advances`)

    Replays are as few as with all slots in fast memory, then writes as few as can be; transfers cost nothing.
    BudgetError when there is no slot at all.

    Source: Stumm and Walther 2009, SIAM J. Sci. Comput. 31 (multistage approaches for offline checkpointing).

    >>> plan = multistage(5, 5, early_stop=False).plan(100)
    >>> plan.total_forwards, plan.writes, plan.reads, plan.slow_peak
    (322, 15, 34, 5)
    """
    fast, slow = whole_number(fast, "the number of fast slots", 0), whole_number(slow, "the number of slow slots", 0)
    if fast + slow == 0:
        raise BudgetError("multistage(0, 0) has no slot for a boundary; it needs at least one, fast or slow")
    return Multistage(fast, slow, bool(early_stop))


def h_revolve(fast: int, slow: int, write_cost: float = 2, read_cost: float = 2, early_stop: bool = True) -> Schedule:
    """The least time for replays and transfers together, with `fast` and `slow` slots for boundaries.

    fast, slow             boundaries that each memory holds at most; at least one fast one
    write_cost, read_cost  the time that a boundary takes to slow memory and back, in forwards of one layer
    early_stop             a replay leaves out layers whose output nobody reads. False: each layer is run once
                           more to be taped, as in published totals

    A stretch that is in fast memory once is swept in fast memory, by binomial checkpointing. With as many slow
    slots as layers this is Disk-Revolve. Planning takes layers x layers x slow slots steps; BudgetError beyond
    10^10 of them, which is 100 slow slots for 10,000 layers.

    Source: Herrmann and Pallez 2020, ACM TOMS 46 (H-Revolve), for two levels; Aupy et al. 2016, SIAM J. Sci.
    Comput. 38 (Disk-Revolve).

    >>> plan = h_revolve(5, 5, early_stop=False).plan(100)
    >>> plan.total_forwards, plan.writes, plan.reads
    (337, 5, 5)
    """
    return HRevolve(
        whole_number(fast, "the number of fast slots"),
        whole_number(slow, "the number of slow slots", 0),
        transfer_cost(write_cost, "write_cost"),
        transfer_cost(read_cost, "read_cost"),
        bool(early_stop),
    )


def transfer_cost(value, name):
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < inf:
        raise ArgumentError(f"{name} must be a number of forwards from 0, not {value!r:.60}")
    return float(value)
