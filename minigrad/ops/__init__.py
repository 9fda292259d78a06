"""The ops, by family. Each is a forward, and a vjp for each input; see op.py for how to read one."""

from . import methods as _methods  # gives Tensor its operators and methods
from . import protocols as _protocols  # and makes it a number, a sequence, an array to Python
from .arithmetic import add, clamp, div, floor_divide, maximum, minimum, mul, neg, remainder, sub, where
from .arithmetic import clamp as clip
from .arithmetic import pow_ as pow
from .elementwise import astype, cos, detach, exp, expm1, log, log1p, sign, sin, sqrt, tanh, to
from .elementwise import abs_ as abs
from .erf import erf
from .activation import elu, gelu, leaky_relu, relu, sigmoid, silu, softplus
from .rounding import ceil, floor, fmod, trunc
from .rounding import round_ as round
from .trigonometry import acos, acosh, asin, asinh, atan, atanh, cosh, sinh, tan
from .powers import exp2, lerp, log2, log10, reciprocal, rsqrt, square
from .compare import allclose, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, eq, ge, gt, isclose, isfinite
from .compare import isinf, isnan, le, lt
from .compare import logical_and, logical_not, logical_or, logical_xor, ne
from .reduce import argmax, argmin, argsort, cumsum, log_softmax, logsumexp, norm, normalize
from .reduce import softmax, sort, std, var
from .reduce import all_ as all, any_ as any, max_ as max, min_ as min
from .cast_first import mean, prod, sum
from .hard import celu, glu, hardsigmoid, hardswish, hardtanh, logsigmoid, mish, relu6, selu, softmin, softsign, swish
from .shape import broadcast_to, cat, flatten, flip, pad, permute, reshape, roll, split, squeeze, stack
from .shape import swapaxes, transpose, tril, triu, unsqueeze
from .linalg import diagonal, dot, einsum, linear, matmul, outer, trace
from .index import embedding, gather, index_put, one_hot, take
from .layout import chunk, clone, expand, index_select, masked_fill, masked_select, movedim, repeat
from .layout import repeat_interleave, scatter, tile, topk, unbind, unfold
from .scan import cummax, cummin, cumprod
from .loss import binary_cross_entropy_with_logits, l1_loss, mse_loss
from .classes import binary_cross_entropy, cosine_similarity, cross_entropy, huber_loss, kl_div, nll_loss
from .classes import smooth_l1_loss
from .random import dropout
from .conv import conv1d, conv2d, conv_transpose2d
from .pool import avg_pool2d, max_pool1d, max_pool2d
from .normalization import batch_norm, group_norm, layer_norm, rms_norm
from .attention import attention_plain, scaled_dot_product_attention
from . import promotion as _promotion  # tells ops which dtype to give

from . import spelling as _spelling  # more methods; and torch's keywords, of which an error says ours

__all__ = [
    # arithmetic
    "add", "sub", "mul", "div", "neg", "pow", "floor_divide", "remainder", "maximum", "minimum", "clamp",
    "clip", "where", "fmod", "lerp", "square", "reciprocal", "rsqrt", "floor", "ceil", "round", "trunc",
    # element by element
    "exp", "expm1", "log", "log1p", "sqrt", "abs", "sign", "sin", "cos", "tanh", "erf",
    "exp2", "log2", "log10", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "sigmoid", "relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "hardtanh",
    "relu6", "hardsigmoid", "hardswish", "swish", "celu", "selu", "softsign", "mish", "logsigmoid", "glu",
    "astype", "detach", "to",
    # comparisons and logic
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "isnan", "isfinite", "isinf",
    "isclose", "allclose",
    # reductions and their kin
    "sum", "mean", "var", "std", "max", "min", "prod", "norm", "normalize", "logsumexp", "softmax", "log_softmax",
    "softmin", "cumsum", "cumprod", "cummax", "cummin", "topk", "argmax", "argmin", "sort", "argsort", "all", "any",
    # shapes
    "reshape", "flatten", "permute", "transpose", "swapaxes", "unsqueeze", "squeeze", "broadcast_to",
    "cat", "stack", "split", "pad", "flip", "roll", "tril", "triu",
    "clone", "repeat", "tile", "repeat_interleave", "unfold", "expand", "chunk", "unbind", "movedim",
    # products
    "matmul", "linear", "outer", "dot", "einsum", "trace", "diagonal",
    # indexing
    "index_put", "take", "gather", "scatter", "index_select", "masked_fill", "masked_select", "one_hot", "embedding",
    # losses and dropout
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy",
    "huber_loss", "smooth_l1_loss", "kl_div", "cosine_similarity", "dropout",
    # layers of networks
    "conv1d", "conv2d", "conv_transpose2d", "max_pool1d", "max_pool2d", "avg_pool2d",
    "batch_norm", "layer_norm", "group_norm", "rms_norm", "scaled_dot_product_attention",
]  # fmt: skip

_spelling.complete(globals(), __all__)
