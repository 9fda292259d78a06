"""Activations made of straight lines, and activations that are made of others."""

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, ShapeError
from .activation import elu, sigmoid, silu, softplus
from .elementwise import abs_, tanh
from .reduce import softmax

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@op
def hardtanh(x, min_val=-1.0, max_val=1.0):
    """x between min_val and max_val, the nearer of them outside, where its slope is 0. Keeps its output."""
    if min_val >= max_val:
        raise ArgumentError(f"hardtanh needs min_val < max_val, not {min_val} and {max_val}")
    return array_module(x).clip(x, min_val, max_val)


@hardtanh.vjp("x")
def hardtanh_wrt_x(g, out, min_val, max_val):
    return g * ((out > min_val) & (out < max_val))


def relu6(x):
    """x between 0 and 6, the nearer of them outside."""
    return hardtanh(x, min_val=0.0, max_val=6.0)


def hardsigmoid(x):
    """A straight line from 0 at -3 to 1 at 3, and flat outside."""
    return hardtanh(x * (1 / 6) + 0.5, min_val=0.0, max_val=1.0)


def hardswish(x):
    """x * hardsigmoid(x). Source: Howard et al. 2019, Searching for MobileNetV3, arXiv:1905.02244."""
    return x * hardsigmoid(x)


def swish(x):
    """x * sigmoid(x): `silu` by its other name."""
    return silu(x)


def celu(x, alpha=1.0):
    """x above 0, alpha * (exp(x / alpha) - 1) below, which is smooth at 0; alpha > 0.

    Source: Barron 2017, Continuously differentiable exponential linear units, arXiv:1704.07483.
    """
    if not alpha > 0:
        raise ArgumentError(f"celu needs alpha > 0, not {alpha}")
    return elu(x) if alpha == 1 else elu(x / alpha) * alpha


def selu(x):
    """elu, scaled so that deep networks keep mean 0 and variance 1.

    Source: Klambauer et al. 2017, Self-normalizing neural networks, arXiv:1706.02515.
    """
    return elu(x, alpha=SELU_ALPHA) * SELU_SCALE


def softsign(x):
    """x / (1 + |x|)."""
    return x / (1 + abs_(x))


def mish(x):
    """x * tanh(softplus(x)). Source: Misra 2019, arXiv:1908.08681."""
    return x * tanh(softplus(x))


def logsigmoid(x):
    """log(sigmoid(x)), exact far out on both sides."""
    return -softplus(-x)


def softmin(x, axis=-1):
    """softmax(-x): the smallest has the largest share."""
    return softmax(-x, axis=axis)


def glu(x, axis=-1):
    """The first half of x along `axis`, times the sigmoid of the second.

    Source: Dauphin et al. 2016, Language modeling with gated convolutional networks, arXiv:1612.08083.
    """
    if not -x.ndim <= axis < x.ndim or x.shape[axis] % 2:
        raise ShapeError(f"glu halves axis {axis} of a tensor of shape {x.shape}, which must have an even length")
    before, half = (slice(None),) * (axis % x.ndim), x.shape[axis] // 2
    return x[(*before, slice(half))] * sigmoid(x[(*before, slice(half, None))])
