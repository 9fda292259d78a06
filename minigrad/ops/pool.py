"""Pooling: one number for each window of an image.

Max pooling is two ops. The first finds which place of the window has the largest value; its result has no gradient,
and is one byte for each window. The second reads that place. Its gradient needs the places only, and so the tape
keeps neither the images nor the result. Where several are equal, the first one counts, as in torch.

Images are (..., height, width), with any axes before them.
"""

import numpy

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, ShapeError
from .common import narrow, wide, wide_dtype
from .shape import unsqueeze
from .window import output_size, pair, places, positive, single

ONES, NO_PADDING = (1, 1), ((0, 0), (0, 0))

# ---- The largest -------------------------------------------------------------------------------------


@op
def max_pool2d_places(x, kernel=ONES, stride=ONES, padding=NO_PADDING, dilation=ONES, size=ONES):
    """Which place of each window has the largest value, counted row by row: integers of shape (..., *size).

    A nan counts as larger than anything, so that it is not lost. Has no gradient.
    """
    xp = array_module(x)
    shape = (*x.shape[:-2], *size)
    best, place = xp.full(shape, lowest(x.dtype), x.dtype), xp.zeros(shape, smallest_integer(kernel))
    for (i, j), outs, ins in reversed([*places(kernel, stride, padding, dilation, size, x.shape[-2:])]):
        value, old = x[ins], best[outs]
        better = (value >= old) | (value != value)
        xp.copyto(old, value, where=better)
        xp.copyto(place[outs], i * kernel[1] + j, where=better, casting="unsafe")
    return place


@op
def max_pool2d_(x, place, kernel=ONES, stride=ONES, padding=NO_PADDING, dilation=ONES, nothing=0):
    """The value at the given place of each window; `nothing` if that is not on the image. Keeps the places only."""
    xp = array_module(x)
    out = xp.full(place.shape, nothing, x.dtype)
    for (i, j), outs, ins in places(kernel, stride, padding, dilation, place.shape[-2:], x.shape[-2:]):
        xp.copyto(out[outs], x[ins], where=place[outs] == i * kernel[1] + j)
    return out


@max_pool2d_.vjp("x")
def max_pool2d_wrt_x(g, place, x_shape, kernel, stride, padding, dilation):
    return max_unpool2d_(
        g, place, size=x_shape[-2:], kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )  # fmt: skip


@op
def max_unpool2d_(y, place, size=ONES, kernel=ONES, stride=ONES, padding=NO_PADDING, dilation=ONES):
    """Zeros of `size`, to which each number of y is added at its place of its window: the opposite of max_pool2d."""
    xp = array_module(y)
    out = xp.zeros((*y.shape[:-2], *size), wide_dtype(y))
    for (i, j), outs, ins in places(kernel, stride, padding, dilation, y.shape[-2:], size):
        out[ins] += y[outs] * (place[outs] == i * kernel[1] + j)
    return narrow(out, y)


@max_unpool2d_.vjp("y")
def max_unpool2d_wrt_y(g, place, kernel, stride, padding, dilation):
    return max_pool2d_(g, place, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


def lowest(dtype):
    """What a maximum over nothing is: below all numbers of the dtype."""
    return -numpy.inf if dtype.kind == "f" else False if dtype.kind == "b" else int(numpy.iinfo(dtype).min)


def smallest_integer(kernel):
    """The dtype for places of a kernel."""
    return numpy.min_scalar_type(kernel[0] * kernel[1] - 1)


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest value of each window of x (..., height, width); ints or pairs (height, width).

    stride     from one window to the next; the kernel's size if None
    padding    around the image; what is there is never the largest. At most half the kernel. A window that lies
               entirely in it, as dilation allows, gives -inf, as in torch
    ceil_mode  also give a value for a last window that the image does not fill

    Keeps one byte for each window. Of equal values the first receives the gradient.
    """
    kernel, stride, padding = checked_windows(kernel_size, stride, padding)
    dilation = positive(pair(dilation, "dilation"), "dilation")
    check_images("max_pool2d", x)
    size = output_size(x.shape[-2:], kernel, stride, padding, dilation, ceil_mode)
    place = max_pool2d_places(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, size=size)
    return max_pool2d_(
        x, place, kernel=kernel, stride=stride, padding=padding, dilation=dilation, nothing=lowest(x.dtype)
    )  # fmt: skip


def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest value of each window of x (..., length): a max_pool2d of images that are one pixel high."""
    kernel = single(kernel_size, "kernel_size")
    stride = kernel if stride is None else single(stride, "stride")
    padding, dilation = single(padding, "padding"), single(dilation, "dilation")
    flat = unsqueeze(x, -2)
    return max_pool2d(flat, (1, kernel), (1, stride), (0, padding), (1, dilation), ceil_mode).squeeze(-2)


# ---- The mean ----------------------------------------------------------------------------------------


@op
def avg_pool2d_(x, kernel=ONES, stride=ONES, padding=NO_PADDING, size=ONES, count_include_pad=True):
    """The mean of each window: (..., *size). Keeps nothing."""
    xp = array_module(x)
    total = xp.zeros((*x.shape[:-2], *size), wide(x).dtype)
    for _, outs, ins in places(kernel, stride, padding, ONES, size, x.shape[-2:]):
        total[outs] += x[ins]
    total /= window_counts(x, x.shape[-2:], kernel, stride, padding, size, count_include_pad)
    return narrow(total, x)


@avg_pool2d_.vjp("x")
def avg_pool2d_wrt_x(g, x_shape, kernel, stride, padding, count_include_pad):
    return avg_unpool2d_(
        g, size=x_shape[-2:], kernel=kernel, stride=stride, padding=padding, count_include_pad=count_include_pad
    )  # fmt: skip


@op
def avg_unpool2d_(y, size=ONES, kernel=ONES, stride=ONES, padding=NO_PADDING, count_include_pad=True):
    """Zeros of `size`, on which each number of y is spread evenly over its window: avg_pool2d's gradient."""
    xp = array_module(y)
    out, given, y = xp.zeros((*y.shape[:-2], *size), wide_dtype(y)), y, wide(y)
    share = y / window_counts(y, size, kernel, stride, padding, y.shape[-2:], count_include_pad)
    for _, outs, ins in places(kernel, stride, padding, ONES, y.shape[-2:], size):
        out[ins] += share[outs]
    return narrow(out, given)


@avg_unpool2d_.vjp("y")
def avg_unpool2d_wrt_y(g, y_shape, kernel, stride, padding, count_include_pad):
    return avg_pool2d_(
        g, kernel=kernel, stride=stride, padding=padding, size=y_shape[-2:], count_include_pad=count_include_pad
    )  # fmt: skip


def window_counts(x, image, kernel, stride, padding, size, count_include_pad):
    """By how many pixels the sum of each window is divided, of shape `size`; in x's dtype and module.

    What a last window has beyond even the padding, which happens in ceil_mode only, never counts.
    """
    xp = array_module(x)
    axes = []
    for n, k, s, (before, after), count in zip(image, kernel, stride, padding, size, strict=True):
        first = xp.arange(count) * s - before
        last = first + k
        if count_include_pad:
            axes.append(xp.minimum(last, n + after) - first)
        else:
            axes.append(xp.minimum(last, n) - xp.maximum(first, 0))
    return (axes[0][:, None] * axes[1]).astype(wide(x).dtype)


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window of x (..., height, width); ints or pairs (height, width).

    stride             from one window to the next; the kernel's size if None
    padding            zeros around the image, at most half the kernel
    ceil_mode          also give a value for a last window that the image does not fill
    count_include_pad  whether the zeros of the padding count in the mean

    Keeps nothing.
    """
    kernel, stride, padding = checked_windows(kernel_size, stride, padding)
    check_images("avg_pool2d", x)
    size = output_size(x.shape[-2:], kernel, stride, padding, ONES, ceil_mode)
    return avg_pool2d_(
        x, kernel=kernel, stride=stride, padding=padding, size=size, count_include_pad=bool(count_include_pad)
    )  # fmt: skip


# ---- What both need ----------------------------------------------------------------------------------


def checked_windows(kernel_size, stride, padding):
    """Kernel, stride and padding as pairs, the padding as (before, after) for height and width."""
    kernel = positive(pair(kernel_size, "kernel_size"), "kernel_size")
    stride = kernel if stride is None else positive(pair(stride, "stride"), "stride")
    height, width = pair(padding, "padding")
    if not (0 <= 2 * height <= kernel[0] and 0 <= 2 * width <= kernel[1]):
        raise ArgumentError(f"padding must lie between 0 and half the kernel {kernel}, and is {padding}")
    return kernel, stride, ((height, height), (width, width))


def check_images(name, x):
    if x.ndim < 3:
        raise ShapeError(f"{name} takes images (..., channels, height, width), not a tensor of shape {x.shape}")
