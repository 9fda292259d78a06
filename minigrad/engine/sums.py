"""Adding up many numbers, and rounding once.

float16 stops counting at 2048, as 2048 + 1 is no float16, and ends at 65504. So its sums are made in float32.

NumPy adds along an axis that lies in memory without gaps in pairs of pairs, and loses nothing worth mentioning. Along
other axes, the first of a matrix for one, it adds row after row to one row of sums, and after 10⁶ rows of float32 the
sums are 1 % off. So long axes are cut into runs: the sums of the runs are as good as short sums are, and then added
in the same manner. Source: Higham 1993, The accuracy of floating point summation, on blocked sums.
"""

import math

import numpy

RUN = 128  # numbers that are added one after another
LONG = 1024  # up to here one after another is good enough


def total(x, axis=None, keepdims=False):
    """The sum of an array over `axis` (None: all, an int, or a tuple), in the dtype that NumPy's sum has.

    >>> float(total(numpy.ones((5000, 2), "float16"), 0)[0])
    5000.0
    """
    if type(x) is numpy.ndarray:
        if x.dtype.char != "e":
            if x.size <= LONG or axis is None or x.ndim == 1 or x.dtype.kind != "f":
                return numpy.add.reduce(x, axis, None, None, keepdims)
            return in_runs(x, axis, keepdims, None)
        out = in_runs(x, axis, keepdims, numpy.float32)
    elif x.dtype != "float16":
        return x.sum(axis=axis, keepdims=keepdims)
    else:
        out = x.sum(axis=axis, dtype="float32", keepdims=keepdims)
    with numpy.errstate(over="ignore"):  # inf, if it is more than float16 can say
        return out.astype("float16")


def in_runs(x, axis, keepdims, dtype):
    """`total` of a NumPy array, added up in `dtype`."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {a % x.ndim for a in given if -x.ndim <= a < x.ndim}
    if len(axes) < len(given):
        return numpy.add.reduce(x, axis, dtype, None, keepdims)  # which says what is wrong with them
    one_by_one = [a for a in axes if x.strides[a] != x.itemsize and not lies_in_one_piece(x, axes, a)]
    if math.prod([x.shape[a] for a in one_by_one]) <= LONG:
        return numpy.add.reduce(x, axis, dtype, None, keepdims)
    a = max(one_by_one, key=x.shape.__getitem__)
    if x.shape[a] <= LONG:
        return in_runs(numpy.add.reduce(x, a, dtype, None, True), axis, keepdims, dtype)
    runs, before = x.shape[a] // RUN, (slice(None),) * a
    head, tail = x[(*before, slice(runs * RUN))], x[(*before, slice(runs * RUN, None))]
    head = head.reshape(x.shape[:a] + (runs, RUN) + x.shape[a + 1 :])
    sums = [numpy.add.reduce(head, a + 1, dtype), numpy.add.reduce(tail, a, dtype, None, True)]
    return in_runs(numpy.concatenate(sums, a), axis, keepdims, dtype)


def lies_in_one_piece(x, axes, first):
    """Whether NumPy sees the axes from `first` on as one, without gaps."""
    return x.flags.c_contiguous and all([a in axes for a in range(first, x.ndim)])
