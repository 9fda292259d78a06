"""Tensors in any nesting of tuples, namedtuples, lists and dicts."""

import copy

from .tensor import Tensor


def tensors_in(value):
    """The tensors in a nesting, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)


def with_tensors(value, exchanged):
    """The same nesting with `exchanged[t._node]` for each tensor t whose node is in it.

    A container in which nothing is exchanged is itself again; the others are copied, not changed.
    """
    if isinstance(value, Tensor):
        return value if value._node is None else exchanged.get(value._node, value)
    if isinstance(value, (tuple, list)):
        parts = [with_tensors(part, exchanged) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        if isinstance(value, tuple):
            return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
        value = copy.copy(value)
        value[:] = parts
    elif isinstance(value, dict):
        parts = {key: with_tensors(part, exchanged) for key, part in value.items()}
        if any(parts[key] is not value[key] for key in parts):
            value = copy.copy(value)
            value.update(parts)
    return value
