"""Ops that move elements and compute nothing. None of them keeps a buffer: their vjps read shapes and settings."""

import itertools
import math

import numpy

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, ShapeError
from .common import checked_axis, ints

FEW = 16  # of so many inputs or parts, it is cheaper to treat each by itself


@op
def reshape_(x, shape=()):
    """The same elements, in order, in another shape."""
    return x.reshape(shape)


@reshape_.vjp("x")
def reshape_wrt_x(g, x_shape):
    return g.reshape(x_shape)


def reshape(x, *shape):
    """The same elements, in order, in another shape; one length may be -1. reshape(x, 2, 3) or (x, (2, 3))."""
    return reshape_(x, shape=ints(shape))


def flatten(x, start_axis=0, end_axis=-1):
    """Make one axis of all those from `start_axis` to `end_axis`, which is included, as in torch."""
    start, end = checked_axis(start_axis, x.ndim), checked_axis(end_axis, x.ndim)
    if start > end:
        raise ArgumentError(f"flatten goes from an earlier to a later axis, not from {start_axis} to {end_axis}")
    shape = x.shape or (1,)
    return reshape_(x, shape=shape[:start] + (math.prod(shape[start : end + 1]),) + shape[end + 1 :])


@op
def permute_(x, axes=None):
    """The axes in another order; reversed if None."""
    return x.transpose() if axes is None else x.transpose(axes)


@permute_.vjp("x")
def permute_wrt_x(g, axes):
    if axes is None:
        return permute_(g)
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis % len(axes)] = position
    return permute_(g, axes=tuple(inverse))


def permute(x, *axes):
    """The axes in another order: axis i of the result is axis axes[i] of x."""
    return permute_(x, axes=ints(axes, "axes"))


@op
def swapaxes(x, axis1=-1, axis2=-2):
    """Exchange two axes."""
    return x.swapaxes(axis1, axis2)


@swapaxes.vjp("x")
def swapaxes_wrt_x(g, axis1, axis2):
    return g.swapaxes(axis1, axis2)


def transpose(x, axis1=None, axis2=None):
    """Exchange two axes, as torch does; without axes, reverse all of them, as x.T does."""
    if axis1 is None:
        return permute_(x)
    if axis2 is None:
        raise ArgumentError("transpose exchanges two axes, or reverses all if none is given; see permute")
    return swapaxes(x, axis1, axis2)


@op
def unsqueeze(x, axis=0):
    """Put in an axis of length 1, so that it is axis `axis` of the result."""
    return array_module(x).expand_dims(x, axis)


@unsqueeze.vjp("x")
def unsqueeze_wrt_x(g, x_shape):
    return g.reshape(x_shape)


@op
def squeeze(x, axis=None):
    """Take out axes of length 1: all of them, or `axis` (an int or a tuple), which must have length 1."""
    return x.squeeze(axis)


@squeeze.vjp("x")
def squeeze_wrt_x(g, x_shape):
    return g.reshape(x_shape)


@op
def broadcast_to_(x, shape=()):
    """x repeated along new axes and axes of length 1, as a view that takes no memory."""
    if x.ndim == 0 and isinstance(x, (numpy.ndarray, numpy.generic)):
        return numpy.ndarray(shape, x.dtype, x, strides=(0,) * len(shape))  # in a tenth of the time
    return array_module(x).broadcast_to(x, shape)


@broadcast_to_.vjp("x")
def broadcast_to_wrt_x(g):
    return g  # the sweep sums what broadcasting repeated


def broadcast_to(x, *shape):
    """x repeated along new axes and axes of length 1, as a view that takes no memory."""
    return broadcast_to_(x, shape=ints(shape))


@op
def cat_(*xs, axis=0, starts=()):
    """Arrays one after another along an axis that they all have."""
    return array_module(*xs).concatenate(xs, axis=axis)


@cat_.vjp("xs")
def cat_wrt_xs(g, position, xs_shapes, axis, starts):
    """`starts` are counted once, in cat: to add up all lengths before each of n inputs would take n² steps."""
    axis %= g.ndim
    start = starts[position] if starts else sum([shape[axis] for shape in xs_shapes[:position]])
    return g[(slice(None),) * axis + (slice(start, start + xs_shapes[position][axis]),)]


def cat(tensors, axis=0):
    """Tensors one after another along an axis that they all have."""
    tensors = tuple(tensors)
    if len(tensors) <= FEW or not -tensors[0].ndim <= axis < tensors[0].ndim:
        return cat_(*tensors, axis=axis)
    starts = tuple(itertools.accumulate([x.shape[axis] if x.ndim else 0 for x in tensors[:-1]], initial=0))
    return cat_(*tensors, axis=axis, starts=starts)


@op
def stack_(*xs, axis=0):
    """Arrays of one shape side by side along a new axis."""
    xp = array_module(*xs)
    dtype = xp.result_type(*xs)  # a plain number takes the dtype of the arrays
    return xp.stack([xp.asarray(x, dtype) for x in xs], axis=axis)


@stack_.vjp("xs")
def stack_wrt_xs(g, position, axis):
    return g[(slice(None),) * (axis % g.ndim) + (position,)]


def stack(tensors, axis=0):
    """Tensors of one shape side by side along a new axis."""
    return stack_(*tensors, axis=axis)


def split(x, split_size_or_sections, axis=0):
    """Parts of x along `axis`, as a tuple: of a given length each (an int; the last may be shorter), or of the
    lengths in a list, which must add up. Each part is a slice, and what nobody uses gets no gradient.

    >>> import minigrad as mg
    >>> [part.shape for part in split(mg.zeros(5, 2), 2)]
    [(2, 2), (2, 2), (1, 2)]
    """
    axis = checked_axis(axis, x.ndim)
    length = x.shape[axis] if x.ndim else 0
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = ints((split_size_or_sections,), "sections")
    else:
        (size,) = ints((split_size_or_sections,), "a split size")
        if size < 1:
            raise ArgumentError(f"split needs a length of at least 1, not {size}")
        sizes = [min(size, length - start) for start in range(0, length, size)] or [0]
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise ShapeError(f"split into {list(sizes)} does not add up to axis {axis} of {x.shape}, which is {length}")
    return tuple(parts_of(x, sizes, axis))


def parts_of(x, sizes, axis):
    """The parts one after another. Of many, they are parts of halves: the gradient of a slice is as large as what it
    is a slice of, so n slices of the whole would make n arrays of its size, where log2(n) have to do."""
    before, start = (slice(None),) * axis, 0
    if len(sizes) > FEW:
        middle = len(sizes) // 2
        start = sum(sizes[:middle])
        yield from parts_of(x[(*before, slice(0, start))], sizes[:middle], axis)
        yield from parts_of(x[(*before, slice(start, None))], sizes[middle:], axis)
    else:
        for size in sizes:
            yield x[(*before, slice(start, start + size))]
            start += size


def rows_of(x, count):
    """x[0], x[1], ... one after another, in halves if there are many, as in `parts_of`."""
    if count <= FEW:
        for i in range(count):
            yield x[i]
    else:
        yield from rows_of(x[: count // 2], count // 2)
        yield from rows_of(x[count // 2 :], count - count // 2)


@op
def pad_(x, widths=(), value=0.0):
    """x with `value` around it; widths has (before, after) for each axis."""
    xp = array_module(x)
    shape = [before + length + after for length, (before, after) in zip(x.shape, widths, strict=True)]
    out = xp.full(shape, value, x.dtype)
    out[inside(x.shape, widths)] = x
    return out


@pad_.vjp("x")
def pad_wrt_x(g, x_shape, widths):
    return g[inside(x_shape, widths)]


def inside(shape, widths):
    return tuple([slice(before, before + length) for length, (before, _) in zip(shape, widths, strict=True)])


def pad(x, pad, mode="constant", value=0.0):
    """x with `value` around it.

    pad is torch's flat list, (before, after) of the *last* axis first, then of the one before it, as many as
    one likes; or NumPy's list of pairs, one for each axis in order.

    >>> import minigrad as mg
    >>> pad(mg.ones(1, 2), (1, 0)).tolist(), pad(mg.ones(1, 2), ((0, 0), (1, 0))).tolist()
    ([[0.0, 1.0, 1.0]], [[0.0, 1.0, 1.0]])
    """
    if mode != "constant":
        raise ArgumentError(f'pad knows mode="constant" only, not {mode!r}')
    pad = tuple(pad)
    if pad and isinstance(pad[0], (tuple, list)):
        widths = tuple([ints((pair,), "pad") for pair in pad])
    else:
        flat = ints((pad,), "pad")
        pairs = [flat[i : i + 2] for i in range(0, len(flat), 2)]
        widths = ((0, 0),) * (x.ndim - len(pairs)) + tuple(reversed(pairs))
    if len(widths) != x.ndim or any(len(pair) != 2 or min(pair) < 0 for pair in widths):
        raise ShapeError(f"pad={pad} does not give (before, after), both >= 0, for axes of a tensor of shape {x.shape}")
    return pad_(x, widths=widths, value=value)


@op
def flip(x, axis=None):
    """The elements in reverse order along `axis`: an int, a tuple, or None for all axes."""
    return array_module(x).flip(x, axis)


@flip.vjp("x")
def flip_wrt_x(g, axis):
    return flip(g, axis)


@op
def roll(x, shift=1, axis=None):
    """The elements moved by `shift` places along `axis`, those that fall off coming in at the other end."""
    return array_module(x).roll(x, shift, axis)


@roll.vjp("x")
def roll_wrt_x(g, shift, axis):
    return roll(g, tuple([-s for s in shift]) if isinstance(shift, tuple) else -shift, axis)


@op
def tril(x, diagonal=0):
    """The lower triangles of the matrices in the last two axes, zeros elsewhere."""
    return array_module(x).tril(x, diagonal)


@tril.vjp("x")
def tril_wrt_x(g, diagonal):
    return tril(g, diagonal)


@op
def triu(x, diagonal=0):
    """The upper triangles of the matrices in the last two axes, zeros elsewhere."""
    return array_module(x).triu(x, diagonal)


@triu.vjp("x")
def triu_wrt_x(g, diagonal):
    return triu(g, diagonal)
