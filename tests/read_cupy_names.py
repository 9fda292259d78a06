"""Writes tests/cupy_names.json: the names of the installed CuPy and the keywords of its functions.

    python tests/read_cupy_names.py        (in an environment with cupy-cuda12x; no GPU is needed)

For every name: "ufunc", "class", "value", or the list of its parameters (null where Python cannot read them).
"""

import inspect
import json
import pathlib
import types

import cupy


def described(thing):
    if isinstance(thing, cupy.ufunc):
        return "ufunc"
    if isinstance(thing, type):
        return "class"
    if not callable(thing):
        return "value"
    try:
        return list(inspect.signature(thing).parameters)
    except (ValueError, TypeError):
        return None


def names_of(thing):
    return {name: described(getattr(thing, name, None)) for name in dir(thing) if not name.startswith("__")
            and not isinstance(getattr(thing, name, None), types.ModuleType)}


if __name__ == "__main__":
    found = {"version": cupy.__version__, "cupy": names_of(cupy), "ndarray": names_of(cupy.ndarray),
             "linalg": names_of(cupy.linalg), "ufunc": names_of(cupy.ufunc)}
    pathlib.Path(__file__).with_name("cupy_names.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
