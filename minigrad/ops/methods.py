"""Tensor's operators and methods: each one names the op that does the work.

They are written in a class like any methods, and copied onto Tensor at the end, since ops need Tensor before
Tensor can have ops.
"""

import weakref

import numpy

from ..engine.device import device_of, is_array, to_device
from ..engine.tape import Leaf
from ..engine.tensor import Tensor, frozen
from ..errors import ArgumentError, DtypeError, MinigradError
from . import activation, arithmetic, cast_first, compare, elementwise, index, linalg, reduce, shape

OPERAND = (Tensor, int, float, numpy.ndarray, numpy.generic)


class Methods:
    # ---- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other):
        return arithmetic.add(self, other)

    def __radd__(self, other):
        return arithmetic.add(other, self)

    def __iadd__(self, other):
        return in_place(self, arithmetic.add(self, other))

    def __sub__(self, other):
        return arithmetic.sub(self, other)

    def __rsub__(self, other):
        return arithmetic.sub(other, self)

    def __isub__(self, other):
        return in_place(self, arithmetic.sub(self, other))

    def __mul__(self, other):
        return arithmetic.mul(self, other)

    def __rmul__(self, other):
        return arithmetic.mul(other, self)

    def __imul__(self, other):
        return in_place(self, arithmetic.mul(self, other))

    def __truediv__(self, other):
        return arithmetic.div(self, other)

    def __rtruediv__(self, other):
        return arithmetic.div(other, self)

    def __itruediv__(self, other):
        return in_place(self, arithmetic.div(self, other))

    def __floordiv__(self, other):
        return arithmetic.floor_divide(self, other)

    def __rfloordiv__(self, other):
        return arithmetic.floor_divide(other, self)

    def __ifloordiv__(self, other):
        return in_place(self, arithmetic.floor_divide(self, other))

    def __mod__(self, other):
        return arithmetic.remainder(self, other)

    def __rmod__(self, other):
        return arithmetic.remainder(other, self)

    def __imod__(self, other):
        return in_place(self, arithmetic.remainder(self, other))

    def __pow__(self, other):
        return arithmetic.pow_(self, other)

    def __rpow__(self, other):
        return arithmetic.pow_(other, self)

    def __ipow__(self, other):
        return in_place(self, arithmetic.pow_(self, other))

    def __matmul__(self, other):
        return linalg.matmul(self, other)

    def __rmatmul__(self, other):
        return linalg.matmul(other, self)

    def __imatmul__(self, other):
        return in_place(self, linalg.matmul(self, other))

    def __neg__(self):
        return arithmetic.neg(self)

    def __pos__(self):
        return self

    def __abs__(self):
        return elementwise.abs_(self)

    # ---- comparisons and logic ---------------------------------------------------------------------

    def __eq__(self, other):
        return compare.eq(self, other) if is_operand(other) else NotImplemented

    def __ne__(self, other):
        return compare.ne(self, other) if is_operand(other) else NotImplemented

    def __lt__(self, other):
        return compare.lt(self, other)

    def __le__(self, other):
        return compare.le(self, other)

    def __gt__(self, other):
        return compare.gt(self, other)

    def __ge__(self, other):
        return compare.ge(self, other)

    def __and__(self, other):
        return compare.bitwise_and(self, other)

    def __rand__(self, other):
        return compare.bitwise_and(other, self)

    def __or__(self, other):
        return compare.bitwise_or(self, other)

    def __ror__(self, other):
        return compare.bitwise_or(other, self)

    def __xor__(self, other):
        return compare.bitwise_xor(self, other)

    def __rxor__(self, other):
        return compare.bitwise_xor(other, self)

    def __invert__(self):
        return compare.bitwise_not(self)

    # ---- indexing ----------------------------------------------------------------------------------

    def __getitem__(self, key):
        return index.getitem(self, key)

    def __setitem__(self, key, value):
        self._rebind(index.index_put(self, key, value))

    def __iter__(self):
        return shape.rows_of(self, len(self))

    def __contains__(self, value):
        return bool(compare.eq(self, value)._data.any())

    # ---- element by element ------------------------------------------------------------------------

    def exp(self):
        return elementwise.exp(self)

    def log(self):
        return elementwise.log(self)

    def log1p(self):
        return elementwise.log1p(self)

    def expm1(self):
        return elementwise.expm1(self)

    def sqrt(self):
        return elementwise.sqrt(self)

    def abs(self):
        return elementwise.abs_(self)

    def sign(self):
        return elementwise.sign(self)

    def sin(self):
        return elementwise.sin(self)

    def cos(self):
        return elementwise.cos(self)

    def tanh(self):
        return elementwise.tanh(self)

    def sigmoid(self):
        return activation.sigmoid(self)

    def relu(self):
        return activation.relu(self)

    def pow(self, exponent):
        return arithmetic.pow_(self, exponent)

    def clamp(self, min=None, max=None):
        return arithmetic.clamp(self, min, max)

    def astype(self, dtype):
        return elementwise.astype(self, dtype)

    def detach(self):
        return elementwise.detach(self)

    def to(self, device):
        return elementwise.to(self, device)

    # ---- reductions --------------------------------------------------------------------------------

    def sum(self, axis=None, keepdims=False, dtype=None):
        if axis is None and not keepdims and dtype is None:
            return reduce.sum_(self)
        return cast_first.sum(self, axis, keepdims, dtype)

    def mean(self, axis=None, keepdims=False, dtype=None):
        return cast_first.mean(self, axis, keepdims, dtype)

    def var(self, axis=None, correction=0, keepdims=False):
        return reduce.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def std(self, axis=None, correction=0, keepdims=False):
        return reduce.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def max(self, axis=None, keepdims=False):
        return reduce.max_(self, axis=axis, keepdims=keepdims)

    def min(self, axis=None, keepdims=False):
        return reduce.min_(self, axis=axis, keepdims=keepdims)

    def prod(self, axis=None, keepdims=False, dtype=None):
        return cast_first.prod(self, axis, keepdims, dtype)

    def norm(self, p=2, axis=None, keepdims=False):
        return reduce.norm(self, p, axis, keepdims)

    def logsumexp(self, axis=None, keepdims=False):
        return reduce.logsumexp(self, axis=axis, keepdims=keepdims)

    def softmax(self, axis=-1):
        return reduce.softmax(self, axis=axis)

    def log_softmax(self, axis=-1):
        return reduce.log_softmax(self, axis=axis)

    def cumsum(self, axis=None):
        return reduce.cumsum(self, axis=axis)

    def argmax(self, axis=None, keepdims=False):
        return reduce.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis=None, keepdims=False):
        return reduce.argmin(self, axis=axis, keepdims=keepdims)

    def sort(self, axis=-1, descending=False):
        return reduce.sort(self, axis=axis, descending=descending)

    def argsort(self, axis=-1, descending=False):
        return reduce.argsort(self, axis=axis, descending=descending)

    def all(self, axis=None, keepdims=False):
        return reduce.all_(self, axis=axis, keepdims=keepdims)

    def any(self, axis=None, keepdims=False):
        return reduce.any_(self, axis=axis, keepdims=keepdims)

    # ---- shapes ------------------------------------------------------------------------------------

    @property
    def T(self):
        """The axes in reverse order: of a matrix, its transpose."""
        return shape.permute_(self)

    @property
    def mT(self):
        """The last two axes exchanged: the transposes of a stack of matrices."""
        return shape.swapaxes(self)

    def reshape(self, *sizes):
        return shape.reshape(self, *sizes)

    def flatten(self, start_axis=0, end_axis=-1):
        return shape.flatten(self, start_axis, end_axis)

    def permute(self, *axes):
        return shape.permute(self, *axes)

    def transpose(self, axis1=None, axis2=None):
        return shape.transpose(self, axis1, axis2)

    def swapaxes(self, axis1, axis2):
        return shape.swapaxes(self, axis1, axis2)

    def unsqueeze(self, axis):
        return shape.unsqueeze(self, axis)

    def squeeze(self, axis=None):
        return shape.squeeze(self, axis)

    def broadcast_to(self, *sizes):
        return shape.broadcast_to(self, *sizes)

    def split(self, split_size_or_sections, axis=0):
        return shape.split(self, split_size_or_sections, axis)

    def flip(self, axis=None):
        return shape.flip(self, axis)

    def roll(self, shift, axis=None):
        return shape.roll(self, shift, axis)

    def tril(self, diagonal=0):
        return shape.tril(self, diagonal)

    def triu(self, diagonal=0):
        return shape.triu(self, diagonal)

    def matmul(self, other):
        return linalg.matmul(self, other)

    def outer(self, other):
        return linalg.outer(self, other)

    def trace(self):
        return linalg.trace(self)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        return linalg.diagonal(self, offset, axis1, axis2)

    def take(self, places, axis=None):
        return index.take(self, places, axis)

    def gather(self, axis, places):
        return index.gather(self, axis, places)

    # ---- NumPy and others --------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        """np.exp(t), np.float64(2) * t, array @ t: NumPy asks here, and the answer is the op."""
        if method != "__call__" or settings:
            what = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else f" with {', '.join(settings)}")
            raise ArgumentError(
                f"{what} of a Tensor is not recorded, and cannot write into an array; use minigrad's own functions, "
                "or t.numpy() for the plain values"
            )
        if ufunc in UFUNCS:
            return UFUNCS[ufunc](*inputs)
        out = ufunc(*as_arrays(inputs))
        outs = out if isinstance(out, tuple) else (out,)
        has_history = any(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        if has_history and any(part.dtype.kind == "f" for part in outs):
            raise ArgumentError(
                f"np.{ufunc.__name__} is no op of minigrad, so a gradient would end there; make one with mg.op, or say "
                "t.detach() first"
            )
        results = tuple([Tensor(frozen(numpy.asarray(part))) for part in outs])
        return results if isinstance(out, tuple) else results[0]

    def __array_function__(self, function, types, args, kwargs):
        """np.concatenate, np.allclose and all that are no ufuncs: computed on the plain arrays, not recorded."""
        return function(*as_arrays(args), **as_arrays(kwargs))

    def __dlpack__(self, *, copy=None, **settings):
        """For torch.from_dlpack(t) and the like: a copy, since they could not promise not to write."""
        if copy is False:
            raise BufferError("minigrad gives copies only: an array of the tape must not change; leave out copy=False")
        return self._data.copy().__dlpack__(**settings)

    def __dlpack_device__(self):
        return self._data.__dlpack_device__()

    def __copy__(self):
        """A leaf of its own on the same, unchangeable, data; of other tensors a second handle."""
        return made_again(type(self), self._data, *leaf_facts(self)) if self.is_leaf else Tensor(self._data, self._node)

    def __deepcopy__(self, memo):
        """A leaf of its own with a copy of the data and of the gradient."""
        refuse_history(self, "deepcopy")
        result = made_again(type(self), self._data.copy(), *leaf_facts(self))
        memo[id(self)] = result
        result._grad = None if self._grad is None else Tensor(self._grad._data.copy())
        return result

    def __reduce__(self):
        """Pickle a leaf: its data, name and device, and whether it requires a gradient; not the gradient."""
        refuse_history(self, "pickle")
        return unpickled, (type(self), to_device(self._data, "cpu"), device_of(self._data), *leaf_facts(self))


# ---- What the methods use ----------------------------------------------------------------------------


def in_place(tensor, result):
    """Give `tensor` the value and history of `result`, in its own dtype: what `t += v` does."""
    if result.dtype != tensor.dtype:
        if not numpy.can_cast(result.dtype, tensor.dtype, "same_kind"):
            raise DtypeError(f"an in-place operation cannot put {result.dtype} into {tensor.dtype}; write t = t + v")
        result = elementwise.astype(result, tensor.dtype)
    return tensor._rebind(result)


def is_operand(value):
    """Whether ops compute with `value`; comparing with anything else is left to Python."""
    return isinstance(value, OPERAND) or is_array(value)


def as_arrays(value):
    """The arrays of all tensors in a nesting of tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return type(value)(map(as_arrays, value))
    if isinstance(value, dict):
        return {key: as_arrays(part) for key, part in value.items()}
    return value


def leaf_facts(tensor):
    return tensor.requires_grad, tensor.name, None if tensor._node is None else tensor._node.role


def made_again(kind, array, requires_grad, name, role):
    """A leaf of class `kind` on `array`."""
    result = kind.__new__(kind)
    result._data, result._node, result._grad = frozen(array), None, None
    if requires_grad:
        result._node = Leaf(result._data, True, weakref.ref(result), name, role)
    elif name is not None:
        result._node = Leaf(result._data, name=name, role=role)
    return result


def unpickled(kind, array, device, *facts):
    return made_again(kind, to_device(array, device), *facts)


def refuse_history(tensor, what):
    if tensor.requires_grad and not tensor.is_leaf:
        raise MinigradError(
            f"cannot {what} a tensor that was made by {tensor._node}, since its history stays here; detach() it first"
        )


UFUNCS = {
    numpy.add: arithmetic.add,
    numpy.subtract: arithmetic.sub,
    numpy.multiply: arithmetic.mul,
    numpy.divide: arithmetic.div,
    numpy.floor_divide: arithmetic.floor_divide,
    numpy.remainder: arithmetic.remainder,
    numpy.power: arithmetic.pow_,
    numpy.negative: arithmetic.neg,
    numpy.maximum: arithmetic.maximum,
    numpy.minimum: arithmetic.minimum,
    numpy.matmul: linalg.matmul,
    numpy.exp: elementwise.exp,
    numpy.expm1: elementwise.expm1,
    numpy.log: elementwise.log,
    numpy.log1p: elementwise.log1p,
    numpy.sqrt: elementwise.sqrt,
    numpy.absolute: elementwise.abs_,
    numpy.sign: elementwise.sign,
    numpy.sin: elementwise.sin,
    numpy.cos: elementwise.cos,
    numpy.tanh: elementwise.tanh,
    numpy.equal: compare.eq,
    numpy.not_equal: compare.ne,
    numpy.less: compare.lt,
    numpy.less_equal: compare.le,
    numpy.greater: compare.gt,
    numpy.greater_equal: compare.ge,
    numpy.logical_and: compare.logical_and,
    numpy.logical_or: compare.logical_or,
    numpy.logical_xor: compare.logical_xor,
    numpy.logical_not: compare.logical_not,
    numpy.bitwise_and: compare.bitwise_and,
    numpy.bitwise_or: compare.bitwise_or,
    numpy.bitwise_xor: compare.bitwise_xor,
    numpy.invert: compare.bitwise_not,
    numpy.isnan: compare.isnan,
    numpy.isfinite: compare.isfinite,
}

for name, member in vars(Methods).items():
    if callable(member) or isinstance(member, property):
        setattr(Tensor, name, member)
