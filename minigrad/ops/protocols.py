"""Tensor as Python sees it: a number, a sequence, an array, a line of text.

Written in a class like any methods, and copied onto Tensor at the end, as its operators are.
"""

import numpy

from ..engine.device import device_of, to_device
from ..engine.tensor import Tensor
from ..errors import ArgumentError, ShapeError


class Protocols:
    def item(self):
        """The one element of a tensor of one element, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"item() needs one element; this tensor has shape {self.shape}. Index it first.")
        return self._data.item()

    def numpy(self):
        """The value as a NumPy array that cannot be written to; a copy if it lives on a GPU."""
        array = to_device(self._data, "cpu").view()
        array.flags.writeable = False
        return array

    def tolist(self):
        """The value as nested lists of Python numbers."""
        return self._data.tolist()

    def __len__(self):
        if self.ndim == 0:
            raise ArgumentError("a 0-d tensor has no len()")
        return self.shape[0]

    def __bool__(self):
        if self.size != 1:
            raise ShapeError(f"a tensor of shape {self.shape} is neither true nor false; use .any() or .all()")
        return bool(self._data)

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype.kind not in "iu" or self.ndim:
            raise ArgumentError(f"only an integer scalar can be an index, not {self.dtype}{self.shape}")
        return int(self._data)

    def __format__(self, spec):
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy:
            return numpy.array(array, dtype=dtype)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self):
        node = self._node
        if self.size <= 16:
            value = numpy.array2string(to_device(self._data, "cpu"), separator=", ", precision=4)
            facts = [value.replace("\n", "\n       "), str(self.dtype)]
        else:
            facts = [f"shape={self.shape}", str(self.dtype)]
        if device_of(self._data) != "cpu":
            facts.append(self.device)
        if node is not None and node.op is not None:
            layer = f" in {node.layer}" if node.layer else ""
            facts.append(f"{node.op.name} #{node.number}{layer}")
            facts.append("live" if node.out is not None else "dropped")
        else:
            if self.name:
                facts.append(repr(self.name))
            if self.requires_grad:
                facts.append("requires_grad")
        return f"{type(self).__name__}({', '.join(facts)})"


for name, member in vars(Protocols).items():
    if callable(member):
        setattr(Tensor, name, member)
