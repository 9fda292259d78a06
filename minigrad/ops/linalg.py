"""Products of vectors, matrices and stacks of matrices."""

import math
import string
from collections import Counter

from ..engine.device import array_module
from ..engine.op import op
from ..engine.sums import total
from ..errors import ArgumentError, ShapeError
from .common import module_of, narrow, wide
from .reduce import spread
from .shape import broadcast_to_

# ---- matmul and linear -------------------------------------------------------------------------------


@op
def matmul(a, b):
    """a @ b: vectors, matrices, or stacks of matrices that broadcast, as in NumPy. Keeps the other factor."""
    return a @ b


@matmul.vjp("a")
def matmul_wrt_a(g, b):
    if b.ndim == 2:
        return g @ b.T
    if b.ndim == 1:
        return g.reshape(g.shape + (1,)) * b
    if g.ndim < b.ndim:  # a was a vector: a row
        return (g.reshape(g.shape[:-1] + (1,) + g.shape[-1:]) @ b.swapaxes(-1, -2)).squeeze(-2)
    return g @ b.swapaxes(-1, -2)


@matmul.vjp("b")
def matmul_wrt_b(g, a, b_shape):
    if a.ndim == 2 and g.ndim == 2:
        return a.T @ g
    if len(b_shape) == 1:  # a column
        if a.ndim == 1:
            return a * g
        return rows(a).T @ g.reshape(-1)
    if a.ndim == 1:  # a row: the outer products of a and the rows of g
        return a.reshape(-1, 1) * g.reshape(g.shape[:-1] + (1,) + g.shape[-1:])
    if len(b_shape) == 2:  # one matrix for the whole stack: add up in the product itself
        return rows(a).T @ rows(g)
    return a.swapaxes(-1, -2) @ g


def rows(x):
    """A stack of matrices as one matrix with all their rows."""
    return x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def times_matrix(x, w):
    """x @ w for one matrix w. A stack x goes as one matrix of all its rows: NumPy would take them one by one."""
    return x @ w if x.ndim <= 2 else (rows(x) @ w).reshape(x.shape[:-1] + w.shape[1:])


@op
def linear(x, w, b=None):
    """x @ w.T + b for x (..., in), w (out, in) and b (out,): torch's layout. Keeps w for x, and x for w."""
    out = times_matrix(x, w.T)
    if b is None:
        return out
    if out.dtype != b.dtype:
        return out + b
    out += b  # `out` is ours, and a second array of its size would be twice the memory
    return out


@linear.vjp("x")
def linear_wrt_x(g, w):
    return times_matrix(g, w)


@linear.vjp("w")
def linear_wrt_w(g, x):
    return g.T @ x if g.ndim == 2 else rows(g).T @ rows(x)


@linear.vjp("b")
def linear_wrt_b(g):
    return g  # the sweep sums over the rows


@op
def outer(a, b):
    """All products a[i] * b[j] of two vectors: a matrix. Keeps the other vector."""
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer takes two vectors, not shapes {a.shape} and {b.shape}")
    return a.reshape(-1, 1) * b


@outer.vjp("a")
def outer_wrt_a(g, b):
    return g @ b


@outer.vjp("b")
def outer_wrt_b(g, a):
    return a @ g


def dot(a, b):
    """Σ a[i] * b[i] of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"dot takes two vectors, not shapes {a.shape} and {b.shape}; see matmul")
    return matmul(a, b)


# ---- Diagonals ---------------------------------------------------------------------------------------


@op
def trace(x):
    """The sum of the diagonal of a matrix, square or not. Keeps nothing."""
    if x.ndim != 2:
        raise ShapeError(f"trace takes a matrix, not a tensor of shape {x.shape}; see diagonal")
    return narrow(wide(x).trace(), x)


@trace.vjp("x")
def trace_wrt_x(g, x_shape):
    return diagonal_embed(spread(g, (min(x_shape),)), shape=x_shape)


@op
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The diagonals of the matrices in two axes, as a new last axis; offset > 0 is above the main one."""
    return x.diagonal(offset, axis1, axis2)


@diagonal.vjp("x")
def diagonal_wrt_x(g, x_shape, offset, axis1, axis2):
    return diagonal_embed(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


@op
def diagonal_embed(g, shape=(), offset=0, axis1=0, axis2=1):
    """Zeros of `shape` with g on the diagonals: the opposite of diagonal. Keeps nothing."""
    xp = array_module(g)
    out = xp.zeros(shape, g.dtype)
    matrices = xp.moveaxis(out, (axis1, axis2), (-2, -1))
    i = xp.arange(g.shape[-1])
    matrices[..., i + max(-offset, 0), i + max(offset, 0)] = g
    return out


@diagonal_embed.vjp("g")
def diagonal_embed_wrt_g(g, offset, axis1, axis2):
    return diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


# ---- einsum ------------------------------------------------------------------------------------------


@op
def einsum_(a, b=None, subscripts=""):
    """The sum of products that `subscripts` spells, of one or two arrays, without "...". Keeps the other one."""
    xp = array_module(a)
    if b is None:
        theirs, out = subscripts.split("->")
        if len(set(theirs)) < len(theirs) or not set(out) < set(theirs):
            return narrow(xp.einsum(subscripts, wide(a)), a)
        summed = total(a, tuple([i for i, label in enumerate(theirs) if label not in out]))
        stay = [label for label in theirs if label in out]
        return xp.transpose(summed, [stay.index(label) for label in out])
    out = xp.einsum(subscripts, wide(a), wide(b), optimize=True)
    return narrow(out, a if b.dtype.char == "e" else b)


@einsum_.vjp("a")
def einsum_wrt_a(g, b, a_shape, subscripts):
    ours, theirs, out = labels(subscripts)
    return part_of_einsum(g, out, b, theirs, ours, a_shape)


@einsum_.vjp("b")
def einsum_wrt_b(g, a, b_shape, subscripts):
    theirs, ours, out = labels(subscripts)
    return part_of_einsum(g, out, a, theirs, ours, b_shape)


def part_of_einsum(g, out, other, theirs, ours, shape):
    """The gradient of one operand, labelled `ours`: again an einsum, of g and the other operand, if there is one.

    A label that comes twice in `ours` (a diagonal) becomes two labels and an identity matrix between them. A
    label that only `ours` has was summed away, and the gradient is the same all along it.
    """
    distinct, identities = "", []
    for label in ours:
        if label in distinct:
            fresh = next(c for c in string.ascii_letters if c not in distinct + ours + theirs + out)
            identities.append((label + fresh, module_of(g).eye(shape[len(distinct)], dtype=g.dtype)))
            label = fresh
        distinct += label
    terms = [(out, g)] + ([] if other is None else [(theirs, other)]) + identities
    found = "".join([label for label in distinct if any(label in subscript for subscript, _ in terms)])
    result = contract([subscript for subscript, _ in terms], found, [array for _, array in terms])
    lengths = dict(zip(found, result.shape, strict=True))
    full = []
    for label, length in zip(distinct, shape, strict=True):
        found_length = lengths.get(label, 1)
        full.append(length if found_length == 1 else found_length)  # 0 as well: an axis without elements
    result = result.reshape(tuple([lengths.get(label, 1) for label in distinct]))
    return result if list(result.shape) == full else broadcast_to_(result, shape=tuple(full))


def labels(subscripts):
    """("ij", "jk", "ik") of "ij,jk->ik"; the second is "" if there is one operand only."""
    inputs, out = subscripts.split("->")
    first, _, second = inputs.partition(",")
    return first, second, out


def contract(inputs, output, operands):
    """An einsum of any number of operands, two at a time from the left."""
    first, result = inputs[0], operands[0]
    if len(operands) == 1:
        return einsum_(result, subscripts=f"{first}->{output}")
    needed = Counter("".join(inputs[2:]) + output)  # how often each label comes after the two in hand
    for i in range(1, len(operands) - 1):
        between = "".join([label for label in dict.fromkeys(first + inputs[i]) if needed[label]])
        result, first = einsum_(result, operands[i], subscripts=f"{first},{inputs[i]}->{between}"), between
        needed.subtract(inputs[i + 1])
    return einsum_(result, operands[-1], subscripts=f"{first},{inputs[-1]}->{output}")


def einsum(subscripts, *operands):
    """Einstein's sum: einsum("ij,jk->ik", a, b) is a @ b. With "...", repeated labels, and any number of operands.

    Without "->" the result has the labels that come once, in alphabetical order, as in NumPy.

    >>> import minigrad as mg
    >>> einsum("ii->i", mg.tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = inputs.split(",")
    if len(inputs) != len(operands) or not operands:
        raise ArgumentError(f"einsum {subscripts!r} is about {len(inputs)} operands, and got {len(operands)}")
    if not arrow:
        once = sorted([c for c, times in Counter("".join(inputs)).items() if c.isalpha() and times == 1])
        output = ("..." if any("..." in term for term in inputs) else "") + "".join(once)
    unused = [c for c in string.ascii_letters if c not in subscripts]
    spans = [x.ndim - len(term) + 3 if "..." in term else 0 for term, x in zip(inputs, operands, strict=True)]
    span = max(spans)
    dots = "".join(unused[:span])
    for term, n, x in zip(inputs, spans, operands, strict=True):
        named = term.replace("...", "")
        if n < 0 or not all(c in string.ascii_letters for c in named) or ("..." not in term and len(term) != x.ndim):
            raise ShapeError(f"einsum {subscripts!r}: {term!r} does not name the axes of a tensor of shape {x.shape}")
    inputs = [term.replace("...", dots[span - n :]) for term, n in zip(inputs, spans, strict=True)]
    output = output.replace("...", dots)
    strange = [c for c in output if c not in "".join(inputs)]
    if strange or len(set(output)) < len(output):
        raise ArgumentError(f"einsum {subscripts!r}: the output may name each label of the inputs once, and no other")
    return contract(inputs, output, operands)
