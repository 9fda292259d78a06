"""Powers and logarithms to base 2 and 10, squares, reciprocals, and the way from one tensor to another."""

import math

from ..engine.device import array_module
from ..engine.op import op
from .arithmetic import div, mul
from .common import quiet
from .elementwise import sqrt


@op
def exp2(x):
    """2 to the x. Keeps its output."""
    with quiet():
        return array_module(x).exp2(x)


@exp2.vjp("x")
def exp2_wrt_x(g, out):
    return g * (out * math.log(2))


@op
def log2(x):
    """The logarithm to base 2: -inf at 0, nan below. Keeps x."""
    with quiet():
        return array_module(x).log2(x)


@log2.vjp("x")
def log2_wrt_x(g, x):
    with quiet():
        return g / x * (1 / math.log(2))


@op
def log10(x):
    """The logarithm to base 10: -inf at 0, nan below. Keeps x."""
    with quiet():
        return array_module(x).log10(x)


@log10.vjp("x")
def log10_wrt_x(g, x):
    with quiet():
        return g / x * (1 / math.log(10))


def square(x):
    """x * x."""
    return mul(x, x)


def reciprocal(x):
    """1 / x; inf or nan at 0."""
    return div(1.0, x)


def rsqrt(x):
    """1 / sqrt(x); inf at 0, nan below."""
    return div(1.0, sqrt(x))


def lerp(start, end, weight):
    """start + weight * (end - start): from start at weight 0 to end at weight 1, along a straight line.

    >>> import minigrad as mg
    >>> lerp(mg.tensor([0.0, 1.0]), mg.tensor([4.0, 1.0]), 0.25)
    Tensor([1., 1.], float32)
    """
    return start + weight * (end - start)
