"""Ops that make one number of many along `axis` (None: all axes, an int, or a tuple), and their kin.

With keepdims the axes stay, with length 1. `kept(g, ...)` brings a gradient into that shape, in which it
broadcasts against the input.
"""

import functools
import math

import numpy

from ..engine.device import array_module
from ..engine.op import op
from ..engine.sums import LONG, total
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError
from .arithmetic import maximum, where_
from .common import checked_axis, count, kept, narrow, positive_axes, quiet, setting_number, wide, wide_dtype
from .elementwise import abs_, exp, sign
from .index import gather
from .shape import broadcast_to_, flip, pad_, permute_, stack_


@op
def sum_(x, axis=None, keepdims=False):
    """The sum over `axis`, of float16 made in float32. Keeps nothing."""
    return total(x, axis, keepdims)


@sum_.vjp("x")
def sum_wrt_x(g, x_shape, axis, keepdims):
    return spread(kept(g, x_shape, axis, keepdims), x_shape)


def spread(g, shape):
    """`g` repeated to `shape`, as a view that takes no memory."""
    if isinstance(g, Tensor):
        return broadcast_to_(g, shape=shape)
    return broadcast_to_.forward(g, shape)


@op
def mean(x, axis=None, keepdims=False):
    """The mean over `axis`; nan where there is nothing. float16 is added up in float32. Keeps nothing."""
    if x.dtype.kind != "f":
        return x.mean(axis=axis, keepdims=keepdims)
    n = count(x.shape, axis)
    if n == 0:
        with quiet():
            return total(x, axis, keepdims) / 0.0
    return narrow(total(wide(x), axis, keepdims) / n, x)


@mean.vjp("x")
def mean_wrt_x(g, x_shape, axis, keepdims):
    share = narrow(wide(g) * (1 / (count(x_shape, axis) or 1)), g)
    return spread(kept(share, x_shape, axis, keepdims), x_shape)


@op
def var(x, axis=None, correction=0, keepdims=False):
    """The mean squared distance from the mean, divided by n - correction instead of n. Keeps x."""
    distances = deviations(wide(x), axis, mean.forward)
    with quiet():
        return narrow(total(distances * distances, axis, keepdims) / degrees(x, axis, correction), x)


@var.vjp("x")
def var_wrt_x(g, x, axis, correction, keepdims):
    g, x, scale = wide(g), wide(x), 2 * one_over(count(x.shape, axis) - correction)
    return kept(g, x.shape, axis, keepdims) * scale * deviations(x, axis, mean)


@op
def std(x, axis=None, correction=0, keepdims=False):
    """The square root of `var`; its gradient is 0 where all values are equal. Keeps x and its output."""
    distances = deviations(wide(x), axis, mean.forward)
    with quiet():
        return narrow(root_of_squares(distances, axis, keepdims, degrees(x, axis, correction)), x)


@std.vjp("x")
def std_wrt_x(g, x, out, axis, correction, keepdims):
    g, x, out, scale = wide(g), wide(x), wide(out), one_over(count(x.shape, axis) - correction)
    slope = kept(g * scale / where_(out == 0, 1.0, out), x.shape, axis, keepdims)
    return slope * deviations(x, axis, mean)


def degrees(x, axis, correction):
    """What the sum of squared distances is divided by; a float, as NumPy would divide float16 in float64 otherwise."""
    return float(max(count(x.shape, axis) - correction, 0))


def root_of_squares(x, axis, keepdims, n=1.0):
    """sqrt(Σ x² / n) over `axis` of an array. Where the squares leave the dtype's range, x is divided by its largest
    element before and the root is multiplied by it after."""
    xp = array_module(x)
    with quiet():
        squares = total(x * x, axis, keepdims)
        if xp.all((squares > smallest_square(x.dtype.char)) & (squares < math.inf)):
            return xp.sqrt(squares / n if n != 1 else squares)
        top = largest(x, axis)
        root = xp.sqrt(total((x / top) ** 2, axis, keepdims) / n)
        return root * top.reshape(root.shape)


@functools.cache
def smallest_square(char):
    """The smallest sum of squares in this dtype that has all its digits."""
    limits = numpy.finfo(char)
    return float(limits.tiny) / float(limits.eps)


def largest(x, axis):
    """The largest |x| along `axis`, kept as an axis of length 1; and 1 where that is 0, infinite or not there."""
    xp = array_module(x)
    if x.size == 0:
        return total(x, axis, True) + xp.ones((), x.dtype)
    top = xp.abs(x).max(axis=axis, keepdims=True)
    return xp.where((top > 0) & (top < math.inf), top, xp.ones((), x.dtype))


def deviations(x, axis, mean):
    """x minus its mean. The second pass takes off what rounding left, so equal values deviate by exactly 0."""
    first = x - mean(x, axis, True)
    return first - mean(first, axis, True)


def one_over(n):
    return 1 / n if n > 0 else math.nan


@op
def max_(x, axis=None, keepdims=False):
    """The largest value over `axis`; equal ones share the gradient. Keeps x and its output."""
    return x.max(axis=axis, keepdims=keepdims)


@max_.vjp("x")
def max_wrt_x(g, x, out, axis, keepdims):
    return shared_by_equals(g, x, out, axis, keepdims)


@op
def min_(x, axis=None, keepdims=False):
    """The smallest value over `axis`; equal ones share the gradient. Keeps x and its output."""
    return x.min(axis=axis, keepdims=keepdims)


@min_.vjp("x")
def min_wrt_x(g, x, out, axis, keepdims):
    return shared_by_equals(g, x, out, axis, keepdims)


def shared_by_equals(g, x, out, axis, keepdims):
    """The gradient of a reduction that picks a value: divided among all elements that have this value."""
    g = wide(g)
    equal = (x == kept(out, x.shape, axis, keepdims)).astype(g.dtype)
    with quiet():
        return kept(g, x.shape, axis, keepdims) / sum_(equal, axis=axis, keepdims=True) * equal


@op
def prod(x, axis=None, keepdims=False):
    """The product over `axis`, of float16 made in float32. Keeps x."""
    return narrow(wide(x).prod(axis=axis, keepdims=keepdims), x)


@prod.vjp("x")
def prod_wrt_x(g, x, axis, keepdims):
    """g times the product of the *other* elements: out / x would be nan wherever x is 0."""
    gone, n = positive_axes(axis, x.ndim), count(x.shape, axis)
    if n < 2:
        return g.reshape(x.shape) if n else x
    order = tuple([a for a in range(x.ndim) if a not in gone]) + gone
    moved = permute_(x, axes=order)
    rows = wide(moved).reshape(moved.shape[: x.ndim - len(gone)] + (n,))
    others = product_of_others(rows).reshape(moved.shape)
    back = tuple([order.index(a) for a in range(x.ndim)])
    return kept(wide(g), x.shape, axis, keepdims) * permute_(others, axes=back)


def product_of_others(x):
    """For each element along the last axis, the product of all the others; only by multiplying.

    What is missing from the product of a pair's others is the pair's other element. So: multiply pairs,
    solve the problem of half the length, and multiply each answer by the partner.
    """
    n = x.shape[-1]
    if n == 2:
        return flip(x, -1)
    if n % 2:
        one_more = ((0, 0),) * (x.ndim - 1) + ((0, 1),)
        return product_of_others(pad_(x, widths=one_more, value=1.0))[..., :n]
    left, right = x[..., 0::2], x[..., 1::2]
    others = product_of_others(left * right)
    return stack_(others * right, others * left, axis=-1).reshape(x.shape)


@op
def norm_(x, p=2, axis=None, keepdims=False):
    """(Σ |x|^p)^(1/p) over `axis`, for a finite p > 0. Keeps x and its output."""
    if p == 2:
        return narrow(root_of_squares(wide(x), axis, keepdims), x)
    size = array_module(x).abs(wide(x))
    if p == 1:
        out = total(size, axis, keepdims)
    else:
        top = largest(size, axis)  # no power of a number up to 1 is too large
        with quiet():
            out = total((size / top) ** p, axis, keepdims) ** (1 / p)
            out = out * top.reshape(out.shape)
    return narrow(out, x)


@norm_.vjp("x")
def norm_wrt_x(g, x, out, p, axis, keepdims):
    """g * sign(x) * (|x| / out)^(p-1), and 0 where the norm is 0, its smallest subgradient."""
    g = kept(g, x.shape, axis, keepdims)
    if p == 1:
        return g * sign(x)
    g, x, out = wide(g), wide(x), wide(out)
    share = x / kept(where_(out == 0, 1.0, out), x.shape, axis, keepdims)
    if p == 2:
        return g * share
    size = abs_(share)
    return g * sign(x) * where_(size == 0, 1.0, size) ** (p - 1)


def norm(x, p=2, axis=None, keepdims=False):
    """(Σ |x|^p)^(1/p) over `axis`; p = inf is the largest |x|. The gradient of a zero vector is zero.

    >>> import minigrad as mg
    >>> norm(mg.tensor([3.0, 4.0]))
    Tensor(5., float32)
    """
    p = setting_number("norm", "p", p)
    if not p > 0:
        raise ArgumentError(f"norm needs p > 0, not {p!r}")
    if p == math.inf:
        return max_(abs_(x), axis=axis, keepdims=keepdims)
    return norm_(x, p=p, axis=axis, keepdims=keepdims)


def normalize(x, p=2, axis=1, eps=1e-12):
    """x divided by its p-norm along `axis`, or by eps where the norm is smaller.

    >>> import minigrad as mg
    >>> normalize(mg.tensor([[3.0, 4.0]]))
    Tensor([[0.6, 0.8]], float32)
    """
    if x.dtype.kind != "f":
        raise DtypeError(f"normalize needs a floating dtype, not {x.dtype}")
    eps = max(eps, float(array_module().finfo(x.dtype).tiny))  # in float16, 1e-12 is 0
    return x / maximum(norm(x, p, axis, keepdims=True), eps)


@op
def logsumexp(x, axis=None, keepdims=False):
    """log(Σ exp(x)) over `axis`, without overflow. Keeps x."""
    x, given = wide(x), x
    top = finite_maximum(x, axis)
    with quiet():
        sizes = total(array_module(x).exp(x - top), axis, keepdims)
        return narrow(array_module(x).log(sizes) + top.reshape(sizes.shape), given)


@logsumexp.vjp("x")
def logsumexp_wrt_x(g, x, axis, keepdims):
    """The softmax, and not exp(x - out): far from 0, `out` has lost the digits that this would need."""
    x = wide(x)
    weights = where_(x == -math.inf, 0.0, softmax(x, axis))
    return kept(wide(g), x.shape, axis, keepdims) * weights


def finite_maximum(x, axis):
    """The maximum along `axis`, kept as an axis of length 1; 0 where it is infinite or there is nothing.

    It is subtracted before exp(), where any number would do, and inf - inf must not become nan.
    """
    xp = array_module(x)
    if x.size == 0:
        return total(x, axis, True)
    top = x.max(axis=axis, keepdims=True)
    return xp.where(xp.isfinite(top), top, 0)


@op
def softmax(x, axis=-1):
    """exp(x) / Σ exp(x) along `axis`, without overflow; nan if all of x is -inf. Keeps its output."""
    x, given = wide(x), x
    with quiet():
        out = array_module(x).exp(x - finite_maximum(x, axis))
        return narrow(out / total(out, axis, True), given)


@softmax.vjp("x")
def softmax_wrt_x(g, out, axis):
    g, out = wide(g), wide(out)
    return out * (g - sum_(g * out, axis=axis, keepdims=True))


@op
def log_softmax(x, axis=-1):
    """x - log(Σ exp(x)) along `axis`, without overflow. Keeps its output."""
    x, given = wide(x), x
    shifted = x - finite_maximum(x, axis)
    with quiet():
        return narrow(shifted - array_module(x).log(total(array_module(x).exp(shifted), axis, True)), given)


@log_softmax.vjp("x")
def log_softmax_wrt_x(g, out, axis):
    g, out = wide(g), wide(out)
    return g - exp(out) * sum_(g, axis=axis, keepdims=True)


@op
def cumsum(x, axis=None):
    """The running sum along `axis`; of all elements in order if None. Keeps nothing.

    float16 is added up in float32, and what is long and float32 in float64.
    """
    dtype = wide_dtype(x)
    if dtype == "float32" and (x.size if axis is None or not x.shape else x.shape[axis]) > LONG:
        dtype = "float64"
    out = x.cumsum(axis=axis) if dtype == x.dtype or x.dtype.kind != "f" else x.cumsum(axis=axis, dtype=dtype)
    with quiet():
        return out if x.dtype.kind != "f" else out.astype(x.dtype, copy=False)


@cumsum.vjp("x")
def cumsum_wrt_x(g, x_shape, axis):
    along = 0 if axis is None else axis
    return flip(cumsum(flip(g, along), along), along).reshape(x_shape)


@op
def argmax(x, axis=None, keepdims=False):
    """The position of the largest value along `axis` (in the flattened array if None), the first if several."""
    return x.argmax(axis=axis, keepdims=keepdims)


@op
def argmin(x, axis=None, keepdims=False):
    """The position of the smallest value along `axis` (in the flattened array if None), the first if several."""
    return x.argmin(axis=axis, keepdims=keepdims)


@op
def argsort(x, axis=-1, descending=False):
    """The positions that put x in order along `axis` (in the flattened array if None); equal values stay in order."""
    if axis is None or x.ndim == 0:
        return argsort.forward(x.reshape(-1), checked_axis(axis, 1), descending).reshape(x.shape if x.ndim == 0 else -1)
    xp = array_module(x)
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    from_the_end = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(from_the_end, axis)


@op
def sort(x, axis=-1, descending=False):
    """The values in order along `axis`; all of them, flattened, if None. Keeps x."""
    if axis is None or x.ndim == 0:
        return sort.forward(x.reshape(-1), checked_axis(axis, 1), descending).reshape(x.shape if x.ndim == 0 else -1)
    out = array_module(x).sort(x, axis=axis)
    return array_module(x).flip(out, axis) if descending else out


@sort.vjp("x")
def sort_wrt_x(g, x, axis, descending):
    if axis is None or x.ndim == 0:
        return sort_wrt_x(g.reshape(-1), x.reshape(-1), 0, descending).reshape(x.shape)
    where_it_went = argsort(argsort(x, axis=axis, descending=descending), axis=axis)
    return gather(g, axis, where_it_went)


@op
def all_(x, axis=None, keepdims=False):
    """Whether all are true (not zero) along `axis`."""
    return x.all(axis=axis, keepdims=keepdims)


@op
def any_(x, axis=None, keepdims=False):
    """Whether any is true (not zero) along `axis`."""
    return x.any(axis=axis, keepdims=keepdims)
