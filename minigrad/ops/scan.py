"""Running products, maxima and minima along an axis. (The running sum, cumsum, is with the reductions.)"""

import numpy

from ..engine.device import array_module
from ..engine.op import op
from .common import narrow, wide
from .index import scatter_add
from .shape import flip, pad_


@op
def cumprod(x, axis=None):
    """The running product along `axis`, of float16 made in float32; of all elements in order if None. Keeps x."""
    return narrow(wide(x).cumprod(axis=axis), x)


@cumprod.vjp("x")
def cumprod_wrt_x(g, x, axis):
    """With e, the product of all before, dx[i] = e[i] * s[i], and s[i] = g[i] + x[i+1] * s[i+1]. Nothing is divided
    by x, which may be 0."""
    shape, x, g = x.shape, wide(x), wide(g)
    if axis is None or not shape:
        x, g, axis = x.reshape(-1), g.reshape(-1), 0
    axis %= x.ndim
    if x.shape[axis] == 0:
        return g.reshape(shape)
    before = cumprod(moved(x, 1, axis, 1.0), axis=axis)
    after = flip(recurrence(flip(moved(x, -1, axis, 0.0), axis), flip(g, axis), axis), axis)
    return (before * after).reshape(shape)


def recurrence(a, b, axis):
    """s[i] = b[i] + a[i] * s[i-1] along `axis`, in log2(n) passes over the whole array instead of n steps.

    Source: Hillis and Steele, Data parallel algorithms, Communications of the ACM 29 (1986) 1170-1183.
    """
    step = 1
    while step < b.shape[axis]:
        b = b + a * moved(b, step, axis, 0.0)
        a = a * moved(a, step, axis, 0.0)
        step *= 2
    return b


def moved(x, step, axis, fill):
    """The elements `step` places further along `axis` (back, if negative), with `fill` in the places left free."""
    n, before = x.shape[axis], (slice(None),) * axis
    width = (step, 0) if step > 0 else (0, -step)
    part = x[(*before, slice(0, n - step) if step > 0 else slice(-step, n))]
    return pad_(part, widths=((0, 0),) * axis + (width,) + ((0, 0),) * (x.ndim - axis - 1), value=fill)


# ---- Maxima and minima -------------------------------------------------------------------------------


@op
def cummax_(x, axis=0):
    """The largest value so far along `axis`; among equal ones the last has the gradient. Keeps x."""
    return so_far(array_module(x).maximum, x, axis)


@cummax_.vjp("x")
def cummax_wrt_x(g, x, x_shape, axis):
    return given_back(g, cummax_places(x, axis=axis), axis, x_shape)


@op
def cummin_(x, axis=0):
    """The smallest value so far along `axis`; among equal ones the last has the gradient. Keeps x."""
    return so_far(array_module(x).minimum, x, axis)


@cummin_.vjp("x")
def cummin_wrt_x(g, x, x_shape, axis):
    return given_back(g, cummax_places(-x, axis=axis), axis, x_shape)


@op
def cummax_places(x, axis=0):
    """Where the largest value so far along `axis` is: the last of equal ones."""
    xp = array_module(x)
    if x.ndim == 0:
        return xp.zeros((), "int64")
    along = xp.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim))
    return so_far(xp.maximum, xp.where((x == so_far(xp.maximum, x, axis)) | xp.isnan(x), along, 0), axis)


def given_back(g, places, axis, shape):
    return scatter_add(g, places, axis=axis, shape=shape) if shape else g


def so_far(larger, x, axis):
    """Of all elements up to each along `axis` the one that `larger`, an ufunc, chooses."""
    if x.ndim == 0:
        return x.copy()
    if isinstance(x, numpy.ndarray):
        return larger.accumulate(x, axis)
    out, step = array_module(x).moveaxis(x, axis, 0).copy(), 1  # CuPy's ufuncs have no such method
    while step < len(out):
        out[step:] = larger(out[step:], out[:-step].copy())
        step *= 2
    return array_module(x).moveaxis(out, 0, axis)


def cummax(x, axis=0):
    """The largest value so far along `axis`; among equal ones the last has the gradient.

    >>> import minigrad as mg
    >>> cummax(mg.tensor([1, 3, 2]))
    Tensor([1, 3, 3], int64)
    """
    return cummax_(x, axis=axis)


def cummin(x, axis=0):
    """The smallest value so far along `axis`; among equal ones the last has the gradient."""
    return cummin_(x, axis=axis)
