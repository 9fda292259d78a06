"""The ops, by family. Each is a forward, and a vjp for each input; see op.py for how to read one."""

from . import methods as _methods  # gives Tensor its operators and methods
from . import protocols as _protocols  # and makes it a number, a sequence, an array to Python
from .arithmetic import add, clamp, div, floor_divide, maximum, minimum, mul, neg, remainder, sub, where
from .arithmetic import pow_ as pow
from .elementwise import astype, cos, detach, exp, expm1, log, log1p, sign, sin, sqrt, tanh, to
from .elementwise import abs_ as abs
from .erf import erf
from .activation import elu, gelu, leaky_relu, relu, sigmoid, silu, softplus
from .compare import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, eq, ge, gt, isfinite, isnan, le, lt
from .compare import logical_and, logical_not, logical_or, logical_xor, ne
from .reduce import argmax, argmin, argsort, cumsum, log_softmax, logsumexp, mean, norm, normalize, prod
from .reduce import softmax, sort, std, var
from .reduce import all_ as all, any_ as any, max_ as max, min_ as min, sum_ as sum
from .shape import broadcast_to, cat, flatten, flip, pad, permute, reshape, roll, split, squeeze, stack
from .shape import swapaxes, transpose, tril, triu, unsqueeze
from .linalg import diagonal, einsum, linear, matmul, outer, trace
from .index import embedding, gather, index_put, one_hot, take
from .loss import binary_cross_entropy_with_logits, cross_entropy, l1_loss, mse_loss, nll_loss
from .random import dropout
from .conv import conv1d, conv2d, conv_transpose2d
from .pool import avg_pool2d, max_pool1d, max_pool2d
from .normalization import batch_norm, layer_norm, rms_norm
from .attention import attention_plain, scaled_dot_product_attention

__all__ = [
    # arithmetic
    "add", "sub", "mul", "div", "neg", "pow", "floor_divide", "remainder", "maximum", "minimum", "clamp", "where",
    # element by element
    "exp", "expm1", "log", "log1p", "sqrt", "abs", "sign", "sin", "cos", "tanh", "erf",
    "sigmoid", "relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "astype", "detach", "to",
    # comparisons and logic
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "isnan", "isfinite",
    # reductions and their kin
    "sum", "mean", "var", "std", "max", "min", "prod", "norm", "normalize", "logsumexp", "softmax", "log_softmax",
    "cumsum", "argmax", "argmin", "sort", "argsort", "all", "any",
    # shapes
    "reshape", "flatten", "permute", "transpose", "swapaxes", "unsqueeze", "squeeze", "broadcast_to",
    "cat", "stack", "split", "pad", "flip", "roll", "tril", "triu",
    # products
    "matmul", "linear", "outer", "einsum", "trace", "diagonal",
    # indexing
    "index_put", "take", "gather", "one_hot", "embedding",
    # losses and dropout
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "dropout",
    # layers of networks
    "conv1d", "conv2d", "conv_transpose2d", "max_pool1d", "max_pool2d", "avg_pool2d",
    "batch_norm", "layer_norm", "rms_norm", "scaled_dot_product_attention",
]  # fmt: skip
