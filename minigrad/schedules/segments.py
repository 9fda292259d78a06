"""Simple splits: equal segments, the best number of them, ever shorter ones, none at all, and nothing but x_0."""

from dataclasses import dataclass

from ..errors import ArgumentError, BudgetError
from .schedule import Schedule, whole_number


@dataclass(frozen=True, repr=False)
class StoreAll(Schedule):
    early_stop: bool = True
    label = "store_all()"

    def split(self, n):
        return [(n, None)]


STORE_ALL = StoreAll()


@dataclass(frozen=True, repr=False)
class FromInput(Schedule):
    label = "from_input()"

    def split(self, n):
        return [(n, None)] if n <= 2 else [(n - 1, self), (1, None)]


def checkpoints(lengths, keep_last, early_stop=True):
    """Parts of these lengths, each a checkpoint whose replay tapes all of it; the last one taped at once."""
    inner = StoreAll(early_stop)
    parts = [(length, inner) for length in lengths]
    if keep_last:
        parts[-1] = (lengths[-1], None)
    return parts


def equal_lengths(n, segments):
    """`segments` lengths that add up to n, as equal as can be, the longer ones first."""
    short, longer = divmod(n, segments)
    return [short + 1] * longer + [short] * (segments - longer)


def check_segments(segments, n):
    if segments > n:
        raise BudgetError(f"{segments} segments were asked of {n} layers; there can be at most {n}")


@dataclass(frozen=True, repr=False)
class Uniform(Schedule):
    segments: int
    keep_last: bool = True
    early_stop: bool = True

    @property
    def label(self):
        options = "" if self.keep_last else ", keep_last=False"
        return f"uniform({self.segments}{options}{'' if self.early_stop else ', early_stop=False'})"

    def split(self, n):
        check_segments(self.segments, n)
        return checkpoints(equal_lengths(n, self.segments), self.keep_last, self.early_stop)


@dataclass(frozen=True, repr=False)
class TorchCompatible(Schedule):
    segments: int
    early_stop: bool = True

    @property
    def label(self):
        return f"torch_compatible({self.segments}{'' if self.early_stop else ', early_stop=False'})"

    def split(self, n):
        check_segments(self.segments, n)
        length, others = n // self.segments, self.segments - 1
        return checkpoints([length] * others + [n - length * others], True, self.early_stop)


@dataclass(frozen=True, repr=False)
class Every(Schedule):
    length: int

    @property
    def label(self):
        return f"every({self.length})"

    def split(self, n):
        full, rest = divmod(n, self.length)
        return checkpoints([self.length] * full + [rest] * (rest > 0), keep_last=True)


@dataclass(frozen=True, repr=False)
class Sqrt(Schedule):
    label = "sqrt()"

    def split(self, n):
        root = int(n**0.5)
        candidates = range(max(1, root // 2), min(n, 2 * root + 2) + 1)
        return Uniform(min(candidates, key=lambda k: k + -(-n // k))).split(n)


@dataclass(frozen=True, repr=False)
class Triangular(Schedule):
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


def from_input() -> Schedule:
    """Hold x_0 and nothing else; for each layer's backward, run again from there: (n - 1)(n - 2)/2 replays.

    The least memory of all: two activations between layers, three while a layer runs.

    >>> from_input().plan(100)
    Plan(from_input(), 100 layers: peak 3 activations, 4851 layers replayed)
    """
    return FromInput()


def uniform(segments: int, keep_last: bool = True, early_stop: bool = True) -> Schedule:
    """`segments` equal segments, longer ones first, the last taped in full: k + n/k - 1 activations live.

    keep_last   tape the last segment at once; False: make a checkpoint of it too
    early_stop  a replay leaves out the last layer of its segment, whose output nobody reads; False: it runs it

    Source: Chen et al. 2016, arXiv:1604.06174. A remainder goes to the first segments, where few boundaries
    are alive. BudgetError when there are more segments than layers.

    >>> uniform(5).split(9)
    [(2, store_all()), (2, store_all()), (2, store_all()), (2, store_all()), (1, None)]
    """
    return Uniform(whole_number(segments, "the number of segments"), bool(keep_last), bool(early_stop))


def torch_compatible(segments: int, early_stop: bool = True) -> Schedule:
    """The segments of torch.utils.checkpoint.checkpoint_sequential: all n // k layers long, the last takes the rest.

    early_stop  a replay leaves out the last layer of its segment, as torch does with use_reentrant=False;
                False: it runs it, as torch does with use_reentrant=True

    The last segment is the worst place for the rest: it is taped in full while the boundaries of all the
    others are alive, whereas beside the first segment there is none. With `uniform(5)` the 9 layers below need 5
    activations; torch needs as many as without checkpoints. BudgetError when there are more segments than layers.

    >>> torch_compatible(5).split(9)
    [(1, store_all()), (1, store_all()), (1, store_all()), (1, store_all()), (5, None)]
    >>> torch_compatible(5).plan(9).peak, uniform(5).plan(9).peak
    (9, 5)
    """
    return TorchCompatible(whole_number(segments, "the number of segments"), bool(early_stop))


def every(length: int) -> Schedule:
    """A checkpoint every `length` layers, and the last, perhaps shorter, segment taped in full."""
    return Every(whole_number(length, "the length of a segment"))


def sqrt() -> Schedule:
    """The number of equal segments k with the smallest k + ceil(n/k) - 1, about 2 sqrt(n): Chen's rule.

    That is the peak when k divides n. When it does not, the longer segments stand first, where fewer
    boundaries are alive, and the peak is one less. For such an n another k may be one better still.

    >>> [sqrt().plan(n).peak for n in (9, 64, 100, 128, 1000)]
    [5, 15, 19, 21, 62]
    """
    return Sqrt()


def triangular() -> Schedule:
    """Ever shorter segments: about sqrt(2n) activations live, and still less than one more forward.

    While segment j is replayed, j boundaries are alive, so it may be j - 1 layers shorter than the first for
    the same peak m; m(m+1)/2 layers fit. It is binomial checkpointing with two runs per layer.

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
    return uniform(schedule)
