"""Arrays from elsewhere, by DLPack: the protocol in which array libraries hand memory to one another.

The other way, `torch.from_dlpack(tensor)` and its like ask `Tensor.__dlpack__` (ops/methods.py).

Both ways copy. An array on the tape must never change, and the memory's other owner might write into it; nor could a
library that gets ours promise not to.

Source: the Python array API standard, 2023.12.
"""

import numpy

from ..engine.device import import_cupy, to_device
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError, MinigradError
from .create import leaf

__all__ = ["from_dlpack"]

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLPack's numbers of kinds of devices


def from_dlpack(x, device=None, requires_grad=False, name=None) -> Tensor:
    """A new leaf with a copy of what another library's array or tensor holds; on the same device if None is given.

    Raises ArgumentError for what does not speak DLPack, DtypeError for numbers that tensors do not hold, and
    MinigradError with the other library's reason if it does not give its memory away.

    >>> import minigrad as mg
    >>> mg.from_dlpack(numpy.arange(3.0), requires_grad=True)
    Tensor([0., 1., 2.], float64, requires_grad)
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(f"{type(x).__name__} does not speak DLPack; mg.tensor takes numbers and NumPy's arrays")
    kind, number = x.__dlpack_device__()
    if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise MinigradError(f"{type(x).__name__} is on a device of DLPack's kind {int(kind)}: neither a CPU nor CUDA")
    module = import_cupy(f"cuda:{number}") if kind in (CUDA, CUDA_MANAGED) else numpy
    try:
        array = module.from_dlpack(x).copy()
    except Exception as error:  # whatever the two libraries raise
        raise MinigradError(f"{type(x).__module__}.{type(x).__name__} gave no memory by DLPack: {error}") from error
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"tensors hold floats, integers or booleans, not {array.dtype}")
    return leaf(to_device(array, device), requires_grad, name)
