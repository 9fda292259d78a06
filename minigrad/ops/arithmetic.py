"""Arithmetic, element by element. Inputs broadcast as in NumPy; the sweep sums the gradients back.

A vjp names what it reads, and the tape keeps no more. So `a + b` keeps nothing, and `a * b` keeps b if a
needs a gradient, and a if b does.
"""

import math

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, DtypeError
from .common import NUMBER, plain, quiet
from .defaults import get_default_dtype, number_dtype
from .elementwise import astype, log


@op
def add(a, b):
    """a + b. Keeps nothing."""
    return a + b


@add.vjp("a")
def add_wrt_a(g):
    return g


@add.vjp("b")
def add_wrt_b(g):
    return g


@op
def sub(a, b):
    """a - b. Keeps nothing."""
    return a - b


@sub.vjp("a")
def sub_wrt_a(g):
    return g


@sub.vjp("b")
def sub_wrt_b(g):
    return -g


@op
def mul(a, b):
    """a * b. Keeps the factor that the other one's gradient reads."""
    return a * b


@mul.vjp("a")
def mul_wrt_a(g, b):
    return g * b


@mul.vjp("b")
def mul_wrt_b(g, a):
    return g * a


@op
def div(a, b):
    """a / b; x/0 is inf or nan. Keeps b, and a too if b needs a gradient."""
    with quiet():
        return a / b


@div.vjp("a")
def div_wrt_a(g, b):
    with quiet():
        return g / b


@div.vjp("b")
def div_wrt_b(g, a, b):
    with quiet():
        return -g / b * (a / b)  # not a / (b * b): the square would overflow long before b does


@op
def neg(x):
    """-x. Keeps nothing."""
    return -x


@neg.vjp("x")
def neg_wrt_x(g):
    return -g


@op
def pow_(a, b):
    """a ** b. Keeps a and b for a's gradient, a and the output for b's.

    At a = 0 the gradients are their limits: with respect to b 0 if b >= 0 and -inf if b < 0; to a 0 if b is 0.
    """
    if is_whole(a) and is_whole(b) and array_module(b).any(b < 0):
        raise DtypeError('integers have no negative powers among the integers; use astype("float32") first')
    with quiet():
        return a**b


def is_whole(x):
    return isinstance(x, int) or (not isinstance(x, float) and x.dtype.kind in "iu")


@pow_.vjp("a")
def pow_wrt_a(g, a, b):
    with quiet():
        if isinstance(b, NUMBER):
            return g * (b * a ** (b - 1)) if b else g * 0
        both_zero = (a == 0) & (b == 0)
        return g * (b * a ** where_(both_zero, 1.0, b - 1))


@pow_.vjp("b")
def pow_wrt_b(g, a, out):
    if isinstance(a, NUMBER):
        if a == 0:  # 0 ** b is 0 or 1 for b >= 0, where it is flat, and inf for b < 0, where it falls
            with quiet():
                return g * where_(out < math.inf, 0.0, -out)
        return g * (out * (math.log(a) if a > 0 else math.nan))
    with quiet():
        flat = (a == 0) & (out * 0 == 0)  # out is finite where b >= 0
        return g * (out * log(where_(flat, 1.0, a)))


def refuse_zero(b, sign, a):
    """Integers have no inf and no nan for a division by zero to give. ArgumentError, as Python and PyTorch have it."""
    if all(x.dtype.kind in "iub" if hasattr(x, "dtype") else isinstance(x, int) for x in (a, b)):
        if not bool(array_module(b).all(b) if hasattr(b, "dtype") else b):
            raise ArgumentError(f"integers cannot be divided by zero with {sign}; divide floats, or replace the zeros")


@op
def floor_divide(a, b):
    """a // b, rounded down. No gradient flows through it: it is flat wherever it has a slope."""
    refuse_zero(b, "//", a)
    with quiet():
        return a // b


@op
def remainder(a, b):
    """a % b = a - (a // b) * b, with the sign of b. Keeps a and b if b needs a gradient, else nothing."""
    refuse_zero(b, "%", a)
    with quiet():
        return a % b


@remainder.vjp("a")
def remainder_wrt_a(g):
    return g


@remainder.vjp("b")
def remainder_wrt_b(g, a, b):
    with quiet():
        return -g * (a // b)


@op
def maximum(a, b):
    """The larger of a and b; where they are equal they share the gradient. Keeps a and b."""
    return array_module(a, b).maximum(a, b)


@maximum.vjp("a")
def maximum_wrt_a(g, a, b):
    return where_(a == b, g * 0.5, g * (a > b))


@maximum.vjp("b")
def maximum_wrt_b(g, a, b):
    return where_(a == b, g * 0.5, g * (b > a))


@op
def minimum(a, b):
    """The smaller of a and b; where they are equal they share the gradient. Keeps a and b."""
    return array_module(a, b).minimum(a, b)


@minimum.vjp("a")
def minimum_wrt_a(g, a, b):
    return where_(a == b, g * 0.5, g * (a < b))


@minimum.vjp("b")
def minimum_wrt_b(g, a, b):
    return where_(a == b, g * 0.5, g * (b < a))


@op
def clamp_(x, min=None, max=None):
    """x, but not below the number `min` and not above `max`. Keeps x."""
    return array_module(x).clip(x, min, max)


@clamp_.vjp("x")
def clamp_wrt_x(g, x, min, max):
    if min is None:
        return g * (x <= max)
    if max is None:
        return g * (x >= min)
    return g * ((x >= min) & (x <= max))


def as_float(x):
    """Integers and booleans in the default float dtype; floats as they are."""
    return x if x.dtype.kind == "f" else astype(x, get_default_dtype())


def clamp(x, min=None, max=None):
    """x, but not below `min` and not above `max`; either may be None, a number, or a tensor.

    On a bound that is a number the gradient passes; with a bound that is a tensor, x and it share.
    """
    min, max = plain(min), plain(max)
    if min is None and max is None:
        raise ArgumentError("clamp needs min, max or both")
    if isinstance(min, (*NUMBER, type(None))) and isinstance(max, (*NUMBER, type(None))):
        if isinstance(min, float) or isinstance(max, float):
            x = as_float(x)
        return clamp_(x, min=min, max=max)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


@op
def where_(condition, a, b):
    """a where the condition holds, b elsewhere, all three broadcast. Keeps the condition."""
    return array_module(condition, a, b).where(condition, a, b)


@where_.vjp("a")
def where_wrt_a(g, condition):
    return where_(condition, g, 0.0)


@where_.vjp("b")
def where_wrt_b(g, condition):
    return where_(condition, 0.0, g)


def where(condition, a, b):
    """a where the condition holds, b elsewhere, all three broadcast. Keeps the condition.

    Two Python numbers give the default dtype.

    >>> import minigrad as mg
    >>> where(mg.tensor([2, -3]) > 0, 1.0, -1.0)
    Tensor([ 1., -1.], float32)
    """
    a, b = plain(a), plain(b)
    if isinstance(a, NUMBER) and isinstance(b, NUMBER):
        a = array_module().asarray(a, dtype=number_dtype(a, b))
    return where_(condition, a, b)
