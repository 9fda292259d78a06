"""Where an array lives.

An array's own module computes on it: NumPy on the CPU, CuPy on a GPU. There is no global switch that could
be set wrongly. CuPy is imported only when somebody asks for a GPU; as long as nobody has, every array here
is NumPy's and `array_module` costs one look into a dict.
"""

import sys

import numpy

from ..errors import DeviceError

loaded_module = sys.modules.get


def array_module(*arrays):
    """The module that computes on these arrays: `numpy`, or `cupy` if one of them is CuPy's.

    >>> array_module(numpy.ones(3)).__name__
    'numpy'
    """
    cupy = loaded_module("cupy")
    return numpy if cupy is None else cupy.get_array_module(*arrays)


def is_array(value) -> bool:
    """Whether `value` is an array of NumPy or of CuPy (a NumPy scalar such as np.float32(1) is not)."""
    if isinstance(value, numpy.ndarray):
        return True
    cupy = loaded_module("cupy")
    return cupy is not None and isinstance(value, cupy.ndarray)


def device_of(array) -> str:
    """The name of the device that holds `array`: "cpu", or "cuda:0" and so on.

    >>> device_of(numpy.ones(3))
    'cpu'
    """
    return "cpu" if isinstance(array, numpy.ndarray) else f"cuda:{array.device.id}"


def to_device(array, device: str | None):
    """`array` on `device` ("cpu", "cuda" or "cuda:1"); itself if it is there already, or if `device` is None.

    Raises DeviceError for a device that does not exist here.
    """
    if device is None or device_of(array) == device:
        return array
    if device == "cpu":
        return array.get()
    kind, _, index = device.partition(":")
    if kind != "cuda" or (index and not index.isdigit()):
        raise DeviceError(f'there is no device {device!r}; say "cpu", "cuda" or "cuda:0"')
    cupy = import_cupy(device)
    with cupy.cuda.Device(int(index or 0)):
        return cupy.asarray(array)


def import_cupy(device):
    """CuPy with a GPU behind it, or a DeviceError that says what is missing."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        raise DeviceError(
            f'device {device!r} needs CuPy, which is not installed; install it with pip install "minigrad[gpu]"'
        ) from error
    except Exception as error:
        raise DeviceError(f"device {device!r} needs a GPU, and CuPy finds none here: {error}") from error
    return cupy


def memory_owner(array):
    """The array that owns the memory that `array` looks at: itself, or the end of its chain of `.base`."""
    base = array.base
    while base is not None and is_array(base):
        array, base = base, base.base
    return array
