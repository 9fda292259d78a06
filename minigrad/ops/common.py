"""What several families of ops share: shapes that a reduction took away, small checks, a quiet NumPy."""

import math
import operator

import numpy

from ..engine.device import array_module
from ..engine.tensor import Tensor
from ..errors import ArgumentError, IndexingError

NUMBER = (int, float)


def quiet():
    """Let 1/0 be inf and 0/0 nan without a RuntimeWarning: that is what floating point says they are.

    Who wants to know where a nan comes from asks `mg.detect_anomaly()`, which names the op and the line.
    """
    return numpy.errstate(divide="ignore", invalid="ignore", over="ignore")


def module_of(x):
    """The array module of an array, or of the array in a Tensor."""
    return array_module(x._data if isinstance(x, Tensor) else x)


def plain(number):
    """A NumPy scalar as the Python number that it is, so that it promotes nothing; other things as they are."""
    return number.item() if isinstance(number, numpy.generic) else number


def setting_number(op, name, value):
    """A setting of `op` that is a number: from a NumPy scalar or a tensor without a gradient, too."""
    if isinstance(value, Tensor) and value.requires_grad:
        raise ArgumentError(f"{op} takes {name!r} as a number, to which no gradient flows; pass {name}.item()")
    try:
        return value if type(value) in NUMBER else float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{op} takes {name!r} as a number, not {value!r}") from error


def ints(sizes, what="a shape") -> tuple:
    """A shape or axes given as f(2, 3), f((2, 3)) or f([2, 3]): a tuple of plain ints, safe to keep."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    try:
        return tuple([operator.index(size) for size in sizes])
    except TypeError as error:
        raise ArgumentError(f"{what} is made of integers, not of {tuple(sizes)!r}") from error


def checked_axis(axis, ndim) -> int:
    """One axis, counted from the front; the first one if it is None. A scalar counts as having one axis."""
    try:
        axis, ndim = operator.index(0 if axis is None else axis), max(ndim, 1)
    except TypeError as error:
        raise ArgumentError(f"an axis is an integer, not {axis!r}") from error
    if not -ndim <= axis < ndim:
        raise IndexingError(f"axis {axis} does not exist: there are axes from {-ndim} to {ndim - 1}")
    return axis % ndim


def positive_axes(axis, ndim) -> tuple:
    """The axes that `axis` (None, an int, or a tuple) means, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    return tuple([a % ndim for a in axis]) if isinstance(axis, tuple) else (axis % ndim if ndim else axis,)


def count(shape, axis) -> int:
    """How many elements a reduction over `axis` puts into one."""
    return math.prod([shape[a] for a in positive_axes(axis, len(shape))]) if shape else 1


def kept(g, shape, axis, keepdims):
    """`g`, the gradient of a reduction of `shape` over `axis`, in a shape that broadcasts against `shape`."""
    if axis is None or keepdims or not shape:
        return g
    axes = positive_axes(axis, len(shape))
    return g.reshape(tuple([1 if a in axes else length for a, length in enumerate(shape)]))


def wide(x):
    """x, but float16 as float32: so that a sum of many, or of squares, does not overflow on its way."""
    return x.astype("float32") if x.dtype.char == "e" else x


def wide_dtype(x):
    """The dtype of wide(x)."""
    return numpy.dtype("float32") if x.dtype.char == "e" else x.dtype


def narrow(out, x):
    """`out`, computed from wide(x), in the dtype that x has."""
    if x.dtype.char != "e":
        return out
    with quiet():
        return out.astype("float16")
