"""The functions that are not simply an op: as one calls them in minigrad, and as one calls torch's."""

import types

import numpy as np
import torch
import torch.nn.functional as f

import minigrad as mg
from minigrad.engine.op import Op
from tests.op_samples import Sample, positive, real, whole, yes_no
from tests.oracle.compare import Row, compare

CALLS = []


def call(name, theirs, inputs, ours=(), its=None, function=None):
    """One sample: the settings of ours, and torch's, if they have other names there."""
    ours = dict(ours)
    CALLS.append((name, theirs, inputs, ours, ours if its is None else its, function or getattr(mg, name)))


x, image = real(2, 3, 4), real(2, 4, 7, 6)

# ---- Shapes and elements -----------------------------------------------------------------------------

call("clamp", torch.clamp, [x], {"min": -0.5, "max": 0.5})
call("clamp", torch.clamp, [x, real(4) - 1, real(3, 1) + 1])
call("clamp", torch.clamp, [x], {"min": 0.1})
call("where", torch.where, [yes_no(3, 4), x, real(4)])
call("pow", torch.pow, [positive(3), real(3)])
call("reshape", lambda x: x.reshape(4, -1), [x], function=lambda x: mg.reshape(x, 4, -1))
call("flatten", torch.flatten, [x], {"start_axis": 1}, {"start_dim": 1})
call("flatten", torch.flatten, [real()])
call("permute", torch.permute, [x], its={"dims": (2, 0, 1)}, function=lambda x: mg.permute(x, 2, 0, 1))
call("transpose", lambda x: x.transpose(0, 2), [x], function=lambda x: mg.transpose(x, 0, 2))
call("broadcast_to", lambda x: x.broadcast_to(2, 3, 4), [real(3, 1)], function=lambda x: mg.broadcast_to(x, 2, 3, 4))
call("cat", lambda *xs: torch.cat(xs, 1), [x, real(2, 1, 4)], function=lambda *xs: mg.cat(xs, 1))
call("stack", lambda *xs: torch.stack(xs, -1), [x, real(2, 3, 4)], function=lambda *xs: mg.stack(xs, -1))
for sizes in (2, 3, [1, 0, 3]):
    call(
        "split",
        torch.split,
        [x],
        {"split_size_or_sections": sizes, "axis": 2},
        {"split_size_or_sections": sizes, "dim": 2},
    )
call("pad", f.pad, [x], {"pad": (1, 2, 0, 3), "value": 0.5})
call("pad", f.pad, [x], {"pad": (1, 0)})
for axis in (None, 0, -1, (0, 2)):
    for function in (torch.amax, torch.amin):
        axes = (0, 1, 2) if axis is None else axis
        call(function.__name__[1:], function, [x], {"axis": axis}, {"dim": axes})
call("any", torch.any, [yes_no(2, 3)], {"axis": 1}, {"dim": 1})
call("all", torch.all, [yes_no(2, 3)], {"axis": 1}, {"dim": 1})
call("sum", torch.sum, [x], {"axis": (0, -1), "keepdims": True}, {"dim": (0, -1), "keepdim": True})
call("abs", torch.abs, [x])
call("astype", lambda x: x.to(torch.float64), [x], function=lambda x: mg.astype(x, "float64"))
call("astype", lambda x: x.to(torch.float32), [whole(-3, 4, 5)], function=lambda x: mg.astype(x, "float32"))
call("to", lambda x: x.to("cpu") * 1, [x], function=lambda x: mg.to(x, "cpu") * 1)
for p in (1, 2, 3, np.inf):
    call("norm", torch.linalg.vector_norm, [x], {"p": p, "axis": 1}, {"ord": p, "dim": 1})
    call("normalize", f.normalize, [x], {"p": p})
call("normalize", f.normalize, [np.zeros((2, 3))], {"axis": -1}, {"dim": -1})

# ---- Indexing and products ---------------------------------------------------------------------------

call("take", torch.take, [x, whole(0, 24, 2, 5)])
call("take", lambda x, i: torch.index_select(x, 1, i), [x, whole(0, 3, 7)], function=lambda x, i: mg.take(x, i, 1))
call("gather", lambda x, i: torch.gather(x, 2, i), [x, whole(0, 4, 2, 3, 6)], function=lambda x, i: mg.gather(x, 2, i))
call("one_hot", f.one_hot, [whole(0, 5, 7)], {"num_classes": 5, "dtype": "int64"}, {"num_classes": 5})
call(
    "index_put",
    lambda x, v: x.clone().index_put((torch.tensor([0, 1]), torch.tensor([2, 0])), v),
    [x, real(4)],
    function=lambda x, v: mg.index_put(x, (np.array([0, 1]), np.array([2, 0])), v),
)
for subscripts, *shapes in (
    ("...ij,...jk->...ik", (2, 3, 4), (4, 2)), ("i...,i...->...", (3, 2), (3, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,jk", (2, 3), (3, 4)), ("bi,bj,bk->ijk", (2, 2), (2, 3), (2, 2)),
):  # fmt: skip
    call(
        "einsum",
        lambda *xs, s=subscripts: torch.einsum(s, *xs),
        [real(*shape) for shape in shapes],
        function=lambda *xs, s=subscripts: mg.einsum(s, *xs),
    )

# ---- Networks ----------------------------------------------------------------------------------------

for p in (0.0, 1.0):
    call("dropout", f.dropout, [x], {"p": p})
call("dropout", f.dropout, [x], {"p": 0.5, "training": False})
for settings in (
    {},
    {"stride": 2, "padding": 1},
    {"padding": "same", "dilation": 2},
    {"padding": "valid", "groups": 2},
):
    kernel = real(6, 4 // settings.get("groups", 1), 3)
    call("conv1d", f.conv1d, [image[0, :, 0].repeat(2, -1)[None], kernel, real(6)], settings)
    call("conv2d", f.conv2d, [image, np.stack([kernel, -kernel * kernel], -1), real(6)], settings)
call("conv2d", f.conv2d, [image, real(6, 4, 3, 2)], {"stride": (1, 3), "padding": (2, 0), "dilation": (2, 1)})
for settings in (
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"groups": 2, "dilation": (1, 3), "stride": (3, 1)},
):
    inner = 3
    call(
        "conv_transpose2d",
        f.conv_transpose2d,
        [image, real(4, inner, 3, 2), real(inner * settings.get("groups", 1))],
        settings,
    )
for settings in ({}, {"stride": 1, "padding": 1}, {"stride": (3, 2), "ceil_mode": True}):
    call("max_pool2d", f.max_pool2d, [image], {"kernel_size": 2, **settings})
    call("avg_pool2d", f.avg_pool2d, [image], {"kernel_size": (3, 2), **settings})
    call("avg_pool2d", f.avg_pool2d, [image], {"kernel_size": 2, "count_include_pad": False, **settings})
call("max_pool2d", f.max_pool2d, [image], {"kernel_size": 2, "dilation": 3, "stride": 1})
for settings in ({}, {"stride": 1, "padding": 1}, {"ceil_mode": True, "dilation": 2}):
    call("max_pool1d", f.max_pool1d, [image[:, :, 0]], {"kernel_size": 3, **settings})
call(
    "layer_norm",
    lambda x, w, b: f.layer_norm(x, (3, 4), w, b, 1e-3),
    [x, real(3, 4), real(3, 4)],
    function=lambda x, w, b: mg.layer_norm(x, (3, 4), w, b, 1e-3),
)
call(
    "layer_norm",
    lambda x, b: f.layer_norm(x, (4,), None, b),
    [x, real(4)],
    function=lambda x, b: mg.layer_norm(x, 4, None, b),
)
# Groups of many values: of one or two, the gradient of x is 0 or nearly so, and its digits are rounding in both.
for shape, groups in (((2, 6), 1), ((2, 6, 5), 1), ((2, 6, 5), 3), ((2, 6, 3, 4), 6)):
    call(
        "group_norm",
        lambda x, w, b, groups=groups: f.group_norm(x, groups, w, b, 1e-3),
        [real(*shape), real(6), real(6)],
        function=lambda x, w, b, groups=groups: mg.group_norm(x, groups, w, b, 1e-3),
    )
call("rms_norm", lambda x, w: f.rms_norm(x, (4,), w), [x, real(4)], function=lambda x, w: mg.rms_norm(x, 4, w))
for training in (True, False):
    call(
        "batch_norm",
        lambda x, w, b, m, v, training=training: f.batch_norm(x, m.detach(), v.detach(), w, b, training),
        [image, real(4), real(4), real(4), positive(4)],
        function=lambda x, w, b, m, v, training=training: mg.batch_norm(x, m.detach(), v.detach(), w, b, training),
    )
q, k, v = real(2, 3, 5, 4), real(2, 3, 7, 4), real(2, 3, 7, 6)
call("scaled_dot_product_attention", f.scaled_dot_product_attention, [q, k, v])
call("scaled_dot_product_attention", f.scaled_dot_product_attention, [q, k, v], {"is_causal": True, "scale": 0.3})
call("scaled_dot_product_attention", f.scaled_dot_product_attention, [q, k, v, real(5, 7)])
long = [real(1, 2, 300, 4) for _ in range(3)]
call("scaled_dot_product_attention", f.scaled_dot_product_attention, long, {"is_causal": True})  # several blocks
call("scaled_dot_product_attention", f.scaled_dot_product_attention, [*long, np.tri(300, k=2) > 0])

# ---- At the edges ------------------------------------------------------------------------------------

edge = np.array([0.0, -0.0, 1.0, -1.0, 1e-20, 15.0, -15.0, 90.0, -90.0, 1e4, -1e4])
ties = np.array([[1.0, 2.0, 2.0], [2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]])
for name in "abs sign sqrt exp expm1 log log1p tanh sigmoid relu erf sin cos".split():
    call(name, getattr(torch, name), [np.abs(edge[:7]) if "log" in name or name == "sqrt" else edge])
for name in "elu leaky_relu silu gelu softplus".split():
    call(name, getattr(f, name), [edge[:7] if name == "softplus" else edge])
for exponent in (0, 1, 2, 3, -1, 0.5):
    call("pow", lambda x, p=exponent: x**p, [edge[2:7] ** 2], function=lambda x, p=exponent: x**p)
for exponent in (0, 1, 2, 3):
    call("pow", lambda x, p=exponent: x**p, [edge[:7]], function=lambda x, p=exponent: x**p)
call("pow", torch.pow, [np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 0.0])])
for function in (torch.amax, torch.amin):
    call(function.__name__[1:], function, [ties], {"axis": 1}, {"dim": 1})
    call(function.__name__[1:], function, [ties], {"axis": (0, 1)}, {"dim": (0, 1)})
call("maximum", torch.maximum, [ties, ties[::-1].copy()])
call("minimum", torch.minimum, [ties, ties[::-1].copy()])
call("clamp", torch.clamp, [ties], {"min": -1.0, "max": 2.0})
call("sort", lambda x: torch.sort(x, stable=True).values, [ties])
call("std", torch.std, [ties], {"axis": 1}, {"dim": 1, "correction": 0})
call("prod", torch.prod, [np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 0.0]])], {"axis": 1}, {"dim": 1})
call("norm", torch.linalg.vector_norm, [np.zeros((2, 3))], {"axis": 1}, {"dim": 1})
masked = np.array([[0.0, -np.inf, 1.0], [1e4, -1e4, 0.0], [-1e4, -1e4, -np.inf], [80.0, 81.0, 82.0]])
for name in "softmax log_softmax logsumexp".split():
    rows_of_it = masked[:2] if name == "logsumexp" else masked  # of the others torch's gradient is inexact
    call(name, getattr(torch, name), [rows_of_it], {"axis": -1}, {"dim": -1})
call("cross_entropy", f.cross_entropy, [masked, np.array([2, 0, 1, -100])])
call("cross_entropy", f.cross_entropy, [masked, np.array([2, 1, 0, 0])], {"reduction": "none"})
call("cross_entropy", f.cross_entropy, [masked[:2], np.array([-100, -100])])  # the mean of nothing
call("nll_loss", f.nll_loss, [np.log(positive(3, 4)), np.array([0, -100, 3])], {"reduction": "sum"})
logits, target = edge, np.linspace(0, 1, len(edge))
call("binary_cross_entropy_with_logits", f.binary_cross_entropy_with_logits, [logits, target], {"reduction": "none"})
call("l1_loss", f.l1_loss, [ties, ties[::-1].copy()])
no_row = np.ones((5, 7), bool)
no_row[2] = False
call("scaled_dot_product_attention", f.scaled_dot_product_attention, [q, k, v, no_row])
call("div", torch.div, [np.array([1.0, 0.0, -1.0]), np.array([0.0, 2.0, 1e-20])])

# ---- Further names -----------------------------------------------------------------------------------

for name in "square reciprocal rsqrt".split():
    call(name, getattr(torch, name), [positive(2, 3)])
call("clip", torch.clip, [x], {"min": -0.5, "max": 0.5})
call("lerp", torch.lerp, [x, real(4), real(3, 1)])
for name in "relu6 hardswish celu selu softsign mish logsigmoid softmin glu".split():
    its = {"dim": -1} if name in ("softmin", "glu") else {}
    call(name, getattr(f, name), [x * 4], {}, its)
call("swish", f.silu, [x])
call("hardsigmoid", lambda x: f.hardtanh(x / 6 + 0.5, 0, 1), [x * 4])  # hardsigmoid has a float32 slope
call("celu", f.celu, [x], {"alpha": 0.5})
call("glu", f.glu, [real(4, 3)], {"axis": 0}, {"dim": 0})
call("dot", torch.dot, [real(5), real(5)])
call("allclose", lambda *xs: torch.isclose(*xs).all(), [x, x + 1e-9], function=lambda *xs: mg.isclose(*xs).all())
for name, axis in (("sum", 1), ("prod", 2), ("mean", (0, 2))):
    call(
        name,
        lambda x, name=name, axis=axis: getattr(torch, name)(x, axis, dtype=torch.float64),
        [x],
        function=lambda x, name=name, axis=axis: getattr(mg, name)(x, axis, dtype="float64"),
    )
call("cumprod", torch.cumprod, [np.array([[0.0, 2.0, 3.0, 0.0], [4.0, 0.0, 3.0, 1.0]])], {"axis": 1}, {"dim": 1})
for name in ("cummax", "cummin"):
    call(name, lambda x, name=name: getattr(torch, name)(x, 1).values, [ties[:, ::-1].copy()], {"axis": 1}, {})
for settings in ({"k": 2}, {"k": 3, "axis": 1, "largest": False}):
    its = {"dim" if key == "axis" else key: value for key, value in settings.items()}
    call("topk", lambda x, its=its: torch.topk(x, **its).values, [x], settings, {}, lambda x, **s: mg.topk(x, **s)[0])
    call("topk", lambda x, its=its: torch.topk(x, **its).indices, [x], settings, {}, lambda x, **s: mg.topk(x, **s)[1])
call("tile", lambda x: torch.tile(x, (2, 1, 3)), [x], function=lambda x: mg.tile(x, 2, 1, 3))
call("tile", lambda x: torch.tile(x, (2,)), [x], function=lambda x: mg.tile(x, 2))
call("repeat", lambda x: x.repeat(2, 1, 3, 1), [x], function=lambda x: mg.repeat(x, 2, 1, 3, 1))
call("repeat_interleave", torch.repeat_interleave, [x], {"repeats": 3})
call("repeat_interleave", torch.repeat_interleave, [x], {"repeats": 2, "axis": 1}, {"repeats": 2, "dim": 1})
call(
    "repeat_interleave",
    lambda x: torch.repeat_interleave(x, torch.tensor([2, 0, 1]), 1),
    [x],
    function=lambda x: mg.repeat_interleave(x, [2, 0, 1], 1),
)
call("unfold", lambda x: x.unfold(2, 3, 1), [x], function=lambda x: mg.unfold(x, 2, 3, 1))
call("unfold", lambda x: x.unfold(1, 2, 3), [image], function=lambda x: mg.unfold(x, 1, 2, 3))
call("expand", lambda x: x.expand(2, -1, 4), [real(3, 1)], function=lambda x: mg.expand(x, 2, -1, 4))
call("movedim", lambda x: torch.movedim(x, 0, 2), [x], function=lambda x: mg.movedim(x, 0, 2))
call("movedim", lambda x: torch.movedim(x, (0, 1), (-1, 0)), [x], function=lambda x: mg.movedim(x, (0, 1), (-1, 0)))
call("chunk", torch.chunk, [x], {"chunks": 3, "axis": 2}, {"chunks": 3, "dim": 2})
call("unbind", torch.unbind, [x], {"axis": 1}, {"dim": 1})
call("unbind", torch.unbind, [real(40, 2)])
call("split", torch.split, [real(50, 2)], {"split_size_or_sections": 1})
call("cat", lambda *xs: torch.cat(xs, 1), [real(2, 1 + i % 3) for i in range(20)], function=lambda *xs: mg.cat(xs, 1))
call("masked_fill", lambda x, m: x.masked_fill(m, -1.5), [x, yes_no(3, 4)], {"value": -1.5}, {})
call("masked_select", torch.masked_select, [x, yes_no(2, 3, 4)])
call("index_select", torch.index_select, [x, 1, whole(0, 3, 7)])
places = np.array([[0, 3, 1], [2, 0, 1]])
call("scatter", torch.scatter, [real(2, 4), 1, places, real(2, 3)])
call(
    "scatter",
    lambda x, i, v: torch.scatter(x, 0, i, v[:1, :3]),  # torch's own gradient of a longer v fails
    [real(3, 3), np.array([[2, 0, 1]]), real(2, 4)],
    function=lambda x, i, v: mg.scatter(x, 0, i, v),
)
filled = [real(2, 4), places]
call("scatter", lambda x, i: torch.scatter(x, 1, i, 2.5), filled, function=lambda x, i: mg.scatter(x, 1, i, 2.5))
rows_of_logits, classes, weight = real(4, 3), np.array([2, 0, -100, 1]), np.array([0.5, 2.0, 1.5])
for settings in (
    {}, {"label_smoothing": 0.1}, {"label_smoothing": 0.3, "reduction": "none"}, {"reduction": "sum"},
    {"reduction": "none", "ignore_index": 1},
):  # fmt: skip
    targets = np.where(classes < 0, 0, classes) if "ignore_index" in settings else classes
    for more in ([], [weight]):
        for name, scores in (("cross_entropy", rows_of_logits), ("nll_loss", np.log(positive(4, 3)))):
            if name == "cross_entropy" or "label_smoothing" not in settings:
                call(
                    name,
                    lambda x, t, n=name, w=more, s=settings: getattr(f, n)(
                        x, t, *[torch.tensor(part, dtype=x.dtype) for part in w], **s
                    ),
                    [scores, targets],
                    function=lambda x, t, n=name, w=more, s=settings: getattr(mg, n)(x, t, *w, **s),
                )

shares = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.1, 0.1, 0.8]])
for settings in ({}, {"label_smoothing": 0.2}, {"reduction": "none"}):
    call("cross_entropy", f.cross_entropy, [rows_of_logits, shares], settings)
for settings in ({}, {"reduction": "sum"}, {"beta": 0.5, "reduction": "none"}):
    call("smooth_l1_loss", f.smooth_l1_loss, [real(3, 4), real(3, 4)], settings)
log_shares = np.log(positive(4, 3))
for settings in ({}, {"reduction": "batchmean"}, {"reduction": "sum"}, {"reduction": "none"}):
    call("kl_div", f.kl_div, [log_shares, positive(4, 3)], settings)
    call("kl_div", f.kl_div, [log_shares, log_shares[::-1].copy()], {**settings, "log_target": True})
for reduction in ("mean", "sum", "none"):
    call("binary_cross_entropy", f.binary_cross_entropy, [shares[[0, 3]], shares[[2, 1]]], {"reduction": reduction})
call("cosine_similarity", f.cosine_similarity, [real(3, 4), real(3, 4)])


def described(inputs, settings):
    """A sample in a few words."""
    return Sample([x.tolist() if getattr(x, "size", 9) < 4 else x for x in inputs], settings)


def rows(only):
    names = dict.fromkeys(name for name, *_ in CALLS)
    for name in only(names):
        row = Row(name, "as torch calls it")
        for called, theirs, inputs, ours, its, function in CALLS:
            if called == name:
                row.run(described(inputs, ours), lambda dtype: compare(function, theirs, inputs, dtype, ours, its))  # noqa: B023
        yield row


def missing() -> set:
    """Public functions that are not ops, and not called here."""
    functions = {name for name in mg.ops.__all__ if isinstance(getattr(mg, name), types.FunctionType)}
    assert not any(isinstance(getattr(mg, name), Op) for name in functions)
    return functions - {name for name, *_ in CALLS}
