"""Where derivatives are infinite, undefined, or a matter of agreement; and where floating point runs out.

Warnings are errors in this suite, so each of these also shows that nothing warns.
"""

import math

import numpy as np
import pytest

import minigrad as mg

inf, nan = math.inf, math.nan


def value_and_gradients(fn, *inputs, dtype=None):
    leaves = [mg.tensor(x, dtype=dtype, requires_grad=True) for x in inputs]
    out = fn(*leaves)
    out.backward(mg.ones_like(out))
    return out.tolist(), *[x.grad.tolist() for x in leaves]


def check(fn, inputs, value, *gradients, dtype=None):
    got = value_and_gradients(fn, *inputs, dtype=dtype)
    for ours, right in zip(got, (value, *gradients), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-6, atol=1e-30)


def test_divisions_by_zero_are_what_floating_point_says():
    check(mg.div, ([1.0, 0.0], [0.0, 0.0]), [inf, nan], [inf, inf], [-inf, nan])
    check(mg.remainder, ([1.0], [0.0]), [nan], [1.0], [-inf])
    assert mg.floor_divide(mg.tensor([1.0]), 0.0).tolist() == [inf]


def test_division_by_what_squares_to_infinity():
    check(mg.div, ([1.0], [1e30]), [1e-30], [1e-30], [-0.0])
    check(mg.div, ([1e30], [1e30]), [1.0], [1e-30], [-1e-30])


def test_logarithms_and_roots_at_the_ends_of_their_domains():
    check(mg.log, ([0.0, -1.0, inf],), [-inf, nan, inf], [inf, -1.0, 0.0])
    check(mg.log1p, ([-1.0, 0.0],), [-inf, 0.0], [inf, 1.0])
    check(mg.sqrt, ([0.0, 4.0, -1.0],), [0.0, 2.0, nan], [inf, 0.25, nan])
    check(mg.exp, ([1000.0, -1000.0],), [inf, 0.0], [inf, 0.0])
    check(lambda x: mg.log1p(mg.expm1(x)), ([1e-20],), [1e-20], [1.0], dtype="float64")


@pytest.mark.parametrize(
    "fn, top, slope",
    [
        (mg.sigmoid, 1.0, 0.0),
        (mg.softplus, 1000.0, 1.0),
        (mg.silu, 1000.0, 1.0),
        (mg.gelu, 1000.0, 1.0),
        (mg.relu, 1000.0, 1.0),
        (lambda x: mg.gelu(x, approximate="tanh"), 1000.0, 1.0),
        (mg.tanh, 1.0, 0.0),
        (mg.erf, 1.0, 0.0),
        (mg.elu, 1000.0, 1.0),
    ],
)
def test_activations_far_out(fn, top, slope):
    bottom = {mg.tanh: -1.0, mg.erf: -1.0, mg.elu: -1.0}.get(fn, 0.0)
    for dtype in ("float16", "float32", "float64"):
        (low, high), (slope_low, slope_high) = value_and_gradients(fn, [-1000.0, 1000.0], dtype=dtype)
        assert (low, high, slope_low, slope_high) == (bottom, top, 0.0, slope)


def test_sigmoid_and_softplus_keep_their_digits_far_below_zero():
    small = math.exp(-50)
    check(mg.sigmoid, ([-50.0],), [small], [small], dtype="float64")
    check(mg.softplus, ([-50.0],), [small], [small], dtype="float64")


def test_slopes_at_kinks():
    check(mg.relu, ([0.0],), [0.0], [0.0])
    check(mg.abs, ([0.0, -2.0],), [0.0, 2.0], [0.0, -1.0])
    check(mg.sign, ([0.0, -2.0],), [0.0, -1.0], [0.0, 0.0])
    check(lambda x: mg.clamp(x, 0.0, 1.0), ([0.0, 1.0, -0.1, 1.1],), [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0])
    check(lambda x: mg.clamp(x, max=1.0), ([0.0, 2.0],), [0.0, 1.0], [1.0, 0.0])
    check(mg.l1_loss, ([1.0, 3.0], [1.0, 1.0]), 1.0, [0.0, 0.5], [0.0, -0.5])


def test_clamp_between_tensors():
    x, low, high = ([-1.0, 0.5, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    check(mg.clamp, (x, low, high), [0.0, 0.5, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    with pytest.raises(mg.ArgumentError):
        mg.clamp(mg.tensor(x))


def test_ties_share_the_gradient():
    check(mg.maximum, ([1.0, 2.0], [1.0, 0.0]), [1.0, 2.0], [0.5, 1.0], [0.5, 0.0])
    check(mg.minimum, ([1.0, 2.0], [1.0, 0.0]), [1.0, 0.0], [0.5, 0.0], [0.5, 1.0])
    check(lambda x: x.max(), ([3.0, 1.0, 3.0],), 3.0, [0.5, 0.0, 0.5])
    check(lambda x: x.min(axis=0), ([[1.0, 2.0], [1.0, 0.0]],), [1.0, 0.0], [[0.5, 0.0], [0.5, 1.0]])
    check(lambda x: x.max(axis=(0, 1), keepdims=True), ([[1.0, 1.0], [1.0, 1.0]],), [[1.0]], [[0.25] * 2] * 2)
    check(lambda x: x.max(), ([inf, inf, 1.0],), inf, [0.5, 0.5, 0.0])
    check(lambda x: x.norm(inf), ([1.0, -1.0, 0.0],), 1.0, [0.5, -0.5, 0.0])
    assert np.isnan(value_and_gradients(lambda x: x.max(), [1.0, nan])[1]).all()


def test_powers_at_zero():
    check(
        mg.pow,
        ([0.0, 0.0, 0.0, 2.0], [1.0, 0.0, 2.0, 1.0]),
        [0.0, 1.0, 0.0, 2.0],
        [1.0, 0.0, 0.0, 1.0],
        [0, 0, 0, 2 * math.log(2)],
    )
    check(lambda x: x**0, ([0.0, inf],), [1.0, 1.0], [0.0, 0.0])
    check(lambda x: x**2, ([0.0, -3.0],), [0.0, 9.0], [0.0, -6.0])
    check(lambda x: x**0.5, ([0.0, 4.0],), [0.0, 2.0], [inf, 0.25])
    check(lambda x: x**-1, ([0.0, 4.0],), [inf, 0.25], [-inf, -0.0625])
    check(lambda x: 0.0**x, ([0.0, 4.0],), [1.0, 0.0], [0.0, 0.0])
    check(lambda x: 2**x, ([0.0, 3.0],), [1.0, 8.0], [math.log(2), 8 * math.log(2)])
    x = mg.tensor(0.0, requires_grad=True)
    for power, derivatives in ((2, [0.0, 2.0, 0.0]), (3, [0.0, 0.0, 6.0]), (1, [1.0, 0.0])):
        y = x**power
        for right in derivatives:
            (y,) = mg.grad(y, x, create_graph=True, allow_unused=True)
            assert float(y) == right
    for exponent in (-1, mg.tensor([0, -1])):
        with pytest.raises(mg.DtypeError):
            mg.tensor([1, 2]) ** exponent


def test_the_second_derivative_of_a_power_in_base_and_exponent_at_exponent_zero():
    """d²/da db of a^b at b = 0 is 1/a: a mask on b == 0 alone would lose it."""
    a, b = mg.tensor(np.array([2.0, 0.5]), requires_grad=True), mg.tensor(np.zeros(2), requires_grad=True)
    assert mg.gradgradcheck(mg.pow, [a, b])


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, inf])
def test_the_norm_of_zero_has_the_gradient_zero(p):
    check(lambda x: mg.norm(x, p), ([0.0, 0.0],), 0.0, [0.0, 0.0])
    x = mg.tensor(np.array([[0.0, 0.0], [0.0, 2.0]]), requires_grad=True)
    (dx,) = mg.grad(mg.norm(x, p, axis=1).sum(), x, create_graph=True)
    assert dx.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    (ddx,) = mg.grad((dx * dx).sum(), x, allow_unused=True)
    assert ddx is None or np.isfinite(ddx.data).all()


@pytest.mark.parametrize("p", [0, -1, nan])
def test_a_norm_needs_a_positive_p(p):
    with pytest.raises(mg.ArgumentError):
        mg.norm(mg.ones(2), p)


@pytest.mark.parametrize("fn", [mg.std, mg.var])
def test_equal_values_have_no_deviation_and_no_gradient(fn):
    """Also where the mean of equal values rounds to another one."""
    for value in (0.0, 1.0, 0.1, 1e-20, 1e6, 3.3333333):
        for n in (1, 2, 3, 7, 1000):
            for dtype in ("float32", "float64"):
                out, gradient = value_and_gradients(fn, [value] * n, dtype=dtype)
                assert out == 0 and gradient == [0.0] * n


def test_too_few_values_for_a_correction():
    for fn in (mg.std, mg.var):
        out, gradient = value_and_gradients(lambda x, fn=fn: fn(x, correction=1), [5.0])
        assert np.isnan(out) and np.isnan(gradient).all()


def test_products_with_zeros():
    check(mg.prod, ([0.0, 4.0, 5.0],), 0.0, [20.0, 0.0, 0.0])
    check(mg.prod, ([0.0, 0.0, 3.0],), 0.0, [0.0, 0.0, 0.0])
    check(
        lambda x: x.prod(axis=(0, 2)),
        ([[[2.0], [3.0]], [[0.0], [4.0]]],),
        [0.0, 12.0],
        [[[0.0], [4.0]], [[2.0], [3.0]]],
    )


def test_normalize_of_zeros():
    check(lambda x: mg.normalize(x, p=1, axis=1), ([[0.0, 0.0, 0.25]],), [[0.0, 0.0, 1.0]], [[4.0, 4.0, 0.0]])
    for dtype in ("float16", "float32", "float64"):
        out, gradient = value_and_gradients(mg.normalize, [[0.0, 0.0], [3.0, 4.0]], dtype=dtype)
        np.testing.assert_allclose(out, [[0.0, 0.0], [0.6, 0.8]], rtol=1e-3)
        assert np.isfinite(gradient).all()


def test_logits_without_bounds():
    for big in (1e4, 1e8, 1e30, -1e30):
        check(mg.logsumexp, ([big, big],), big + math.log(2), [0.5, 0.5])
        check(lambda x: mg.softmax(x)[0], ([big, big],), 0.5, [0.25, -0.25])
        check(lambda x: mg.log_softmax(x)[0], ([big, big],), -math.log(2), [0.5, -0.5])
        check(lambda x: mg.cross_entropy(x, mg.tensor(0)), ([big, big],), math.log(2), [-0.5, 0.5])


def test_masks_of_minus_infinity():
    x = [0.0, -inf, 0.0]
    check(mg.logsumexp, (x,), math.log(2), [0.5, 0.0, 0.5])
    check(mg.softmax, (x,), [0.5, 0.0, 0.5], [0.0, 0.0, 0.0])
    check(lambda t: mg.log_softmax(t)[2], (x,), -math.log(2), [-0.5, 0.0, 0.5])
    check(lambda t: mg.cross_entropy(t, mg.tensor(2)), (x,), math.log(2), [0.5, 0.0, -0.5])
    check(lambda t: mg.cross_entropy(t, mg.tensor(1)), (x,), inf, [0.5, -1.0, 0.5])
    check(mg.logsumexp, ([-inf, -inf],), -inf, [0.0, 0.0])
    assert np.isnan(mg.softmax(mg.tensor([-inf, -inf])).data).all()


def test_binary_cross_entropy_far_out():
    def loss(x):
        return mg.binary_cross_entropy_with_logits(x, mg.tensor([1.0, 0.0]), reduction="none")

    check(loss, ([1e4, -1e4],), [0.0, 0.0], [0.0, 0.0])
    check(loss, ([-1e4, 1e4],), [1e4, 1e4], [-1.0, 1.0])


def test_reductions_of_nothing():
    empty = mg.zeros(0, requires_grad=True)
    for fn, right in (
        (mg.sum, 0.0),
        (mg.prod, 1.0),
        (mg.mean, nan),
        (mg.var, nan),
        (mg.std, nan),
        (mg.norm, 0.0),
        (mg.logsumexp, -inf),
    ):
        empty.grad = None
        out = fn(empty)
        out.backward()
        np.testing.assert_equal(float(out), right)
        assert empty.grad.shape == (0,)
    assert mg.softmax(mg.zeros(3, 0)).shape == (3, 0) and mg.log_softmax(mg.zeros(0, 3)).shape == (0, 3)
    for fn in (mg.max, mg.min, mg.argmax):
        with pytest.raises(mg.ShapeError):
            fn(mg.zeros(0))
    assert np.isnan(float(mg.mse_loss(mg.zeros(0), mg.zeros(0))))
    assert np.isnan(float(mg.cross_entropy(mg.zeros(0, 3), mg.zeros(0, dtype="int64"))))


def test_half_precision_adds_up_in_single():
    x = mg.full((80000,), 3.0, dtype="float16", requires_grad=True)
    for fn, right in ((mg.mean, 3.0), (mg.var, 0.0), (mg.std, 0.0), (mg.norm, 3 * 80000**0.5)):
        out = fn(x)
        assert out.dtype == "float16" and abs(float(out) - right) <= 1e-3 * right
    mg.mean(x).backward()
    np.testing.assert_allclose(x.grad.data.astype(float), 1 / 80000, rtol=0.02)
    y = mg.tensor([300.0, -300.0], dtype="float16")
    assert float(mg.std(y)) == 300.0 and float(mg.norm(y)) == 424.25
    assert float(mg.mse_loss(y, y * 0, reduction="none").max()) == inf


# ---- Losses ------------------------------------------------------------------------------------------


def test_rows_that_are_ignored_do_not_count():
    logits = np.random.default_rng(0).standard_normal((4, 3))
    target = mg.tensor([0, -100, 2, -100])
    for reduction in ("mean", "sum"):
        x, y = mg.tensor(logits, requires_grad=True), mg.tensor(logits[[0, 2]], requires_grad=True)
        some, those = (
            mg.cross_entropy(x, target, reduction=reduction),
            mg.cross_entropy(y, mg.tensor([0, 2]), reduction=reduction),
        )
        some.backward(), those.backward()
        assert float(some) == pytest.approx(float(those))
        np.testing.assert_allclose(x.grad.data[[0, 2]], y.grad.data)
        assert (x.grad.data[[1, 3]] == 0).all()
    assert np.isnan(float(mg.cross_entropy(mg.tensor(logits), mg.tensor([-100] * 4))))


def test_cross_entropy_keeps_the_logits_and_the_targets_and_nothing_of_their_size_besides():
    h = mg.exp(mg.ones(4, 3, requires_grad=True))
    node = mg.cross_entropy(h, mg.tensor([0, 1, 2, 0])).node
    assert node.needs.inputs == (0, 1) and not node.needs.out


@pytest.mark.parametrize(
    "logits, target, error",
    [
        ((4, 3), [0, 1, 2, 3], mg.IndexingError),
        ((4, 3), [0, 1, 2, -1], mg.IndexingError),
        ((4, 3), [0, 1], mg.ShapeError),
        ((4, 3), [[0], [1], [2], [0]], mg.ShapeError),
        ((2, 4, 3), [[0] * 4] * 2, mg.ShapeError),
        ((4, 3), [0.0] * 4, mg.DtypeError),
        ((3,), [0, 1, 2], mg.ShapeError),
    ],
)
def test_targets_that_do_not_fit(logits, target, error):
    for loss in (mg.cross_entropy, mg.nll_loss):
        with pytest.raises(error):
            loss(mg.ones(*logits), mg.tensor(target))


@pytest.mark.parametrize("loss", [mg.mse_loss, mg.l1_loss, mg.binary_cross_entropy_with_logits])
def test_losses_compare_tensors_of_one_shape(loss):
    """Broadcasting (3, 1) against (3,) would quietly compare each with all."""
    with pytest.raises(mg.ShapeError, match=r"\(3, 1\)"):
        loss(mg.ones(3, 1), mg.ones(3))
    assert float(loss(mg.zeros(3), 0.0)) == float(loss(mg.zeros(3), mg.zeros(3)))


@pytest.mark.parametrize("loss", [mg.mse_loss, mg.l1_loss, mg.binary_cross_entropy_with_logits])
def test_an_unknown_reduction(loss):
    with pytest.raises(mg.ArgumentError, match="mean.*sum.*none"):
        loss(mg.ones(3), mg.ones(3), reduction="average")


# ---- Calls that make no sense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act, error",
    [
        (lambda x: mg.gelu(x, approximate="erf"), mg.ArgumentError),
        (lambda x: mg.leaky_relu(x, -1.0), mg.ArgumentError),
        (lambda x: mg.elu(x, -1.0), mg.ArgumentError),
        (lambda x: mg.softplus(x, 0.0), mg.ArgumentError),
        (lambda x: x.sum(axis=5), IndexError),
        (lambda x: x.reshape(5), mg.ShapeError),
        (lambda x: x.reshape(1.5), mg.ArgumentError),
        (lambda x: x.permute(0), mg.ShapeError),
        (lambda x: x.permute(0, 0), mg.ShapeError),
        (lambda x: x.squeeze(0), mg.ShapeError),
        (lambda x: x.flatten(1, 0), mg.ArgumentError),
        (lambda x: x.split(0), mg.ArgumentError),
        (lambda x: x.split([1, 2]), mg.ShapeError),
        (lambda x: x.split([3, -1]), mg.ShapeError),
        (lambda x: mg.pad(x, (1,)), mg.ShapeError),
        (lambda x: mg.pad(x, (-1, 0)), mg.ShapeError),
        (lambda x: mg.pad(x, (1, 1), mode="reflect"), mg.ArgumentError),
        (lambda x: mg.pad(x, (1, 1) * 3), mg.ShapeError),
        (lambda x: x.broadcast_to(3), mg.ShapeError),
        (lambda x: mg.cat([x, x[0]]), mg.ShapeError),
        (lambda x: mg.cat([]), mg.MinigradError),
        (lambda x: mg.stack([x, x[0]]), mg.ShapeError),
        (lambda x: x @ x, mg.ShapeError),
        (lambda x: mg.outer(x, x), mg.ShapeError),
        (lambda x: x[0].trace(), mg.ShapeError),
        (lambda x: x + "one", mg.ArgumentError),
        (lambda x: x + [1.0], mg.ArgumentError),
        (lambda x: mg.einsum("ij,jk->ik", x), mg.ArgumentError),
        (lambda x: mg.einsum("i", x), mg.ShapeError),
        (lambda x: mg.einsum("ij->ii", x), mg.ArgumentError),
        (lambda x: mg.einsum("ij->k", x), mg.ArgumentError),
        (lambda x: mg.einsum("i?->i", x), mg.ShapeError),
        (lambda x: mg.einsum("...ijk", x), mg.ShapeError),
        (lambda x: mg.einsum("ij,ij", x, mg.ones(3, 3)), mg.ShapeError),
        (lambda x: ~x, mg.DtypeError),
    ],
)
def test_a_wrong_call_is_an_error_of_ours_and_names_the_op(act, error):
    with pytest.raises(error) as caught:
        act(mg.ones(2, 3, requires_grad=True))
    assert isinstance(caught.value, mg.MinigradError)


# ---- Shapes and einsum, beyond the samples -----------------------------------------------------------


def test_split_is_torchs():
    x = mg.tensor(np.arange(10.0).reshape(5, 2), requires_grad=True)
    assert [p.shape for p in mg.split(x, 2)] == [(2, 2), (2, 2), (1, 2)]
    assert [p.shape for p in mg.split(x, [1, 0, 4])] == [(1, 2), (0, 2), (4, 2)]
    assert [p.shape for p in x.split([1, 1], axis=-1)] == [(5, 1), (5, 1)]
    assert len(mg.split(mg.zeros(0), 2)) == 1
    mg.split(x, 2)[1].sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1], [0, 0]]


def test_pad_takes_torchs_list_or_numpys_pairs():
    x = np.ones((2, 3))
    np.testing.assert_array_equal(mg.pad(mg.tensor(x), (1, 2)).data, np.pad(x, ((0, 0), (1, 2))))
    np.testing.assert_array_equal(
        mg.pad(mg.tensor(x), (1, 2, 3, 0), value=5.0).data, np.pad(x, ((3, 0), (1, 2)), constant_values=5)
    )
    np.testing.assert_array_equal(mg.pad(mg.tensor(x), ((3, 0), (1, 2))).data, np.pad(x, ((3, 0), (1, 2))))
    assert mg.pad(mg.tensor([1, 2]), (1, 0)).dtype == "int64"


def test_flatten_is_torchs():
    x = mg.ones(2, 3, 4)
    assert x.flatten().shape == (24,) and x.flatten(1).shape == (2, 12) and x.flatten(0, 1).shape == (6, 4)
    assert (
        x.flatten(-2).shape == (2, 12)
        and mg.tensor(1.0).flatten().shape == (1,)
        and mg.ones(0, 3).flatten(1).shape == (0, 3)
    )


def test_a_number_in_a_stack_takes_the_dtype_of_the_tensors():
    assert mg.stack([mg.tensor(1.0), 2.0, 3]).dtype == "float32"


def test_where_of_two_numbers_is_of_the_default_dtype():
    x = mg.tensor([-1.0, 1.0], requires_grad=True)
    y = mg.where(x > 0, 1.0, -1.0) * x
    assert y.dtype == "float32"
    assert mg.where(x > 0, 1, 0).dtype == "int64" and mg.where(x > 0, True, False).dtype == bool
    assert mg.where(x > 0, 1, 0.5).dtype == "float32"
    y.sum().backward()
    assert x.grad.tolist() == [-1, 1]


def test_where_lets_no_nan_through_from_the_side_that_was_not_taken():
    x = mg.tensor([0.0, 4.0], requires_grad=True)
    mg.where(x > 0, x, 0.0).sum().backward()
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (3, 4)]),
        ("...i->...", [(2, 3)]),
        ("i...,i...", [(2, 3), (2, 1)]),
        ("b...j,jk->b...k", [(2, 5, 3), (3, 4)]),
        ("...,...", [(2, 3), (3,)]),
        ("ij , jk -> ik", [(2, 3), (3, 2)]),
        ("i,i,i->", [(3,), (3,), (3,)]),
        ("ij,ji,jk,kk->k", [(2, 3), (3, 2), (3, 2), (2, 2)]),
        ("...ii->...i", [(2, 3, 3)]),
    ],
)
def test_einsum_spells_everything_that_numpys_does(subscripts, shapes):
    rng = np.random.default_rng(0)
    leaves = [mg.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]
    expected = np.einsum(subscripts, *[x.data for x in leaves])
    np.testing.assert_allclose(mg.einsum(subscripts, *leaves).data, expected, rtol=1e-12)

    def fn(*xs):
        return mg.einsum(subscripts, *xs)

    assert mg.gradcheck(fn, leaves) and mg.gradgradcheck(fn, leaves)


def test_sort_puts_equal_values_in_their_order_both_ways():
    x = mg.tensor([2.0, 1.0, 2.0, 1.0])
    assert x.argsort().tolist() == [1, 3, 0, 2] and x.argsort(descending=True).tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, s: mg.leaky_relu(x, s),
        lambda x, s: mg.elu(x, s),
        lambda x, s: mg.softplus(x, s),
        lambda x, s: mg.clamp(x, min=-s, max=s),
        lambda x, s: mg.where(x > 0, s, s) * x,
        lambda x, s: mg.norm(x, s),
        lambda x, s: mg.normalize(x.unsqueeze(0), s),
        lambda x, s: mg.dropout(x, s),
        lambda x, s: mg.pad(x, (1, 1), value=s),
    ],
)
def test_a_setting_that_is_a_numpy_scalar_promotes_nothing(fn):
    x = mg.tensor([1.0, -2.0], requires_grad=True)
    out = fn(x, np.float64(0.5))
    assert out.dtype == "float32"
    (dx,) = mg.grad(out.sum(), x, create_graph=True)
    assert dx.dtype == "float32"
