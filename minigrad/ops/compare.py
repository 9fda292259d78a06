"""Comparisons and logic. Their results are True and False, and no gradient flows through them."""

from ..engine.device import array_module
from ..engine.op import op


@op
def eq(a, b):
    """a == b, element by element."""
    return a == b


@op
def ne(a, b):
    """a != b, element by element."""
    return a != b


@op
def lt(a, b):
    """a < b, element by element."""
    return a < b


@op
def le(a, b):
    """a <= b, element by element."""
    return a <= b


@op
def gt(a, b):
    """a > b, element by element."""
    return a > b


@op
def ge(a, b):
    """a >= b, element by element."""
    return a >= b


@op
def logical_and(a, b):
    """Whether a and b are both true (not zero)."""
    return array_module(a, b).logical_and(a, b)


@op
def logical_or(a, b):
    """Whether a or b is true (not zero)."""
    return array_module(a, b).logical_or(a, b)


@op
def logical_xor(a, b):
    """Whether one of a and b is true (not zero), and the other is not."""
    return array_module(a, b).logical_xor(a, b)


@op
def logical_not(x):
    """Whether x is not true (zero)."""
    return array_module(x).logical_not(x)


@op
def bitwise_and(a, b):
    """a & b, bit by bit, of integers or booleans."""
    return a & b


@op
def bitwise_or(a, b):
    """a | b, bit by bit, of integers or booleans."""
    return a | b


@op
def bitwise_xor(a, b):
    """a ^ b, bit by bit, of integers or booleans."""
    return a ^ b


@op
def bitwise_not(x):
    """~x, bit by bit, of integers or booleans."""
    return ~x


@op
def isnan(x):
    """Where x is not a number."""
    return array_module(x).isnan(x)


@op
def isfinite(x):
    """Where x is neither infinite nor not a number."""
    return array_module(x).isfinite(x)


@op
def isinf(x):
    """Where x is infinite, on either side."""
    return array_module(x).isinf(x)


@op
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Where |a - b| <= atol + rtol * |b|."""
    return array_module(a, b).isclose(a, b, rtol, atol, equal_nan)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere: a Python bool.

    >>> import minigrad as mg
    >>> allclose(mg.tensor([1.0]), mg.tensor([1.000001]))
    True
    """
    return bool(isclose(a, b, rtol, atol, equal_nan).all())
