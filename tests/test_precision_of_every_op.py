"""Every op of the registry in float16, on its samples; and the sums that ops and gradients make, one by one, over so
many numbers that float16 would stop at 2048, or float32 would be 1 % off."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.op import registry
from minigrad.engine.sums import LONG, RUN, total
from tests.op_samples import SAMPLES
from tests.test_ops import bound, is_real, leaves_of, tensors

N, MANY = 5000, 1_000_000
PRECISE = {"exp", "expm1", "sum", "mean", "var", "std", "norm", "softmax", "log_softmax", "logsumexp", "cumsum", "prod",
           "cumprod", "matmul", "linear", "einsum", "trace", "outer", "conv2d", "conv_transpose2d", "avg_pool2d",
           "conv2d_weight_gradient", "layer_norm", "rms_norm", "batch_norm", "cross_entropy", "nll_loss", "mse_loss",
           "binary_cross_entropy_with_logits", "scatter", "scatter_add", "embedding", "max_unpool2d"}  # fmt: skip


def half(*shape, value=1.0, **options):
    return mg.full(shape, value, dtype="float16", **options)


def zeros(*shape, dtype="float16"):
    return mg.zeros(shape, dtype=dtype, requires_grad=True)


def near(tensor, expected, tolerance=2e-3):
    np.testing.assert_allclose(np.asarray(tensor, dtype="float64"), expected, rtol=tolerance, atol=1e-7)


def gradient(function, x, create_graph):
    out = function(x)
    return mg.grad(out, x, mg.tensor(np.ones(out.shape, out.dtype)), create_graph=create_graph)[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_float16_in_gives_float16_out_and_gradients_of_it(name):
    for sample in SAMPLES[name]:
        if not any(map(is_real, sample.inputs)) or name in ("one_hot", "astype"):
            continue
        inputs = tensors(name, sample, "float16")
        out = bound(name, sample)(*inputs)
        assert out.dtype == "float16" or out.dtype.kind in "bui", (sample, out.dtype)
        if out.requires_grad:
            leaves = leaves_of(inputs)
            for create_graph in (False, True):
                found = mg.grad(out, leaves, mg.ones_like(out), retain_graph=True, create_graph=create_graph)
                assert all(g.dtype == "float16" for g in found)


@pytest.mark.parametrize("name", sorted(PRECISE))
def test_float16_is_computed_wider_and_rounded_once(name):
    """The result is the float16 next to what float64 makes of the same float16 inputs."""
    for sample in SAMPLES[name]:
        rounded = type(sample)([x.astype("float16") if is_real(x) else x for x in sample.inputs], sample.settings)
        out = bound(name, rounded)(*tensors(name, rounded, "float16"))
        expected = bound(name, rounded)(*tensors(name, rounded, "float64")).numpy()
        np.testing.assert_allclose(out.numpy().astype("float64"), expected, rtol=1.01 * 2.0**-11, atol=2e-5)


# ---- Sums of float16 -----------------------------------------------------------------------------------

FIRST = np.zeros(N, int)
SIGNS = np.tile(np.array([-1, 1], "float16"), (N, 1))
SUMS = {
    "gather": (lambda x: mg.gather(x, 0, mg.tensor(FIRST[:, None])), (3, 1), [[N], [0], [0]]),
    "take": (lambda x: mg.take(x, mg.tensor(FIRST)), (2,), [N, 0]),
    "take along an axis": (lambda x: mg.take(x, mg.tensor(FIRST), 1), (2, 2), [[N, 0], [N, 0]]),
    "embedding": (lambda x: mg.embedding(mg.tensor(FIRST), x), (2, 2), [[N, N], [0, 0]]),
    "an index of two": (lambda x: x[mg.tensor(FIRST), mg.tensor(FIRST)], (1, 2), [[N, 0]]),
    "index_put": (lambda v: mg.index_put(half(N), slice(None), v), (), N),
    "adding a row": (lambda x: half(N, 2) + x, (2,), [N, N]),
    "expand": (lambda x: mg.broadcast_to(x, N, 2), (2,), [N, N]),
    "linear's bias": (lambda b: mg.linear(half(N, 2), half(3, 2), b), (3,), [N] * 3),
    "linear's weight": (lambda w: mg.linear(half(N, 2), w), (1, 2), [[N, N]]),
    "conv2d's bias": (lambda b: mg.conv2d(half(50, 1, 10, 10), half(1, 1, 1, 1), b), (1,), [N]),
    "conv2d's weight": (lambda w: mg.conv2d(half(50, 1, 10, 10), w), (1, 1, 1, 1), [[[[N]]]]),
    "layer_norm's weight": (lambda w: mg.layer_norm(mg.tensor(SIGNS), 2, w), (2,), [-N, N]),
    "layer_norm's bias": (lambda b: mg.layer_norm(mg.tensor(SIGNS), 2, None, b), (2,), [N, N]),
    "batch_norm's bias": (lambda b: mg.batch_norm(mg.tensor(SIGNS.T.reshape(-1, 1)), bias=b, training=True), (1,),
                          [2 * N]),
    "cumsum": (lambda x: x.cumsum(axis=0)[-1:], (N, 1), np.ones((N, 1))),
    "cumsum, its gradient": (lambda x: x.cumsum(axis=0), (N, 1), np.arange(N, 0, -1)[:, None]),
    "avg_pool2d": (lambda x: mg.avg_pool2d(x, 60, stride=1)[..., :1, :1], (1, 60, 60), np.full((1, 60, 60), 1 / 3600)),
    "max_pool2d": (lambda x: mg.max_pool2d(mg.pad(x, [(0, 0), (59, 59), (59, 59)], value=-1.0), 60, stride=1),
                   (1, 1, 1), [[[3600]]]),
    "einsum": (lambda x: mg.einsum("i,bi->bi", x, half(N, 2)), (2,), [N, N]),
    "softmax": (lambda x: x.softmax(axis=0)[1:].sum(), (N, 1), [[-(1 - 1 / N) / N]] + [[1 / N / N]] * (N - 1)),
    "max": (lambda x: x.max() * 1000, (N,), [1000 / N] * N),
    "cross_entropy": (lambda x: mg.cross_entropy(x, mg.tensor(FIRST)) * N, (N, 2), [[-0.5, 0.5]] * N),
}  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", SUMS)
def test_gradients_in_float16_are_added_up_in_float32(name, create_graph):
    function, shape, expected = SUMS[name]
    near(gradient(function, zeros(*shape), create_graph), expected, 4e-3)


FORWARD = {
    "trace": (lambda: mg.trace(mg.tensor(np.eye(N, dtype="float16"))), N),
    "einsum of one": (lambda: mg.einsum("bi->i", half(N, 2)), [N, N]),
    "einsum of two": (lambda: mg.einsum("bi,bi->i", half(N, 2), half(N, 2)), [N, N]),
    "einsum to a scalar": (lambda: mg.einsum("ii->", mg.tensor(np.eye(N, dtype="float16"))), N),
    "matmul": (lambda: half(2, N) @ half(N, 2), np.full((2, 2), N)),
    "conv2d": (lambda: mg.conv2d(half(1, N, 1, 1), half(1, N, 1, 1)), [[[[N]]]]),
    "conv_transpose2d": (lambda: mg.conv_transpose2d(half(1, 1, 60, 60), half(1, 1, 60, 60))[0, 0, 59, 59], 3600),
    "cumsum": (lambda: half(N, 2).cumsum(axis=0)[-1], [N, N]),
    "cumprod": (lambda: mg.tensor(np.array([300, 300, 0.001, 0.01], "float16")).cumprod()[-1], 0.9003),
    "prod": (lambda: mg.tensor(np.array([300, 300, 0.001, 0.01], "float16")).prod(), 0.9003),
    "mean": (lambda: half(N, 2, value=60000.0).mean(axis=0), [60000] * 2),
    "var": (lambda: mg.tensor(SIGNS.reshape(-1, 1) * np.float16(200)).var(axis=0), [40000]),
    "norm": (lambda: half(2, value=30000.0).norm(), 30000 * 2**0.5),
    "cosine_similarity": (lambda: mg.cosine_similarity(half(2, N, value=100.0), half(2, N)), [1, 1]),
    "nll_loss": (lambda: mg.nll_loss(-half(N, 2), mg.tensor(FIRST), reduction="sum"), N),
    "a kl_div": (lambda: mg.kl_div(-half(N, 2), half(N, 2), reduction="sum"), 2 * N),
    "softmax": (lambda: half(70000).softmax()[:2], [1 / 70000] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_sums_of_float16_are_made_in_float32(name):
    function, expected = FORWARD[name]
    out = function()
    assert out.dtype == "float16"
    near(out, expected, 4e-3)


# ---- Long sums of float32 ------------------------------------------------------------------------------

TENTHS = np.full((MANY, 4), 0.1, "float32")
LAYOUTS = {
    "rows": (TENTHS, 0), "columns apart": (TENTHS[:, ::2], 0), "of a transpose": (TENTHS.T, 1),
    "in the middle": (TENTHS.reshape(2, -1, 4), 1), "from the end": (TENTHS.reshape(2, -1, 4), -2),
    "of a repeated row": (np.broadcast_to(TENTHS[:1], TENTHS.shape), 0), "all, with gaps": (TENTHS[:, ::2], None),
    "batch_norm's": (TENTHS.reshape(-1, 4, 1, 1), (0, 2, 3)), "all, with other gaps": (TENTHS[:, :3], None),
    "in Fortran's order": (np.asfortranarray(TENTHS), (0,)),
    "two long axes": (TENTHS.reshape(1000, -1, 4), (0, 1)),
    "many short axes": (TENTHS.reshape(100, 100, 100, 4), (2, 0, -3)),
    "two apart": (TENTHS.reshape(1000, 4, 1000).swapaxes(1, 2).reshape(500, 2, 1000, 4), (0, 2)),
}  # fmt: skip


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_long_sum_is_right_in_every_layout(name, keepdims):
    x, axis = LAYOUTS[name]
    expected = x.sum(axis=axis, keepdims=keepdims, dtype="float64")
    out = total(x, axis, keepdims)
    assert out.shape == expected.shape and out.dtype == "float32"
    near(out, expected, 1e-5)


@pytest.mark.parametrize("axis", [2, -3, (0, 2), (0, 0), (0, -2)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_long_sum_over_axes_that_do_not_exist_or_come_twice_is_refused(axis, dtype):
    with pytest.raises(mg.MinigradError):
        mg.ones(3000, 2, dtype=dtype).sum(axis=axis)


@pytest.mark.parametrize("rows", [LONG - 1, LONG, LONG + 1, LONG + RUN - 1, 5 * RUN, LONG * RUN + 7])
def test_runs_leave_no_row_out(rows):
    x = np.arange(rows, dtype="float64")[:, None] * [1.0, -2.0]
    np.testing.assert_array_equal(total(x, 0), np.array([1.0, -2.0]) * (rows * (rows - 1) // 2))


@pytest.mark.parametrize("name", ["cumsum", "take", "embedding", "broadcast", "einsum", "index of two", "gather"])
def test_a_million_float32(name):
    x, row = mg.tensor(TENTHS), mg.zeros(1, 4, requires_grad=True)
    one, first = mg.tensor(TENTHS[:, 0]), mg.tensor(np.zeros(MANY, int))
    weights = mg.tensor(TENTHS)
    found = {
        "cumsum": lambda: one.cumsum()[-1],
        "take": lambda: mg.grad((mg.take(row, first) * one).sum(), row)[0][0, 0],
        "embedding": lambda: mg.grad((mg.embedding(first, row) * weights).sum(), row)[0],
        "broadcast": lambda: mg.grad((x + row).sum() * 0.1, row)[0],
        "einsum": lambda: mg.einsum("bi->i", x),
        "index of two": lambda: mg.grad((row[first, first] * one).sum(), row)[0][0, 0],
        "gather": lambda: mg.grad((mg.gather(row, 0, first.reshape(-1, 1)) * one.reshape(-1, 1)).sum(), row)[0][0, 0],
    }[name]()
    near(found, np.full(found.shape, MANY * float(np.float32(0.1))), 1e-5)


# ---- Scales --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1000.3, 0.1, 7.7, 1e30, 3e38, 1e-30, -1e-40])
@pytest.mark.parametrize("shape", [(4, 3), (64, 33), (3, 1000)])
@pytest.mark.parametrize("eps", [1e-5, 0.0])
def test_a_constant_has_no_deviations(value, shape, eps):
    x = mg.tensor(np.full(shape, value, "float32"), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for out in (mg.layer_norm(x, shape[1], eps=eps), mg.batch_norm(x, training=True, eps=eps)):
            assert not out.numpy().any()
            gradient = mg.grad(out.sum(), x)[0].numpy()
            assert eps == 0 or np.isfinite(gradient).all()


@pytest.mark.parametrize("p", [0.5, 1.5, 2, 3, 10])
def test_norms_of_rows_at_different_scales(p):
    rows = mg.tensor(np.array([[1e30, 1e30], [1e-30, 1e-30], [0, 0], [1, 1], [np.inf, 1]], "float32"))
    near(mg.norm(rows, p, axis=1) / rows[:, 0].numpy().clip(1e-30, 1e30),
         np.array([1, 1, 0, 1, np.inf]) * 2 ** (1 / p), 1e-5)  # fmt: skip


@pytest.mark.parametrize("size", [1e30, 2e37, 1e18, 1e-18, 1e-30])
def test_normalizations_without_eps_do_not_see_the_scale(size):
    values = np.random.default_rng(0).standard_normal((5, 40)).astype("float32")
    scaled = mg.tensor(values * np.float32(size))
    x = scaled.numpy().astype("float64")
    deviations = x - x.mean(axis=1, keepdims=True)
    near(mg.layer_norm(scaled, 40, eps=0.0), deviations / x.std(axis=1, keepdims=True), 1e-3)
    near(mg.rms_norm(scaled, 40, eps=0.0), x / np.sqrt((x * x).mean(axis=1, keepdims=True)), 1e-4)
    near(mg.normalize(scaled, eps=0.0), x / np.linalg.norm(x, axis=1, keepdims=True), 1e-4)
    near(mg.cosine_similarity(scaled, scaled, eps=1e-35), np.ones(5), 1e-4)


def test_every_op_that_must_be_precise_exists():
    assert set(registry) >= PRECISE
