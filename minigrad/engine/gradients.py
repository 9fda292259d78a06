"""Gradients on their way: where a walk takes them from, what it reads, and in which shape it hands them on.

Un-broadcasting happens here once (`fit`), for every op. A gradient that goes through an op unchanged is passed
on as it is, and becomes a view where it arrives at a leaf; by that `own` knows that the memory is shared with
somebody, and copies it before it becomes anyone's `.grad`.
"""

import functools

import numpy

from ..errors import ArgumentError, NoGradientError, ShapeError
from .device import array_module
from .messages import freed_error, overwritten_error, vjp_shape_error
from .modes import Mode, local
from .sums import total
from .tensor import Tensor, as_operand, frozen, protected, refuse_smuggled


def read_array(source, reader):
    """The buffer of `source` for a vjp or a replay of `reader`, or an error that says why it is not there."""
    if source.number > reader.number:
        raise overwritten_error(source, reader)
    out = source.out
    return missing_value(source, reader) if out is None else out


def missing_value(source, reader):
    """A value that the tape does not hold, but that a region which is still open can give, or the node's keeper."""
    region = local.context.open_region
    while region is not None and not source.freed:
        value = region.value(source)
        if value is not None:
            return value
        region = region.outer
    if source.freed or source.keeper is None:
        raise freed_error(source)
    return source.keeper.bring_back(source, reader)


def read_tensor(source, reader):
    """The same as a Tensor on its node, so that what a vjp computes with it is recorded."""
    array = read_array(source, reader)
    return array if source.dtype is None else Tensor(array, source)


def starting_gradient(out, gradient, create_graph):
    """What flows into `out`: a checked gradient, of its shape and dtype, an array or (recorded) a Tensor."""
    if not isinstance(out, Tensor):
        raise ArgumentError(f"backward starts at a Tensor, not at {type(out).__name__}")
    if not out.requires_grad:
        raise NoGradientError(
            f"backward was asked of {out!r}, which does not require grad: nothing that it was computed from does, "
            "or it was computed inside no_grad(), or by an op without a vjp, or it is a gradient that was taken "
            "without create_graph=True. Set requires_grad=True on a leaf before computing"
        )
    refuse_smuggled(out)
    node = out._node
    if node.freed:
        raise freed_error(node)
    if gradient is None:
        if out.size != 1:
            raise ShapeError(
                f"only a scalar has an implicit gradient, and this output has shape {out.shape}; give backward a "
                "gradient of that shape, or take .sum() first"
            )
        array = array_module(out._data).ones_like(out._data)
        return Tensor(frozen(array)) if create_graph else array
    if create_graph and isinstance(gradient, Tensor):
        array = gradient
    else:
        try:
            array = as_operand(gradient)
        except ArgumentError as error:
            raise ArgumentError(f"the gradient given to backward of {out!r:.60}: {error}") from error
        array = array_module(out._data).asarray(array, dtype=out.dtype)
    if array.shape != out.shape:
        raise ShapeError(f"the gradient given to backward has shape {array.shape}, and the output {out.shape}")
    return (array if isinstance(array, Tensor) else Tensor(array)) if create_graph else passed_on(array)


class Arrays:
    """The arithmetic of a walk whose gradients are arrays: vjps compute, and nothing is recorded."""

    read, recorded = staticmethod(read_array), False

    def shown(self, gradient):
        """A gradient as a hook sees it: it may keep that, but not write to it."""
        return Tensor(protected(gradient))

    def look(self, gradient):
        """A gradient as a Step shows it."""
        return protected(gradient)

    def answered(self, answer, array, node):
        """A gradient as a hook has answered it, in place of the one that it saw."""
        return array_module(array).asarray(array, dtype=node.dtype)

    def kept(self, gradient):
        """A gradient for somebody's `.grad`."""
        return Tensor(own(gradient))


class Tensors(Arrays):
    """The arithmetic of create_graph: gradients are Tensors, and what vjps compute with them is recorded."""

    read, recorded = staticmethod(read_tensor), True

    def shown(self, gradient):
        return gradient

    def look(self, gradient):
        return gradient

    def answered(self, answer, array, node):
        return answer if isinstance(answer, Tensor) else Tensor(array_module(array).asarray(array))

    def kept(self, gradient):
        return gradient


ARRAYS, TENSORS = Arrays(), Tensors()


def call_hooks(node, gradient, arithmetic):
    """Show the gradient to the node's hooks; each may replace it."""
    for hook in list(node.hooks):
        with Mode("grad", arithmetic.recorded):
            answer = hook(arithmetic.shown(gradient))
        if answer is not None:
            try:
                array = as_operand(answer)
            except ArgumentError as error:
                raise ArgumentError(f"a hook on {node} must answer None or a gradient: {error}") from error
            if getattr(array, "shape", ()) != node.shape:
                raise ShapeError(f"a hook on {node} gave a gradient of shape {getattr(array, 'shape', ())}")
            gradient = arithmetic.answered(answer, array, node)
    return passed_on(gradient)


def passed_on(gradient):
    """A gradient that goes on unchanged: a view, by which `own` will know that the memory is shared."""
    return gradient if isinstance(gradient, Tensor) else gradient.view()


def own(array):
    """An array that nobody else can see: itself if it is fresh, a copy if it is a view or the tape's own.

    CuPy cannot protect an array, so there nothing tells a fresh one from the tape's own: it is copied.
    """
    if array.base is None and type(array) is numpy.ndarray and array.flags.writeable:
        return array
    return array.copy()


def add_gradients(earlier, more):
    """What `.grad` holds after another backward: recorded only if one of the two is."""
    if earlier.requires_grad or more.requires_grad:
        return earlier + more
    return Tensor(plus(earlier._data, more._data))


def has_nan(gradient) -> bool:
    array = gradient._data if isinstance(gradient, Tensor) else gradient
    return bool(array_module(array).isnan(array).any())


def plus(a, b):
    """a + b; NumPy makes a scalar of the sum of two 0-d arrays, and this makes it an array again."""
    both = a + b
    return numpy.asarray(both) if isinstance(both, numpy.generic) else both


def fit(result, source, node, vjp):
    """A vjp's result in the shape and dtype of the input: broadcast axes summed, precision restored."""
    if result.shape != source.shape:
        axes = broadcast_axes(result.shape, source.shape)
        if axes is None:
            raise vjp_shape_error(node, vjp, result.shape, source.shape)
        result = result.sum(axis=axes) if isinstance(result, Tensor) else total(result, axes)
        if result.shape != source.shape:
            result = result.reshape(source.shape)
    if not source.shape and isinstance(result, numpy.generic):  # what NumPy makes of a 0-d result
        result = numpy.asarray(result)
    if result.dtype is source.dtype or result.dtype == source.dtype:
        return result
    return result.astype(source.dtype)


@functools.lru_cache(maxsize=1000)
def broadcast_axes(shape, target):
    """The axes along which broadcasting repeated an array of shape `target` to `shape`; None if it cannot have."""
    lead = len(shape) - len(target)
    if lead < 0 or any(b not in (1, a) for a, b in zip(shape[lead:], target, strict=True)):
        return None
    return tuple(i for i, length in enumerate(shape) if i < lead or target[i - lead] != length)
