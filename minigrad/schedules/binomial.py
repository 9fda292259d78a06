"""The fewest replays that a number of slots allows: binomial checkpointing and two close relatives.

To sweep l layers backward with m slots, advance over the first j layers and hold x_j, sweep the rest with one
slot less, then replay the first j with all of them:

    cost(l, m) = min over j of  j + cost(j, m) + cost(l - j, m - 1)

One can ask for the best j at every length and every number of slots. One need not: cost(., m) is convex. Write
N(m, r) for how many layers of a growing stretch add r runs each. The minimum over j of the sum of two convex
functions takes their increments in order of size. Those of the first part are its own and 1 more each, so

    N(m, r) = N(m, r - 1) + N(m - 1, r)

which is Pascal's rule. Summed up, it says how long a stretch can be if none of its layers is to be run more
than r times, the first time included: `room(m, r) = room(m, r - 1) + room(m - 1, r)`. A j is best if the first
part fits r - 1 runs, the rest fits r, and neither would fit fewer. Of those j, `split` takes the one that fills
the first part or leaves the rest just full: then few different stretches occur in a tree.
"""

from dataclasses import dataclass, replace
from math import comb

from ..errors import BudgetError
from .schedule import Schedule, whole_number


class Slots(Schedule):
    """What the schedules with slots share: parts, each with one slot less than the one before, and a taped tail.

    Subclasses say how long a tail can be (`tail`), how many runs leave room for how many layers (`room`),
    and which number of slots is the least for n layers (`least`).
    """

    def split(self, n):
        if self.slots < self.least(n):
            raise BudgetError(f"{self!r} has too few slots for {n} layers; the least possible is {self.least(n)}")
        parts, slots = [], self.slots
        while n > self.tail(slots):
            length = self.first_part(n, slots)
            parts.append((length, replace(self, slots=min(slots, length))))  # more slots than layers are no use
            n, slots = n - length, slots - 1
        return [*parts, (n, None)]

    def first_part(self, n, slots):
        """How many of n layers come before the next boundary to hold."""
        runs = self.fewest_runs(n, slots)
        return min(self.room(slots, runs - 1), n - self.room(slots - 1, runs - 1))

    def fewest_runs(self, n, slots):
        """How often a layer is run at most, of n > 1: the least r with room for n. Doubled, then halved in on."""
        high = 1
        while self.room(slots, high) < n:
            high *= 2
        low = high // 2  # too few
        while high - low > 1:
            middle = (low + high) // 2
            if self.room(slots, middle) < n:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True, repr=False)
class Binomial(Slots):
    slots: int
    early_stop: bool = True

    @property
    def label(self):
        return f"binomial({self.slots}{'' if self.early_stop else ', early_stop=False'})"

    def least(self, n):
        return min(n, 2)

    def tail(self, slots):
        return slots if self.early_stop else 1

    def room(self, slots, runs):
        return comb(slots - 1 + runs, runs)


@dataclass(frozen=True, repr=False)
class Optimal(Slots):
    slots: int

    @property
    def label(self):
        return f"optimal({self.slots})"

    def least(self, n):
        return min(n, 3)

    def tail(self, slots):
        return slots

    def room(self, slots, runs):
        """The same rule from another start: two slots are enough for two layers and for no more.

        With three (x_0, a running layer's input, its output) each run more makes room for two layers more: 2r + 1.
        """
        return comb(slots - 2 + runs, runs) + comb(slots - 3 + runs, runs - 1) if runs else 1


@dataclass(frozen=True, repr=False)
class Mixed(Slots):
    """With s slots, s + 1 layers can be taped. For more, a slot must hold a boundary instead.

    A checkpoint that takes one of f free slots from a tail costs that tail one layer, which is then run once
    more, and gives room for f further layers. In a tail whose layers are run r times those run r + 1 times: f
    layers for f (r + 1) + 1 runs. So checkpoints are best placed by r first, then by f, the largest first.
    There are C(r - 1 + s - f, r - 1) places of one kind: a path to one takes r - 1 replays and gives s - f
    slots to earlier boundaries, in any order.
    """

    slots: int
    early_stop = False

    @property
    def label(self):
        return f"mixed({self.slots})"

    def least(self, n):
        return 1

    def tail(self, slots):
        return slots + 1

    def room(self, slots, runs):
        return comb(slots + runs, runs)

    def first_part(self, n, slots):
        """The layers of the first part, by placing checkpoints, the best first, until all n layers have room."""
        runs = self.fewest_runs(n, slots) - 1  # up to so many are used up
        missing, free = n - self.room(slots, runs), slots
        length = self.room(slots, runs - 1)
        while missing > free * places(slots, free, runs):
            length += free * places(slots, free, runs - 1)  # as many of its places are in the first part
            missing -= free * places(slots, free, runs)
            free -= 1
        return length + min(missing, free * places(slots, free, runs - 1))


def places(slots, free, runs):
    """In how many tails with `free` of the slots left, whose layers are run `runs` times, a checkpoint can go."""
    return comb(runs - 1 + slots - free, slots - free) if runs else int(free == slots)


def advances(layers: int, snapshots: int) -> int:
    """p(l, s): the layers run, none of them taped, to sweep l layers backward with s snapshots, x_0's included.

    The closed form r l - C(s + r, r - 1), with the least r for which C(s + r, r) >= l. `binomial(s + 1)` runs
    p(l, s) - (l - 1) layers again, and with early_stop=False p(l, s) of them.

    Source: Griewank and Walther 2000, ACM TOMS 26 (Algorithm 799).

    >>> advances(100, 5), binomial(6).plan(100).extra_forwards
    (316, 217)
    """
    layers, snapshots = whole_number(layers, "the number of layers"), whole_number(snapshots, "the snapshots")
    if layers == 1:
        return 0
    runs = Binomial(snapshots + 1).fewest_runs(layers, snapshots + 1)
    return runs * layers - comb(snapshots + runs, runs - 1)


def binomial(slots: int, early_stop: bool = True) -> Schedule:
    """The fewest replays if at most `slots` activations may live between two layers.

    slots       x_0 and the running activation included: one more than the snapshots of Griewank and Walther
    early_stop  a replay leaves out layers whose output nobody reads. False: the classic mode, in which each
                layer is run once more to be taped, and n layers are run n + p(n, s) times (see `advances`)

    A plan's `peak_between_ops` is at most `slots`, its `peak` at most one more. Slots that are no use stay empty.
    BudgetError for fewer than 2 slots and more than one layer.

    Source: Griewank 1992, Optim. Methods Softw. 1; Griewank and Walther 2000, ACM TOMS 26 (Algorithm 799).

    >>> binomial(6).plan(100)
    Plan(binomial(6), 100 layers: peak 7 activations, 217 layers replayed)
    """
    return Binomial(whole_number(slots, "the number of slots"), bool(early_stop))


def optimal(slots: int) -> Schedule:
    """The fewest replays if at most `slots` activations may live at any moment.

    slots  x_0 included, and both the input and the output of a layer while it runs: what real buffers do, and
           what the tracer measures. The first run counts alike, as if the tape held what it passes on

    A plan's `peak` is at most `slots`. BudgetError for fewer than 3 slots and more than two layers.

    Source: the recurrence of Griewank and Walther 2000 (Algorithm 799), with 3 slots for any advance over more
    than one layer.

    >>> optimal(14).plan(100)
    Plan(optimal(14), 100 layers: peak 14 activations, 86 layers replayed)
    """
    return Optimal(whole_number(slots, "the number of slots"))


def mixed(slots: int) -> Schedule:
    """The fewest replays if a slot holds either a boundary or what one layer tapes, and a replay runs all its layers.

    slots  as many as may be in use between two layers; s + 1 layers are taped in full

    Between two layers `slots` activations live, and the running one. BudgetError for fewer than 1 slot.

    Source: Maddison 2024, doi:10.1016/j.jocs.2024.102405, for the recurrence.

    >>> mixed(13).plan(100).total_forwards, binomial(14, early_stop=False).plan(100).total_forwards
    (197, 285)
    """
    return Mixed(whole_number(slots, "the number of slots"))
