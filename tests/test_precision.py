"""Sums are rounded once: in float16, over many rows, and with numbers that are large or tiny."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim


def half(*shape, value=1.0, **options):
    return mg.full(shape, value, dtype="float16", **options)


def near(tensor, expected, tolerance=1e-3):
    np.testing.assert_allclose(tensor.numpy().astype("float64"), expected, rtol=tolerance, atol=1e-7)


# ---- float16 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, (0,), None])
def test_a_sum_of_float16_goes_on_beyond_2048(axis):
    near(half(5000, 2).sum(axis=axis), 10000.0 if axis is None else [5000.0] * 2)


def test_a_sum_of_float16_may_pass_what_float16_holds():
    x = mg.tensor(np.array([[60000.0, 60000.0, -60000.0]], "float16"))
    near(x.sum(axis=1), [60000.0])
    near(x.T.sum(axis=0), [60000.0])
    near(x.cumsum(axis=1)[0, 2], 60000.0)


def test_gradients_of_float16_are_added_up_wide():
    linear = nn.Linear(2, 3, dtype="float16")
    linear(half(5000, 2)).backward(half(5000, 3))
    near(linear.bias.grad, [5000.0] * 3)
    row = half(3, requires_grad=True)
    (row + half(5000, 3)).backward(half(5000, 3))
    near(row.grad, [5000.0] * 3)
    table = half(4, 1, requires_grad=True)
    table[mg.tensor(np.zeros(5000, "int64"))].backward(half(5000, 1))
    near(table.grad, [[5000.0], [0.0], [0.0], [0.0]])
    near(half(5000, 2).softmax(axis=0)[:, 0].astype("float64").sum(), 1.0, 0.01)


def test_long_rows_of_float16_under_logarithms():
    x = mg.zeros(2, 70000, dtype="float16", requires_grad=True)
    near(mg.logsumexp(x, axis=1), [np.log(70000)] * 2, 2e-3)
    near(mg.log_softmax(x, axis=1)[:, 0], [-np.log(70000)] * 2, 2e-3)
    loss = mg.cross_entropy(mg.zeros(2, 128256, dtype="float16", requires_grad=True), mg.tensor([1, 2]))
    near(loss, np.log(128256), 2e-3)
    assert loss.dtype == np.float16


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.RMSprop])
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.0}])
def test_an_optimizer_steps_float16_as_it_steps_float32(make, options):
    def run(dtype):
        w = mg.tensor(np.array([1.0, 1.0], dtype), requires_grad=True)
        optimizer = make([w], lr=0.05, **options)
        for gradient in ([1e-4, 1e-3], [2e-4, -1e-3], [6e4, 1e-7]):
            w.grad = mg.tensor(np.array(gradient, "float16").astype(dtype))
            optimizer.step()
        return w, optimizer

    (narrow, optimizer), (wide, _) = run("float16"), run("float32")
    assert narrow.dtype == np.float16
    near(narrow, wide.numpy(), 3e-3)
    arrays = [value for value in optimizer.state[narrow].values() if isinstance(value, np.ndarray)]
    assert arrays and all(array.dtype == np.float32 for array in arrays)
    again = make([narrow], lr=0.05, **options)
    again.load_state_dict(optimizer.state_dict())
    for key, value in optimizer.state[narrow].items():
        np.testing.assert_array_equal(again.state[narrow][key], value)


@pytest.mark.parametrize("dtype, size", [("float16", 300.0), ("float32", 1e30), ("float32", 1e-30)])
def test_clipping_by_a_norm_whose_squares_do_not_fit(dtype, size):
    w = mg.tensor(np.zeros(4, dtype), requires_grad=True)
    w.grad = mg.tensor(np.full(4, size, dtype))
    before = optim.clip_grad_norm_([w], 1.0)
    near(before, 2 * size)
    near(w.grad, [min(0.5, size)] * 4)


# ---- Many rows ---------------------------------------------------------------------------------------


def test_a_million_rows_of_float32():
    x = mg.full((1_000_000, 2), 0.1, requires_grad=True)
    near(x.mean(axis=0), [0.1] * 2, 1e-4)
    near(x.sum(axis=0), [1e5] * 2, 1e-4)
    bias = mg.zeros(2, requires_grad=True)
    (x.detach() + bias).backward(mg.full((1_000_000, 2), 0.1))
    near(bias.grad, [1e5] * 2, 1e-4)


BLOCKS = [((3000, 7), 0), ((5, 1500, 4), 1), ((2000, 3, 4), (0, 2)), ((1500, 2, 9), (0,)), ((1024, 33), 0),
          ((2, 1030, 11), (0, 1))]  # fmt: skip


@pytest.mark.parametrize("shape, axis", BLOCKS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_sum_in_blocks_is_the_sum(shape, axis, keepdims):
    x = np.random.default_rng(0).standard_normal(shape)
    got = mg.sum(mg.tensor(x), axis=axis, keepdims=keepdims).numpy()
    np.testing.assert_allclose(got, x.sum(axis=axis, keepdims=keepdims), rtol=1e-10, atol=1e-9)


# ---- Constants, large and tiny numbers ---------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1000.3, -3.7e5, 1e-20, 1e30])
def test_a_constant_is_normalized_to_zero(value):
    x = mg.full((64, 33), value, requires_grad=True)
    for y in (mg.layer_norm(x, 33), mg.batch_norm(x, training=True)):
        near(y, np.zeros((64, 33)))
    assert np.isfinite(mg.grad((y * y).sum(), x)[0].numpy()).all()


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e18, 1.0])
def test_norms_and_deviations_at_any_scale(size):
    values = np.random.default_rng(1).standard_normal((4, 6))
    x = mg.tensor((values * size).astype("float32"), requires_grad=True)
    near(x.norm(axis=1) / size, np.linalg.norm(values, axis=1), 1e-5)
    near(mg.norm(x, 3, axis=1) / size, (abs(values) ** 3).sum(1) ** (1 / 3), 1e-5)
    near(x.std(axis=1) / size, values.std(axis=1), 1e-5)
    (gradient,) = mg.grad(x.norm(), x)
    near(gradient, values / np.linalg.norm(values), 1e-5)
    (gradient,) = mg.grad(x.std(), x)
    near(gradient, (values - values.mean()) / values.size / values.std(), 1e-4)


@pytest.mark.parametrize("norm", [mg.layer_norm, mg.rms_norm])
def test_normalization_of_large_numbers_is_that_of_small_ones(norm):
    values = np.random.default_rng(2).standard_normal((3, 8)).astype("float32")
    plain, large = (mg.tensor(values * size, requires_grad=True) for size in (np.float32(1e3), np.float32(1e30)))
    outs = [norm(x, 8) for x in (plain, large)]
    near(outs[1], outs[0].numpy(), 1e-4)
    weights = mg.tensor(np.arange(24.0, dtype="float32").reshape(3, 8))
    small, big = (mg.grad((out * weights).sum(), x)[0].numpy() for out, x in zip(outs, (plain, large), strict=True))
    np.testing.assert_allclose(big.astype("float64") * 1e27, small, rtol=2e-2, atol=1e-5)
