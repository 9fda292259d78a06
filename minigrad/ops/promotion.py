"""Which dtype a result has, when an op is given several.

A floating tensor wins over integers and booleans, whatever their width: float16 and int64 give float16, as in PyTorch
and in JAX, where NumPy would give float64. Of two floats the wider one wins. Python's numbers and NumPy's scalars
promote nothing. Functions that have no integer values (exp, a mean, true division) take integers as the default float
dtype.

An op asks here before it runs (`Op.promote`), and only if some input requires no gradient: integers never do. What has
to be cast is cast by an op, so a checkpoint's replay casts it again.
"""

from ..engine.tensor import Tensor
from . import (
    activation,
    arithmetic,
    classes,
    conv,
    elementwise,
    linalg,
    loss,
    normalization,
    powers,
    reduce,
    rounding,
    shape,
    trigonometry,
)
from .defaults import get_default_dtype
from .erf import erf

TOGETHER = (
    arithmetic.add, arithmetic.sub, arithmetic.mul, arithmetic.floor_divide, arithmetic.remainder, rounding.fmod,
    arithmetic.maximum, arithmetic.minimum, arithmetic.pow_, linalg.matmul, linalg.outer, linalg.linear,
    linalg.einsum_, shape.cat_, shape.stack_, conv.conv2d_, conv.conv_transpose2d_, loss.mse_loss, loss.l1_loss,
    classes.huber_loss, loss.binary_cross_entropy_with_logits, normalization.layer_norm_, normalization.rms_norm_,
    normalization.batch_norm_,
)  # fmt: skip
FLOATING = (
    arithmetic.div, elementwise.exp, elementwise.expm1, elementwise.log, elementwise.log1p, elementwise.sqrt,
    elementwise.sin, elementwise.cos, elementwise.tanh, erf, powers.exp2, powers.log2, powers.log10,
    trigonometry.tan, trigonometry.asin, trigonometry.acos, trigonometry.atan, trigonometry.sinh, trigonometry.cosh,
    trigonometry.asinh, trigonometry.acosh, trigonometry.atanh, activation.sigmoid, activation.silu, activation.gelu,
    activation.elu_, activation.softplus_, reduce.mean, reduce.var, reduce.std, reduce.norm_, reduce.softmax,
    reduce.log_softmax, reduce.logsumexp,
)  # fmt: skip


def together(args, arrays):
    """The inputs in the dtype of the floating ones among them; None if nothing has to change."""
    first = None
    for array in arrays:
        dtype = getattr(array, "dtype", None)
        if dtype is not None and first is None:
            first = dtype
        elif dtype is not None and dtype is not first:
            return cast(args, arrays)
    return None


def cast(args, arrays):
    floats = [array.dtype for array in arrays if hasattr(array, "dtype") and array.dtype.kind == "f"]
    if not floats:
        return None
    widest = max(floats, key=widths)
    changed = [array for array in arrays if hasattr(array, "dtype") and array.dtype.kind in "iub"]
    return [as_dtype(arg, array, widest) for arg, array in zip(args, arrays, strict=True)] if changed else None


def widths(dtype):
    return dtype.itemsize


def as_dtype(arg, array, dtype):
    if getattr(array, "dtype", dtype).kind not in "iub":
        return arg
    return elementwise.astype(arg, dtype) if isinstance(arg, Tensor) else array.astype(dtype)


def where_parts(args, arrays):
    """`where` promotes what it chooses from, and not the condition."""
    chosen = together(args[1:], arrays[1:])
    return None if chosen is None else [args[0], *chosen]


def as_floats(args, arrays):
    """Integers in the default float dtype; None if there is a float among them."""
    if any(getattr(array, "dtype", None) is not None and array.dtype.kind == "f" for array in arrays):
        return together(args, arrays)
    if not any(getattr(array, "dtype", None) is not None for array in arrays):
        return None
    return [as_dtype(arg, array, get_default_dtype()) for arg, array in zip(args, arrays, strict=True)]


for each in TOGETHER:
    each.promote = together
for each in FLOATING:
    each.promote = as_floats
arithmetic.where_.promote = where_parts
