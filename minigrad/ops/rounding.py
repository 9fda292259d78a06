"""Rounding. What is flat has the slope 0; the remainder of a division that is rounded towards 0 has a slope."""

from ..engine.device import array_module
from ..engine.op import op
from .common import quiet


@op
def floor(x):
    """The largest whole number that is not above x. Its gradient is zero wherever it has one. Keeps nothing."""
    return array_module(x).floor(x)


@op
def ceil(x):
    """The smallest whole number that is not below x. Its gradient is zero wherever it has one. Keeps nothing."""
    return array_module(x).ceil(x)


@op
def trunc(x):
    """x without its digits after the point. Its gradient is zero wherever it has one. Keeps nothing."""
    return array_module(x).trunc(x)


@op
def round_(x, decimals=0):
    """x rounded to so many decimals, halves to the even one. Its gradient is zero wherever it has one."""
    return array_module(x).round(x, decimals)


@floor.vjp("x")
def floor_wrt_x(g):
    return g * 0


@ceil.vjp("x")
def ceil_wrt_x(g):
    return g * 0


@trunc.vjp("x")
def trunc_wrt_x(g):
    return g * 0


@round_.vjp("x")
def round_wrt_x(g):
    return g * 0


@op
def fmod(a, b):
    """a - trunc(a / b) * b, with the sign of a (`remainder` has that of b). Keeps a and b if b needs a gradient."""
    with quiet():
        return array_module(a, b).fmod(a, b)


@fmod.vjp("a")
def fmod_wrt_a(g):
    return g


@fmod.vjp("b")
def fmod_wrt_b(g, a, b):
    with quiet():
        return -g * trunc(a / b)
