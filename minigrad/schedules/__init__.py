"""Schedules: which stretches of a chain of layers become checkpoints. Integers only: no arrays, no engine.

A schedule answers one question. For a stretch of n layers, which parts are taped in full, and which become
smaller checkpoints, with what schedule for each?

    schedule.split(n) -> [(length, None), (length, Schedule), ...]      lengths add up to n

None means taped in full. A part with a Schedule is a checkpoint; when it is replayed, that schedule is
asked how to split it again. Forward and replay both ask, so a schedule is a tree that is unfolded as it is
walked, and `schedule.plan(n)` can count what it will cost before anything runs.

Conventions for counting (`Plan`) are those of the reference chain of `h @ W` layers: a layer reads its
input, x_0 counts, the last output does not; while a replay runs a layer, its input and its output both do.
"""

import operator

from ..errors import ArgumentError, BudgetError
from .plan import Plan, count_plan

__all__ = ["Schedule", "Plan", "store_all", "uniform", "every", "sqrt", "triangular", "as_schedule"]


class Schedule:
    """A rule for splitting any number of layers. Subclasses define `split`."""

    def split(self, n):
        """The parts of a stretch of n >= 1 layers, in order: [(length, None | Schedule), ...]."""
        raise TypeError(f"{type(self).__name__} does not say how to split")

    def parts(self, n):
        """`split(n)`, checked: parts of at least one layer that add up to n, each with None or a Schedule."""
        parts = list(self.split(n))
        if not all(_is_part(part) for part in parts) or sum(length for length, _ in parts) != n:
            raise ArgumentError(
                f"{self!r} splits {n} layers into {parts!r:.200}; a split is a list of (length, None or Schedule) "
                f"whose lengths are at least 1 and add up to {n}"
            )
        if len(parts) == 1 and parts[0][1] is self:
            raise ArgumentError(f"{self!r} splits {n} layers into one part with itself, which would never end")
        return parts

    def plan(self, n) -> Plan:
        """What this schedule costs on a chain of n layers, counted without running anything.

        >>> uniform(10).plan(100)
        Plan(uniform(10), 100 layers: peak 19 activations, 81 layers replayed)
        """
        if not isinstance(n, int) or n < 1:
            raise BudgetError(f"a plan needs a whole number of layers, at least one layer, not {n!r}")
        return count_plan(self, n)

    def __repr__(self):
        return getattr(self, "label", f"{type(self).__name__}()")

    def _segments(self, lengths, last_taped):
        parts = [(length, STORE_ALL) for length in lengths]
        if last_taped:
            parts[-1] = (lengths[-1], None)
        return parts


def _is_part(part):
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        return False
    length, inner = part
    return isinstance(length, int) and length >= 1 and (inner is None or isinstance(inner, Schedule))


class StoreAll(Schedule):
    label = "store_all()"

    def split(self, n):
        return [(n, None)]


STORE_ALL = StoreAll()


class Uniform(Schedule):
    """`segments` segments as equal as can be, the longer ones first, the last one taped in full."""

    def __init__(self, segments):
        if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
            raise BudgetError(f"the number of segments must be a whole number from 1, not {segments!r}")
        self.segments, self.label = segments, f"uniform({segments})"

    def split(self, n):
        if self.segments > n:
            raise BudgetError(f"{self.segments} segments were asked of {n} layers; there can be at most {n}")
        short, longer = divmod(n, self.segments)
        lengths = [short + 1] * longer + [short] * (self.segments - longer)
        return self._segments(lengths, last_taped=True)


class Every(Schedule):
    """A checkpoint every `length` layers; the last segment, which may be shorter, is taped in full."""

    def __init__(self, length):
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise BudgetError(f"the length of a segment must be a whole number from 1, not {length!r}")
        self.length, self.label = length, f"every({length})"

    def split(self, n):
        full, rest = divmod(n, self.length)
        return self._segments([self.length] * full + [rest] * (rest > 0), last_taped=True)


class Sqrt(Schedule):
    """Equal segments, as many as make k + ceil(n/k) - 1 smallest: about 2 sqrt(n) activations live."""

    label = "sqrt()"

    def split(self, n):
        root = int(n**0.5)
        candidates = range(max(1, root // 2), min(n, 2 * root + 2) + 1)
        return Uniform(min(candidates, key=lambda k: k + -(-n // k))).split(n)


class Triangular(Schedule):
    """Segments of m, m-1, m-2, ... layers: about sqrt(2n) activations live, one replay per layer at most.

    While segment j is replayed, j boundaries are alive, so it may be j - 1 layers shorter than the first for
    the same peak m; m(m+1)/2 layers fit. It is binomial checkpointing with two runs per layer.
    """

    label = "triangular()"

    def split(self, n):
        m = 1
        while m * (m + 1) // 2 < n:
            m += 1
        lengths, left = [], n
        for j in range(m):
            lengths.append(min(m - j, left - (m - j - 1)))
            left -= lengths[-1]
        return [(length, STORE_ALL if length > 1 else None) for length in lengths]


def store_all() -> Schedule:
    """Tape every layer: n activations live, nothing replayed."""
    return STORE_ALL


def uniform(segments: int) -> Schedule:
    """`segments` equal segments, longer ones first, the last taped in full: k + n/k - 1 activations live.

    Source: Chen et al. 2016, arXiv:1604.06174. A remainder goes to the first segments, where few boundaries
    are alive. BudgetError when there are more segments than layers.

    >>> uniform(5).split(9)
    [(2, store_all()), (2, store_all()), (2, store_all()), (2, store_all()), (1, None)]
    """
    return Uniform(segments)


def every(length: int) -> Schedule:
    """A checkpoint every `length` layers, and the last, perhaps shorter, segment taped in full."""
    return Every(length)


def sqrt() -> Schedule:
    """The best number of equal segments: the k with the smallest k + ceil(n/k) - 1, about 2 sqrt(n).

    That is the peak when k divides n. When it does not, the longer segments stand first, where fewer
    boundaries are alive, and the peak is one less.

    >>> [sqrt().plan(n).peak for n in (9, 64, 100, 128, 1000)]
    [5, 15, 19, 21, 62]
    """
    return Sqrt()


def triangular() -> Schedule:
    """Ever shorter segments: about sqrt(2n) activations live, and still less than one more forward.

    >>> triangular().plan(100)
    Plan(triangular(), 100 layers: peak 14 activations, 86 layers replayed)
    """
    return Triangular()


def as_schedule(schedule) -> Schedule:
    """A Schedule; an int becomes that many segments."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, bool) or not hasattr(schedule, "__index__"):
        raise ArgumentError(
            f"a schedule is a Schedule, such as mg.schedules.sqrt(), or a number of segments, not {schedule!r:.60}"
        )
    return Uniform(operator.index(schedule))
