"""sum, mean and prod with `dtype=`: the elements are brought into that dtype first, as in PyTorch and NumPy."""

from .elementwise import astype
from .reduce import mean as mean_
from .reduce import prod as prod_
from .reduce import sum_


def sum(x, axis=None, keepdims=False, dtype=None):
    """The sum over `axis`. With `dtype`, of the elements in that dtype: sum(x, dtype="float64") for a long float16."""
    return sum_(x if dtype is None else astype(x, dtype), axis=axis, keepdims=keepdims)


def mean(x, axis=None, keepdims=False, dtype=None):
    """The mean over `axis`. With `dtype`, of the elements in that dtype."""
    return mean_(x if dtype is None else astype(x, dtype), axis=axis, keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    """The product over `axis`. With `dtype`, of the elements in that dtype."""
    return prod_(x if dtype is None else astype(x, dtype), axis=axis, keepdims=keepdims)
