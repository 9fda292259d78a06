"""The dtype of what has none of its own: Python's floats."""

import numpy

from ..errors import DtypeError

_default = numpy.dtype("float32")


def set_default_dtype(dtype) -> None:
    """Let tensors made from Python floats, and zeros, ones, rand and the like, be of this floating dtype."""
    global _default
    dtype = numpy.dtype(dtype)
    if dtype.kind != "f":
        raise DtypeError(f"the default dtype must be a floating one, not {dtype}")
    _default = dtype


def get_default_dtype() -> numpy.dtype:
    """The dtype that Python floats get.

    >>> get_default_dtype()
    dtype('float32')
    """
    return _default


def number_dtype(*numbers) -> numpy.dtype:
    """The dtype of a tensor of these Python numbers: the default if one is a float, else int64 or bool."""
    dtype = numpy.asarray(numbers).dtype
    return _default if dtype.kind == "f" and all(type(n) in (float, int, bool) for n in numbers) else dtype
