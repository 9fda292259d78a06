"""Attention without the matrix of all scores.

    attention(q, k, v) = softmax(q kᵀ · scale) v

A sequence of length T has T² scores. Nobody needs them all at once: they come in blocks of rows (queries) and
columns (keys), and a block is forgotten when it has been used. In forward the softmax is *online*: for each row there
is a running maximum, a running sum of exp(score - maximum), and a running sum of values weighed with that; when a
block raises the maximum, what is there shrinks in proportion.

Backward makes the same blocks again. All that it needs besides q, k, v is for each row the logarithm of the sum of
the exponentials, `lse`; then a probability is exp(score - lse), at once and for good. An op has one output, so the
op's output has one more column than attention has, in which lse stands.

The gradients, for a gradient g of the output (FlashAttention's equations; `delta` is the softmax's own correction):

    P = exp(scores - lse)      dP = g vᵀ      delta = Σ g · out along a row      dS = P · (dP - delta)
    dq = dS k · scale          dk = dSᵀ q · scale          dv = Pᵀ g              dmask = dS

`attention_plain` beside it is what all of this computes, in a few ordinary ops that hold the whole matrix. Second
derivatives take that way too: a vjp that is asked for something differentiable answers with the plain formulas.

Sources: Milakov and Gimelshein 2018, arXiv:1805.02867, for the online softmax; Dao et al. 2022, arXiv:2205.14135.

Shapes, with any axes before them, which broadcast:   q (T, D)   k (S, D)   v (S, E)   mask (T, S)   out (T, E + 1)
"""

import math

import numpy

from ..engine.device import array_module
from ..engine.op import op
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError, ShapeError
from .arithmetic import where_
from .common import module_of, quiet, setting_number, wide
from .random import dropout
from .reduce import softmax, sum_

BLOCK = 128  # rows and columns of scores that are there at a time

# ---- In blocks ---------------------------------------------------------------------------------------


@op
def scaled_dot_product_attention_(q, k, v, mask=None, is_causal=False, scale=1.0):
    """softmax(q kᵀ scale) v, and as a last column each row's log of the sum of exp(score). Keeps q, k, v and that."""
    xp = array_module(q, k, v)
    lead = leading_axes(q, k, v, mask)
    out = xp.empty((*lead, q.shape[-2], v.shape[-1] + 1), xp.result_type(q, k, v))
    for rows in blocks(q.shape[-2]):
        values, lse = online_softmax(q, k, v, mask, is_causal, scale, rows, lead)
        out[..., rows, :-1], out[..., rows, -1:] = values, lse
    return out


def online_softmax(q, k, v, mask, is_causal, scale, rows, lead):
    """Attention of some rows: their outputs, and their lse. A row that may look at nothing has 0 and -inf."""
    xp, queries = array_module(q), wide(q[..., rows, :])
    shape = (*lead, queries.shape[-2])
    top = xp.full((*shape, 1), -math.inf, queries.dtype)
    total = xp.zeros((*shape, 1), queries.dtype)
    values = xp.zeros((*shape, v.shape[-1]), xp.result_type(queries, v))
    for columns in blocks(k.shape[-2], rows.stop if is_causal else None):
        s = scores(queries, k, mask, is_causal, scale, rows, columns)
        higher = xp.maximum(top, s.max(axis=-1, keepdims=True))
        base = xp.where(higher == -math.inf, 0, higher)
        weights, shrink = xp.exp(s - base), xp.exp(top - base)
        total = total * shrink + weights.sum(axis=-1, keepdims=True)
        values = values * shrink + weights @ v[..., columns, :]
        top = higher
    with quiet():
        return xp.where(total == 0, 0, values / total), top + xp.log(total)


def scores(queries, k, mask, is_causal, scale, rows, columns):
    """The scores of a block, with -inf where a row must not look."""
    xp = array_module(queries)
    s = queries @ wide(k[..., columns, :]).swapaxes(-1, -2)
    s *= scale
    if mask is not None:
        part = block_of(mask, rows, columns)
        s = xp.where(part, s, -math.inf) if part.dtype.kind == "b" else s + part
    if is_causal and columns.stop > rows.start + 1:
        later = xp.arange(columns.start, columns.stop) > xp.arange(rows.start, rows.stop)[:, None]
        s[..., later] = -math.inf
    return s


def probabilities(q, k, mask, out, is_causal, scale, rows, columns):
    """The softmax's values in a block, from the scores and lse."""
    xp = array_module(q)
    lse = wide(out[..., rows, -1:])
    s = scores(wide(q[..., rows, :]), k, mask, is_causal, scale, rows, columns)
    return xp.exp(s - xp.where(lse == -math.inf, 0, lse))


def score_gradients(g, q, k, v, mask, out, is_causal, scale):
    """For each block that is not empty: rows, columns, and dS, the gradient of its scores."""
    for rows in blocks(q.shape[-2]):
        from_out, result = wide(g[..., rows, :]), wide(out[..., rows, :])
        # the last column holds lse, whose slopes are the probabilities: its gradient joins in with the other sign
        delta = (from_out[..., :-1] * result[..., :-1]).sum(axis=-1, keepdims=True) - from_out[..., -1:]
        for columns in blocks(k.shape[-2], rows.stop if is_causal else None):
            ds = from_out[..., :-1] @ wide(v[..., columns, :]).swapaxes(-1, -2)
            ds -= delta
            ds *= probabilities(q, k, mask, out, is_causal, scale, rows, columns)
            yield rows, columns, ds


@scaled_dot_product_attention_.vjp("q")
def attention_wrt_q(g, q, k, v, mask, out, is_causal, scale):
    if isinstance(g, Tensor):
        return plain_score_gradients(g, q, k, v, mask, is_causal, scale) @ k * scale
    dq = zeros(g, q)
    for rows, columns, ds in score_gradients(g, q, k, v, mask, out, is_causal, scale):
        dq[..., rows, :] += ds @ wide(k[..., columns, :])
    dq *= scale
    return dq


@scaled_dot_product_attention_.vjp("k")
def attention_wrt_k(g, q, k, v, mask, out, is_causal, scale):
    if isinstance(g, Tensor):
        return plain_score_gradients(g, q, k, v, mask, is_causal, scale).swapaxes(-1, -2) @ q * scale
    dk = zeros(g, k)
    for rows, columns, ds in score_gradients(g, q, k, v, mask, out, is_causal, scale):
        dk[..., columns, :] += ds.swapaxes(-1, -2) @ wide(q[..., rows, :])
    dk *= scale
    return dk


@scaled_dot_product_attention_.vjp("v")
def attention_wrt_v(g, q, k, v_shape, mask, out, is_causal, scale):
    if isinstance(g, Tensor):
        return plain_probabilities(q, k, mask, is_causal, scale).swapaxes(-1, -2) @ g[..., :-1]
    dv = array_module(g).zeros((*g.shape[:-2], *v_shape[-2:]), wide(g).dtype)
    for rows in blocks(q.shape[-2]):
        for columns in blocks(k.shape[-2], rows.stop if is_causal else None):
            p = probabilities(q, k, mask, out, is_causal, scale, rows, columns)
            dv[..., columns, :] += p.swapaxes(-1, -2) @ wide(g[..., rows, :-1])
    return dv


@scaled_dot_product_attention_.vjp("mask")
def attention_wrt_mask(g, q, k, v, mask, out, is_causal, scale):
    """Only of a mask that is added. Its gradient is as large as it is; what it broadcasts over is summed by blocks."""
    if isinstance(g, Tensor):
        return plain_score_gradients(g, q, k, v, mask, is_causal, scale)
    dmask = array_module(g).zeros(mask.shape, wide(g).dtype)
    for rows, columns, ds in score_gradients(g, q, k, v, mask, out, is_causal, scale):
        place = block_of(dmask, rows, columns)
        extra = ds.ndim - place.ndim
        axes = tuple([a for a in range(ds.ndim) if a < extra or place.shape[a - extra] != ds.shape[a]])
        place += ds.sum(axis=axes, keepdims=True).reshape(place.shape)
    return dmask


def blocks(length, stop=None):
    """Slices of BLOCK rows or columns, of those before `stop`."""
    stop = length if stop is None else min(length, stop)
    return [slice(first, min(first + BLOCK, stop)) for first in range(0, stop, BLOCK)]


def block_of(mask, rows, columns):
    """The part of a mask for a block; along an axis of length 1 the same for all."""
    return mask[..., rows if mask.shape[-2] > 1 else slice(None), columns if mask.shape[-1] > 1 else slice(None)]


def zeros(g, x):
    """Zeros for the gradient of x, with the leading axes of g; the sweep sums those that x has not."""
    return array_module(g).zeros((*g.shape[:-2], *x.shape[-2:]), wide(g).dtype)


def leading_axes(q, k, v, mask) -> tuple:
    """The axes before the last two, broadcast."""
    return numpy.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, mask) if x is not None])


# ---- Plainly -----------------------------------------------------------------------------------------


def plain_probabilities(q, k, mask=None, is_causal=False, scale=1.0):
    """softmax(q kᵀ scale), (..., T, S), by ops that can be differentiated; 0 in rows that may look at nothing."""
    s = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        s = where_(mask, s, -math.inf) if mask.dtype.kind == "b" else s + mask
    if is_causal:
        before = module_of(q).tril(module_of(q).ones(s.shape[-2:], bool))
        s = where_(before, s, -math.inf)
    looks = (s > -math.inf).any(axis=-1, keepdims=True)
    return where_(looks, softmax(where_(looks, s, 0.0)), 0.0)


def plain_score_gradients(g, q, k, v, mask, is_causal, scale):
    """dS by ops that can be differentiated; g has lse's column, whose slopes are the probabilities."""
    p = plain_probabilities(q, k, mask, is_causal, scale)
    dp = g[..., :-1] @ v.swapaxes(-1, -2)
    return p * (dp - sum_(p * dp, axis=-1, keepdims=True) + g[..., -1:])


def attention_plain(q, k, v, mask=None, is_causal=False, scale=None, dropout_p=0.0):
    """What `scaled_dot_product_attention` gives, by ordinary ops that hold all T × S scores; with dropout of them."""
    mask, scale = checked(q, k, v, mask, scale)
    return dropout(plain_probabilities(q, k, mask, is_causal, scale), dropout_p) @ v


# ---- As torch calls it -------------------------------------------------------------------------------


def scaled_dot_product_attention(q, k, v, mask=None, is_causal=False, scale=None, *, attn_mask=None):
    """softmax(q kᵀ · scale + mask) v, in memory that grows as the length of the sequence, not as its square.

    q, k, v    (..., T, D), (..., S, D), (..., S, E); the axes before broadcast. Gives (..., T, E)
    mask       (..., T, S) or what broadcasts to that: True where a row may look, or numbers to be added to the
               scores (-inf: it may not). `attn_mask`, torch's name, does as well
    is_causal  row i may look at columns 0 … i only
    scale      1 / sqrt(D) if None

    A row that may look at nothing gives 0, and receives no gradient. Keeps q, k, v, its output, and one number for
    each row. Second derivatives hold all scores. `attention_plain` shows what it computes.
    """
    if attn_mask is not None:
        if mask is not None:
            raise ArgumentError("mask and attn_mask are two names of one argument; give one of them")
        mask = attn_mask
    mask, scale = checked(q, k, v, mask, scale)
    dtype = q.dtype
    if dtype == "float16":  # lse needs more digits than float16 has
        q, k, v = [x.astype("float32") for x in (q, k, v)]
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    out = scaled_dot_product_attention_(*inputs, is_causal=bool(is_causal), scale=scale)[..., :-1]
    return out.astype("float16") if dtype == "float16" else out


def checked(q, k, v, mask, scale):
    """The mask, with at least two axes, and the scale, if everything fits."""
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}" + ("" if mask is None else f", mask {mask.shape}")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"attention needs q, k and v of shape (..., length, features), not {shapes}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"attention of {shapes}: q and k need features, and k and v a length, in common")
    if q.shape[-1] == 0 or k.shape[-2] == 0:
        raise ShapeError(f"attention needs at least one key and one feature, not {shapes}")
    if mask is not None:
        if mask.dtype.kind not in "bf":
            raise DtypeError(f"a mask has truth values, or floating numbers to be added, not {mask.dtype}")
        mask = mask if mask.ndim >= 2 else mask.reshape((1,) * (2 - mask.ndim) + mask.shape)
        last = mask.shape[-2:]
        if any(n not in (1, m) for n, m in zip(last, (q.shape[-2], k.shape[-2]), strict=True)):
            raise ShapeError(f"attention of {shapes}: the mask must broadcast to {(q.shape[-2], k.shape[-2])}")
    try:
        leading_axes(q, k, v, mask)
    except ValueError as error:
        raise ShapeError(f"attention of {shapes}: the axes before the last two do not broadcast") from error
    if scale is None:
        return mask, 1 / math.sqrt(q.shape[-1])
    return mask, float(setting_number("scaled_dot_product_attention", "scale", scale))
