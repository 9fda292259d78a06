"""Ops that work element by element. Inputs broadcast as in NumPy; the sweep sums the gradients back."""

from ..device import array_module
from ..op import op


@op
def add(a, b):
    """a + b, broadcast."""
    return a + b


@add.vjp("a")
def add_wrt_a(g):
    return g


@add.vjp("b")
def add_wrt_b(g):
    return g


@op
def mul(a, b):
    """a * b, broadcast."""
    return a * b


@mul.vjp("a")
def mul_wrt_a(g, b):
    return g * b


@mul.vjp("b")
def mul_wrt_b(g, a):
    return g * a


@op
def tanh(x):
    """The hyperbolic tangent. Keeps its output."""
    return array_module(x).tanh(x)


@tanh.vjp("x")
def tanh_wrt_x(g, out):
    return g * (1 - out * out)
