"""Functions as methods, t.floor() for floor(t), and an error that says `axis` where someone wrote PyTorch's `dim`.

A method is the function of its name, given the tensor as its first argument. `methods.py` has those that are written
out, and the operators; the names here are put on Tensor as they are.
"""

import functools
import inspect

from ..engine.op import Op
from ..engine.tensor import Tensor
from ..errors import TORCH_KEYWORDS, torch_keyword_error

METHODS = """
add sub mul div neg floor_divide remainder maximum minimum clip floor ceil round trunc fmod
tan asin acos atan sinh cosh asinh acosh atanh exp2 log2 log10 square reciprocal rsqrt lerp erf
leaky_relu elu gelu silu softplus hardtanh relu6 hardsigmoid hardswish swish celu selu softsign mish logsigmoid
softmin glu eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
bitwise_not isnan isfinite isinf isclose allclose normalize cumprod cummax cummin topk pad clone repeat tile
repeat_interleave unfold expand chunk unbind movedim masked_fill masked_select index_select scatter dot
""".split()
OTHER_NAMES = {
    "view": "reshape", "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "mm": "matmul",
    "bmm": "matmul", "mv": "matmul", "amax": "max", "amin": "min",
}  # fmt: skip


def method_of(function):
    """The function as a method: an op is an object, which Python would not give the tensor to."""
    if not isinstance(function, Op):
        return function

    def method(self, *args, **settings):
        return function(self, *args, **settings)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    method.__signature__ = inspect.signature(function.forward)
    return method


def in_our_words(function):
    """The function, which answers torch's keywords (dim, keepdim) with an error that says ours."""

    @functools.wraps(function)
    def call(*args, **settings):
        if settings:
            for keyword in settings:
                if keyword in TORCH_KEYWORDS:
                    raise torch_keyword_error(function.__name__, keyword)
        return function(*args, **settings)

    return call


def has_an_axis(function) -> bool:
    """Whether a Python function takes an axis, or several sizes or axes, and no torch keyword of its own."""
    if not inspect.isfunction(function):
        return False
    names = inspect.signature(function).parameters
    return any(name.endswith(("axis", "axes", "axis1", "correction")) for name in names)


def complete(namespace, names):
    """Give Tensor its further methods, which are functions of the namespace; and let all of them, and the functions
    of these names, refuse torch's keywords."""
    for name in METHODS:
        setattr(Tensor, name, method_of(namespace[name]))
    for name, ours in OTHER_NAMES.items():
        setattr(Tensor, name, method_of(namespace[ours]))
    for name in names:
        if has_an_axis(namespace[name]):
            namespace[name] = in_our_words(namespace[name])
    for name, method in list(vars(Tensor).items()):
        if not name.startswith("_") and has_an_axis(method):
            setattr(Tensor, name, in_our_words(method))
