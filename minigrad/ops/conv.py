"""Convolution (as in torch: correlation, the kernel is not turned around), and its two gradients.

The convolution of x with a weight w, weighed with a gradient y of its output, is one number, linear in each of the
three:

    Σ  y[n, o, r, c] · w[o, i, a, b] · x[n, i, r·stride + a·dilation - padding, …]

Leave out one factor, and what is left is an op: without y it is `conv2d`, without x `conv_transpose2d`, without w
`conv2d_weight_gradient`. So the gradients of each of the three are the other two, as often as one likes.

Each is a matrix product. For it the pixels under the kernel are copied into columns, kernel size times as many as
the image has ("im2col"); but only for a piece of the batch at a time, that fits into a cache, and nothing of it is
kept. Source: Chellapilla, Puri, Simard 2006, High performance convolutional neural networks.

Shapes, in all of this file:

    x  (N, I, height, width)            weight  (O, I / groups, kernel height, kernel width)
    y  (N, O, out height, out width), which is any output of conv2d, or a gradient of it
"""

import math

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, ShapeError
from .common import quiet, wide
from .reduce import sum_
from .shape import unsqueeze
from .window import output_size, pair, places, positive, reach, single

ONES, NO_PADDING = (1, 1), ((0, 0), (0, 0))
WORKSPACE = 2**21  # bytes of columns at a time

# ---- The three ops -----------------------------------------------------------------------------------


@op
def conv2d_(x, weight, bias=None, stride=ONES, padding=NO_PADDING, dilation=ONES, groups=1):
    """The convolution of x with weight. Keeps weight for x's gradient and x for the weight's; no columns."""
    xp, given, x, weight = array_module(x, weight), (x, weight), wide(x), wide(weight)
    kernel, matrices = weight.shape[2:], as_matrices(weight, groups)
    size = output_size(x.shape[2:], kernel, stride, padding, dilation)
    out = xp.empty((x.shape[0], weight.shape[0], *size), xp.result_type(x, weight))
    for some, rows in pieces(out, groups * matrices.shape[2]):
        columns = columns_of(x[some], rows, size[1], kernel, stride, padding, dilation, groups)
        pixels = channels_first(out[some, :, rows])
        pixels[...] = (matrices @ columns).reshape(pixels.shape)
    return with_bias(out, bias, given)


@conv2d_.vjp("x")
def conv2d_wrt_x(g, x_shape, weight, stride, padding, dilation, groups):
    size = x_shape[2:]
    return conv_transpose2d_(g, weight, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv2d_.vjp("weight")
def conv2d_wrt_weight(g, x, weight_shape, stride, padding, dilation, groups):
    kernel = weight_shape[2:]
    return conv2d_weight_gradient(
        x, g, kernel=kernel, stride=stride, padding=padding, dilation=dilation, groups=groups
    )  # fmt: skip


@conv2d_.vjp("bias")
def conv2d_wrt_bias(g):
    return sum_(g, axis=(0, 2, 3))


@op
def conv_transpose2d_(y, weight, bias=None, size=ONES, stride=ONES, padding=NO_PADDING, dilation=ONES, groups=1):
    """Each pixel of y, which is like an output of conv2d, paints the kernel onto images of `size`, which are like
    its input. Keeps y and weight."""
    xp, given, y, weight = array_module(y, weight), (y, weight), wide(y), wide(weight)
    kernel, matrices = weight.shape[2:], as_matrices(weight, groups).swapaxes(-1, -2)
    out = xp.zeros((y.shape[0], weight.shape[1] * groups, *size), xp.result_type(y, weight))
    for some, rows in pieces(y, groups * matrices.shape[1]):
        pixels = channels_first(y[some, :, rows])
        columns = (matrices @ as_rows(pixels, groups)).reshape(out.shape[1], *kernel, *pixels.shape[1:])
        canvas = channels_first(out[some])
        for (i, j), outs, ins in places(kernel, stride, padding, dilation, pixels.shape[2:], size, rows.start):
            canvas[ins] += columns[:, i, j][outs]
    return with_bias(out, bias, given)


@conv_transpose2d_.vjp("y")
def conv_transpose2d_wrt_y(g, weight, stride, padding, dilation, groups):
    return conv2d_(g, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv_transpose2d_.vjp("weight")
def conv_transpose2d_wrt_weight(g, y, weight_shape, stride, padding, dilation, groups):
    kernel = weight_shape[2:]
    return conv2d_weight_gradient(
        g, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation, groups=groups
    )  # fmt: skip


@conv_transpose2d_.vjp("bias")
def conv_transpose2d_wrt_bias(g):
    return sum_(g, axis=(0, 2, 3))


@op
def conv2d_weight_gradient(x, y, kernel=ONES, stride=ONES, padding=NO_PADDING, dilation=ONES, groups=1):
    """For each place of the kernel, x there times y, summed over images and pixels; y is like an output of conv2d.
    Keeps x and y."""
    xp, given, x, y = array_module(x, y), (x, y), wide(x), wide(y)
    channels, outputs = x.shape[1] // groups, y.shape[1] // groups
    out = xp.zeros((groups, outputs, channels * kernel[0] * kernel[1]), xp.result_type(x, y))
    for some, rows in pieces(y, groups * out.shape[2]):
        columns = columns_of(x[some], rows, y.shape[3], kernel, stride, padding, dilation, groups)
        out += as_rows(channels_first(y[some, :, rows]), groups) @ columns.swapaxes(-1, -2)
    return with_bias(out.reshape(groups * outputs, channels, *kernel), None, given)


@conv2d_weight_gradient.vjp("x")
def conv2d_weight_gradient_wrt_x(g, x_shape, y, stride, padding, dilation, groups):
    size = x_shape[2:]
    return conv_transpose2d_(y, g, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)


@conv2d_weight_gradient.vjp("y")
def conv2d_weight_gradient_wrt_y(g, x, stride, padding, dilation, groups):
    return conv2d_(x, g, stride=stride, padding=padding, dilation=dilation, groups=groups)


# ---- Their parts -------------------------------------------------------------------------------------


def as_matrices(weight, groups):
    """The kernel as a matrix for each group: (groups, O / groups, I / groups times places of the kernel)."""
    outputs, channels, height, width = weight.shape
    return weight.reshape(groups, outputs // groups, channels * height * width)


def as_rows(pixels, groups):
    """Pixels (channels, N, rows, width) as a matrix for each group, with a row for each channel."""
    channels = pixels.shape[0] // groups
    return pixels.reshape(groups, channels, math.prod(pixels.shape[1:]))


def channels_first(images):
    """A view (channels, N, height, width): one matrix product for the whole piece, not one for each image."""
    return images.swapaxes(0, 1)


def pieces(y, numbers_per_pixel):
    """Cut a batch into pieces (images, rows of the output y), two slices: several whole images, or some rows of one.
    The columns of a piece, which have so many numbers for each pixel of y, take about WORKSPACE bytes."""
    images, _, height, width = y.shape
    row = max(1, width * numbers_per_pixel * y.itemsize)
    if height * row <= WORKSPACE:
        step = WORKSPACE // max(1, height * row)
        for first in range(0, images, step):
            yield slice(first, first + step), slice(0, height)
    else:
        step = max(1, WORKSPACE // row)
        for image in range(images):
            for first in range(0, height, step):
                yield slice(image, image + 1), slice(first, min(first + step, height))


def columns_of(x, rows, width, kernel, stride, padding, dilation, groups):
    """What the kernel sees from the pixels in some rows of the output, with 0 over the edge, as a matrix for each
    group: (groups, I / groups times places of the kernel, pixels)."""
    x, xp = channels_first(x), array_module(x)
    size = rows.stop - rows.start, width
    columns = xp.zeros((x.shape[0], *kernel, x.shape[1], *size), x.dtype)
    for (i, j), outs, ins in places(kernel, stride, padding, dilation, size, x.shape[2:], rows.start):
        columns[:, i, j][outs] = x[ins]
    return columns.reshape(groups, x.shape[0] // groups * kernel[0] * kernel[1], x.shape[1] * size[0] * width)


def with_bias(out, bias, given):
    """`out`, which is ours, plus a number for each channel; in the dtype of what was given, if that was float16."""
    dtypes = [x.dtype for x in given]
    if bias is not None:
        dtypes.append(bias.dtype)
        bias = bias.reshape(-1, 1, 1)
        if out.dtype != bias.dtype:
            out = out + bias
        else:
            out += bias
    if any([dtype.char != "e" for dtype in dtypes]):
        return out
    with quiet():
        return out.astype("float16")


# ---- As torch calls them -----------------------------------------------------------------------------


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of images x with a kernel; stride, padding and dilation are ints or pairs (height, width).

    x        (N, I, height, width), or (I, height, width) for one image
    weight   (O, I / groups, kernel height, kernel width); bias (O,), or None
    padding  zeros around the image; or "valid": none, or "same": as many as keep the size, for stride 1
    groups   cuts the channels into groups that do not see each other

    Gives (N, O, out height, out width). Keeps x for the weight's gradient, and weight for x's.
    """
    if x.ndim == 3:
        return conv2d(unsqueeze(x, 0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    stride = positive(pair(stride, "stride"), "stride")
    dilation = positive(pair(dilation, "dilation"), "dilation")
    check_images("conv2d", x, weight, groups)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d with groups={groups} of {x.shape[1]} channels, and a weight of shape {weight.shape}: "
            f"it must be (O, {x.shape[1]} / groups, height, width) with an O that the groups divide"
        )
    check_bias("conv2d", bias, weight.shape[0])
    padding = pairs_of_padding(padding, weight.shape[2:], stride, dilation)
    inputs = (x, weight) if bias is None else (x, weight, bias)
    return conv2d_(*inputs, stride=stride, padding=padding, dilation=dilation, groups=groups)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of sequences x with a kernel: a conv2d of images that are one pixel high.

    x (N, I, length) or (I, length); weight (O, I / groups, kernel length); bias (O,), or None. Gives (N, O, length).
    """
    if x.ndim not in (2, 3) or weight.ndim != 3:
        raise ShapeError(
            f"conv1d takes x (N, I, length) and weight (O, I / groups, kernel), not shapes {x.shape} and {weight.shape}"
        )
    stride, dilation = single(stride, "stride"), single(dilation, "dilation")
    if not isinstance(padding, str):
        padding = (0, single(padding, "padding"))
    flat, kernel = unsqueeze(x, -2), unsqueeze(weight, -2)
    return conv2d(flat, kernel, bias, (1, stride), padding, (1, dilation), groups).squeeze(-2)


def conv_transpose2d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transposed convolution: each pixel of x paints the kernel onto a larger image. It is the gradient of conv2d.

    x               (N, O, height, width), or (O, height, width) for one image
    weight          (O, I / groups, kernel height, kernel width); bias (I,), or None
    padding         how many pixels to cut off at each edge
    output_padding  how many to add after that at the lower and right edge: fewer than the stride. It says which of
                    the sizes that a strided conv2d would have brought to this one is meant

    Gives (N, I, (height - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1, …).
    Keeps x and weight.
    """
    if x.ndim == 3:
        one = unsqueeze(x, 0)
        return conv_transpose2d(one, weight, bias, stride, padding, output_padding, groups, dilation).squeeze(0)
    stride = positive(pair(stride, "stride"), "stride")
    dilation = positive(pair(dilation, "dilation"), "dilation")
    more = pair(output_padding, "output_padding")
    check_images("conv_transpose2d", x, weight, groups)
    if x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
        raise ShapeError(
            f"conv_transpose2d with groups={groups} of {x.shape[1]} channels, and a weight of shape {weight.shape}: "
            f"it must be ({x.shape[1]}, I / groups, height, width), and the groups must divide {x.shape[1]}"
        )
    check_bias("conv_transpose2d", bias, weight.shape[1] * groups)
    if not all(0 <= m < s for m, s in zip(more, stride, strict=True)):
        raise ArgumentError(f"output_padding must be less than the stride {stride}, not {more}")
    padding = pairs_of_padding(padding, weight.shape[2:], stride, dilation)
    spans = reach(weight.shape[2:], dilation)
    size = tuple([
        (n - 1) * s + span - sum(p) + m
        for n, s, span, p, m in zip(x.shape[2:], stride, spans, padding, more, strict=True)
    ])  # fmt: skip
    if min(size) < 1:
        raise ShapeError(f"conv_transpose2d of {x.shape[2:]} pixels would give {size}: padding={padding} is too much")
    inputs = (x, weight) if bias is None else (x, weight, bias)
    return conv_transpose2d_(*inputs, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)


def pairs_of_padding(padding, kernel, stride, dilation):
    """Torch's padding as (before, after) for height and width."""
    if padding == "valid":
        return NO_PADDING
    if padding == "same":
        if stride != ONES:
            raise ArgumentError(f'padding="same" is for stride 1, not {stride}')
        return tuple([((span - 1) // 2, span // 2) for span in reach(kernel, dilation)])
    if isinstance(padding, str):
        raise ArgumentError(f'padding is "same", "valid" or a number of pixels, not {padding!r}')
    height, width = pair(padding, "padding")
    if min(height, width) < 0:
        raise ArgumentError(f"padding must not be negative, and is {padding}")
    return (height, height), (width, width)


def check_images(name, x, weight, groups):
    if x.ndim != 4 or weight.ndim != 4:
        raise ShapeError(
            f"{name} takes images (N, channels, height, width) and a weight of 4 axes, not {x.shape} and {weight.shape}"
        )
    if groups < 1:
        raise ArgumentError(f"groups must be at least 1, not {groups}")


def check_bias(name, bias, channels):
    if bias is not None and bias.shape != (channels,):
        raise ShapeError(f"{name} needs a bias of shape ({channels},), one number for each channel, not {bias.shape}")
