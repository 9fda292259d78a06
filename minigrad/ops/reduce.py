"""Sums and what is made of them."""

from ..device import array_module
from ..op import op
from .shape import broadcast_to


@op
def sum(x, axis=None, keepdims=False):
    """The sum over `axis` (all axes if None)."""
    return x.sum(axis=axis, keepdims=keepdims)


@sum.vjp("x")
def sum_wrt_x(g, x_shape, axis, keepdims):
    return broadcast_to(g, x_shape)
