"""Attention with several heads, and the block that transformers are made of. Names and layouts are torch's."""

import math

from .. import ops
from ..errors import ArgumentError
from ..ops.attention import checked, plain_probabilities
from ..ops.create import zeros
from . import init
from .layers import Dropout, Linear
from .module import Module, Parameter
from .norm import LayerNorm


class MultiheadAttention(Module):
    """Attention of `num_heads` heads, each in its own projection to embed_dim / num_heads features.

    dropout          the probability with which a row does not look at what it would look at, in training. With it
                     all T × T probabilities are held; without it `mg.scaled_dot_product_attention` never does
    batch_first      False: (T, N, embed_dim), as torch has it; True: (N, T, embed_dim). Without a batch always
                     (T, embed_dim)
    in_proj_weight, in_proj_bias   (3 embed_dim, embed_dim) and (3 embed_dim,): for q, k and v, in this order
    out_proj         a Linear
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False, dtype=None, device=None):
        if num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(f"{num_heads} heads cannot share {embed_dim} features evenly")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        fan = (embed_dim + 3 * embed_dim) / 6  # Xavier: +-sqrt(6 / (fan_in + fan_out))
        self.in_proj_weight = Parameter(init.uniform((3 * embed_dim, embed_dim), fan, dtype, device))
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, dtype=dtype, device=device)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype, device)
        if bias:
            self.out_proj.bias.assign_(zeros(embed_dim, dtype=dtype, device=device))

    def forward(
        self, query, key=None, value=None, key_padding_mask=None, need_weights=False, attn_mask=None,
        average_attn_weights=True, is_causal=False,
    ):  # fmt: skip
        """(output, weights): like the query, and (N, T, S), or None.

        key, value        of length S; the query itself, and the key, if None
        key_padding_mask  (N, S): True where a key is padding, to be ignored; or numbers to be added to the scores
        attn_mask         (T, S) or (N * num_heads, T, S): True where a row must *not* look (torch's rule for this
                          layer, opposite to mg.scaled_dot_product_attention's); or numbers to be added
        need_weights      also give the probabilities, averaged over the heads unless told otherwise. It takes T × S
                          memory, and so the default is not torch's True
        is_causal         row i looks at 0 … i only; no mask is needed for that
        """
        key = query if key is None else key
        value = key if value is None else value
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            shapes = query.shape, key.shape, value.shape
            raise ArgumentError(f"MultiheadAttention takes three tensors of 2 or 3 axes, not {shapes}")
        q, k, v = [self.heads(x) for x in self.projected(query, key, value)]
        mask = combined(self.looks(attn_mask), looks_at_keys(key_padding_mask))
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            mask, scale = checked(q, k, v, mask, None)
            weights = plain_probabilities(q, k, mask, is_causal, scale)
            out = ops.dropout(weights, dropout) @ v
            weights = weights.mean(axis=-3) if average_attn_weights else weights
        elif dropout:
            out = ops.attention_plain(q, k, v, mask, is_causal, dropout_p=dropout)
        else:
            out = ops.scaled_dot_product_attention(q, k, v, mask, is_causal)
        out = self.out_proj(out.swapaxes(-2, -3).reshape(*out.shape[:-3], out.shape[-2], self.embed_dim))
        return (out if self.batch_first or query.ndim == 2 else out.swapaxes(0, 1)), weights

    def projected(self, query, key, value):
        """q, k and v of the inputs: one product if they are the same."""
        bias = self.in_proj_bias
        if query is key and key is value:
            both = ops.linear(query, self.in_proj_weight, *([] if bias is None else [bias]))
            return ops.split(both, self.embed_dim, axis=-1)
        weights = ops.split(self.in_proj_weight, self.embed_dim)
        biases = [()] * 3 if bias is None else [(b,) for b in ops.split(bias, self.embed_dim)]
        return [ops.linear(x, w, *b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def heads(self, x):
        """(N, heads, T, features of a head), or without N if there is none."""
        if x.ndim == 3 and not self.batch_first:
            x = x.swapaxes(0, 1)
        x = x.reshape(*x.shape[:-1], self.num_heads, self.embed_dim // self.num_heads)
        return x.swapaxes(-2, -3)

    def looks(self, attn_mask):
        """Torch's attn_mask as scaled_dot_product_attention wants it."""
        if attn_mask is None:
            return None
        if attn_mask.ndim == 3:
            attn_mask = attn_mask.reshape(-1, self.num_heads, *attn_mask.shape[1:])
        return ~attn_mask if attn_mask.dtype == bool else attn_mask

    def extra_repr(self):
        return f"{self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"


def looks_at_keys(key_padding_mask):
    """Torch's key_padding_mask as scaled_dot_product_attention wants it, for all heads and rows."""
    if key_padding_mask is None:
        return None
    mask = key_padding_mask.reshape(*key_padding_mask.shape[:-1], 1, 1, key_padding_mask.shape[-1])
    return ~mask if mask.dtype == bool else mask


def combined(a, b):
    """One mask of two: both must let a row look; of numbers, the sum."""
    if a is None or b is None:
        return b if a is None else a
    if a.dtype == bool and b.dtype == bool:
        return a & b
    a, b = [ops.where(m, 0.0, -math.inf) if m.dtype == bool else m for m in (a, b)]
    return a + b


ACTIVATIONS = {"gelu": ops.gelu, "relu": ops.relu}


class TransformerBlock(Module):
    """x + attention(norm(x)), and then x + MLP(norm(x)): the pre-norm block. (N, T, d_model) in and out.

    d_model, nhead   features, and heads among which attention divides them
    dim_feedforward  features inside the MLP; 4 * d_model if None
    dropout          after attention, inside the MLP and after it, and of attention's probabilities
    activation       a function; "gelu" or "relu" will do
    causal           row i looks at 0 … i only

    Its parts have the names that they have in torch's TransformerEncoderLayer(…, norm_first=True), so that a state
    dict of one fits the other. Source of pre-norm: Xiong et al. 2020, arXiv:2002.04745.
    """

    def __init__(
        self, d_model, nhead, dim_feedforward=None, dropout=0.0, activation="gelu", layer_norm_eps=1e-5,
        causal=False, batch_first=True, bias=True, dtype=None, device=None,
    ):  # fmt: skip
        if not callable(activation) and activation not in ACTIVATIONS:
            raise ArgumentError(f'activation is "gelu", "relu" or a function, not {activation!r}')
        hidden = dim_feedforward or 4 * d_model
        self.causal, self.activation = causal, activation
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first, dtype, device)
        self.linear1 = Linear(d_model, hidden, bias, dtype, device)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(hidden, d_model, bias, dtype, device)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype, device=device)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype, device=device)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def forward(self, x, mask=None, key_padding_mask=None):
        """mask and key_padding_mask as in MultiheadAttention."""
        attended, _ = self.self_attn(
            self.norm1(x), attn_mask=mask, key_padding_mask=key_padding_mask, is_causal=self.causal
        )
        x = x + self.dropout1(attended)
        activation = ACTIVATIONS.get(self.activation, self.activation)
        hidden = self.dropout(activation(self.linear1(self.norm2(x))))
        return x + self.dropout2(self.linear2(hidden))

    def extra_repr(self):
        return f"causal={self.causal}"
