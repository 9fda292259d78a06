"""A strict stand-in for CuPy, for machines without a GPU: NumPy inside, CuPy's refusals outside.

It has the names and keywords in cupy_names.json and no others; its arrays are not NumPy's, do not turn into them and
do not compute with them; reductions give 0-d arrays; nothing can be made read-only. It says nothing about speed.
`install()` puts it into `sys.modules`; do that in a process of its own.
"""

import json
import pathlib
import sys
import types

import numpy

NAMES = json.loads(pathlib.Path(__file__).with_name("cupy_names.json").read_text())
UFUNC_KEYWORDS = {"out", "dtype", "casting"}


def unwrap(value):
    if isinstance(value, ndarray):
        return value._array
    if isinstance(value, numpy.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)(map(unwrap, value))
    if isinstance(value, dict):
        return {key: unwrap(item) for key, item in value.items()}
    return value


def arrays_in(values):
    for value in values:
        if isinstance(value, ndarray):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from arrays_in(value)


def wrap(value, sources=()):
    if isinstance(value, (tuple, list)):
        return type(value)(*(wrap(v, sources) for v in value)) if hasattr(value, "_fields") else type(value)(
            wrap(v, sources) for v in value)
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        return value
    for source in sources:
        if value is source._array:
            return source
    value = numpy.asarray(value)
    for source in sources:
        if numpy.may_share_memory(value, source._array):
            return ndarray._of(value, source if source.base is None else source.base)
    return ndarray._of(value)


def on_gpu(function, args, settings):
    sources = list(arrays_in([*args, *settings.values()]))
    return wrap(function(*unwrap(args), **unwrap(settings)), sources)


class Flags:
    """CuPy's flags: there is no `writeable`, and nothing can be set."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, array, base):
        for name, value in (("c_contiguous", array.flags.c_contiguous), ("f_contiguous", array.flags.f_contiguous),
                            ("owndata", base is None)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute {name!r} of flags cannot be set")


class ndarray:
    __array_priority__ = 100

    @classmethod
    def _of(cls, array, base=None):
        made = cls.__new__(cls)
        made._array, made.base = array, base
        return made

    device = types.SimpleNamespace(id=0)
    flags = property(lambda self: Flags(self._array, self.base))

    def get(self, stream=None, order="C", out=None, blocking=True):
        return self._array.copy()

    def __getattr__(self, name):
        if name not in NAMES["ndarray"]:
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        found = getattr(self._array, name)
        if not callable(found):
            return wrap(found, [self])
        return lambda *args, **settings: on_gpu(lambda a, *rest, **more: getattr(a, name)(*rest, **more),
                                                (self, *args), settings)

    def __array__(self, *args, **settings):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. "
                        "Please use `.get()` to construct a NumPy array explicitly.")

    def __array_ufunc__(self, ufunc, method, *args, **settings):
        if method != "__call__":
            return NotImplemented
        return getattr(sys.modules["cupy"], ufunc.__name__)(*args, **settings)

    def __array_function__(self, function, kinds, args, settings):
        here = getattr(sys.modules["cupy"], function.__name__, None)
        return NotImplemented if here is None else here(*args, **settings)

    def __setitem__(self, key, value):
        self._array[unwrap(key)] = unwrap(value)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return repr(self._array)

    __hash__ = None


def special(name):
    return lambda self, *args: on_gpu(lambda a, *rest: getattr(a, name)(*rest), (self, *args), {})


def binary(name):
    def method(self, other):
        if not isinstance(other, (ndarray, numpy.ndarray, numpy.generic, int, float, complex)):
            if getattr(other, "__array_ufunc__", None) is None:
                return NotImplemented
            raise TypeError(f"Unsupported type {type(other)}")
        return on_gpu(getattr(numpy.ndarray, name), (self, other), {})

    return method


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    for _kind in ("", "r", "i"):
        setattr(ndarray, f"__{_kind}{_name}__", binary(f"__{_kind}{_name}__"))
for _name in "eq ne lt le gt ge".split():
    setattr(ndarray, f"__{_name}__", binary(f"__{_name}__"))
for _name in "neg pos abs invert getitem len bool int float index complex copy deepcopy".split():
    setattr(ndarray, f"__{_name}__", special(f"__{_name}__"))


class Ufunc:
    def __init__(self, name):
        self.__name__, self._ufunc = name, getattr(numpy, name)

    def __call__(self, *args, **settings):
        if set(settings) - UFUNC_KEYWORDS:
            raise TypeError(f"Wrong arguments {settings}")
        return on_gpu(self._ufunc, args, settings)

    def at(self, a, indices, b=None):
        if self.__name__ not in ("add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"):
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        self._ufunc.at(unwrap(a), unwrap(indices), unwrap(b))

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.__name__}.reduce` is not supported yet")
        return on_gpu(self._ufunc.reduce, (array, axis, dtype), {"keepdims": keepdims})


def function(module, name, parameters):
    original = getattr(module, name)

    def call(*args, **settings):
        if parameters is not None and "kwargs" not in parameters and set(settings) - set(parameters):
            raise TypeError(f"{name}() got an unexpected keyword argument {set(settings) - set(parameters)}")
        return on_gpu(original, args, settings)

    call.__name__ = name
    return call


def fill(module, original, names):
    for name, kind in names.items():
        if not hasattr(original, name) or name.startswith("_") or hasattr(module, name):
            continue
        found = getattr(original, name)
        if kind == "ufunc" and isinstance(found, numpy.ufunc):
            setattr(module, name, Ufunc(name))
        elif kind in ("class", "value"):
            setattr(module, name, found)
        else:
            setattr(module, name, function(original, name, kind if isinstance(kind, list) else None))


class Device:
    def __init__(self, device=0):
        self.id = int(device)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def asarray(a, dtype=None, order=None, *, blocking=False):
    inside = a._array if isinstance(a, ndarray) else numpy.array(a)
    made = numpy.asarray(inside, dtype=dtype, order=order)
    return a if isinstance(a, ndarray) and made is a._array else ndarray._of(made)


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    inside = obj._array if isinstance(obj, ndarray) else obj
    return ndarray._of(numpy.array(inside, dtype=dtype, order=order, ndmin=ndmin))


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    return a.get() if isinstance(a, ndarray) else numpy.asarray(a)


def get_array_module(*args):
    return sys.modules["cupy"] if any(isinstance(a, ndarray) for a in args) else numpy


def install():
    """Puts the stand-in into `sys.modules` as `cupy`, and returns it."""
    module = types.ModuleType("cupy")
    module.ndarray, module.asarray, module.array, module.asnumpy = ndarray, asarray, array, asnumpy
    module.get_array_module, module.__version__ = get_array_module, NAMES["version"]
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    module.cuda = types.SimpleNamespace(Device=Device, runtime=runtime)
    module.linalg = types.ModuleType("cupy.linalg")
    fill(module.linalg, numpy.linalg, NAMES["linalg"])
    fill(module, numpy, NAMES["cupy"])
    sys.modules["cupy"] = module
    return module
