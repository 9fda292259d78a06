"""What a schedule is: a rule that says which stretches of a chain of layers become checkpoints."""

import operator

from ..errors import ArgumentError, BudgetError
from .plan import Plan, count_plan


class Schedule:
    """A rule for splitting any number of layers. Subclasses define `split`, and may set what follows.

    A part `(length, schedule)` of a split is a checkpoint under that schedule, which says three things of it:
    how a replay splits its layers again, and

    early_stop  a replay does not run a layer whose output nobody reads, such as the last one of a stretch.
                False: a replay runs all its layers, as most frameworks do. A replay that stops early cannot have
                one inside it that does not
    offload     None, or a number: the checkpoint's boundary waits in slow memory, and when one checkpoint is
                replayed, so many boundaries are at hand (its own, and the next ones, fetched ahead)

    Two schedules that are equal split alike; a plan counts each pair of schedule and length once.
    """

    early_stop = True
    offload = None

    def split(self, n):
        """The parts of a stretch of n >= 1 layers, in order: [(length, None | Schedule), ...]."""
        raise TypeError(f"{type(self).__name__} does not say how to split")

    def parts(self, n):
        """`split(n)`, checked: parts of at least one layer that add up to n, each with None or a Schedule."""
        split = self.split(n)
        parts = list(split) if isinstance(split, (list, tuple)) else [split]
        if not all(_is_part(part) for part in parts) or sum(length for length, _ in parts) != n:
            raise ArgumentError(
                f"{self!r} splits {n} layers into {parts!r:.200}; a split is a list of (length, None or Schedule) "
                f"whose lengths are at least 1 and add up to {n}"
            )
        if len(parts) == 1 and parts[0][1] is not None and parts[0][1] == self:
            raise ArgumentError(f"{self!r} splits {n} layers into one part with itself, which would never end")
        return parts

    def parts_of_replay(self, n):
        """`parts(n)` for a replay under this schedule."""
        parts = self.parts(n)
        if self.early_stop and not all(inner is None or inner.early_stop for _, inner in parts):
            raise ArgumentError(
                f"{self!r} stops its replays early, and splits {n} layers into parts one of which does not; what such "
                "a part reads has not been kept. Give both the same early_stop"
            )
        return parts

    def plan(self, n) -> Plan:
        """What this schedule costs on a chain of n layers, counted without running anything.

        >>> import minigrad as mg
        >>> mg.schedules.uniform(10).plan(100)
        Plan(uniform(10), 100 layers: peak 19 activations, 81 layers replayed)
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise BudgetError(f"a plan needs a whole number of layers, at least one layer, not {n!r}")
        return count_plan(self, n)

    def __repr__(self):
        return getattr(self, "label", f"{type(self).__name__}()")


def _is_part(part):
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        return False
    length, inner = part
    return isinstance(length, int) and length >= 1 and (inner is None or isinstance(inner, Schedule))


def whole_number(value, what, least=1) -> int:
    """`value` as an int of at least `least`, or a BudgetError that says what it is the number of."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < least:
        raise BudgetError(f"{what} must be a whole number from {least}, not {value!r:.60}")
    return operator.index(value)
