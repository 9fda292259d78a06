"""Which dtype a result has, when an op is given several.

A floating tensor wins over integers and booleans, whatever their width: float16 and int64 give float16, as in PyTorch
and in JAX, where NumPy would give float64. Of two floats the wider one wins. Python's numbers and NumPy's scalars
promote nothing; but an integer tensor times 0.5 is no integer, and functions that have no integer values (exp, a mean,
true division) have none of integers either: these give the default float dtype.

Who takes part: of an op with gradients the inputs that can have one. So indices, targets and conditions stay what they
are. Of an op without (comparisons, //) all inputs do, if it stands in WITHOUT_GRADIENT.

An op asks here before it runs (`Op.promote`), and only if some input requires no gradient: integers never do. What has
to be cast is cast by an op, so a checkpoint's replay casts it again. Only a mask of booleans is multiplied as it is,
and kept so: one byte each.
"""

import functools

import numpy

from ..engine.op import registry
from ..engine.tensor import Tensor
from .defaults import get_default_dtype
from .elementwise import astype

WITHOUT_GRADIENT = {"eq", "ne", "lt", "le", "gt", "ge", "isclose", "floor_divide", "fmod"}
AS_IT_IS = {"index_put", "astype"}  # what is written takes the dtype of what it is written into
FLOATING = {
    "div", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "erf", "exp2", "log2", "log10",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "sigmoid", "silu", "gelu", "elu", "softplus", "leaky_relu", "dropout",
    "mean", "var", "std", "norm", "softmax", "log_softmax", "logsumexp", "avg_pool2d", "scaled_dot_product_attention",
    "layer_norm", "rms_norm", "batch_norm", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "huber_loss",
    "binary_cross_entropy_with_logits",
}  # fmt: skip


class Promotion:
    """What one op does about the dtypes of its inputs.

    Called with the inputs, as tensors or numbers and as arrays, it gives them with the integers cast; None if there is
    nothing to cast.

    places       of the inputs that take part; None: all of them
    floating     whether integers among themselves become floats, too
    takes_masks  whether booleans stay booleans
    is_pair      whether both of two inputs take part, and nothing else matters
    """

    def __init__(self, op):
        self.floating, self.takes_masks = op.name in FLOATING, op.name == "mul"
        inputs = [*enumerate(op.parameters[: op.arity])]
        differentiable = [i for i, name in inputs if name in op.vjps and name != "mask"]  # truth values, or numbers
        places = range(op.arity) if op.name in WITHOUT_GRADIENT else differentiable
        self.places = None if op.variadic else tuple(places)
        self.is_pair = op.arity == 2 and self.places == (0, 1) and not self.floating

    def __call__(self, args, arrays):
        if self.is_pair and getattr(arrays[0], "dtype", None) is getattr(arrays[-1], "dtype", arrays):
            return None  # in less time than by what follows
        first, numbers = None, False
        places = range(len(arrays)) if self.places is None else self.places
        for i in places:
            if i < len(arrays):
                dtype = getattr(arrays[i], "dtype", None)
                if dtype is None:
                    numbers = numbers or type(arrays[i]) is float
                elif first is None:
                    first = dtype
                elif dtype is not first:
                    return self.cast(args, arrays, places)
        if first is None or first.kind == "f" or not (numbers or self.floating):
            return None
        return self.cast(args, arrays, places)

    def cast(self, args, arrays, places):
        taking_part = [arrays[i] for i in places if i < len(arrays)]
        dtypes = tuple([array.dtype for array in taking_part if hasattr(array, "dtype")])
        wanted = floating_dtype(dtypes)
        if all([dtype == wanted or dtype.kind == "f" for dtype in dtypes]):
            return None
        if wanted is None:
            if not self.floating and not any([type(x) is float for x in taking_part]):
                return None
            wanted = get_default_dtype()
        elif self.takes_masks and all([dtype.kind in "fb" for dtype in dtypes]):
            return None
        args = list(args)
        for i in places:
            if i < len(arrays) and getattr(arrays[i], "dtype", wanted).kind in "iub":
                args[i] = astype(args[i], wanted) if isinstance(args[i], Tensor) else arrays[i].astype(wanted)
        return args


@functools.lru_cache(maxsize=1000)
def floating_dtype(dtypes):
    """The widest of the floating ones; None if there are none."""
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    return numpy.result_type(*floats) if floats else None


def is_concerned(op):
    return op.name not in AS_IT_IS and (op.vjps or op.name in WITHOUT_GRADIENT) and (
        op.variadic or op.arity > 1 or op.name in FLOATING
    )  # fmt: skip


for each in registry.values():
    if is_concerned(each):
        each.promote = Promotion(each)
