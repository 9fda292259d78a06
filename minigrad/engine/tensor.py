"""Tensor: your handle on one value of the tape.

A Tensor is an array and a Node. Your variable keeps the array alive; the tape keeps it alive only if
something will read it in backward. Arrays on the tape never change, and NumPy enforces it: they are
read-only. `t[i] = v` and `t += v` compute a new array and give the *handle* a new node; whoever read the
old value still has the old value. Only a leaf's data can be replaced (`assign_`, which is what optimizers
use), and the leaf's number then says so to the tape.

Operators and methods such as `a + b` and `t.sum()` are in `ops/methods.py`.
"""

import weakref
from functools import partial

import numpy
from numpy import ndarray

from ..errors import ArgumentError, DtypeError, MinigradError, NoGradientError, ShapeError
from .device import array_module, device_of, is_array
from .messages import smuggled_error
from .modes import local
from .tape import Leaf


class Tensor:
    """An array and its place on the tape. Make one with `mg.tensor(data)`; ops make the others."""

    __slots__ = ("_data", "_node", "_grad", "__weakref__")
    __array_priority__ = 1000

    def __init__(self, data, node=None):
        if type(data) is not ndarray and not is_array(data):
            raise ArgumentError("a Tensor is made by mg.tensor(data), not by calling mg.Tensor")
        self._data = data
        self._node = node
        self._grad = None

    # ---- the value ---------------------------------------------------------------------------------

    @property
    def data(self):
        """The array itself (NumPy's or CuPy's), read-only: `t.data[0] = 5` is refused.

        To change a leaf write `with mg.no_grad(): t[0] = 5`, or `t.data = array` (which is `t.assign_(array)`).
        """
        return self._data

    @data.setter
    def data(self, array):
        self.assign_(array)

    @property
    def shape(self) -> tuple:
        return self._data.shape

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def dtype(self):
        return self._data.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self._data.nbytes

    @property
    def device(self) -> str:
        """Where the array lives: "cpu", "cuda:0", ..."""
        return device_of(self._data)

    # ---- the tape ----------------------------------------------------------------------------------

    @property
    def node(self):
        """The tape's line that made this value; a leaf for data and constants."""
        if self._node is None:
            self._node = Leaf(frozen(self._data))
        return self._node

    @property
    def requires_grad(self) -> bool:
        return self._node is not None and self._node.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self._node.op is None

    def requires_grad_(self, value=True):
        """Make this leaf require a gradient, or no longer; returns the tensor. Floating dtypes only."""
        if bool(value) == self.requires_grad:
            return self
        if not self.is_leaf:
            raise MinigradError(
                f"requires_grad can be set on leaves only, and this tensor was made by {self._node}; "
                "use detach() to get a leaf with its value"
            )
        if value:
            check_float(self._data.dtype)
            self._node = Leaf(frozen(self._data), True, weakref.ref(self), self.name)
        elif self._node is not None:
            self._node = Leaf(self._data, False, None, self.name, self._node.role)
        return self

    @property
    def name(self) -> str | None:
        """A name for tables and pictures; set it freely."""
        return None if self._node is None else self._node.name

    @name.setter
    def name(self, name):
        self.node.name = name

    @property
    def grad(self):
        """The gradient that backward left here, a Tensor of this shape and dtype; None before."""
        return self._grad

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                check_plain(value)
                value = Tensor(array_module(self._data).array(value, dtype=self.dtype))
            if value.shape != self.shape:
                raise ShapeError(f"grad must have the tensor's shape {self.shape}, not {value.shape}")
            if value.dtype != self.dtype:
                raise DtypeError(f"grad must have the tensor's dtype {self.dtype}, not {value.dtype}")
        self._grad = value

    def assign_(self, array):
        """Replace a leaf's data by a copy of `array`, which must have the same shape; returns the tensor.

        What was computed from the old data keeps its value; a backward that would still need the old data
        raises OverwrittenError.
        """
        if isinstance(array, Tensor):
            array = array._data
        check_plain(array)
        array = array_module(self._data).array(array, dtype=self.dtype)
        if array.shape != self.shape:
            raise ShapeError(f"assign_ needs shape {self.shape}, not {array.shape}")
        return self._replace(array)

    def _replace(self, array):
        """assign_ without the copy, for an array that nobody else holds."""
        if not self.is_leaf:
            raise MinigradError(
                f"only a leaf's data can be replaced, and this tensor was made by {self._node}; "
                "write t = ... to give the name a new tensor"
            )
        array = frozen(array)
        if self._node is not None and not self.requires_grad:
            self._node = same_constant(self._node, array)
        elif self._node is not None:
            self._node.replace(array)
        self._data = array
        return self

    def _rebind(self, result):
        """Give this handle the value and the node of `result`: what `t += v` and `t[i] = v` do."""
        context = local.context
        if self.requires_grad and not result.requires_grad and not context.grad:
            if self.is_leaf:
                return self.assign_(result)
            raise MinigradError(
                f"changing a tensor made by {self._node} in place inside no_grad() would cut it off from "
                "its history; detach() it first, or leave no_grad()"
            )
        if self.requires_grad and self.is_leaf:
            raise MinigradError(
                f"the leaf {self._node} requires a gradient and cannot be changed in place, as its gradient "
                "would be lost; compute a new tensor from it, or change it inside no_grad()"
            )
        if result.shape != self.shape:
            raise ShapeError(f"changing shape {self.shape} in place to {result.shape}; write t = ... instead")
        origin = None if self._node is None else self._node.origin
        if origin is not None and origin.holder is not None and origin.holder() is self:
            origin.holder = None  # .grad will be that of the new value
        constant = self._node is not None and self.is_leaf and result._node is None
        self._node = same_constant(self._node, result._data) if constant else result._node
        self._data = result._data
        return self

    # ---- gradients ---------------------------------------------------------------------------------

    def register_hook(self, hook):
        """Call `hook(gradient)` with this tensor's whole gradient, once per backward.

        A hook that returns a tensor or an array replaces the gradient. Returns a handle; `handle.remove()`
        takes the hook off again.
        """
        if not self.requires_grad:
            raise NoGradientError("a hook sees gradients, and this tensor does not require grad")
        origin = self._node.origin
        if origin.hooks is None:
            origin.hooks = []
        return HookHandle(origin.hooks, hook)

    def retain_grad(self):
        """Let backward leave a `.grad` on this tensor although it is not a leaf."""
        if not self.requires_grad:
            raise NoGradientError("retain_grad() on a tensor that does not require grad")
        if not self.is_leaf:
            self._node.origin.holder = weakref.ref(self)


class HookHandle:
    """What `register_hook` returns: one registration, which it can end."""

    def __init__(self, hooks, hook):
        self._hooks, self._entry = hooks, partial(hook)  # an object of its own: one function may be here twice
        hooks.append(self._entry)

    def remove(self):
        """Take this hook off. A second time does nothing."""
        self._hooks[:] = [entry for entry in self._hooks if entry is not self._entry]


def same_constant(leaf, array):
    """A leaf for the new data of a constant, if it has a name or is a frozen parameter; else None."""
    return Leaf(array, name=leaf.name, role=leaf.role) if leaf.name or leaf.role == "parameter" else None


def frozen(array):
    """`array`, which from now on cannot be written to: the tape may read it later."""
    if isinstance(array, numpy.ndarray):
        array.setflags(False)  # write=False
    return array


def protected(array):
    """An array to look at: what is written into it reaches nobody else. A read-only view; on a GPU, a copy."""
    return frozen(array.view()) if isinstance(array, numpy.ndarray) else array.copy()


def as_operand(value):
    """What an op computes on: an array for an array, a plain Python number for a number.

    A Python number takes the dtype of the tensor that it meets (NumPy's own rule), and so does a NumPy
    scalar: neither promotes a tensor. An array is copied, because its owner may change it before backward.
    """
    if isinstance(value, Tensor):
        return value._data
    if isinstance(value, numpy.generic):  # first: np.float64 is a float as well
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return value
    if is_array(value):
        check_plain(value)
        return frozen(value.copy())
    raise ArgumentError(f"expected a tensor, an array or a number, not {type(value).__name__}")


def check_plain(value):
    """Refuse data that a tensor would silently make something else of: complex, objects, masked arrays, matrices."""
    dtype = getattr(value, "dtype", numpy.dtype(complex if isinstance(value, complex) else float))
    if dtype.kind not in "fiub":
        raise DtypeError(f"tensors hold floats, integers or booleans, not {dtype}; pass .real, or .imag")
    if isinstance(value, (numpy.ma.MaskedArray, numpy.matrix)):
        raise ArgumentError(f"a {type(value).__name__} has rules of its own; pass numpy.asarray(it) or its filled()")


def check_float(dtype):
    """Only floating dtypes have gradients."""
    if dtype.kind != "f":
        raise DtypeError(
            f"only floating point tensors can require gradients, and this one is {dtype}; "
            'use astype("float32") first'
        )


def refuse_smuggled(tensor):
    """Raise if `tensor` was made inside a checkpoint that has ended, and has left it by a side door."""
    region = tensor._node.region
    if region is not None and not region.open:
        raise smuggled_error(tensor._node)
