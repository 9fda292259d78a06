"""Random numbers from keys.

A generator that hands out numbers one after another cannot go back. A *key* can: it is a pair of integers, the
seed and a count, and the numbers of a key are always the same. An op that needs randomness takes the next key
when it is first called, and keeps it as a setting, so that a replay draws the same numbers and nothing new.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011), for generators that count (NumPy
has their Philox).

>>> manual_seed(0)
>>> key = next_key()
>>> key
(0, 1)
>>> bool((uniform(key, (3,)) == uniform(key, (3,))).all())
True
"""

import operator
import os
import threading

import numpy

from ..errors import ArgumentError

_lock = threading.Lock()
_seed, _count = int.from_bytes(os.urandom(8), "little"), 0


def manual_seed(seed: int) -> None:
    """Begin anew: from here on the same program draws the same numbers. One seed serves all threads."""
    global _seed, _count
    try:
        seed = operator.index(seed)
    except TypeError as error:
        raise ArgumentError(f"a seed is an integer, not {seed!r}") from error
    with _lock:
        _seed, _count = seed % 2**64, 0


def next_key() -> tuple:
    """A key that nobody has had since the last manual_seed: (seed, count)."""
    global _count
    with _lock:
        _count += 1
        return _seed, _count


def generator(key):
    """NumPy's generator that a key stands for."""
    return numpy.random.Generator(numpy.random.Philox(key=numpy.array(key, numpy.uint64)))


def uniform(key, shape, xp=numpy):
    """The numbers of a key, uniform in [0, 1) and float32, as an array of NumPy or of the module `xp`.

    They come from the CPU on every device, so that a seed gives the same program everywhere.
    """
    return xp.asarray(generator(key).random(shape, numpy.float32))
