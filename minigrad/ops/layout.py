"""Copies, repetitions and windows of a tensor, and writing into a copy of it; most are made of reshapes and indices."""

from ..engine.op import op
from ..errors import ArgumentError, ShapeError
from .arithmetic import where
from .common import ints, module_of, plain
from .index import gather, getitem, index_put, take
from .reduce import argsort
from .shape import broadcast_to_, permute_, reshape_, rows_of, split


@op
def clone(x):
    """A copy of x, to which gradients flow as to x itself. Keeps nothing."""
    return x.copy()


@clone.vjp("x")
def clone_wrt_x(g):
    return g


# ---- Repeating ---------------------------------------------------------------------------------------


def tile(x, *times):
    """x repeated so many times along each axis, counted from the last as in NumPy: tile(x, 2, 3) or (x, (2, 3)).

    >>> import minigrad as mg
    >>> tile(mg.tensor([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    times = ints(times, "tile's numbers of times")
    if any(n < 0 for n in times):
        raise ArgumentError(f"tile repeats 0 or more times, not {times}")
    ndim = max(len(times), x.ndim)
    times, shape = (1,) * (ndim - len(times)) + times, (1,) * (ndim - x.ndim) + x.shape
    apart = tuple([n for pair in zip((1,) * ndim, shape, strict=True) for n in pair])
    repeated = tuple([n for pair in zip(times, shape, strict=True) for n in pair])
    whole = broadcast_to_(reshape_(x, shape=apart), shape=repeated)
    return reshape_(whole, shape=tuple([n * length for n, length in zip(times, shape, strict=True)]))


def repeat(x, *times):
    """torch's repeat: `tile` with a number for every axis of x, and perhaps for new ones before them.

    >>> import minigrad as mg
    >>> repeat(mg.tensor([1, 2]), 2, 1).tolist()
    [[1, 2], [1, 2]]
    """
    times = ints(times, "repeat's numbers of times")
    if len(times) < x.ndim:
        raise ShapeError(f"repeat{times} needs a number for each of the {x.ndim} axes; see tile, and repeat_interleave")
    return tile(x, times)


def repeat_interleave(x, repeats, axis=None):
    """Each element `repeats` times in a row along `axis` (in the flattened x if None): NumPy's repeat.

    repeats  an int, or one for each element along the axis

    >>> import minigrad as mg
    >>> repeat_interleave(mg.tensor([1, 2]), 2).tolist(), repeat_interleave(mg.tensor([1, 2]), [3, 1]).tolist()
    ([1, 1, 2, 2], [1, 1, 1, 2])
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    length = checked_length(x, axis, "repeat_interleave")
    repeats = repeats.tolist() if hasattr(repeats, "tolist") else repeats
    each = ints((repeats if isinstance(repeats, (list, tuple)) else [repeats],), "repeats")
    if len(each) not in (1, length) or min(each, default=0) < 0:
        raise ShapeError(f"repeat_interleave needs one number of times, or {length}, all >= 0, not {repeats}")
    xp = module_of(x)
    return take(x, xp.arange(length).repeat(each * length if len(each) == 1 else each), axis)


def checked_length(x, axis, what):
    """The length of the axis, if x has one of that number."""
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"{what} along axis {axis} of a tensor of shape {x.shape}, which has no such axis")
    return x.shape[axis]


def unfold(x, axis, size, step=1):
    """All windows of `size` elements along `axis`, every `step` places, each along a new last axis; torch's.

    >>> import minigrad as mg
    >>> unfold(mg.arange(5), 0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    length = checked_length(x, axis, "unfold")
    size, step = ints((size, step), "unfold's size and step")
    if not 0 <= size <= length or step < 1:
        raise ShapeError(f"unfold: windows of {size}, every {step}, do not fit along axis {axis} of {x.shape}")
    xp, axis = module_of(x), axis % x.ndim
    places = xp.arange(0, length - size + 1, step)[:, None] + xp.arange(size)
    windows = take(x, places, axis)  # the windows' elements are axis + 1
    return windows.permute([a for a in range(windows.ndim) if a != axis + 1] + [axis + 1])


# ---- Writing, choosing -------------------------------------------------------------------------------


def masked_fill(x, mask, value):
    """x, with `value` (a number or a tensor of no axes) where the mask holds. Keeps the mask."""
    if hasattr(mask, "dtype") and mask.dtype.kind != "b":
        raise ArgumentError(f"masked_fill needs a mask of booleans, not of {mask.dtype}; compare, as in mask != 0")
    return where(mask, plain(value), x)


def scatter(x, axis, index, value):
    """A copy of x in which out[a, index[a, b, c], c] has become value[a, b, c], for axis 1, and so on; torch's.

    `value` is a number, or at least as long as the index along each axis. Of two values for one place the last stays.

    >>> import minigrad as mg
    >>> scatter(mg.zeros(2, 3), 1, mg.tensor([[2], [0]]), 1.0).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    checked_length(x, axis, "scatter")
    shape, axis = index.shape, axis % max(x.ndim, 1)
    if len(shape) != x.ndim or any(n > x.shape[a] for a, n in enumerate(shape) if a != axis):
        raise ShapeError(f"scatter along axis {axis}: an index of {shape} does not fit on a tensor of {x.shape}")
    xp = module_of(x)
    places = [xp.arange(n).reshape((-1,) + (1,) * (x.ndim - a - 1)) for a, n in enumerate(shape)]
    places[axis] = index
    if getattr(value, "ndim", 0):
        if value.ndim != len(shape) or any(n > m for n, m in zip(shape, value.shape, strict=True)):
            raise ShapeError(f"scatter: values of {value.shape} are not enough for an index of {shape}")
        value = getitem(value, tuple([slice(n) for n in shape])) if value.shape != shape else value
    return index_put(x, tuple(places), value)


def topk(x, k, axis=-1, largest=True):
    """(values, places) of the k largest elements along `axis`, the largest first; of the smallest if not `largest`.

    >>> import minigrad as mg
    >>> values, places = topk(mg.tensor([3.0, 9.0, 5.0]), 2)
    >>> values.tolist(), places.tolist()
    ([9.0, 5.0], [1, 2])
    """
    if x.ndim == 0:
        x, axis = x.reshape(1), 0
    length, (k,) = checked_length(x, axis, "topk"), ints((k,), "k")
    if not 0 <= k <= length:
        raise ArgumentError(f"topk of {k} along axis {axis} of a tensor of shape {x.shape}, which has {length}")
    places = argsort(x, axis=axis, descending=largest)
    places = places[(slice(None),) * (axis % x.ndim) + (slice(k),)]
    return gather(x, axis, places), places


# ---- Other names, and parts --------------------------------------------------------------------------


def expand(x, *sizes):
    """torch's expand: `broadcast_to`, where a length of -1 stays as it is."""
    sizes = ints(sizes)
    lead = len(sizes) - x.ndim
    if lead < 0 or any(size < 0 and i < lead for i, size in enumerate(sizes)):
        raise ShapeError(f"expand{sizes} of a tensor of shape {x.shape}: give a length for each axis, new ones first")
    return broadcast_to_(x, shape=tuple([x.shape[i - lead] if n == -1 else n for i, n in enumerate(sizes)]))


def chunk(x, chunks, axis=0):
    """x in at most `chunks` parts of one length along `axis` (the last may be shorter), as a tuple of slices."""
    length, (chunks,) = checked_length(x, axis, "chunk"), ints((chunks,), "the number of chunks")
    if chunks < 1:
        raise ArgumentError(f"chunk needs at least 1 part, not {chunks}")
    return split(x, max(-(-length // chunks), 1), axis)


def unbind(x, axis=0):
    """All x[i] along `axis`, as a tuple."""
    checked_length(x, axis, "unbind")
    return tuple(rows_of(movedim(x, axis, 0), x.shape[axis]))


def movedim(x, source, destination):
    """x with the axis `source` (or several) at the place `destination`, the others in their order: NumPy's moveaxis."""
    sources, places = ints((source,), "an axis"), ints((destination,), "a place")
    if any(not -x.ndim <= a < x.ndim for a in sources + places):
        raise ShapeError(f"movedim from {source} to {destination}: a tensor of shape {x.shape} has no such axis")
    sources, places = [a % x.ndim for a in sources], [a % x.ndim for a in places]
    if len(sources) != len(places) or len(set(sources)) != len(places) or len(set(places)) != len(places):
        raise ArgumentError(f"movedim needs as many places as axes, each once, not {source} and {destination}")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_(x, axes=tuple(order))


def masked_select(x, mask):
    """The elements for which the mask holds, in order, as a vector."""
    shape = tuple(module_of(x).broadcast_shapes(x.shape, mask.shape))
    return getitem(expand(x, shape), expand(mask, shape))


def index_select(x, axis, index):
    """The slices of x at the positions `index` along `axis`: `take` in torch's order of arguments."""
    return take(x, index, axis)
