"""Making tensors: from data, filled with a number, in a sequence, at random.

Python floats have no dtype, so a list of them becomes the default dtype (float32). NumPy's arrays and scalars
have one, and keep it. Every function takes

    dtype          of the result; None: from the data, or the default dtype
    device         "cpu", "cuda", "cuda:1"; None: where the data is, or the CPU
    requires_grad  whether backward shall leave a gradient here; floating dtypes only (else DtypeError)
"""

import math
import weakref

import numpy

from ..engine.device import array_module, device_of, is_array, to_device
from ..engine.tape import Leaf
from ..engine.tensor import Tensor, check_float, check_plain, frozen
from ..errors import ArgumentError, DtypeError, ShapeError
from .common import ints
from .defaults import get_default_dtype, number_dtype, set_default_dtype
from .keys import generator, next_key

__all__ = [
    "tensor", "zeros", "ones", "full", "arange", "linspace", "eye", "zeros_like", "ones_like", "full_like",
    "rand", "randn", "randint", "randperm", "set_default_dtype", "get_default_dtype",
]  # fmt: skip


def tensor(data, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested lists of them, an array, or a tensor.

    name  for tables, pictures and errors

    >>> tensor([[1.0, 2.0]], requires_grad=True)
    Tensor([[1., 2.]], float32, requires_grad)
    """
    return leaf(to_device(new_array(data, dtype), device), requires_grad, name)


def leaf(array, requires_grad=False, name=None) -> Tensor:
    """A tensor around an array that nobody else holds."""
    result = Tensor(frozen(array))
    if requires_grad:
        check_float(array.dtype)
        result._node = Leaf(array, True, weakref.ref(result), name)
    elif name is not None:
        result.name = name
    return result


def new_array(data, dtype):
    """A copy of `data` as an array; Python floats in the default dtype."""
    if isinstance(data, Tensor):
        data = data._data
    check_plain(data)
    module = array_module(data) if is_array(data) else numpy
    try:
        array = module.array(data, dtype=dtype)
    except ValueError as error:
        raise ShapeError(f"these data do not make an array: {error}") from error
    except TypeError as error:
        raise DtypeError(f"these data do not make an array: {error}") from error
    if dtype is None and array.dtype == "float64" and has_python_numbers_only(data):
        array = array.astype(get_default_dtype())
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"tensors hold floats, integers or booleans, not {array.dtype}")
    return array


def has_python_numbers_only(data) -> bool:
    if isinstance(data, (list, tuple)):
        return all(map(has_python_numbers_only, data))
    return type(data) in (float, int, bool)


# ---- Filled ------------------------------------------------------------------------------------------


def zeros(*shape, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """Zeros of a shape: zeros(2, 3) or zeros((2, 3)).

    >>> zeros(2, 3).shape
    (2, 3)
    """
    return filled(ints(shape), 0.0, dtype or get_default_dtype(), device, requires_grad, name)


def ones(*shape, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """Ones of a shape: ones(2, 3) or ones((2, 3))."""
    return filled(ints(shape), 1.0, dtype or get_default_dtype(), device, requires_grad, name)


def full(shape, value, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """The number `value` throughout a shape, which is a tuple or an int.

    >>> full((2,), 7)
    Tensor([7, 7], int64)
    """
    value = value.item() if isinstance(value, Tensor) else value
    check_plain(value)
    return filled(ints((shape,)), value, dtype or number_dtype(value), device, requires_grad, name)


def zeros_like(like, dtype=None, device=None, requires_grad=False) -> Tensor:
    """Zeros of the shape, dtype and device of a tensor or an array."""
    return full_like(like, 0, dtype, device, requires_grad)


def ones_like(like, dtype=None, device=None, requires_grad=False) -> Tensor:
    """Ones of the shape, dtype and device of a tensor or an array."""
    return full_like(like, 1, dtype, device, requires_grad)


def full_like(like, value, dtype=None, device=None, requires_grad=False) -> Tensor:
    """The number `value` throughout the shape, dtype and device of a tensor or an array."""
    array = like._data if isinstance(like, Tensor) else like
    return filled(array.shape, value, dtype or array.dtype, device or device_of(array), requires_grad)


def filled(shape, value, dtype, device, requires_grad, name=None) -> Tensor:
    return leaf(to_device(numpy.full(shape, value, dtype), device), requires_grad, name)


# ---- In a sequence -----------------------------------------------------------------------------------


def arange(start, stop=None, step=1, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """start, start + step, ... up to, and without, stop; arange(n) is 0 ... n-1. Integers if all three are.

    >>> arange(3)
    Tensor([0, 1, 2], int64)
    """
    if stop is None:
        start, stop = 0, start
    array = in_steps(start, stop, step).astype(dtype or number_dtype(start, stop, step), copy=False)
    return leaf(to_device(array, device), requires_grad, name)


def linspace(start, stop, steps, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """`steps` numbers from start to stop, both included, at equal distances; in the default dtype if None.

    >>> linspace(0, 1, 3)
    Tensor([0. , 0.5, 1. ], float32)
    """
    (steps,) = ints((steps,), "the number of steps of linspace")
    if steps < 0:
        raise ArgumentError(f"linspace needs steps >= 0, not {steps}")
    array = numpy.linspace(start, stop, steps, dtype=dtype or get_default_dtype())
    return leaf(to_device(array, device), requires_grad, name)


def in_steps(start, stop, step):
    """start + i * step in int64 or float64: each number is rounded once, when it gets its dtype.

    numpy.arange(dtype=...) rounds the step first, and adds in the narrow dtype: from 2**24 on it would not move.
    """
    start, stop, step = [n.item() if isinstance(n, (Tensor, numpy.generic)) else n for n in (start, stop, step)]
    if step == 0:
        raise ArgumentError("arange needs a step other than 0")
    if all(isinstance(n, int) for n in (start, stop, step)):
        return numpy.arange(start, stop, step)
    span = (stop - start) / step
    if not math.isfinite(span):
        raise ArgumentError(f"arange needs finite numbers, not {start}, {stop} and {step}")
    return start + numpy.arange(max(math.ceil(span), 0)) * float(step)


def eye(n, m=None, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """Ones on the diagonal of an n x m matrix (n x n if m is None), zeros elsewhere."""
    array = numpy.eye(n, m, dtype=dtype or get_default_dtype())
    return leaf(to_device(array, device), requires_grad, name)


# ---- At random ---------------------------------------------------------------------------------------
# Each call takes the next key (random.py). The numbers are drawn on the CPU, so a seed means the same on
# every device.


def rand(*shape, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """Uniform numbers in [0, 1): rand(2, 3) or rand((2, 3))."""
    dtype = numpy.dtype(dtype or get_default_dtype())
    array = generator(next_key()).random(ints(shape), at_least_single(dtype))
    if dtype != array.dtype:  # rounding to float16 must not give 1
        array = numpy.minimum(array, 1 - 2**-11).astype(dtype)
    return leaf(to_device(array, device), requires_grad, name)


def randn(*shape, dtype=None, device=None, requires_grad=False, name=None) -> Tensor:
    """Numbers of the normal distribution with mean 0 and variance 1: randn(2, 3) or randn((2, 3))."""
    dtype = numpy.dtype(dtype or get_default_dtype())
    array = generator(next_key()).standard_normal(ints(shape), at_least_single(dtype)).astype(dtype, copy=False)
    return leaf(to_device(array, device), requires_grad, name)


def randint(low, high, shape, dtype="int64", device=None) -> Tensor:
    """Integers from low to high - 1, each as likely as any other."""
    array = generator(next_key()).integers(low, high, ints((shape,)), dtype)
    return leaf(to_device(array, device))


def randperm(n, device=None) -> Tensor:
    """The integers 0 ... n-1 in random order."""
    return leaf(to_device(generator(next_key()).permutation(n), device))


def at_least_single(dtype):
    """The dtype to draw in: NumPy draws float32 and float64."""
    check_float(dtype)
    return numpy.dtype("float32") if dtype.itemsize < 4 else dtype
