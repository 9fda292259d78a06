"""Functions of one array, element by element, and what changes its dtype, its device or its history.

Where a derivative can be written with the output (exp' = exp, tanh' = 1 - tanh²), the vjp names `out`:
often the next op keeps that buffer anyway, and then this op costs the tape nothing.
"""

import numpy

from ..engine.device import array_module, to_device
from ..engine.op import op
from .common import quiet


@op
def exp(x):
    """e to the x. Keeps its output."""
    with quiet():
        return array_module(x).exp(x)


@exp.vjp("x")
def exp_wrt_x(g, out):
    return g * out


@op
def expm1(x):
    """exp(x) - 1, exact near 0. Keeps its output."""
    with quiet():
        return array_module(x).expm1(x)


@expm1.vjp("x")
def expm1_wrt_x(g, out):
    return g * (out + 1)


@op
def log(x):
    """The natural logarithm: -inf at 0, nan below. Keeps x."""
    with quiet():
        return array_module(x).log(x)


@log.vjp("x")
def log_wrt_x(g, x):
    with quiet():
        return g / x


@op
def log1p(x):
    """log(1 + x), exact near 0. Keeps x."""
    with quiet():
        return array_module(x).log1p(x)


@log1p.vjp("x")
def log1p_wrt_x(g, x):
    with quiet():
        return g / (1 + x)


@op
def sqrt(x):
    """The square root: nan below 0. Keeps its output; the slope at 0 is inf."""
    with quiet():
        return array_module(x).sqrt(x)


@sqrt.vjp("x")
def sqrt_wrt_x(g, out):
    with quiet():
        return g / (out * 2)


@op
def abs_(x):
    """The absolute value, with slope 0 at 0. Keeps x."""
    return array_module(x).abs(x)


@abs_.vjp("x")
def abs_wrt_x(g, x):
    return g * sign(x)


@op
def sign(x):
    """-1, 0 or 1. Its gradient is zero wherever it has one. Keeps nothing."""
    return array_module(x).sign(x)


@sign.vjp("x")
def sign_wrt_x(g):
    return g * 0


@op
def sin(x):
    """The sine of x in radians. Keeps x."""
    with quiet():
        return array_module(x).sin(x)


@sin.vjp("x")
def sin_wrt_x(g, x):
    return g * cos(x)


@op
def cos(x):
    """The cosine of x in radians. Keeps x."""
    with quiet():
        return array_module(x).cos(x)


@cos.vjp("x")
def cos_wrt_x(g, x):
    return -g * sin(x)


@op
def tanh(x):
    """The hyperbolic tangent. Keeps its output."""
    return array_module(x).tanh(x)


@tanh.vjp("x")
def tanh_wrt_x(g, out):
    return g * (1 - out * out)


@op
def astype_(x, dtype=None):
    """x in another floating dtype. Keeps nothing."""
    return x.astype(dtype, copy=False)


@astype_.vjp("x")
def astype_wrt_x(g):
    return g  # the sweep gives every gradient its input's dtype


def astype(x, dtype):
    """x in another dtype. Gradients flow between floating dtypes, and come back in the dtype of x."""
    dtype = numpy.dtype(dtype)
    return astype_(x if dtype.kind == "f" else detach(x), dtype=dtype)


@op
def detach(x):
    """The same values with no history: backward does not pass. Inside a checkpoint it is a line like others."""
    return x.view()


@op
def to_(x, device="cpu", source="cpu"):
    """x on another device; the gradient goes back to where x came from. Keeps nothing."""
    return to_device(x, device)


@to_.vjp("x")
def to_wrt_x(g, device, source):
    return to_(g, device=source, source=device)


def to(x, device):
    """x on `device` ("cpu", "cuda", "cuda:1"); x itself if it is there. Gradients go back to x's device."""
    if device in (x.device, x.device.removesuffix(":0")):
        return x
    return to_(x, device=device, source=x.device)
