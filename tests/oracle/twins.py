"""For each op of minigrad the same in PyTorch, called as minigrad calls it: twin(*inputs, **settings).

    @twin("mean", "torch.mean")
    def mean(x, axis=None, keepdims=False): ...

Most are torch's function of that name. Where torch has the op only as a gradient of another one (the two gradients of
a convolution) or spells it in two calls, the label says with which. What torch has in no form is in TORCH_HAS_NOT.
"""

import math
import operator

import numpy as np
import torch
import torch.nn.functional as f

from tests.op_samples import index_of, last_write

TWINS, LABELS = {}, {}
TORCH_HAS_NOT = {"last_write": "which of two values written at one place stays: torch does not say"}


def twin(name, label):
    def declare(function):
        assert name not in TWINS
        TWINS[name], LABELS[name] = function, label
        return function

    return declare


def number(x, like):
    """A Python number as a tensor of no axes, which promotes nothing, for functions that take tensors only."""
    return x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=like.dtype)


def of_tensors(function):
    """A function of two tensors that may be given a number."""

    def call(a, b):
        like = a if isinstance(a, torch.Tensor) else b
        return function(number(a, like), number(b, like))

    return call


# ---- Functions that are called alike -----------------------------------------------------------------

for name in (
    "tan asin acos atan sinh cosh asinh acosh atanh exp2 log2 log10 floor ceil trunc isinf clone "
    "exp expm1 log log1p sqrt abs sign sin cos tanh erf sigmoid relu logical_not isnan isfinite neg"
).split():
    twin(name, f"torch.{name}")(getattr(torch, name))
for name in "elu leaky_relu silu gelu softplus hardtanh".split():
    twin(name, f"functional.{name}")(getattr(f, name))
for name, function in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "matmul": operator.matmul, "eq": operator.eq,
    "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
}.items():  # fmt: skip
    twin(name, f"operator {function.__name__.strip('_')}")(function)
for name in "maximum minimum remainder fmod logical_and logical_or logical_xor".split():
    twin(name, f"torch.{name}")(of_tensors(getattr(torch, name)))
for name in "tril triu outer trace linear".split():
    twin(name, f"torch.{name}" if name != "linear" else "functional.linear")(getattr(torch, name, None) or f.linear)


@twin("round", "torch.round")
def round_(x, decimals=0):
    return torch.round(x, decimals=decimals)


@twin("isclose", "torch.isclose")
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return torch.isclose(a, number(b, a).expand(a.shape), rtol, atol, equal_nan)


@twin("cumprod", "torch.cumprod")
def cumprod(x, axis=None):
    return torch.cumprod(x.reshape(-1), 0) if axis is None else torch.cumprod(x, axis)


@twin("cummax", "torch.cummax")
def cummax(x, axis=0):
    return torch.cummax(x, axis).values if x.numel() else x * 1


@twin("cummin", "torch.cummin")
def cummin(x, axis=0):
    return torch.cummin(x, axis).values if x.numel() else x * 1


@twin("cummax_places", "torch.cummax")
def cummax_places(x, axis=0):
    return torch.cummax(x, axis).indices


@twin("huber_loss", "functional.huber_loss")
def huber_loss(x, target, reduction="mean", delta=1.0):
    return f.huber_loss(x, number(target, x).expand(x.shape), reduction=reduction, delta=delta)


@twin("floor_divide", "without its gradient")
def floor_divide(a, b):
    """Of torch's, requires_grad is true, but to ask for a gradient is an error."""
    return of_tensors(torch.floor_divide)(a, b).detach()


@twin("clamp", "torch.clamp")
def clamp(x, min=None, max=None):
    return torch.clamp(x, min, max)


@twin("where", "torch.where")
def where(condition, a, b):
    return torch.where(torch.as_tensor(condition), a, b)


@twin("astype", "Tensor.to")
def astype(x, dtype):
    return x.to(getattr(torch, str(dtype)))


@twin("detach", "Tensor.detach")
def detach(x):
    return x.detach()


@twin("to", "Tensor.to")
def to(x, device, source):
    return x.to(device)


# ---- Reductions --------------------------------------------------------------------------------------


def dims(x, axis):
    """NumPy's axis as torch's dim."""
    return tuple(range(x.ndim)) if axis is None else axis


def reduction(function):
    def call(x, axis=None, keepdims=False, **settings):
        return function(x, dim=dims(x, axis), keepdim=keepdims, **settings)

    return call


for name, theirs in {
    "sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "all": torch.all, "any": torch.any,
    "logsumexp": torch.logsumexp,
}.items():  # fmt: skip
    twin(name, f"torch.{theirs.__name__}")(reduction(theirs))


@twin("var", "torch.var")
def var(x, axis=None, correction=0, keepdims=False):
    return torch.var(x, dims(x, axis), correction=correction, keepdim=keepdims)


@twin("std", "torch.std")
def std(x, axis=None, correction=0, keepdims=False):
    return torch.std(x, dims(x, axis), correction=correction, keepdim=keepdims)


@twin("prod", "torch.prod")
def prod(x, axis=None, keepdims=False):
    axes = dims(x, axis)
    for a in sorted([a % x.ndim for a in (axes if isinstance(axes, tuple) else (axes,))], reverse=True):
        x = torch.prod(x, a, keepdim=keepdims)
    return x


@twin("norm", "linalg.vector_norm")
def norm(x, p=2, axis=None, keepdims=False):
    return torch.linalg.vector_norm(x, p, dims(x, axis), keepdims)


@twin("softmax", "torch.softmax")
def softmax(x, axis=-1):
    return torch.softmax(x, axis)


@twin("log_softmax", "torch.log_softmax")
def log_softmax(x, axis=-1):
    return torch.log_softmax(x, axis)


@twin("cumsum", "torch.cumsum")
def cumsum(x, axis=None):
    return torch.cumsum(x.reshape(-1), 0) if axis is None else torch.cumsum(x, axis)


@twin("argmax", "torch.argmax")
def argmax(x, axis=None, keepdims=False):
    return torch.argmax(x, axis, keepdims)


@twin("argmin", "torch.argmin")
def argmin(x, axis=None, keepdims=False):
    return torch.argmin(x, axis, keepdims)


@twin("sort", "torch.sort")
def sort(x, axis=-1, descending=False):
    return torch.sort(x, axis, descending).values


@twin("argsort", "torch.argsort, stable")
def argsort(x, axis=-1, descending=False):
    return torch.argsort(x, dim=axis, descending=descending, stable=True)


# ---- Shapes ------------------------------------------------------------------------------------------


@twin("reshape", "torch.reshape")
def reshape(x, shape):
    return torch.reshape(x, shape)


@twin("permute", "torch.permute")
def permute(x, axes=None):
    return torch.permute(x, tuple(reversed(range(x.ndim))) if axes is None else axes)


@twin("swapaxes", "torch.swapaxes")
def swapaxes(x, axis1=-1, axis2=-2):
    return torch.swapaxes(x, axis1, axis2)


@twin("unsqueeze", "torch.unsqueeze")
def unsqueeze(x, axis):
    return torch.unsqueeze(x, axis)


@twin("squeeze", "torch.squeeze")
def squeeze(x, axis=None):
    return torch.squeeze(x) if axis is None else torch.squeeze(x, axis)


@twin("broadcast_to", "torch.broadcast_to")
def broadcast_to(x, shape):
    return torch.broadcast_to(x, shape)


@twin("cat", "torch.cat")
def cat(*xs, axis=0):
    return torch.cat(xs, axis)


@twin("stack", "torch.stack")
def stack(*xs, axis=0):
    return torch.stack([number(x, xs[0]) for x in xs], axis)


@twin("pad", "functional.pad")
def pad(x, widths, value=0.0):
    flat = [n for pair in reversed(widths) for n in pair]
    return f.pad(x, flat, value=value) if flat else x.clone()


@twin("flip", "torch.flip")
def flip(x, axis=None):
    axes = dims(x, axis)
    return torch.flip(x, axes if isinstance(axes, tuple) else (axes,))


@twin("roll", "torch.roll")
def roll(x, shift=1, axis=None):
    return torch.roll(x, shift, axis)


# ---- Products ----------------------------------------------------------------------------------------


@twin("diagonal", "torch.diagonal")
def diagonal(x, offset=0, axis1=0, axis2=1):
    return torch.diagonal(x, offset, axis1, axis2)


@twin("diagonal_embed", "torch.diagonal_scatter")
def diagonal_embed(g, shape, offset=0, axis1=0, axis2=1):
    return torch.diagonal_scatter(torch.zeros(shape, dtype=g.dtype), g, offset, axis1, axis2)


@twin("einsum", "torch.einsum")
def einsum(*operands, subscripts):
    return torch.einsum(subscripts, *operands)


# ---- Indexing ----------------------------------------------------------------------------------------


def places(shape, pattern, tensors):
    """The flat places of the elements that an index names."""
    index = index_of(pattern, [t.numpy() for t in tensors])
    return torch.as_tensor(np.array(np.arange(math.prod(shape)).reshape(shape)[index], order="C"))


@twin("getitem", "Tensor.__getitem__")
def getitem(x, *tensors, pattern):
    """By torch.take where torch's indexing is another: it has no negative steps, and no array beside an integer."""
    index = [torch.as_tensor(part) if isinstance(part, np.ndarray) else part for part in index_of(pattern, tensors)]
    backwards = any(isinstance(part, slice) and (part.step or 1) < 0 for part in index)
    if backwards or (tensors and any(isinstance(part, int) for part in index)):
        return torch.take(x, places(x.shape, pattern, tensors))
    return x[tuple(index)]


@twin("scatter", "torch.index_add")
def scatter(g, *tensors, pattern, shape):
    where = places(shape, pattern, tensors).reshape(-1)
    return torch.zeros(math.prod(shape), dtype=g.dtype).index_add(0, where, g.reshape(-1)).reshape(shape)


@twin("index_put", "torch.index_put")
def index_put(x, value, *tensors, pattern):
    """Of values that are written at one place only the last one is given to torch."""
    where = places(x.shape, pattern, tensors)
    stays = torch.as_tensor(last_write(x.detach().numpy(), *[t.numpy() for t in tensors], pattern=pattern))
    while isinstance(value, torch.Tensor) and value.ndim > where.ndim:
        value = value[0]
    values = number(value, x).expand(where.shape)[stays]
    return x.reshape(-1).index_put((where[stays],), values).reshape(x.shape)


@twin("gather", "torch.gather")
def gather(x, index, axis):
    return torch.gather(x, axis, index % x.shape[axis])  # torch's gather takes no negative ones


@twin("scatter_add", "torch.scatter_add")
def scatter_add(g, index, axis, shape):
    return torch.zeros(shape, dtype=g.dtype).scatter_add(axis, index % shape[axis], g)


@twin("one_hot", "functional.one_hot")
def one_hot(index, num_classes, dtype):
    return f.one_hot(index, num_classes).to(getattr(torch, str(dtype)))


@twin("embedding", "functional.embedding")
def embedding(index, weight, padding_idx=None):
    return f.embedding(index, weight, padding_idx)


# ---- Losses and dropout ------------------------------------------------------------------------------


@twin("cross_entropy", "functional.cross_entropy")
def cross_entropy(logits, target, reduction="mean", ignore_index=-100):
    return f.cross_entropy(logits, torch.as_tensor(target), reduction=reduction, ignore_index=ignore_index)


@twin("nll_loss", "functional.nll_loss")
def nll_loss(log_probs, target, reduction="mean", ignore_index=-100):
    return f.nll_loss(log_probs, torch.as_tensor(target), reduction=reduction, ignore_index=ignore_index)


def loss_of_two(function):
    def call(x, target, reduction="mean"):
        return function(x, number(target, x).expand_as(x), reduction=reduction)

    return call


for name in "mse_loss l1_loss binary_cross_entropy_with_logits".split():
    twin(name, f"functional.{name}")(loss_of_two(getattr(f, name)))


@twin("dropout", "given our mask")
def dropout(x, p, key):
    draws = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))).random(tuple(x.shape), np.float32)
    if p == 1:
        return f.dropout(x, 1.0)
    return torch.where(torch.as_tensor(np.asarray(draws >= p)), x / (1 - p), 0.0)


# ---- Convolution and pooling -------------------------------------------------------------------------


def around(padding):
    """Our padding as functional.pad's."""
    return [*padding[1], *padding[0]]


@twin("conv2d", "functional.conv2d")
def conv2d(x, weight, bias=None, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    return f.conv2d(f.pad(x, around(padding)), weight, bias, stride, 0, dilation, groups)


@twin("conv_transpose2d", "grad.conv2d_input")
def conv_transpose2d(
    y, weight, bias=None, size=None, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1
):  # fmt: skip
    (top, bottom), (left, right) = padding
    whole = (len(y), weight.shape[1] * groups, size[0] + top + bottom, size[1] + left + right)
    out = torch.nn.grad.conv2d_input(whole, weight, y, stride, 0, dilation, groups)
    out = out[:, :, top : top + size[0], left : left + size[1]]
    return out if bias is None else out + bias[:, None, None]


@twin("conv2d_weight_gradient", "grad.conv2d_weight")
def conv2d_weight_gradient(
    x, y, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1
):  # fmt: skip
    shape = (y.shape[1], x.shape[1] // groups, *kernel)
    return torch.nn.grad.conv2d_weight(f.pad(x, around(padding)), shape, y, stride, 0, dilation, groups)


def same_on_both_sides(padding):
    assert all(before == after for before, after in padding)
    return [before for before, _ in padding]


def of_size(pool, x, size, **settings):
    """What a pooling function gives, with ceil_mode if the size asks for it."""
    for ceil_mode in (False, True):
        out = pool(x, ceil_mode=ceil_mode, **settings)
        if tuple((out[0] if isinstance(out, tuple) else out).shape[-2:]) == tuple(size):
            return out
    raise AssertionError(f"torch has no pooling to {size} here")


def pixels(place, width, kernel, stride, padding, dilation):
    """The flat pixel that each window's place means."""
    rows = torch.arange(place.shape[-2])[:, None] * stride[0] - padding[0][0] + place // kernel[1] * dilation[0]
    columns = torch.arange(place.shape[-1]) * stride[1] - padding[1][0] + place % kernel[1] * dilation[1]
    return rows * width + columns


@twin("max_pool2d_places", "functional.max_pool2d")
def max_pool2d_places(x, kernel, size, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1)):
    settings = dict(kernel_size=kernel, stride=stride, padding=same_on_both_sides(padding), dilation=dilation)
    _, flat = of_size(f.max_pool2d, x, size, return_indices=True, **settings)
    zero = pixels(torch.zeros_like(flat), x.shape[-1], kernel, stride, padding, dilation)
    rows, columns = torch.arange(kernel[0])[:, None] * dilation[0], torch.arange(kernel[1]) * dilation[1]
    steps = rows * x.shape[-1] + columns
    return ((flat - zero)[..., None] == steps.reshape(-1)).int().argmax(-1)


@twin("max_pool2d", "torch.gather")
def max_pool2d(x, place, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1)):
    flat = pixels(place.long(), x.shape[-1], kernel, stride, padding, dilation)
    return x.flatten(-2).gather(-1, flat.flatten(-2)).reshape(place.shape)


@twin("max_unpool2d", "torch.scatter_add")
def max_unpool2d(y, place, size, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1)):
    flat = pixels(place.long(), size[1], kernel, stride, padding, dilation).flatten(-2)
    zeros = torch.zeros((*y.shape[:-2], size[0] * size[1]), dtype=y.dtype)
    return zeros.scatter_add(-1, flat, y.flatten(-2)).reshape(*y.shape[:-2], *size)


@twin("avg_pool2d", "functional.avg_pool2d")
def avg_pool2d(x, kernel, size, stride=(1, 1), padding=((0, 0), (0, 0)), count_include_pad=True):
    settings = dict(kernel_size=kernel, stride=stride, padding=same_on_both_sides(padding))
    return of_size(f.avg_pool2d, x, size, count_include_pad=count_include_pad, **settings)


@twin("avg_unpool2d", "gradient of avg_pool2d")
def avg_unpool2d(y, size, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), count_include_pad=True):
    x = torch.zeros((*y.shape[:-2], *size), dtype=y.dtype, requires_grad=True)
    out = avg_pool2d(x, kernel, y.shape[-2:], stride, padding, count_include_pad)
    return torch.autograd.grad(out, x, y, create_graph=True)[0]


# ---- Normalisation and attention ---------------------------------------------------------------------


@twin("layer_norm", "functional.layer_norm")
def layer_norm(x, weight=None, bias=None, axes=(-1,), eps=1e-5):
    return f.layer_norm(x, x.shape[-len(axes) :], weight, bias, eps)


@twin("rms_norm", "functional.rms_norm")
def rms_norm(x, weight=None, axes=(-1,), eps=1e-6):
    return f.rms_norm(x, x.shape[-len(axes) :], weight, eps)


@twin("batch_norm", "functional.batch_norm")
def batch_norm(x, weight=None, bias=None, eps=1e-5):
    return f.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@twin("scaled_dot_product_attention", "functional, and torch.logsumexp")
def attention(q, k, v, mask=None, is_causal=False, scale=1.0):
    """With a last column: the log of the sum of the exponentials. torch takes no mask beside is_causal."""
    lead = torch.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, mask) if x is not None])
    size = (q.shape[-2], k.shape[-2])
    whole = torch.zeros(size, dtype=q.dtype)
    if mask is not None and mask.dtype == torch.bool:
        whole = whole.masked_fill(~mask, -math.inf)
    elif mask is not None:
        whole = whole + mask
    if is_causal:
        whole = whole.masked_fill(~torch.ones(size, dtype=torch.bool).tril(), -math.inf)
    q, k, v = [x.expand(*lead, *x.shape[-2:]) for x in (q, k, v)]
    only_causal = is_causal and mask is None
    out = f.scaled_dot_product_attention(q, k, v, None if only_causal else whole, is_causal=only_causal, scale=scale)
    scores = q @ k.transpose(-1, -2) * scale + whole
    return torch.cat([out, torch.logsumexp(scores, -1, keepdim=True)], -1)
