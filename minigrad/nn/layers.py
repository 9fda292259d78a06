"""Layers: each keeps its parameters and calls one op."""

from .. import ops
from ..errors import ArgumentError
from . import init
from .module import Module, Parameter


class Identity(Module):
    """x, unchanged."""

    def forward(self, x):
        return x


class Linear(Module):
    """x @ weight.T + bias, over the last axis of x.

    in_features, out_features  lengths of the last axis of input and output
    bias                       False for none
    weight, bias               shapes (out_features, in_features) and (out_features,), as in torch; both begin
                               uniform in +-1/sqrt(in_features)
    """

    def __init__(self, in_features, out_features, bias=True, dtype=None, device=None):
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(init.uniform((out_features, in_features), in_features, dtype, device))
        self.bias = Parameter(init.uniform((out_features,), in_features, dtype, device)) if bias else None

    def forward(self, x):
        if self.bias is None:
            return ops.linear(x, self.weight)
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self):
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Embedding(Module):
    """A table of vectors, looked up by integers: ids of any shape give (*shape, embedding_dim).

    num_embeddings  rows of the table
    embedding_dim   length of a row
    padding_idx     a row that is zero at first and never receives a gradient
    weight          (num_embeddings, embedding_dim), at first normal with variance 1
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, dtype=None, device=None):
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                f"padding_idx {padding_idx} is no row of an embedding of {num_embeddings} rows"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(init.normal((num_embeddings, embedding_dim), dtype, device))
        if padding_idx is not None:
            table = self.weight.data.copy()
            table[self.padding_idx] = 0
            self.weight.assign_(table)

    def forward(self, ids):
        return ops.embedding(ids, self.weight, padding_idx=self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training, sets each element to zero with probability p and scales the rest by 1 / (1 - p)."""

    def __init__(self, p=0.5):
        if not 0 <= p <= 1:
            raise ArgumentError(f"the probability of dropout must lie in 0..1, and is {p}")
        self.p = p

    def forward(self, x):
        return ops.dropout(x, self.p) if self.training else x

    def extra_repr(self):
        return f"p={self.p}"


class Flatten(Module):
    """The axes start_dim..end_dim as one; by default all but the first."""

    def __init__(self, start_dim=1, end_dim=-1):
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Tanh(Module):
    """mg.tanh."""

    def forward(self, x):
        return ops.tanh(x)


class ReLU(Module):
    """mg.relu: max(x, 0)."""

    def forward(self, x):
        return ops.relu(x)


class Sigmoid(Module):
    """mg.sigmoid: 1 / (1 + exp(-x))."""

    def forward(self, x):
        return ops.sigmoid(x)


class GELU(Module):
    """mg.gelu: x times the normal distribution's Φ(x), or with approximate="tanh" the formula of GPT-2."""

    def __init__(self, approximate="none"):
        if approximate not in ("none", "tanh"):
            raise ArgumentError(f'GELU\'s approximate is "none" or "tanh", not {approximate!r}')
        self.approximate = approximate

    def forward(self, x):
        return ops.gelu(x, approximate=self.approximate)

    def extra_repr(self):
        return "" if self.approximate == "none" else f"approximate={self.approximate!r}"


class SiLU(Module):
    """mg.silu: x * sigmoid(x)."""

    def forward(self, x):
        return ops.silu(x)
