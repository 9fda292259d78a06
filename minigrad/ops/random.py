"""Dropout: a random op that keeps no mask.

Its randomness is a *key*, a setting of the op like any other. The same key gives the same mask again: in
backward, and in a checkpoint's replay. Nothing is drawn twice, and nothing is stored.
"""

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError
from .common import setting_number
from .keys import next_key, uniform


@op
def dropout_(x, p=0.5, key=(0, 0)):
    """x with each element 0 with probability p, and divided by 1 - p otherwise. Keeps nothing, not even the mask."""
    xp = array_module(x)
    if p == 1:
        return xp.zeros_like(x)
    return xp.where(uniform(key, x.shape, xp) >= p, x * (1 / (1 - p)), 0.0)


@dropout_.vjp("x")
def dropout_wrt_x(g, p, key):
    return dropout_(g, p=p, key=key)


def dropout(x, p=0.5, training=True):
    """x with each element 0 with probability p, and divided by 1 - p otherwise; x itself if not training."""
    p = setting_number("dropout", "p", p)
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout needs a probability from 0 to 1, not {p!r}")
    if not training or p == 0:
        return x
    return dropout_(x, p=float(p), key=next_key())
