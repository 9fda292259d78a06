"""A loop whose length nobody knows in advance: which of its states to hold while it runs.

State i is what step i reads. A loop that is to be swept backward holds at most c of its states, state 0 always
among them, and has to choose as it goes: what it lets go is gone. When it ends after n steps, the stretches
between the states that it holds are checkpoints. Then everything is known, and each of them is replayed by
binomial checkpointing, with the slots that are free by then.

The choice is made in two ways, one after the other.

In rows (Stumm and Walther, Algorithm I). The loop is cut into rows of c + 1, c, c - 1, ..., 2 steps: the
lengths of a triangular split. The first state of a row is held for good. The others, except the last one, are
held in the slots that are not taken for good, until the next row comes: its first state takes the slot of the
youngest of them, its others take the rest, the oldest first. The last row ends before step (c + 1)(c + 2)/2 - 1.

By levels (Wang and Moin), from there on. Every state is stored now, at level 0 if it takes the slot of a
dispensable one, the youngest of those. If there is none, it takes the slot of the youngest state of all, and
is one level higher; states of a lower level than that one had are dispensable from now on.
"""

from dataclasses import dataclass
from math import inf

from ..errors import ArgumentError
from .binomial import Binomial
from .schedule import Schedule, whole_number


class Keeper:
    """Tells a running loop which states to hold, as they come.

        drop, store = keeper.step(i)      state i is at hand, and step i has not been run yet

    drop    the stored states to let go first, a tuple: one or none of them
    store   whether to store state i

    `states` are those that are stored now, in order: never more than `slots`, and 0 is always among them.
    """

    def __init__(self, slots):
        self.slots = slots
        self.levels = {}  # state: level, in the order of the states
        self.next = 0
        self.row, self.row_start = 0, 0
        self.passing = []  # states that are not held for good, in order
        self.dispensable = []

    @property
    def states(self):
        return list(self.levels)

    def step(self, i):
        """(states to drop, whether to store state i). ArgumentError unless the states come in order, from 0."""
        if i != self.next:
            raise ArgumentError(f"the states of a loop come in order: state {self.next} is next, not {i!r}")
        self.next += 1
        in_rows = i < (self.slots + 1) * (self.slots + 2) // 2 - 1
        drop, level = self.step_in_rows(i) if in_rows else self.step_by_levels()
        for state in drop:
            del self.levels[state]
        if level is not None:
            self.levels[i] = level
        return drop, level is not None

    def step_in_rows(self, i):
        """(states to drop, the level of state i or None), by Stumm and Walther's rows."""
        if i - self.row_start == self.slots + 1 - self.row:
            self.row, self.row_start = self.row + 1, i
        if i == 0:
            return (), inf
        if i == self.row_start:
            return (self.passing.pop(),), 0
        if i - self.row_start == self.slots - self.row:  # the last one of the row
            return (), None
        self.passing.append(i)
        return (self.passing.pop(0),) if self.row else (), 0

    def step_by_levels(self):
        """(states to drop, the level of the state at hand or None), by Wang and Moin's levels."""
        if self.slots == 1:
            return (), None
        if self.dispensable:
            return (self.dispensable.pop(),), 0
        youngest, level = next(reversed(self.levels.items()))
        self.dispensable = [state for state, other in self.levels.items() if other < level]
        return (youngest,), level + 1


@dataclass(frozen=True, repr=False)
class Treeverse(Binomial):
    """Binomial checkpointing that takes the shortest of the first parts that are equally good."""

    @property
    def label(self):
        return f"treeverse({self.slots}{'' if self.early_stop else ', early_stop=False'})"

    def first_part(self, n, slots):
        runs = self.fewest_runs(n, slots)
        if runs == 1:
            return 1
        return max(self.room(slots, runs - 2), n - self.room(slots - 1, runs))


@dataclass(frozen=True, repr=False)
class Online(Schedule):
    slots: int
    early_stop: bool = True

    @property
    def label(self):
        return f"online({self.slots}{'' if self.early_stop else ', early_stop=False'})"

    def keeper(self):
        """A new Keeper, for one run of a loop."""
        return Keeper(self.slots)

    def split(self, n):
        keeper = self.keeper()
        for i in range(n):
            keeper.step(i)
        states = [*keeper.states, n]
        lengths = [end - start for start, end in zip(states, states[1:], strict=False)]
        return [(length, self.replay(length, older)) for older, length in enumerate(lengths)]

    def replay(self, length, older):
        """The schedule of a stretch when `older` states are still held before its own: one slot more to run in."""
        return Treeverse(min(self.slots - older + 1, length), self.early_stop)


def online(slots: int, early_stop: bool = True) -> Schedule:
    """Checkpoints for a loop of unknown length that holds at most `slots` of its states.

    slots       state 0 included; between two steps one more is alive, the running one
    early_stop  a replay leaves out layers whose output nobody reads. False: each step is run once more to be taped

    `keeper()` gives what decides while the loop runs; `split(n)` is what it comes to after n steps. Up to
    (slots + 1)(slots + 2)/2 - 1 steps, at most one more step is replayed than if the length had been known.

    Source: Stumm and Walther 2010, SIAM J. Sci. Comput. 32 (Algorithm I); beyond those steps, Wang, Moin and
    Iaccarino 2009, SIAM J. Sci. Comput. 31, in the variant that Equinox's `checkpointed_while_loop` runs. The
    replays: Griewank 1992, Optim. Methods Softw. 1.

    >>> online(4).plan(14)
    Plan(online(4), 14 layers: peak 5 activations, 10 layers replayed)
    >>> keeper = online(4).keeper()
    >>> [keeper.step(i) for i in range(7)]
    [((), True), ((), True), ((), True), ((), True), ((), False), ((3,), True), ((1,), True)]
    >>> keeper.states
    [0, 2, 5, 6]
    """
    return Online(whole_number(slots, "the number of slots"), bool(early_stop))
