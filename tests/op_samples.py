"""Sample inputs for every op, declared once, each beside a plain NumPy reference.

    declare("tanh", np.tanh, [sample(real(2, 3)), sample(real())])

`test_ops.py` walks minigrad's registry and does with these samples all that it does with an op: values, first and
second derivatives, checkpoints, dtypes. An op that is not declared here fails the suite.

Shapes to think of: broadcasting, length 1, empty, 0-d, negative axes. Strided inputs need no samples of their own:
every sample is run on strided copies of its inputs as well.
"""

import math

import numpy as np

SAMPLES, REFERENCES = {}, {}
rng = np.random.default_rng(7)


class Sample:
    """The inputs (arrays, numbers) and the settings of one call of an op."""

    def __init__(self, inputs, settings):
        self.inputs, self.settings = inputs, settings

    def __repr__(self):
        parts = [str(list(x.shape)) if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        return ",".join(parts + [f"{key}={value}" for key, value in self.settings.items()])


def sample(*inputs, **settings):
    return Sample(inputs, settings)


def declare(name, reference, samples):
    assert name not in SAMPLES and samples
    SAMPLES[name], REFERENCES[name] = samples, reference


def real(*shape):
    return np.asarray(rng.standard_normal(shape))


def positive(*shape):
    return np.asarray(rng.uniform(0.5, 2.0, shape))


def whole(low, high, *shape):
    return np.asarray(rng.integers(low, high, shape))


def yes_no(*shape):
    return np.asarray(rng.random(shape) < 0.5)


# ---- Element by element ------------------------------------------------------------------------------

SHAPES = [(2, 3), (), (1,), (0, 2), (2, 1, 3)]
PAIRS = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((3,), ()), ((0, 3), (1, 3)), ((1,), (1,))]


def unary(make=real):
    return [sample(make(*shape)) for shape in SHAPES]


def binary(make_a=real, make_b=real):
    pairs = [sample(make_a(*a), make_b(*b)) for a, b in PAIRS]
    return pairs + [sample(make_a(2, 3), 1.5), sample(0.75, make_b(3))]


declare("add", np.add, binary())
declare("sub", np.subtract, binary())
declare("mul", np.multiply, binary())
declare("div", np.divide, binary(real, positive))
declare("neg", np.negative, unary())
declare("floor_divide", np.floor_divide, binary(real, positive) + [sample(whole(-9, 9, 4), whole(1, 4, 4))])
declare("remainder", np.remainder, binary(real, positive))
declare("maximum", np.maximum, binary())
declare("minimum", np.minimum, binary())
declare(
    "pow",
    np.power,
    binary(positive, real)
    + [sample(real(2, 3), n) for n in (0, 1, 2, 3)]
    + [sample(positive(3), -1.5), sample(2, real(3))],
)
declare(
    "clamp",
    lambda x, min, max: np.minimum(np.maximum(x, -np.inf if min is None else min), np.inf if max is None else max),
    [sample(real(4, 3), min=lo, max=hi) for lo, hi in ((-0.5, 0.5), (None, 0.1), (0.2, None))]
    + [sample(real(), min=0.0, max=0.1)],
)
declare(
    "where",
    np.where,
    [
        sample(yes_no(2, 3), real(2, 3), real(3)),
        sample(yes_no(3, 1), real(1, 4), real()),
        sample(yes_no(2, 3), real(2, 3), 0.0),
        sample(yes_no(), real(2), real(2)),
        sample(True, real(2), real(2)),
    ],
)
declare("exp", np.exp, unary())
declare("expm1", np.expm1, unary())
declare("log", np.log, unary(positive))
declare("log1p", np.log1p, unary(positive))
declare("sqrt", np.sqrt, unary(positive))
declare("abs", np.abs, unary())
declare("sign", np.sign, unary())
declare("sin", np.sin, unary())
declare("cos", np.cos, unary())
declare("tanh", np.tanh, unary())
declare("erf", np.vectorize(math.erf, otypes=[float]), unary() + [sample(real(50) * 3)])
TRIGONOMETRY = {
    "tan": np.tan, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "exp2": np.exp2,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
}  # fmt: skip
for name, function in TRIGONOMETRY.items():
    declare(name, function, unary())


def inside(*shape):
    """Numbers in (-0.9, 0.9), where sines and hyperbolic tangents can be undone."""
    return np.asarray(rng.uniform(-0.9, 0.9, shape))


for name, function in {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}.items():
    declare(name, function, unary(inside))
declare("acosh", np.arccosh, unary(lambda *shape: np.asarray(positive(*shape) + 1)))
declare("log2", np.log2, unary(positive))
declare("log10", np.log10, unary(positive))
declare("round", np.round, unary() + [sample(real(4), decimals=1)])
declare("fmod", np.fmod, binary(real, positive))
declare("astype", lambda x, dtype: x.astype(dtype), [sample(real(2, 3), dtype=np.dtype("float64"))])
declare("detach", lambda x: x, unary())
declare("to", lambda x, device, source: x, [sample(real(2, 3), device="cpu", source="cpu")])


# ---- Activations -------------------------------------------------------------------------------------


def normal_cdf(x):
    return 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def gelu(x, approximate="none"):
    if approximate == "none":
        return x * normal_cdf(x)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


declare("relu", lambda x: x * (x > 0), unary())
declare(
    "leaky_relu",
    lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    unary() + [sample(real(4), negative_slope=0.3)],
)
declare(
    "elu",
    lambda x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
    unary() + [sample(real(4), alpha=0.5)],
)
declare(
    "hardtanh",
    lambda x, min_val=-1.0, max_val=1.0: np.minimum(np.maximum(x, min_val), max_val),
    unary() + [sample(real(6), min_val=-0.25, max_val=0.5)],
)
declare("sigmoid", lambda x: 1 / (1 + np.exp(-x)), unary())
declare(
    "softplus",
    lambda x, beta=1.0: np.log(1 + np.exp(beta * x)) / beta,
    unary() + [sample(real(4), beta=2.0)],
)
declare("silu", lambda x: x / (1 + np.exp(-x)), unary())
declare("gelu", gelu, unary() + [sample(real(3, 2) * 3, approximate=a) for a in ("none", "tanh")])


# ---- Comparisons and logic ---------------------------------------------------------------------------

for name, function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    declare(name, function, binary() + [sample(whole(0, 3, 6), whole(0, 3, 6))])
for name, function in {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}.items():  # fmt: skip
    declare(name, function, [sample(yes_no(4), yes_no(3, 1)), sample(whole(0, 9, 5), whole(0, 9, 5))])
declare("logical_not", np.logical_not, [sample(yes_no(4)), sample(whole(0, 2, 3))])
declare("bitwise_not", np.invert, [sample(yes_no(4)), sample(whole(0, 9, 3))])
declare("isnan", np.isnan, [sample(np.array([1.0, np.nan, np.inf]))])
declare("isfinite", np.isfinite, [sample(np.array([1.0, np.nan, -np.inf]))])
declare("isinf", np.isinf, [sample(np.array([1.0, np.nan, -np.inf, np.inf]))])
CLOSE = np.array([1.0, 1.1, np.nan, np.inf, -np.inf]), np.array([1.0 + 1e-6, 1.0, np.nan, np.inf, np.inf])
declare(
    "isclose",
    np.isclose,
    [sample(*CLOSE), sample(*CLOSE, equal_nan=True), sample(*CLOSE, rtol=0.2, atol=0.0)]
    + [sample(real(2, 3), 0.5, atol=1.0)],
)


# ---- Reductions and their kin ------------------------------------------------------------------------

AXES = [
    ((2, 3), {}),
    ((2, 3), {"axis": 0}),
    ((2, 3), {"axis": -1, "keepdims": True}),
    ((2, 3, 2), {"axis": (0, -1)}),
    ((2, 1, 3), {"axis": 1}),
    ((), {}),
    ((4,), {"keepdims": True}),
]
EMPTY = [((0, 3), {"axis": 1}), ((2, 0), {}), ((0, 3), {"axis": 0})]


def reductions(cases=AXES, make=real, **more):
    return [sample(make(*shape), **settings, **more) for shape, settings in cases]


def variance(x, axis=None, correction=0, keepdims=False):
    return np.var(x, axis=axis, ddof=correction, keepdims=keepdims)


def norm(x, p=2, axis=None, keepdims=False):
    return (np.abs(x) ** p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def logsumexp(x, axis=None, keepdims=False):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


def log_softmax(x, axis=-1):
    return x - logsumexp(x, axis, True)


declare("sum", np.sum, reductions(AXES + EMPTY))
declare("mean", np.mean, reductions(AXES + EMPTY[:1]))
declare("var", variance, reductions() + reductions(AXES[:3], correction=1))
declare("std", lambda *a, **k: np.sqrt(variance(*a, **k)), reductions(AXES[:4]) + reductions(AXES[:2], correction=1))
declare("max", np.max, reductions() + [sample(real(3, 0), axis=0)])
declare("min", np.min, reductions() + [sample(real(3, 0), axis=0)])
declare(
    "prod",
    np.prod,
    reductions(AXES + EMPTY)
    + [sample(real(2, n), axis=1) for n in (1, 4, 5, 7)]
    + [sample(np.array([[0.0, 4.0, 5.0], [0.0, 0.0, 3.0]]), axis=1), sample(np.array([0.0, 2.0, 0.0, 0.0, 1.0]))],
)
declare("norm", norm, [s for p in (1, 2, 3, 2.5) for s in reductions(AXES[:4], p=p)])
declare("logsumexp", logsumexp, reductions())
declare(
    "softmax",
    lambda x, axis=-1: np.exp(log_softmax(x, axis)),
    [sample(real(2, 3)), sample(real(2, 3, 2), axis=1), sample(real(0, 3))],
)
declare("log_softmax", log_softmax, [sample(real(2, 3)), sample(real(2, 3, 2), axis=1), sample(real(0, 3))])
declare(
    "cumsum",
    np.cumsum,
    [sample(real(2, 3)), sample(real(2, 3), axis=0), sample(real(2, 3, 2), axis=-2), sample(real(0))],
)
ZEROS = [np.array([2.0, 0.0, 3.0, 0.0, 5.0]), np.array([[0.0, 4.0, 5.0], [0.0, 0.0, 3.0]])]
declare(
    "cumprod",
    np.cumprod,
    [sample(real(*shape), axis=a) for shape, a in (((2, 3), 1), ((5, 2), 0), ((2, 7, 2), -2), ((1,), 0), ((0, 2), 0))]
    + [sample(real(2, 3)), *[sample(x, axis=-1) for x in ZEROS]],
)


def so_far(function):
    """For each place along the axis, the function of all up to there."""

    def call(x, axis=0):
        moved = np.moveaxis(x, axis, 0) if x.ndim else x.reshape(1)
        rows = [function(moved[: i + 1], axis=0) for i in range(len(moved))]
        return np.moveaxis(np.reshape(rows, moved.shape), 0, axis).reshape(x.shape) if x.ndim else x

    return call


RUNS = [sample(real(6)), sample(real(2, 5), axis=1), sample(real(3, 4, 2), axis=-2), sample(real(0, 2)), sample(real())]
declare("cummax", so_far(np.max), RUNS)
declare("cummin", so_far(np.min), RUNS)
declare(
    "cummax_places",
    lambda x, axis=0: so_far(lambda part, axis: len(part) - 1 - part[::-1].argmax(axis))(x, axis).astype(int),
    [sample(whole(0, 4, *s.inputs[0].shape) * 1.0, **s.settings) for s in RUNS[:4]],
)
declare(
    "argmax", np.argmax, [sample(real(2, 3)), sample(real(2, 3), axis=-1), sample(real(2, 3), axis=0, keepdims=True)]
)
declare(
    "argmin", np.argmin, [sample(real(2, 3)), sample(real(2, 3), axis=-1), sample(real(2, 3), axis=0, keepdims=True)]
)


def ordered(x, axis=-1, descending=False):
    return -np.sort(-x, axis=axis) if descending else np.sort(x, axis=axis)


def order(x, axis=-1, descending=False):
    return np.argsort(-x if descending else x, axis=axis, kind="stable")


SORTS = [{}, {"axis": 0}, {"axis": 1, "descending": True}]
declare("sort", ordered, [sample(real(3, 4), **s) for s in SORTS] + [sample(real(0))])
declare(
    "argsort",
    order,
    [sample(real(3, 4), **s) for s in SORTS] + [sample(whole(0, 3, 9), descending=d) for d in (False, True)],
)
declare(
    "all", np.all, [sample(yes_no(2, 3)), sample(yes_no(2, 3), axis=0), sample(yes_no(2, 0), axis=1, keepdims=True)]
)
declare(
    "any", np.any, [sample(yes_no(2, 3)), sample(yes_no(2, 3), axis=0), sample(yes_no(2, 0), axis=1, keepdims=True)]
)


# ---- Shapes ------------------------------------------------------------------------------------------

declare(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    [
        sample(real(2, 3), shape=(3, 2)),
        sample(real(2, 3), shape=(-1,)),
        sample(real(), shape=(1, 1)),
        sample(real(1), shape=()),
        sample(real(0, 2), shape=(2, 0, 3)),
    ],
)
declare(
    "permute",
    lambda x, axes=None: np.transpose(x, axes),
    [
        sample(real(2, 3, 4), axes=(-1, 0, 1)),
        sample(real(2, 3, 4), axes=(1, 2, 0)),
        sample(real(2, 3, 4)),
        sample(real()),
    ],
)
declare(
    "swapaxes",
    lambda x, axis1=-1, axis2=-2: np.swapaxes(x, axis1, axis2),
    [sample(real(2, 3, 4)), sample(real(2, 3, 4), axis1=0, axis2=-1)],
)
declare(
    "unsqueeze",
    lambda x, axis: np.expand_dims(x, axis),
    [sample(real(2, 3), axis=a) for a in (0, 1, -1, -3)] + [sample(real(), axis=0)],
)
declare(
    "squeeze",
    lambda x, axis=None: np.squeeze(x, axis),
    [sample(real(1, 2, 1)), sample(real(1, 2, 1), axis=-1), sample(real(1, 2, 1), axis=(0, 2)), sample(real(1, 1))],
)
declare(
    "broadcast_to",
    lambda x, shape: np.ones(shape) * x,
    [
        sample(real(3), shape=(2, 3)),
        sample(real(2, 1), shape=(4, 2, 3)),
        sample(real(), shape=(2, 2)),
        sample(real(1, 3), shape=(0, 3)),
        sample(real(), shape=()),
    ],
)
declare(
    "cat",
    lambda *xs, axis=0: np.concatenate(xs, axis),
    [
        sample(real(2, 3), real(1, 3), real(0, 3)),
        sample(real(2, 3), real(2, 1), axis=1),
        sample(real(2, 3), real(2, 1), real(2, 2), axis=-1),
        sample(real(2)),
    ],
)
declare(
    "stack",
    lambda *xs, axis=0: np.stack(np.broadcast_arrays(*xs), axis),
    [sample(real(2, 3), real(2, 3), axis=a) for a in (0, 1, -1)]
    + [sample(real(), real(), real()), sample(real(), 2.0)],
)


def pad(x, widths, value=0.0):
    return np.pad(x, widths, constant_values=value) if widths else x


declare(
    "pad",
    pad,
    [
        sample(real(2, 3), widths=((1, 0), (0, 2))),
        sample(real(2, 3), widths=((0, 0), (1, 1)), value=1.5),
        sample(real(0, 2), widths=((1, 1), (0, 0))),
        sample(real(), widths=()),
    ],
)
declare(
    "flip",
    lambda x, axis=None: np.flip(x, axis),
    [sample(real(2, 3)), sample(real(2, 3), axis=-1), sample(real(2, 3, 2), axis=(0, 2))],
)
declare(
    "roll",
    lambda x, shift=1, axis=None: np.roll(x, shift, axis),
    [sample(real(2, 3)), sample(real(2, 3), shift=-2, axis=1), sample(real(2, 3), shift=(1, 2), axis=(0, 1))],
)
for name, function in {"tril": np.tril, "triu": np.triu}.items():
    declare(
        name,
        lambda x, diagonal=0, function=function: function(x, diagonal),
        [sample(real(3, 3)), sample(real(2, 3, 4), diagonal=1), sample(real(4, 2), diagonal=-1)],
    )


declare("clone", lambda x: x, unary())


# ---- Products ----------------------------------------------------------------------------------------

FACTORS = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((4, 2, 3), (3, 2)),
    ((4, 2, 3), (4, 3, 2)),
    ((2, 3), (4, 3, 2)),
    ((3,), (4, 3, 2)),
    ((4, 2, 3), (3,)),
    ((1, 2, 3), (4, 3, 1)),
    ((2, 1, 2, 3), (4, 3, 1)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((0, 2, 3), (3, 2)),
]


def matmul(a, b):
    """Sums of products, written out: for the last axis of a and the last but one of b."""
    rows, columns = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    out = (rows[..., :, :, None] * columns[..., None, :, :]).sum(-2)
    out = out[..., 0] if b.ndim == 1 else out
    return out[..., 0] if a.ndim == 1 and b.ndim == 1 else out[..., 0, :] if a.ndim == 1 else out


declare("matmul", matmul, [sample(real(*a), real(*b)) for a, b in FACTORS])
declare(
    "linear",
    lambda x, w, b=0.0: (x[..., None, :] * w).sum(-1) + b,
    [
        sample(real(4, 3), real(2, 3), real(2)),
        sample(real(4, 3), real(2, 3)),
        sample(real(3), real(2, 3), real(2)),
        sample(real(2, 4, 3), real(2, 3), real(2)),
        sample(real(0, 3), real(2, 3), real(2)),
        sample(real(1, 1), real(1, 1), real(1)),
    ],
)
declare(
    "outer", lambda a, b: a[:, None] * b, [sample(real(2), real(3)), sample(real(1), real(1)), sample(real(0), real(2))]
)
declare("trace", np.trace, [sample(real(3, 3)), sample(real(5, 3)), sample(real(2, 4))])
DIAGONALS = [
    ((3, 3), {}),
    ((2, 4), {"offset": 1}),
    ((4, 2), {"offset": -1}),
    ((2, 3, 4), {"axis1": -1, "axis2": 0}),
    ((3, 4), {"offset": 2}),
]
declare("diagonal", np.diagonal, [sample(real(*shape), **settings) for shape, settings in DIAGONALS])


def diagonal_embed(g, shape, **settings):
    """Zeros with g on the diagonal: every element is tried."""
    out = np.zeros(shape)
    for place in np.ndindex(shape):
        mark = np.zeros(shape)
        mark[place] = 1
        out[place] = (np.diagonal(mark, **settings) * g).sum()
    return out


declare(
    "diagonal_embed",
    diagonal_embed,
    [
        sample(real(*np.diagonal(np.zeros(shape), **settings).shape), shape=shape, **settings)
        for shape, settings in DIAGONALS
    ],
)
EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("iij->i", (2, 2, 3)),
    ("iij->ji", (2, 2, 3)),
    ("iii->i", (2, 2, 2)),
    ("ab,aa->b", (3, 2), (3, 3)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (3,), (3,)),
    ("ij,k->j", (2, 3), (2,)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,jk->ik", (2, 1), (3, 2)),
    (",i->i", (), (3,)),
    ("ij,j->i", (0, 3), (3,)),
    ("ija,jib->ab", (2, 3, 2), (3, 2, 1)),
    ("abc,dd->ab", (2, 3, 2), (2, 2)),
]


def einsum(a, b=None, subscripts=""):
    """Loops over all values of all labels. A label of length 1 in one operand broadcasts."""
    inputs, out = subscripts.split("->")
    operands = list(zip(inputs.split(","), [a] if b is None else [a, b], strict=True))
    lengths = {}
    for term, array in operands:
        for label, length in zip(term, array.shape, strict=True):
            lengths[label] = length if lengths.get(label, 1) == 1 else lengths[label]
    result = np.zeros([lengths[label] for label in out])
    for values in np.ndindex(*lengths.values()):
        at = dict(zip(lengths, values, strict=True))
        product = 1.0
        for term, array in operands:
            product *= array[tuple(at[label] % n for label, n in zip(term, array.shape, strict=True))]
        result[tuple(at[label] for label in out)] += product
    return result


declare("einsum", einsum, [sample(*[real(*shape) for shape in shapes], subscripts=s) for s, *shapes in EINSUMS])


# ---- Indexing ----------------------------------------------------------------------------------------

rows_twice = np.array([0, 2, 0, 1])
PATTERNS = [
    ((4, 3), (), (1,)),
    ((4, 3), (), (slice(None, None, -2), slice(1, None))),
    ((4, 3), (), (..., None, -1)),
    ((), (), (None,)),
    ((), (), (...,)),
    ((4, 3), (rows_twice,), ("i",)),
    ((4, 3), (rows_twice,), (slice(1, 3), "i")),
    ((4, 3), (np.array([0, -1, 0]), np.array([1, 1, 1])), ("i", "j")),
    ((4, 3), (np.array(2),), ("i",)),
    ((4, 3), (yes_no(4, 3),), ("i",)),
    ((4, 3), (yes_no(4),), ("i",)),
    ((4,), (np.array([[0, 1], [1, 1]]),), ("i",)),
    ((2, 4, 3), (np.array([0, 0]),), (1, slice(None), "i")),
    ((2, 4, 3), (np.array([1, 1]),), ("i", slice(None), np.array([0, 0]))),
    ((4, 3), (np.array([], int),), ("i",)),
    ((2, 2, 2), (np.array([0, 1, 1]),) * 3, ("i", "j", "k")),
]


def index_of(pattern, tensors):
    names = dict(zip("ijk", tensors, strict=False))
    return tuple([names[part] if isinstance(part, str) else part for part in pattern])


def getitem(x, *tensors, pattern):
    return x[index_of(pattern, tensors)]


def scatter(g, *tensors, pattern, shape):
    out, places = np.zeros(shape), np.arange(math.prod(shape)).reshape(shape)[index_of(pattern, tensors)]
    for place, value in zip(np.ravel(places), np.ravel(g), strict=True):
        out.reshape(-1)[place] += value
    return out


def index_put(x, value, *tensors, pattern):
    out = x.copy()
    out[index_of(pattern, tensors)] = value
    return out


def last_write(x, *tensors, pattern):
    places = np.arange(x.size).reshape(x.shape)[index_of(pattern, tensors)]
    flat = list(np.ravel(places))
    stays = [place not in flat[i + 1 :] for i, place in enumerate(flat)]
    return np.reshape(stays, np.shape(places)).astype(bool)


def read(shape, tensors, pattern):
    return np.zeros(shape)[index_of(pattern, tensors)].shape


declare("getitem", getitem, [sample(real(*shape), *ts, pattern=p) for shape, ts, p in PATTERNS])
declare(
    "scatter", scatter, [sample(real(*read(shape, ts, p)), *ts, pattern=p, shape=shape) for shape, ts, p in PATTERNS]
)
declare(
    "index_put",
    index_put,
    [sample(real(*shape), real(*read(shape, ts, p)), *ts, pattern=p) for shape, ts, p in PATTERNS]
    + [
        sample(real(4, 3), 2.0, pattern=(slice(1, 3),)),
        sample(real(4, 3), real(), pattern=(slice(1, 3),)),
        sample(real(4, 3), real(1, 1, 3), pattern=(slice(1, 3),)),
        sample(real(4, 3), real(3), rows_twice, pattern=("i",)),
    ],
)
declare(
    "last_write",
    last_write,
    [
        sample(real(*shape), *ts, pattern=p)
        for shape, ts, p in PATTERNS
        if ts and ts[0].dtype != bool and "j" not in p[:1]
    ],
)
GATHERS = [
    ((4, 3), whole(0, 4, 2, 3), 0),
    ((4, 3), whole(-3, 3, 4, 5), 1),
    ((2, 3, 2), whole(0, 3, 2, 4, 1), -2),
    ((3,), whole(0, 3, 0), 0),
]


def gather(x, index, axis):
    out = np.zeros(index.shape)
    for place in np.ndindex(index.shape):
        source = list(place)
        source[axis] = index[place]
        out[place] = x[tuple(source)]
    return out


def scatter_add(g, index, axis, shape):
    out = np.zeros(shape)
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place]
        out[tuple(target)] += g[place]
    return out


declare("gather", gather, [sample(real(*shape), index, axis=a) for shape, index, a in GATHERS])
declare(
    "scatter_add", scatter_add, [sample(real(*index.shape), index, axis=a, shape=shape) for shape, index, a in GATHERS]
)
declare(
    "one_hot",
    lambda index, num_classes, dtype: np.eye(num_classes)[index].astype(dtype),
    [sample(whole(0, 4, *shape), num_classes=4, dtype=np.dtype("float64")) for shape in ((3,), (), (2, 2), (0,))],
)
declare(
    "embedding",
    lambda index, weight, padding_idx=None: weight[index],
    [
        sample(whole(0, 4, 9), real(4, 3)),
        sample(whole(0, 4, 2, 3), real(4, 2)),
        sample(whole(0, 2, 0), real(4, 2)),
        sample(whole(0, 4), real(4, 2)),
    ],
)


# ---- Losses and dropout ------------------------------------------------------------------------------


def reduced(losses, reduction, count):
    return losses if reduction == "none" else losses.sum() / (count if reduction == "mean" else 1)


def nll_loss(log_probs, target, reduction="mean", ignore_index=-100):
    rows = log_probs.reshape(-1, log_probs.shape[-1])
    losses = [0.0 if t == ignore_index else -row[t] for row, t in zip(rows, np.ravel(target), strict=True)]
    return reduced(np.reshape(losses, np.shape(target)), reduction, np.sum(np.asarray(target) != ignore_index))


def cross_entropy(logits, target, reduction="mean", ignore_index=-100):
    return nll_loss(log_softmax(logits), target, reduction, ignore_index)


CLASSES = [sample(real(4, 3), whole(0, 3, 4), reduction=r) for r in ("mean", "sum", "none")] + [
    sample(real(3), whole(0, 3)),
    sample(real(3), 2),
    sample(real(1, 2), np.array([1])),
    sample(real(4, 3), np.array([0, -100, 2, -100])),
    sample(real(4, 3), np.array([0, 1, 2, 1]), ignore_index=1),
]
declare("cross_entropy", cross_entropy, CLASSES)
declare("nll_loss", nll_loss, CLASSES)
COMPARED = [sample(real(2, 3), real(2, 3), reduction=r) for r in ("mean", "sum", "none")] + [
    sample(real(), real()),
    sample(real(0), real(0), reduction="sum"),
    sample(real(3), 0.5),
]
declare("mse_loss", lambda x, t, reduction="mean": reduced((x - t) ** 2, reduction, x.size), COMPARED)
declare("l1_loss", lambda x, t, reduction="mean": reduced(np.abs(x - t), reduction, x.size), COMPARED)
declare(
    "huber_loss",
    lambda x, t, reduction="mean", delta=1.0: reduced(
        np.where(np.abs(x - t) <= delta, (x - t) ** 2 / 2, delta * (np.abs(x - t) - delta / 2)), reduction, x.size
    ),
    COMPARED + [sample(real(9), real(9), delta=0.5)],
)
declare(
    "binary_cross_entropy_with_logits",
    lambda x, t, reduction="mean": reduced(
        -t * np.log(1 / (1 + np.exp(-x))) - (1 - t) * np.log(1 / (1 + np.exp(x))), reduction, x.size
    ),
    [sample(s.inputs[0], np.asarray(yes_no(*s.inputs[0].shape) * 0.5 + 0.25), **s.settings) for s in COMPARED],
)


def dropout(x, p, key):
    draws = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))).random(x.shape, np.float32)
    return np.where(draws < p, 0.0, x * (1 / (1 - p) if p < 1 else 0.0))


declare(
    "dropout",
    dropout,
    [sample(real(4, 5), p=p, key=(3, 1)) for p in (0.3, 0.5, 0.0, 1.0)] + [sample(real(), p=0.5, key=(0, 2))],
)


# ---- What the tape keeps -----------------------------------------------------------------------------

# For each op, and each input that has a gradient: the buffers that this gradient reads. A vjp's signature is the
# contract; here it is written down a second time, so that keeping one buffer more is a decision and no accident.
# What is not listed keeps nothing.
KEEPS = {
    "exp": "x: out", "expm1": "x: out", "log": "x: x", "log1p": "x: x", "sqrt": "x: out", "abs": "x: x", "sin": "x: x",
    "cos": "x: x", "tanh": "x: out", "erf": "x: x", "relu": "x: out", "leaky_relu": "x: out", "elu": "x: out",
    "sigmoid": "x: out", "softplus": "x: out", "silu": "x: x", "gelu": "x: x", "clamp": "x: x",
    "mul": "a: b, b: a", "div": "a: b, b: a b", "pow": "a: a b, b: a out", "remainder": "a: -, b: a b",
    "maximum": "a: a b, b: a b", "minimum": "a: a b, b: a b", "where": "a: condition, b: condition",
    "var": "x: x", "std": "x: x out", "max": "x: x out", "min": "x: x out", "prod": "x: x", "norm": "x: x out",
    "logsumexp": "x: x", "softmax": "x: out", "log_softmax": "x: out", "sort": "x: x",
    "matmul": "a: b, b: a", "linear": "x: w, w: x, b: -", "outer": "a: b, b: a", "einsum": "a: b, b: a",
    "getitem": "x: i j k", "scatter": "g: i j k", "index_put": "x: i j k, value: i j k", "gather": "x: index",
    "scatter_add": "g: index", "embedding": "weight: index",
    "cross_entropy": "logits: logits target", "nll_loss": "log_probs: target",
    "mse_loss": "x: x target, target: x target", "huber_loss": "x: x target, target: x target",
    "tan": "x: out", "exp2": "x: out", "hardtanh": "x: out", "fmod": "a: -, b: a b", "cumprod": "x: x",
    "asin": "x: x", "acos": "x: x", "atan": "x: x", "sinh": "x: x", "cosh": "x: x", "asinh": "x: x", "acosh": "x: x",
    "atanh": "x: x", "log2": "x: x", "log10": "x: x", "cummax": "x: x", "cummin": "x: x",
    "l1_loss": "x: x target, target: x target", "binary_cross_entropy_with_logits": "x: x target, target: x",
    "conv2d": "x: weight, weight: x, bias: -", "conv_transpose2d": "y: weight, weight: y, bias: -",
    "conv2d_weight_gradient": "x: y, y: x", "max_pool2d": "x: place", "max_unpool2d": "y: place",
    "layer_norm": "x: x weight, weight: x, bias: -", "rms_norm": "x: x weight, weight: x",
    "batch_norm": "x: x weight, weight: x, bias: -",
    "scaled_dot_product_attention": "q: q k v mask out, k: q k v mask out, v: q k mask out, mask: q k v mask out",
}  # fmt: skip

import tests.op_samples_nn  # noqa: E402, F401  (the ops of layers; it declares into the tables above)
