"""Reading and writing by index.

An index is recorded as a *pattern*: a tuple of slices, integers, None, Ellipsis and arrays that nobody else
can change. The tensors in an index are inputs of the op like any other, so that a checkpoint knows where they
come from; the pattern calls them "i", "j" and "k".

    x[:, idx, 0]    is    getitem(x, i=idx, pattern=(slice(None), "i", 0))

Reading and adding are each other's gradients: that of `getitem` is `scatter`, which adds to zeros at an index,
and that of `scatter` is `getitem`. An element that the index names twice gets both gradients.
"""

import operator

import numpy

from ..engine.device import array_module, is_array
from ..engine.op import op
from ..engine.sums import LONG
from ..engine.tensor import Tensor, frozen
from ..errors import DtypeError, IndexingError, ShapeError
from .arithmetic import where_
from .common import module_of, quiet, wide_dtype
from .defaults import get_default_dtype

# ---- Patterns ----------------------------------------------------------------------------------------

SLOTS = ("i", "j", "k")


def as_pattern(index):
    """An index as (pattern, tensors in it). A fourth tensor, and any after it, goes into the pattern as data."""
    pattern, tensors = [], []
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Tensor) and len(tensors) < len(SLOTS):
            pattern.append(SLOTS[len(tensors)])
            tensors.append(part)
        else:
            pattern.append(frozen_part(part))
    return tuple(pattern), tensors


def frozen_part(part):
    """One part of an index as something that cannot change any more."""
    if part is None or part is Ellipsis or isinstance(part, (bool, int)):
        return part
    if isinstance(part, slice):
        return slice(*[None if p is None else whole(p) for p in (part.start, part.stop, part.step)])
    if isinstance(part, numpy.generic):
        return part.item()
    if isinstance(part, Tensor):
        return part._data
    if is_array(part):
        return frozen(part.copy())
    if isinstance(part, (list, tuple)):
        return frozen_list(part)
    return whole(part)


def frozen_list(part):
    try:
        array = numpy.array(part)
    except ValueError as error:
        raise IndexingError(f"{part!r} is no index: {error}") from error
    return frozen(array if array.size else array.astype(int))


def whole(number):
    try:
        return operator.index(number)
    except TypeError as error:
        raise IndexingError(
            f"a tensor is indexed with integers, slices, None, ..., and integer or boolean arrays, not with {number!r}"
        ) from error


def filled(pattern, tensors, x):
    """The index that a pattern means, with the arrays of its tensors in their places."""
    index = []
    for part in pattern:
        if isinstance(part, str):
            part = tensors[SLOTS.index(part)]
        elif isinstance(part, numpy.ndarray):
            part = array_module(x).asarray(part)
        index.append(part)
    return tuple(index)


def names_twice(index) -> bool:
    """Whether an index could name an element more than once: integer arrays can; slices and masks cannot."""
    return any(is_array(part) and part.dtype.kind != "b" for part in index)


# ---- Reading, and its opposite -----------------------------------------------------------------------


@op(inputs=4)
def getitem_(x, i=None, j=None, k=None, pattern=()):
    """x[pattern]: a view for slices and integers, a copy for arrays. Keeps the index."""
    return x[filled(pattern, (i, j, k), x)]


@getitem_.vjp("x")
def getitem_wrt_x(g, i, j, k, x_shape, pattern):
    return scatter(g, i, j, k, pattern=pattern, shape=x_shape)


def getitem(x, index):
    """x[index], for whatever index NumPy takes, with tensors in it or not."""
    pattern, tensors = as_pattern(index)
    return getitem_(x, *tensors, pattern=pattern)


@op(inputs=4)
def scatter(g, i=None, j=None, k=None, pattern=(), shape=()):
    """Zeros of `shape`, to which g is added at the index: the opposite of getitem. Keeps the index."""
    return added(shape, filled(pattern, (i, j, k), g), g)


@scatter.vjp("g")
def scatter_wrt_g(g, i, j, k, pattern):
    return getitem_(g, i, j, k, pattern=pattern)


def added(shape, index, values):
    """Zeros of `shape`, to which values are added at the index; float16 in float32, and rounded once."""
    out = array_module(values).zeros(shape, wide_dtype(values) if names_twice(index) else values.dtype)
    add_at(out, index, values)
    with quiet():
        return out.astype(values.dtype, copy=False)


def add_at(out, index, values):
    """out[index] += values, where an element that the index names twice gets both."""
    if not names_twice(index):
        out[index] = values  # `out` is zeros
    elif len(index) == 1 and not isinstance(out, numpy.ndarray):
        array_module(out).add.at(out, index[0], values)
    elif len(index) == 1 and out.ndim > 1:
        add_rows(out, index[0], values)
    else:
        xp = array_module(out)
        places = xp.arange(out.size).reshape(out.shape)[index]
        if out.dtype.kind == "f" and values.size > LONG:  # in float64, and in less time than add.at
            out[...] = xp.bincount(places.ravel(), values.ravel(), out.size).reshape(out.shape)
        else:
            xp.add.at(out.reshape(-1), places.ravel(), values.ravel())


def add_rows(out, rows, values):
    """out[rows] += values for whole rows: sorting brings those of one row together, and they are added at once."""
    rows = rows.ravel().astype("int64") % out.shape[0]
    if not rows.size:
        return
    order = rows.argsort(kind="stable")
    rows = rows[order]
    starts = numpy.flatnonzero(numpy.concatenate(([True], rows[1:] != rows[:-1])))
    values = values.reshape((len(rows),) + out.shape[1:])[order]
    out[rows[starts]] = numpy.add.reduceat(values, starts, axis=0, dtype=out.dtype)  # in pairs of pairs


# ---- Writing -----------------------------------------------------------------------------------------


@op(inputs=5)
def index_put_(x, value, i=None, j=None, k=None, pattern=()):
    """A copy of x in which the elements at the index have become `value`. Keeps the index."""
    out = x.copy()
    out[filled(pattern, (i, j, k), x)] = value
    return out


@index_put_.vjp("x")
def index_put_wrt_x(g, i, j, k, pattern):
    return index_put_(g, 0.0, i, j, k, pattern=pattern)


@index_put_.vjp("value")
def index_put_wrt_value(g, i, j, k, value_shape, pattern):
    part = where_(last_write(g, i, j, k, pattern=pattern), getitem_(g, i, j, k, pattern=pattern), 0.0)
    return part.reshape((1,) * (len(value_shape) - part.ndim) + part.shape)


@op(inputs=4)
def last_write(x, i=None, j=None, k=None, pattern=()):
    """For each value written to x at the index, whether it stays: of two at one place only the last does."""
    index = filled(pattern, (i, j, k), x)
    if not names_twice(index):
        return array_module(x).asarray(True)
    number_there = array_module(x).empty(x.shape, "int64")
    number = array_module(x).arange(number_there[index].size).reshape(number_there[index].shape)
    number_there[index] = number
    return number_there[index] == number


def index_put(x, index, value):
    """A copy of x in which x[index] has become `value`, which broadcasts to it: what `t[i] = v` rebinds t to."""
    pattern, tensors = as_pattern(index)
    if isinstance(value, (list, tuple)):
        value = module_of(x).asarray(value, dtype=x.dtype)
    if isinstance(value, Tensor) and value.requires_grad and x.dtype.kind != "f":
        raise DtypeError(
            f"a gradient cannot flow into a tensor of {x.dtype}; detach() the value, or astype() the tensor"
        )
    return index_put_(x, value, *tensors, pattern=pattern)


# ---- Along one axis ----------------------------------------------------------------------------------


def take(x, index, axis=None):
    """The elements of x at the positions `index` along `axis`; of the flattened x if None, as in NumPy."""
    if axis is None:
        return take(x.reshape(-1), index, 0)
    if not -x.ndim <= axis < x.ndim:
        raise IndexingError(f"take along axis {axis} of a tensor of shape {x.shape}")
    return getitem(x, (slice(None),) * (axis % x.ndim) + (index,))


@op
def gather_(x, index, axis=0):
    """out[a, b, c] = x[a, index[a, b, c], c] for axis 1, and so on. Keeps the index."""
    return x[along(index, axis, x)]


@gather_.vjp("x")
def gather_wrt_x(g, index, x_shape, axis):
    return scatter_add(g, index, axis=axis, shape=x_shape)


def gather(x, axis, index):
    """out[a, b, c] = x[a, index[a, b, c], c] for axis 1, and so on; torch's, with its order of arguments.

    `index` has as many axes as x, and is not longer than x along those that are not `axis`.

    >>> import minigrad as mg
    >>> gather(mg.tensor([[1, 2], [3, 4]]), 1, mg.tensor([[0, 0], [1, 0]])).tolist()
    [[1, 1], [4, 3]]
    """
    return gather_(x, index, axis=axis)


@op(inputs=2)
def scatter_add(g, index, axis=0, shape=()):
    """Zeros of `shape`, to which g is added where gather would read: the opposite of gather. Keeps the index."""
    xp = array_module(g)
    return added(shape, along(index, axis, xp.broadcast_to(xp.zeros((), g.dtype), shape)), g)


@scatter_add.vjp("g")
def scatter_add_wrt_g(g, index, axis):
    return gather_(g, index, axis=axis)


def along(index, axis, x):
    """The index that picks index[a, b, c] along `axis`, and a, b, c themselves along the others."""
    if index.ndim != x.ndim:
        raise ShapeError(f"gather needs an index of {x.ndim} axes, as x has, not of {index.ndim}")
    axis = range(x.ndim)[axis]
    if any(n > x.shape[a] for a, n in enumerate(index.shape) if a != axis):
        raise ShapeError(f"gather along axis {axis}: the index {index.shape} is longer than x {x.shape} elsewhere")
    xp = array_module(x)
    places = [xp.arange(n).reshape((-1,) + (1,) * (x.ndim - a - 1)) for a, n in enumerate(index.shape)]
    places[axis] = index
    return tuple(places)


@op
def one_hot_(index, num_classes=1, dtype="float32"):
    """1 at the place that the index names along a new last axis, 0 elsewhere."""
    xp = array_module(index)
    index = xp.asarray(index)
    return (index[..., None] == xp.arange(num_classes)).astype(dtype)


def one_hot(index, num_classes=None, dtype=None):
    """1 at the place that the index names along a new last axis, 0 elsewhere; no gradient.

    num_classes  the length of that axis; one more than the largest index if None
    dtype        the default dtype if None (torch gives integers, with which float32 would become float64 here)

    >>> import minigrad as mg
    >>> one_hot(mg.tensor([2, 0])).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    values = index._data if isinstance(index, Tensor) else numpy.asarray(index)
    if values.dtype.kind not in "iu":
        raise DtypeError(f"one_hot needs integers, not {values.dtype}")
    if num_classes is None:
        num_classes = int(values.max()) + 1 if values.size else 0
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < num_classes:
        raise IndexingError(f"one_hot got indices from {values.min()} to {values.max()} for {num_classes} classes")
    return one_hot_(
        index if isinstance(index, Tensor) else values,
        num_classes=num_classes,
        dtype=numpy.dtype(dtype or get_default_dtype()),
    )


@op
def embedding(index, weight, padding_idx=None):
    """The rows of `weight` that an integer tensor names: shape (*index.shape, length of a row). Keeps the index.

    padding_idx  a row that gets no gradient. Where a row is named many times its gradients add up.
    """
    if index.dtype.kind not in "iu":
        raise DtypeError(
            f"embedding needs integer indices, not {index.dtype}; it is called as embedding(index, weight)"
        )
    if padding_idx is not None and not -len(weight) <= padding_idx < len(weight):
        raise IndexingError(f"embedding has no row {padding_idx} for padding: its weight has {len(weight)} rows")
    if index.size and not 0 <= int(index.min()) <= int(index.max()) < len(weight):
        raise IndexingError(
            f"embedding got indices from {index.min()} to {index.max()}, and its weight has {len(weight)} rows"
        )
    return weight[index]


@embedding.vjp("weight")
def embedding_wrt_weight(g, index, weight_shape, padding_idx):
    if padding_idx is not None:
        is_word = index != padding_idx % weight_shape[0]
        g = where_(is_word.reshape(is_word.shape + (1,)), g, 0.0)
    return scatter(g, index, pattern=("i",), shape=weight_shape)
