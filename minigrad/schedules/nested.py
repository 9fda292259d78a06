"""Segments in segments: each is split into k again, down to single layers. Logarithmic memory."""

from dataclasses import dataclass

from .schedule import Schedule, whole_number
from .segments import equal_lengths


@dataclass(frozen=True, repr=False)
class Nested(Schedule):
    k: int
    early_stop: bool = True

    @property
    def label(self):
        return f"nested({self.k}{'' if self.early_stop else ', early_stop=False'})"

    def split(self, n):
        """Of k segments the first k - 1 become checkpoints; the last is split in the same way, here and now.

        Longer ones come last: of two halves, the first is what is run again.
        """
        parts, tail = [], self.k if self.early_stop else 1
        while n > tail:
            *lengths, n = reversed(equal_lengths(n, min(self.k, n)))
            parts += [(length, self.inner(length)) for length in lengths]
        return [*parts, (n, None)]

    def inner(self, length):
        """A single layer is taped, unless its replay is to run it."""
        return None if length == 1 and self.early_stop else self


@dataclass(frozen=True, repr=False)
class Bisection(Nested):
    k: int = 2

    @property
    def label(self):
        return "bisection()" if self.early_stop else "bisection(early_stop=False)"


def nested(k: int, early_stop: bool = True) -> Schedule:
    """k equal segments, each of them k segments again, and so on: d (k - 1) + 1 activations for k^d layers.

    k           at least 2; k or fewer layers are taped in full
    early_stop  a replay leaves out layers whose output nobody reads; False: it runs all its layers

    With early_stop, k^d layers take d (k - 1) k^(d - 1) - (k^d - 1) replays.

    Source: Chen et al. 2016, arXiv:1604.06174, who keep k boundaries for k + 1 segments.

    >>> nested(4).plan(64)
    Plan(nested(4), 64 layers: peak 10 activations, 81 layers replayed)
    """
    return Nested(whole_number(k, "the number of segments that each segment is split into", least=2), bool(early_stop))


def bisection(early_stop: bool = True) -> Schedule:
    """The first half is a checkpoint, the second half is halved again: log2 n + 1 activations, n log2 n runs.

    early_stop  a replay leaves out layers whose output nobody reads. False: it runs all its layers, which is
                what checkpoints in recursive user code do, and half of n log2 n layers are run again

    It is `nested(2)`. Source: Chen et al. 2016, arXiv:1604.06174; Siskind and Pearlmutter 2018, Optim. Methods
    Softw. 33, for programs that are no chains.

    >>> [bisection(early_stop).plan(64).extra_forwards for early_stop in (True, False)]
    [129, 192]
    """
    return Bisection(early_stop=bool(early_stop))
