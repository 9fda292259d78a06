"""Activation functions.

Those that only rise (relu, sigmoid, softplus, elu, ...) can tell their slope from their output, and the next
layer keeps that buffer anyway, for its weight's gradient. So they cost the tape nothing more. GELU and SiLU
dip below 0 and come back: an output there belongs to two inputs, and so they must keep x.
"""

import math

from ..engine.device import array_module
from ..engine.op import op
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from .arithmetic import clamp_, where_
from .elementwise import exp, expm1, tanh
from .erf import erf

TANH_SCALE, TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


@op
def relu(x):
    """max(x, 0), with slope 0 at 0. Keeps its output."""
    return array_module(x).maximum(x, 0)


@relu.vjp("x")
def relu_wrt_x(g, out):
    return g * (out > 0)


@op
def leaky_relu_(x, negative_slope=0.01):
    """x above 0, negative_slope * x below; the slope must not be negative. Keeps its output."""
    if negative_slope < 0:
        raise ArgumentError(f"leaky_relu needs negative_slope >= 0 (its gradient reads signs), not {negative_slope}")
    return array_module(x).where(x > 0, x, x * float(negative_slope))


@leaky_relu_.vjp("x")
def leaky_relu_wrt_x(g, out, negative_slope):
    return where_(out > 0, g, g * float(negative_slope))


def leaky_relu(x, negative_slope=0.01):
    """x above 0, negative_slope * x below. Keeps its output.

    A number must not be negative. A slope that is a tensor is an input like x: it broadcasts, and gets a gradient.
    """
    if isinstance(negative_slope, Tensor):
        return where_(x > 0, x, x * negative_slope)
    return leaky_relu_(x, negative_slope=negative_slope)


@op
def elu_(x, alpha=1.0):
    """x above 0, alpha * (exp(x) - 1) below; alpha must not be negative. Keeps its output."""
    if alpha < 0:
        raise ArgumentError(f"elu needs alpha >= 0 (its gradient reads the output's sign), not {alpha}")
    xp = array_module(x)
    return xp.where(x > 0, x, float(alpha) * xp.expm1(xp.minimum(x, 0)))


@elu_.vjp("x")
def elu_wrt_x(g, out, alpha):
    return where_(out > 0, g, g * (out + float(alpha)))


def elu(x, alpha=1.0):
    """x above 0, alpha * (exp(x) - 1) below. Keeps its output.

    A number must not be negative. An alpha that is a tensor is an input like x: it broadcasts, and gets a gradient.
    """
    if isinstance(alpha, Tensor):
        return where_(x > 0, x, alpha * expm1(clamp_(x, max=0.0)))
    return elu_(x, alpha=alpha)


@op
def sigmoid(x):
    """1 / (1 + exp(-x)), exact far out on both sides. Keeps its output."""
    xp = array_module(x)
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1.0, small) / (1 + small)


@sigmoid.vjp("x")
def sigmoid_wrt_x(g, out):
    return g * (out * (1 - out))


@op
def softplus_(x, beta=1.0):
    """log(1 + exp(beta * x)) / beta, exact far out on both sides; beta > 0. Keeps its output."""
    if beta <= 0:
        raise ArgumentError(f"softplus needs beta > 0, not {beta}")
    return array_module(x).logaddexp(x * float(beta), 0.0) / float(beta)


@softplus_.vjp("x")
def softplus_wrt_x(g, out, beta):
    return -g * expm1(out * -float(beta))


def softplus(x, beta=1.0):
    """log(1 + exp(beta * x)) / beta, exact far out on both sides; beta > 0. Keeps its output.

    A beta that is a tensor is an input like x: it broadcasts, and gets a gradient.
    """
    if isinstance(beta, Tensor):
        return softplus_(x * beta) / beta
    return softplus_(x, beta=beta)


@op
def silu(x):
    """x * sigmoid(x), also called swish. Keeps x."""
    return not_below(x, -10000) * sigmoid.forward(x)


def not_below(x, bound):
    """x, but not below a bound where the other factor is 0 already: -inf * 0 would be nan."""
    return array_module(x).maximum(x, bound) if x.dtype.kind == "f" else x


@silu.vjp("x")
def silu_wrt_x(g, x):
    s = sigmoid(x)
    x = clamp_(x, min=-1e4, max=1e4)  # further out s is 0 or 1, and inf * 0 would be nan
    return g * (s * (1 + x * (1 - s)))


@op
def gelu(x, approximate="none"):
    """x times the normal distribution's Φ(x); approximate="tanh" is the formula of GPT-2. Keeps x.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
    """
    if approximate == "none":
        return not_below(x, -40) * (0.5 + 0.5 * erf.forward(x * math.sqrt(0.5)))
    if approximate != "tanh":
        raise ArgumentError(f'gelu(approximate=...) is "none" or "tanh", not {approximate!r}')
    near = array_module(x).clip(x, -40, 40)
    return not_below(x, -40) * (0.5 + 0.5 * array_module(x).tanh(near * TANH_SCALE * (1 + TANH_CUBE * near * near)))


@gelu.vjp("x")
def gelu_wrt_x(g, x, approximate):
    x = clamp_(x, min=-40.0, max=40.0)  # further out nothing changes any more, and float16 would overflow
    if approximate == "none":
        density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return g * (0.5 + 0.5 * erf(x * math.sqrt(0.5)) + x * density)
    t = tanh(x * TANH_SCALE * (1 + TANH_CUBE * x * x))
    slope = TANH_SCALE * (1 + 3 * TANH_CUBE * x * x)
    return g * (0.5 + 0.5 * t + 0.5 * x * (1 - t * t) * slope)
