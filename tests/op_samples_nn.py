"""Samples of the ops that layers are made of: convolution, pooling, normalisation, attention.

Imported by op_samples.py, whose docstring says what a sample is. The references are the definitions, in loops.
"""

import itertools
import math

import numpy as np

from tests.op_samples import declare, real, sample, whole, yes_no

# ---- Convolution -------------------------------------------------------------------------------------

# images (N, I, height, width), weight (O, I / groups, kernel height, kernel width), settings
CONVOLUTIONS = [
    ((2, 3, 5, 4), (2, 3, 2, 3), {}),
    ((1, 2, 6, 7), (3, 2, 3, 2), {"stride": (2, 3)}),  # leaves a remainder
    ((2, 1, 4, 5), (1, 1, 3, 3), {"padding": ((1, 1), (2, 2)), "stride": (2, 1)}),
    ((1, 1, 6, 6), (2, 1, 2, 3), {"dilation": (3, 2), "padding": ((0, 1), (1, 0))}),
    ((2, 4, 3, 4), (6, 2, 2, 1), {"groups": 2}),
    ((1, 3, 4, 3), (3, 1, 2, 2), {"groups": 3, "padding": ((1, 1), (1, 1)), "stride": (2, 2)}),
    ((2, 3, 2, 2), (4, 3, 1, 1), {}),
    ((1, 1, 3, 3), (1, 1, 2, 2), {"stride": (5, 5)}),  # pixels that nothing meets
    ((1, 1, 2, 2), (1, 1, 2, 2), {"padding": ((3, 3), (0, 0))}),  # windows that meet nothing
    ((0, 2, 3, 3), (1, 2, 2, 2), {}),
]


def meetings(image, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), size=None):
    """(output row and column, kernel row and column, image row and column) of everything that meets."""
    size = size or output_shape(image, kernel, stride, padding, dilation)
    for (r, c), (i, j) in itertools.product(np.ndindex(*size), np.ndindex(*kernel)):
        y = r * stride[0] + i * dilation[0] - padding[0][0]
        x = c * stride[1] + j * dilation[1] - padding[1][0]
        if 0 <= y < image[0] and 0 <= x < image[1]:
            yield (r, c), (i, j), (y, x)


def output_shape(image, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1)):
    return tuple([
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(image, kernel, stride, padding, dilation, strict=True)
    ])  # fmt: skip


def conv2d(x, weight, bias=None, groups=1, **window):
    size = output_shape(x.shape[2:], weight.shape[2:], **window)
    out = np.zeros((len(x), len(weight), *size))
    inner, outer = weight.shape[1], len(weight) // groups
    for (r, c), (i, j), (y, z) in meetings(x.shape[2:], weight.shape[2:], **window):
        for o in range(len(weight)):
            first = o // outer * inner
            out[:, o, r, c] += x[:, first : first + inner, y, z] @ weight[o, :, i, j]
    return out if bias is None else out + bias[:, None, None]


def conv_transpose2d(y, weight, bias=None, size=None, groups=1, **window):
    inner, outer = weight.shape[1], len(weight) // groups
    out = np.zeros((len(y), inner * groups, *size))
    for (r, c), (i, j), (v, h) in meetings(size, weight.shape[2:], size=y.shape[2:], **window):
        for o in range(len(weight)):
            first = o // outer * inner
            out[:, first : first + inner, v, h] += y[:, o, r, c][:, None] * weight[o, :, i, j]
    return out if bias is None else out + bias[:, None, None]


def weight_gradient(x, y, kernel, groups=1, **window):
    inner, outer = x.shape[1] // groups, y.shape[1] // groups
    out = np.zeros((y.shape[1], inner, *kernel))
    for (r, c), (i, j), (v, h) in meetings(x.shape[2:], kernel, **window):
        for o in range(y.shape[1]):
            first = o // outer * inner
            out[o, :, i, j] += y[:, o, r, c] @ x[:, first : first + inner, v, h]
    return out


def window_of(settings):
    return {key: value for key, value in settings.items() if key != "groups"}


def outputs_of(x, weight, settings):
    """The shape of a convolution's output."""
    return (x[0], weight[0], *output_shape(x[2:], weight[2:], **window_of(settings)))


declare(
    "conv2d",
    conv2d,
    [sample(real(*x), real(*w), real(w[0]), **s) for x, w, s in CONVOLUTIONS]
    + [sample(real(*x), real(*w), **s) for x, w, s in CONVOLUTIONS[:2]],
)
declare(
    "conv_transpose2d",
    conv_transpose2d,
    [
        sample(real(*outputs_of(x, w, s)), real(*w), real(w[1] * s.get("groups", 1)), size=x[2:], **s)
        for x, w, s in CONVOLUTIONS
    ]
    + [sample(real(*outputs_of(x, w, s)), real(*w), size=x[2:], **s) for x, w, s in CONVOLUTIONS[:2]],
)
declare(
    "conv2d_weight_gradient",
    weight_gradient,
    [sample(real(*x), real(*outputs_of(x, w, s)), kernel=w[2:], **s) for x, w, s in CONVOLUTIONS],
)

# ---- Pooling -----------------------------------------------------------------------------------------

# images, kernel, settings, output size (which with ceil_mode is larger)
POOLS = [
    ((2, 3, 4, 6), (2, 2), {"stride": (2, 2)}, (2, 3)),
    ((1, 5, 7), (3, 2), {"stride": (2, 3)}, (2, 2)),
    ((1, 2, 5, 4), (3, 2), {"stride": (2, 1), "padding": ((1, 1), (1, 1))}, (3, 5)),
    ((2, 5, 5), (2, 2), {"stride": (2, 2)}, (3, 3)),
    ((1, 1, 1, 6), (1, 3), {"stride": (1, 2), "padding": ((0, 0), (1, 1))}, (1, 4)),
    ((0, 1, 2, 2), (2, 2), {"stride": (2, 2)}, (1, 1)),
]
DILATED = ((2, 1, 6, 7), (2, 3), {"stride": (1, 2), "dilation": (3, 2)}, (3, 2))


def distinct(*shape):
    """Numbers whose order a small step does not change: a difference quotient across a tie means nothing."""
    size = math.prod(shape)
    return np.random.default_rng(size).permutation(size).reshape(shape) * 0.25 - 1.0


def windows(image, kernel, size, **window):
    """For each output place: (place in the kernel, pixel) of what its window sees."""
    found = {place: [] for place in np.ndindex(*size)}
    for place, at, pixel in meetings(image, kernel, size=size, **window):
        found[place].append((at[0] * kernel[1] + at[1], pixel))
    return found


def max_places(x, kernel, size, **window):
    out = np.zeros((*x.shape[:-2], *size), np.uint8)
    for (r, c), seen in windows(x.shape[-2:], kernel, size, **window).items():
        numbers = np.array([number for number, _ in seen])
        values = np.stack([x[..., y, z] for _, (y, z) in seen], -1)
        out[..., r, c] = numbers[values.argmax(-1)]
    return out


def picked(x, place, kernel, **window):
    out = np.zeros(place.shape)
    for (r, c), seen in windows(x.shape[-2:], kernel, place.shape[-2:], **window).items():
        for number, (y, z) in seen:
            out[..., r, c] += np.where(place[..., r, c] == number, x[..., y, z], 0)
    return out


def unpicked(g, place, size, kernel, **window):
    out = np.zeros((*g.shape[:-2], *size))
    for (r, c), seen in windows(size, kernel, place.shape[-2:], **window).items():
        for number, (y, z) in seen:
            out[..., y, z] += np.where(place[..., r, c] == number, g[..., r, c], 0)
    return out


def divisors(image, kernel, size, stride, padding=((0, 0), (0, 0)), count_include_pad=True):
    out = np.zeros(size)
    for place in np.ndindex(*size):
        numbers = []
        for at, n, k, s, (before, after) in zip(place, image, kernel, stride, padding, strict=True):
            seen = range(at * s - before, at * s - before + k)
            low, high = (-before, n + after) if count_include_pad else (0, n)
            numbers.append(len([i for i in seen if low <= i < high]))
        out[place] = math.prod(numbers)
    return out


def avg_pool(x, kernel, size, count_include_pad=True, **window):
    out = np.zeros((*x.shape[:-2], *size))
    for (r, c), seen in windows(x.shape[-2:], kernel, size, **window).items():
        for _, (y, z) in seen:
            out[..., r, c] += x[..., y, z]
    return out / divisors(x.shape[-2:], kernel, size, count_include_pad=count_include_pad, **window)


def avg_unpool(g, size, kernel, count_include_pad=True, **window):
    out = np.zeros((*g.shape[:-2], *size))
    share = g / divisors(size, kernel, g.shape[-2:], count_include_pad=count_include_pad, **window)
    for (r, c), seen in windows(size, kernel, g.shape[-2:], **window).items():
        for _, (y, z) in seen:
            out[..., y, z] += share[..., r, c]
    return out


def places_in(x, kernel, size, settings):
    return max_places(distinct(*x), kernel, size, **settings)


LARGEST = [*POOLS, DILATED]
declare(
    "max_pool2d_places",
    max_places,
    [sample(distinct(*x), kernel=k, size=size, **s) for x, k, s, size in LARGEST]
    + [sample(whole(0, 3, 2, 4, 4), kernel=(2, 2), size=(2, 2), stride=(2, 2))],  # ties: the first
)
declare(
    "max_pool2d",
    picked,
    [sample(real(*x), places_in(x, k, size, s), kernel=k, **s) for x, k, s, size in LARGEST],
)
declare(
    "max_unpool2d",
    unpicked,
    [sample(real(*x[:-2], *size), places_in(x, k, size, s), size=x[-2:], kernel=k, **s) for x, k, s, size in LARGEST],
)
INCLUDE = (True, False)
declare(
    "avg_pool2d",
    avg_pool,
    [sample(real(*x), kernel=k, size=size, count_include_pad=c, **s) for x, k, s, size in POOLS for c in INCLUDE],
)
declare(
    "avg_unpool2d",
    avg_unpool,
    [
        sample(real(*x[:-2], *size), size=x[-2:], kernel=k, count_include_pad=c, **s)
        for x, k, s, size in POOLS
        for c in INCLUDE
    ],
)

# ---- Normalisation -----------------------------------------------------------------------------------


def layer_norm(x, weight=1.0, bias=0.0, axes=(-1,), eps=1e-5):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight=1.0, axes=(-1,), eps=1e-6):
    return x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + eps) * weight


def batch_norm(x, weight=1.0, bias=0.0, eps=1e-5):
    out = np.zeros(x.shape)
    for channel in range(x.shape[1]):
        values = x[:, channel]
        out[:, channel] = (values - values.mean()) / np.sqrt(values.var() + eps)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return out * np.reshape(weight, shape) + np.reshape(bias, shape)


declare(
    "layer_norm",
    layer_norm,
    [
        sample(real(3, 4), real(4), real(4)),
        sample(real(3, 4), real(4)),
        sample(real(3, 4)),
        sample(real(2, 3, 4), real(3, 4), real(3, 4), axes=(-2, -1), eps=0.1),
        sample(real(5)),
        sample(real(0, 3), real(3), real(3)),
    ],
)
declare(
    "rms_norm",
    rms_norm,
    [
        sample(real(3, 4), real(4)),
        sample(real(3, 4)),
        sample(real(2, 3, 4), real(3, 4), axes=(-2, -1), eps=0.1),
        sample(real(0, 3), real(3)),
    ],
)
declare(
    "batch_norm",
    batch_norm,
    [
        sample(real(4, 3), real(3), real(3)),
        sample(real(4, 3), real(3)),
        sample(real(4, 3)),
        sample(real(3, 2, 4), real(2), real(2), eps=0.1),
        sample(real(2, 2, 3, 2), real(2), real(2)),
    ],
)

# ---- Attention ---------------------------------------------------------------------------------------


def attention(q, k, v, mask=None, is_causal=False, scale=1.0):
    """One row at a time; the last column is the log of the sum of the exponentials."""
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, mask) if x is not None])
    q, k, v = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v)]
    if mask is not None:
        mask = np.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
    out = np.zeros((*lead, q.shape[-2], v.shape[-1] + 1))
    for *batch, row in np.ndindex(*lead, q.shape[-2]):
        at = tuple(batch)
        weights = np.exp(k[at] @ q[at][row] * scale)
        if mask is not None:
            weights = weights * (mask[at][row] if mask.dtype == bool else np.exp(mask[at][row]))
        if is_causal:
            weights = weights * (np.arange(len(weights)) <= row)
        out[at][row, :-1], out[at][row, -1] = weights @ v[at] / weights.sum(), np.log(weights.sum())
    return out


def looking(*shape):
    """A mask of truth values in which every row may look at something."""
    mask = yes_no(*shape)
    mask[..., 0] = True
    return mask


declare(
    "scaled_dot_product_attention",
    attention,
    [
        sample(real(3, 2), real(4, 2), real(4, 3)),
        sample(real(2, 3, 2), real(2, 3, 2), real(2, 3, 2), is_causal=True, scale=0.5),
        sample(real(2, 1, 3, 2), real(2, 5, 2), real(5, 1)),
        sample(real(2, 3, 2), real(2, 4, 2), real(2, 4, 2), looking(3, 4)),
        sample(real(2, 3, 2), real(1, 4, 2), real(2, 4, 2), looking(2, 1, 4), scale=0.7),
        sample(real(3, 2), real(4, 2), real(4, 2), real(2, 3, 4)),
        sample(real(2, 3, 2), real(2, 4, 2), real(2, 4, 2), real(1, 4)),
        sample(real(4, 2), real(6, 2), real(6, 2), real(4, 1), is_causal=True),
        sample(real(0, 2), real(3, 2), real(3, 2)),
        sample(real(1, 1), real(1, 1), real(1, 1)),
    ],
)
