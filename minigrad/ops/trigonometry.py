"""Trigonometric and hyperbolic functions beyond sine, cosine and tanh, and their inverses, element by element."""

from ..engine.device import array_module
from ..engine.op import op
from .common import quiet
from .elementwise import sqrt


@op
def tan(x):
    """The tangent of x in radians. Keeps its output."""
    with quiet():
        return array_module(x).tan(x)


@tan.vjp("x")
def tan_wrt_x(g, out):
    with quiet():
        return g * (1 + out * out)


@op
def asin(x):
    """The angle whose sine is x: nan beyond ±1, where its slope is inf. Keeps x."""
    with quiet():
        return array_module(x).arcsin(x)


@asin.vjp("x")
def asin_wrt_x(g, x):
    with quiet():
        return g / sqrt((1 - x) * (1 + x))  # not 1 - x * x, which loses its digits near 1


@op
def acos(x):
    """The angle whose cosine is x: nan beyond ±1, where its slope is -inf. Keeps x."""
    with quiet():
        return array_module(x).arccos(x)


@acos.vjp("x")
def acos_wrt_x(g, x):
    with quiet():
        return -g / sqrt((1 - x) * (1 + x))


@op
def atan(x):
    """The angle whose tangent is x. Keeps x."""
    return array_module(x).arctan(x)


@atan.vjp("x")
def atan_wrt_x(g, x):
    with quiet():
        return g / (1 + x * x)


@op
def sinh(x):
    """The hyperbolic sine. Keeps x."""
    with quiet():
        return array_module(x).sinh(x)


@sinh.vjp("x")
def sinh_wrt_x(g, x):
    return g * cosh(x)


@op
def cosh(x):
    """The hyperbolic cosine. Keeps x."""
    with quiet():
        return array_module(x).cosh(x)


@cosh.vjp("x")
def cosh_wrt_x(g, x):
    return g * sinh(x)


@op
def asinh(x):
    """The number whose hyperbolic sine is x. Keeps x."""
    return array_module(x).arcsinh(x)


@asinh.vjp("x")
def asinh_wrt_x(g, x):
    with quiet():
        return g / sqrt(1 + x * x)


@op
def acosh(x):
    """The number whose hyperbolic cosine is x: nan below 1, where its slope is inf. Keeps x."""
    with quiet():
        return array_module(x).arccosh(x)


@acosh.vjp("x")
def acosh_wrt_x(g, x):
    with quiet():
        return g / sqrt((x - 1) * (x + 1))


@op
def atanh(x):
    """The number whose hyperbolic tangent is x: nan beyond ±1, where its slope is inf. Keeps x."""
    with quiet():
        return array_module(x).arctanh(x)


@atanh.vjp("x")
def atanh_wrt_x(g, x):
    with quiet():
        return g / ((1 - x) * (1 + x))
