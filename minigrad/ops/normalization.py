"""Normalisation: subtract the mean, divide by the standard deviation, scale and shift.

Which elements are averaged is all that tells the layers apart: over all images and pixels for each channel
(batch_norm), or over the last axes for each row (layer_norm; rms_norm does without the mean).

The tape keeps x, and with it the weight. The normalised values are cheap to compute, as large as x, and needed by
two of the three vjps: these compute them again.
"""

import math
import operator

from ..engine.device import array_module
from ..engine.op import op
from ..engine.tensor import Tensor
from ..errors import ArgumentError, ShapeError
from .arithmetic import add
from .common import count, ints, narrow, quiet, wide
from .defaults import get_default_dtype
from .elementwise import sqrt
from .reduce import largest, mean, smallest_square, sum_, var


def standardized(x, axes, eps):
    """(x - mean) / sqrt(variance + eps) over `axes`, and 1 / sqrt(variance + eps); of arrays or Tensors.

    The variance is the biased one. float16 is computed in float32. Where the values hardly differ, the mean's rounding
    is as large as the distances from it, and its mean is taken off as well: a constant's distances are 0. Where the
    squares are too large for the dtype, x is divided by its unit before, and the scale after.
    """
    x = wide(x)
    with quiet():
        level = mean(x, axis=axes, keepdims=True)
        distance = x - level
        power = mean(distance * distance, axis=axes, keepdims=True)
        if are_exact(level, power, eps):
            scale = 1 / sqrt(power + eps)
            return distance * scale, scale
        unit = unit_of(x, axes, eps)
        x = x / unit
        distance = x - mean(x, axis=axes, keepdims=True)
        distance = distance - mean(distance, axis=axes, keepdims=True)
        scale = 1 / sqrt(mean(distance * distance, axis=axes, keepdims=True) + in_units(eps, unit))
        return distance * scale, scale / unit


NOISE = {4: (1000 * 2.0**-23) ** 2, 8: (1000 * 2.0**-52) ** 2}  # of a mean, squared, by the dtype's bytes


def are_exact(level, power, eps):
    """Whether variances are finite, and above what rounding of the means alone can make of them."""
    level, power = [x._data if isinstance(x, Tensor) else x for x in (level, power)]
    noise = level * level * NOISE[power.dtype.itemsize]
    if eps < 1e-19:  # then squares may be lost that count
        noise = noise + smallest_square(power.dtype.char)
    return bool(((power > noise) & (power < math.inf)).all())


def in_units(eps, unit):
    """eps for squares of numbers that have been divided by `unit`; not 0, or a constant row would be 0 / 0."""
    xp = array_module(unit)
    return xp.maximum(eps / unit / unit, xp.finfo(unit.dtype).tiny)


def unit_of(x, axes, eps):
    """A power of two near the largest |x| over `axes`, at least sqrt(eps), by which to divide x: an array."""
    x = x._data if isinstance(x, Tensor) else x
    xp = array_module(x)
    exponent = xp.floor(xp.log2(xp.maximum(largest(x, axes), math.sqrt(eps))))
    return xp.exp2(exponent).astype(x.dtype)


def standardized_wrt_x(g, x, axes, eps):
    """The vjp of `standardized`.

    A row's output does not change if all of x rises, nor if its deviations grow in proportion. So a gradient's mean,
    and its part along the output, have no effect, and are taken off.
    """
    out, scale = standardized(x, axes, eps)
    level = mean(g, axis=axes, keepdims=True)
    along = mean(g * out, axis=axes, keepdims=True)
    with quiet():
        return (g - level - out * along) * scale


# ---- Over the last axes ------------------------------------------------------------------------------


@op
def layer_norm_(x, weight=None, bias=None, axes=(-1,), eps=1e-5):
    """standardized(x) * weight + bias. Keeps x and weight."""
    return scaled(standardized(x, axes, eps)[0], weight, bias, x)


@layer_norm_.vjp("x")
def layer_norm_wrt_x(g, x, weight, axes, eps):
    return standardized_wrt_x(wide(g) if weight is None else wide(g) * weight, x, axes, eps)


@layer_norm_.vjp("weight")
def layer_norm_wrt_weight(g, x, axes, eps):
    return g * standardized(x, axes, eps)[0]  # the sweep sums over the rows


@layer_norm_.vjp("bias")
def layer_norm_wrt_bias(g):
    return g


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Each row of x minus its mean, divided by its standard deviation (biased), times weight, plus bias.

    normalized_shape  the last lengths of x.shape (an int for one of them): over these axes
    weight, bias      of that shape, or None
    eps               added to the variance

    Keeps x. Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450.
    """
    axes = last_axes("layer_norm", x, normalized_shape, weight, bias)
    return with_optional(layer_norm_, x, weight, bias, axes=axes, eps=eps)


def checked_groups(what, num_groups, channels):
    """The number of groups into which channels fall evenly, as an int."""
    try:
        groups = operator.index(num_groups)
    except TypeError as error:
        raise ArgumentError(f"{what} takes a number of groups, not {num_groups!r}") from error
    if groups < 1 or channels % groups:
        raise ShapeError(f"{what}: {channels} channels do not fall into {groups} groups of equal size")
    return groups


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """Channels in groups: each group of each row, with all that lies behind its channels, is standardized by itself.

    x             (N, channels, ...)
    num_groups    into how many groups of equal size the channels fall
    weight, bias  a number for each channel, or None
    eps           added to the variance

    Keeps x. Source: Wu and He 2018, arXiv:1803.08494.

    >>> import minigrad as mg
    >>> group_norm(mg.tensor([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)
    Tensor([[-1.,  1., -1.,  1.]], float32)
    """
    if x.ndim < 2:
        raise ShapeError(f"group_norm takes channels as axis 1, and x has shape {x.shape}")
    groups = checked_groups("group_norm", num_groups, x.shape[1])
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.shape != x.shape[1:2]:
            raise ShapeError(f"group_norm takes a {name} for each of {x.shape[1]} channels, not {part.shape}")
    rows = x.reshape(x.shape[0] * groups, -1) if x.size else x
    out = (layer_norm(rows, rows.shape[1:], eps=eps) if x.size else rows).reshape(x.shape)
    channels = (1, x.shape[1]) + (1,) * (x.ndim - 2)
    out = out if weight is None else out * weight.reshape(channels)
    return out if bias is None else out + bias.reshape(channels)


@op
def rms_norm_(x, weight=None, axes=(-1,), eps=1e-6):
    """x / sqrt(mean(x²) + eps) * weight. Keeps x and weight."""
    return scaled(wide(x) * one_over_rms(x, axes, eps), weight, None, x)


@rms_norm_.vjp("x")
def rms_norm_wrt_x(g, x, weight, axes, eps):
    g = wide(g) if weight is None else wide(g) * weight
    scale = one_over_rms(x, axes, eps)
    out = wide(x) * scale
    return (g - out * mean(g * out, axis=axes, keepdims=True)) * scale


@rms_norm_.vjp("weight")
def rms_norm_wrt_weight(g, x, axes, eps):
    return g * (wide(x) * one_over_rms(x, axes, eps))


def one_over_rms(x, axes, eps):
    x = wide(x)
    with quiet():
        power = mean(x * x, axis=axes, keepdims=True)
        if are_exact(power * 0, power, eps):
            return 1 / sqrt(power + eps)
        unit = unit_of(x, axes, eps)
        x = x / unit
        return 1 / sqrt(mean(x * x, axis=axes, keepdims=True) + in_units(eps, unit)) / unit


def rms_norm(x, normalized_shape, weight=None, eps=None):
    """Each row of x divided by the root of its mean square, times weight.

    normalized_shape  the last lengths of x.shape (an int for one of them): over these axes
    weight            of that shape, or None
    eps               added to the mean square; by default the distance of 1 from the next number of x's dtype

    Keeps x. Source: Zhang and Sennrich 2019, arXiv:1910.07467.
    """
    axes = last_axes("rms_norm", x, normalized_shape, weight)
    if eps is None:
        eps = float(array_module().finfo(x.dtype if x.dtype.kind == "f" else get_default_dtype()).eps)
    return with_optional(rms_norm_, x, weight, axes=axes, eps=eps)


def last_axes(name, x, normalized_shape, *parameters):
    """The axes that `normalized_shape` means, counted from the end."""
    shape = ints((normalized_shape,), "normalized_shape")
    if not shape or x.shape[max(0, x.ndim - len(shape)) :] != shape:
        raise ShapeError(f"{name} over the last axes {shape}, and x has shape {x.shape}")
    for parameter in parameters:
        if parameter is not None and parameter.shape != shape:
            raise ShapeError(f"{name} needs a weight and a bias of shape {shape}, not {parameter.shape}")
    return tuple(range(-len(shape), 0))


# ---- Over a batch ------------------------------------------------------------------------------------


@op
def batch_norm_(x, weight=None, bias=None, eps=1e-5):
    """standardized(x), each channel by itself, * weight + bias. Keeps x and weight."""
    weight, bias = [p if p is None else for_channels(p, x) for p in (weight, bias)]
    return scaled(standardized(x, all_but_channels(x), eps)[0], weight, bias, x)


@batch_norm_.vjp("x")
def batch_norm_wrt_x(g, x, weight, eps):
    g = wide(g) if weight is None else wide(g) * for_channels(weight, x)
    return standardized_wrt_x(g, x, all_but_channels(x), eps)


@batch_norm_.vjp("weight")
def batch_norm_wrt_weight(g, x, eps):
    axes = all_but_channels(x)
    return sum_(g * standardized(x, axes, eps)[0], axis=axes)


@batch_norm_.vjp("bias")
def batch_norm_wrt_bias(g):
    return sum_(wide(g), axis=all_but_channels(g))


def all_but_channels(x) -> tuple:
    return (0, *range(2, x.ndim))


def for_channels(parameter, x):
    """One number for each channel, in a shape that broadcasts against x (N, channels, ...)."""
    return parameter.reshape((1, parameter.shape[0]) + (1,) * (x.ndim - 2))


def batch_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):  # fmt: skip
    """Each channel of x (N, channels, ...) minus its mean, divided by its standard deviation, times weight, plus bias.

    training      True: mean and variance (biased) of this batch. False: running_mean and running_var
    running_mean, running_var   tensors of shape (channels,), or None. In training each moves towards this batch's
                  value by the fraction `momentum`; the variance for that is the unbiased one
    weight, bias  of shape (channels,), or None
    eps           added to the variance

    Moving the running values is no op: a checkpoint's replay does not do it again. Keeps x.
    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.
    """
    for parameter in (running_mean, running_var, weight, bias):
        if parameter is not None and parameter.shape != x.shape[1:2]:
            raise ShapeError(f"batch_norm of {x.shape} needs one number for each channel, not shape {parameter.shape}")
    if training:
        update_running(running_mean, running_var, x, momentum)
        return with_optional(batch_norm_, x, weight, bias, eps=eps)
    if running_mean is None or running_var is None:
        raise ArgumentError("batch_norm needs running_mean and running_var, or training=True")
    scale = 1 / sqrt(running_var + eps)
    scale = scale if weight is None else scale * weight
    shift = -running_mean * scale
    shift = shift if bias is None else shift + bias
    return x * for_channels(scale, x) + for_channels(shift, x)


def update_running(running_mean, running_var, x, momentum):
    """Move the running values towards those of this batch."""
    axes = all_but_channels(x)
    n = count(x.shape, axes)
    if n < 2:
        raise ShapeError(f"batch_norm in training needs more than one value for each channel, and x is {x.shape}")
    values = wide(x._data if isinstance(x, Tensor) else x)
    if running_mean is not None:
        move(running_mean, mean.forward(values, axes), momentum)
    if running_var is not None:
        move(running_var, var.forward(values, axes, 1), momentum)


def move(running, value, fraction):
    if not isinstance(running, Tensor):
        raise ArgumentError(f"running_mean and running_var must be tensors, not {type(running).__name__}")
    running.assign_(running._data * (1 - fraction) + value * fraction)


# ---- What all need -----------------------------------------------------------------------------------


def scaled(out, weight, bias, x):
    """out * weight + bias, where they are given, in x's dtype."""
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return narrow(out, x)


def with_optional(op, x, weight=None, bias=None, **settings):
    """The op on the parameters that there are. An op's inputs may be missing at the end only."""
    if weight is None and bias is not None:
        channels = for_channels(bias, x) if op is batch_norm_ else bias
        return add(op(x, **settings), channels)
    return op(x, *[p for p in (weight, bias) if p is not None], **settings)
