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
    half = x.dtype.char == "e"
    dtype = "float32" if half else None
    if type(x) is not numpy.ndarray:
        out = x.sum(axis=axis, dtype=dtype, keepdims=keepdims)
    elif x.size <= LONG or x.ndim == 1 or x.dtype.kind != "f" or (type(axis) is int and max(x.shape) <= LONG):
        out = numpy.add.reduce(x, axis, dtype, None, keepdims)
    else:
        out = in_runs(x, axis, keepdims, dtype)
    if not half:
        return out
    with numpy.errstate(over="ignore"):  # inf, if it is more than float16 can say
        return out.astype("float16")


def in_runs(x, axis, keepdims, dtype):
    """`total` of a NumPy array, added up in `dtype`."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {a % x.ndim for a in given if -x.ndim <= a < x.ndim}
    if len(axes) < len(given) or math.prod([x.shape[a] for a in axes]) <= LONG:  # NumPy says what is wrong with axes
        return numpy.add.reduce(x, axis, dtype, None, keepdims)
    gapless = {a for a in axes if x.strides[a] == x.itemsize or (x.flags.c_contiguous and axes >= {*range(a, x.ndim)})}
    one_by_one = axes - gapless
    if math.prod([x.shape[a] for a in one_by_one]) <= LONG:
        return numpy.add.reduce(x, axis, dtype, None, keepdims)
    a = max(one_by_one, key=x.shape.__getitem__)
    if x.shape[a] <= LONG:
        return in_runs(numpy.add.reduce(x, a, dtype, None, True), axis, keepdims, dtype)
    head, tail = numpy.split(x, [x.shape[a] // RUN * RUN], a)
    head = head.reshape(x.shape[:a] + (-1, RUN) + x.shape[a + 1 :])
    sums = [numpy.add.reduce(head, a + 1, dtype), numpy.add.reduce(tail, a, dtype, None, True)]
    return in_runs(numpy.concatenate(sums, a), axis, keepdims, dtype)
