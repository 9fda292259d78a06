"""Odd inputs: axes that do not exist, empty arrays, infinite arguments, and tensors and lists given as settings.

The tests walk the public functions, so that a new one is tried as well.
"""

import inspect
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import ops
from minigrad.engine.op import registry
from tests.op_samples import SAMPLES

INF = float("inf")


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def leaf(values, dtype="float64"):
    return mg.tensor(np.array(values, dtype), requires_grad=True)


def value_and_gradients(function, *arrays):
    leaves = [leaf(x) for x in arrays]
    out = function(*leaves)
    out.backward(mg.ones_like(out))
    return out.numpy(), *[x.grad.numpy() for x in leaves]


def functions_with(*names):
    """The public functions of one array that have all these parameters, and need no others."""
    found = []
    for name in ops.__all__:
        function = getattr(ops, name)
        parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())
        others = [p for p in parameters[1:] if p.default is p.empty and p.name not in names]
        if {p.name for p in parameters} >= set(names) and not others and parameters[0].name == "x":
            found.append(name)
    return found


AXIS = [name for name in functions_with("axis") if name not in ("unsqueeze", "unbind")]
ONE_AXIS = "cumsum cumprod cummax cummin glu topk unflatten argmax argmin sort argsort roll take".split()
TUPLES = [name for name in AXIS if name not in ONE_AXIS and name in registry]


def test_the_walk_finds_what_it_should():
    assert {"sum", "mean", "softmax", "cumsum", "sort", "flip", "normalize", "squeeze"} <= set(AXIS)
    assert {"sum", "prod", "logsumexp", "flip"} <= set(TUPLES)


# ---- Axes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [2, -3, 99])
@pytest.mark.parametrize("name", AXIS)
def test_an_axis_that_does_not_exist_is_an_error_of_ours(name, axis):
    with pytest.raises((mg.IndexingError, mg.ShapeError)):
        getattr(ops, name)(mg.ones(2, 3), axis=axis)


@pytest.mark.parametrize("name", TUPLES)
def test_an_axis_given_twice_is_an_error_of_ours(name):
    with pytest.raises(mg.MinigradError):
        getattr(ops, name)(mg.ones(1, 1), axis=(0, -2))


@pytest.mark.parametrize("name", AXIS)
def test_numpy_integers_and_negative_axes_mean_what_python_integers_mean(name):
    x = mg.tensor(np.arange(2.0).reshape(2, 1) + 1 if name != "glu" else np.ones((3, 2)))
    expected = getattr(ops, name)(x, axis=1)
    for axis in (np.int64(1), np.int8(-1), -1):
        assert np.array_equal(getattr(ops, name)(x, axis=axis).numpy(), expected.numpy())


@pytest.mark.parametrize("name", TUPLES)
def test_a_list_of_axes_changed_afterwards_changes_no_gradient(name):
    function, x = getattr(ops, name), np.array([[[0.5, 2.0, 3.0]]])

    def gradient(run, axes, then=()):
        t = leaf(x)
        out = run(lambda t: function(t, axis=axes), t)
        if not out.requires_grad:
            return None
        if isinstance(axes, list):
            axes[:] = then
        return mg.grad(out, [t], mg.ones_like(out))[0].numpy()

    expected = gradient(lambda f, t: f(t), (0, 1))
    for run in (lambda f, t: f(t), mg.checkpoint):
        assert np.array_equal(gradient(run, [0, 1], [2]), expected)


def test_split_and_flatten_refuse_axes_that_do_not_exist():
    x = mg.ones(2, 3)
    for axis in (2, -3, 5):
        for call in (lambda a: mg.split(x, 1, axis=a), lambda a: mg.flatten(x, a), lambda a: mg.flatten(x, 0, a)):
            with pytest.raises(mg.IndexingError, match="does not exist"):
                call(axis)
    assert mg.flatten(mg.tensor(1.0)).shape == (1,)


def test_sort_without_an_axis_sorts_the_flattened_array():
    x = np.array([[3.0, 1.0], [2.0, 0.0]])
    weights = mg.tensor([1.0, 2.0, 3.0, 4.0], dtype="float64")
    for descending, order in ((False, [4, 2, 3, 1]), (True, [1, 3, 2, 4])):
        out, g = value_and_gradients(lambda t: t.sort(axis=None, descending=descending) * weights, x)  # noqa: B023
        assert np.array_equal(g, np.reshape(order, (2, 2)).astype(float))
    assert mg.argsort(mg.tensor(x), axis=None).tolist() == [3, 1, 2, 0]
    assert mg.argsort(mg.tensor(x), axis=None, descending=True).tolist() == [0, 2, 1, 3]
    assert mg.sort(mg.tensor(2.0)).shape == () and mg.argsort(mg.tensor(2.0)).shape == ()


def test_roll_takes_lists():
    x = np.arange(6.0).reshape(2, 3)
    out, g = value_and_gradients(lambda t: mg.roll(t, [1, 2], [0, 1]) * mg.tensor(x), x)
    assert np.array_equal(out, np.roll(x, (1, 2), (0, 1)) * x)
    assert np.array_equal(g, np.roll(x, (-1, -2), (0, 1)))


# ---- Empty, and one element --------------------------------------------------------------------------


def test_the_gradient_of_the_product_of_one_element_is_one():
    for shape, axis in (((1,), None), ((1, 1), None), ((3, 1), 1), ((1,), 0), ((), None)):
        _, g = value_and_gradients(lambda t: mg.prod(t, axis=axis), np.full(shape, 3.0))  # noqa: B023
        assert np.array_equal(g, np.ones(shape))


def test_einsum_along_labels_without_elements():
    for subscripts, shapes in (
        ("ij->i", [(2, 0)]), ("ij->j", [(0, 2)]), ("i,j->i", [(2,), (0,)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ii->i", [(0, 0)]), ("i->", [(0,)]), ("ij,kl->", [(2, 0), (0, 1)]),
    ):  # fmt: skip
        arrays = [np.ones(shape) for shape in shapes]
        out, *gradients = value_and_gradients(lambda *xs: mg.einsum(subscripts, *xs), *arrays)  # noqa: B023
        assert np.array_equal(out, np.einsum(subscripts, *arrays))
        assert [g.shape for g in gradients] == shapes and not any(g.any() for g in gradients)


# ---- Infinite arguments, and zeros where it matters --------------------------------------------------


def test_a_power_of_zero_falls_infinitely_fast_below_exponent_zero():
    exponents = np.array([-1.0, -0.5, 0.0, 2.0])
    for function in (lambda b: mg.zeros(4, dtype="float64") ** b, lambda b: 0.0**b):
        out, g = value_and_gradients(function, exponents)
        assert np.array_equal(out, [INF, INF, 1, 0]) and np.array_equal(g, [-INF, -INF, 0, 0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "elu", "softplus", "sigmoid", "relu", "erf", "tanh"])
def test_activations_reach_their_limits(name, dtype):
    function = (lambda t: mg.gelu(t, approximate="tanh")) if name == "gelu_tanh" else getattr(mg, name)
    low = {"elu": -1, "erf": -1, "tanh": -1}.get(name, 0)
    high = 1 if name in ("sigmoid", "erf", "tanh") else INF
    x = leaf([-INF, -60000.0, INF], dtype)
    out = function(x)
    out.backward(mg.ones_like(out))
    assert out.tolist()[:2] == [low, low] and out.tolist()[2] == high
    assert x.grad.tolist() == [0, 0, 1 if high == INF else 0]


def test_no_op_of_one_array_warns_about_infinities():
    for name, op in registry.items():
        if op.arity == 1 and not op.settings and not op.variadic and name not in ("trace", "bitwise_not"):
            x = leaf([-INF, INF, 0.0, 1e300, -1e300])
            out = op(x)
            if out.requires_grad:
                out.backward(mg.ones_like(out))


@pytest.mark.parametrize("zero", [0, False, [1, 0, 1]])
def test_integers_cannot_be_divided_by_zero(zero):
    """Nor would a warning do: an integer has no value that says so."""
    x, divisor = mg.tensor([1, 0, -1]), mg.tensor(zero) if isinstance(zero, list) else zero
    for divide in (mg.floor_divide, mg.remainder):
        with pytest.raises(mg.ArgumentError, match="divided by zero"):
            divide(x, divisor)
        assert np.isfinite(divide(x, mg.tensor([2, 3, 4])).numpy()).all()
    zero = mg.tensor([0, 0, 0])
    assert (x / zero).numpy()[0] == INF


def test_a_window_that_lies_in_the_padding_gives_minus_infinity():
    x = leaf(np.ones((1, 1, 1, 1)))
    out = mg.max_pool2d(x, 2, stride=1, padding=1, dilation=2)
    assert out.numpy().tolist() == [[[[-INF]]]]
    out.backward(mg.ones_like(out))
    assert x.grad.tolist() == [[[[0.0]]]]


# ---- Making tensors, cells, ops without inputs -------------------------------------------------------


def test_arange_rounds_each_number_once():
    assert mg.arange(2**24, 2**24 + 6, 2, dtype="float32").tolist() == [2.0**24, 2.0**24 + 2, 2.0**24 + 4]
    assert mg.arange(1e6, 1e6 + 1, 0.25, dtype="float32").tolist() == [1e6, 1e6 + 0.25, 1e6 + 0.5, 1e6 + 0.75]
    assert mg.arange(0.5, 3, 0.5, dtype="int64").tolist() == [0, 1, 1, 2, 2]
    assert mg.arange(2**53, 2**53 + 3).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert mg.arange(3, 0, -1).tolist() == [3, 2, 1] and mg.arange(0.0, -1.0, 0.5).shape == (0,)
    with pytest.raises(mg.ArgumentError, match="step"):
        mg.arange(0, 3, 0)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_cell_refuses_a_state_of_another_batch(name):
    cell = getattr(mg.nn, name)(3, 4)
    for batch in (1, 5):
        state = mg.ones(batch, 4)
        with pytest.raises(mg.ShapeError, match=name):
            cell(mg.ones(2, 3), (state, state) if name == "LSTMCell" else state)
    if name == "LSTMCell":
        with pytest.raises(mg.ShapeError, match=name):
            cell(mg.ones(2, 3), mg.ones(2, 4))


def test_a_wrong_number_in_a_budget_is_a_value_error():
    assert issubclass(mg.BudgetError, ValueError)


# ---- Settings that are tensors -----------------------------------------------------------------------

SLOPES = [("leaky_relu", 0.2), ("elu", 0.7), ("softplus", 1.5)]


@pytest.mark.parametrize(("name", "number"), SLOPES)
def test_a_slope_that_is_a_tensor_gets_its_gradient(name, number):
    function = getattr(mg, name)
    x = leaf([-1.5, -0.2, 0.4, 2.0])
    for slope in (leaf(number), leaf([number, 0.3, 0.4, 0.5])):
        mg.gradcheck(function, [x, slope])
    plain, (out, g, _) = value_and_gradients(lambda t: function(t, number), x.numpy()), value_and_gradients(
        function, x.numpy(), number
    )
    assert np.allclose(out, plain[0], rtol=1e-14) and np.allclose(g, plain[1], rtol=1e-12)
    slope = leaf(number)
    expected = mg.grad(function(x, slope).sum(), [x, slope])
    found = mg.grad(mg.checkpoint(function, x, slope).sum(), [x, slope])
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("name", "setting"),
    [("norm", "p"), ("roll", "shift"), ("layer_norm", "eps"), ("cumsum", "axis"), ("var", "correction")],
)
def test_elsewhere_a_tensor_that_requires_a_gradient_is_refused(name, setting):
    others = {"normalized_shape": (3,)} if name == "layer_norm" else {}
    with pytest.raises(mg.MinigradError):
        getattr(mg, name)(mg.ones(2, 3), **others, **{setting: leaf(1.0)})


# ---- Settings given by reference ---------------------------------------------------------------------
# Each: a call with one setting, what is given for it, and what the caller writes into it before backward.

BY_REFERENCE = {
    "reshape": (lambda x, s: mg.reshape(x, s), [3, 4], [12, 1]),
    "broadcast_to": (lambda x, s: mg.broadcast_to(x, s), [2, 4, 3], [1, 4, 3]),
    "permute": (lambda x, s: mg.permute(x, s), [1, 0], [0, 1]),
    "roll": (lambda x, s: mg.roll(x, s, [0, 1]), [1, 2], [0, 0]),
    "roll array": (lambda x, s: mg.roll(x, s, 0), np.array(1), np.array(2)),
    "roll tensor": (lambda x, s: mg.roll(x, s, 0), mg.tensor(1), np.array(2)),
    "flip": (lambda x, s: mg.flip(x, s), [0], [1]),
    "squeeze": (lambda x, s: mg.squeeze(x.reshape(1, 4, 3), s), [0], [1]),
    "pad": (lambda x, s: mg.pad(x, s), [1, 0, 2, 1], [0, 1, 1, 2]),
    "pad pairs": (lambda x, s: mg.pad(x, s), [[1, 0], [2, 1]], [[0, 1], [1, 2]]),
    "split": (lambda x, s: mg.split(x, s)[0], [1, 3], [3, 1]),
    "norm": (lambda x, s: mg.norm(x, s), np.array(3.0), np.array(1.0)),
    "norm tensor": (lambda x, s: mg.norm(x, s), mg.tensor(3.0), np.array(1.0)),
    "leaky_relu": (lambda x, s: mg.leaky_relu(x - 5, s), np.array(0.1), np.array(0.7)),
    "leaky_relu tensor": (lambda x, s: mg.leaky_relu(x - 5, s), mg.tensor(0.1), np.array(0.7)),
    "elu": (lambda x, s: mg.elu(x - 5, s), np.array(0.1), np.array(0.7)),
    "softplus": (lambda x, s: mg.softplus(x - 5, s), np.array(0.1), np.array(0.7)),
    "layer_norm": (lambda x, s: mg.layer_norm(x, s), [3], [4]),
    "layer_norm eps": (lambda x, s: mg.layer_norm(x, (3,), eps=s), np.array(0.1), np.array(5.0)),
    "rms_norm eps": (lambda x, s: mg.rms_norm(x, (3,), eps=s), np.array(0.1), np.array(5.0)),
    "normalize eps": (lambda x, s: mg.normalize(x / 1e3, eps=s), np.array(0.1), np.array(5.0)),
    "clamp": (lambda x, s: mg.clamp(x, max=s), np.array(3.0), np.array(9.0)),
    "index": (lambda x, s: x[s], [0, 2], [1, 1]),
    "index array": (lambda x, s: x[s], np.array([0, 2]), np.array([1, 1])),
    "index mask": (lambda x, s: x[:, s], np.array([True, False, True]), np.array([False, True, False])),
    "index tuple": (lambda x, s: x[0, s], [0, 2], [1, 1]),
    "index_put": (lambda x, s: mg.index_put(x, s, 0.0), np.array([0, 2]), np.array([1, 1])),
    "take": (lambda x, s: mg.take(x, s, 0), np.array([0, 2]), np.array([1, 1])),
    "gather": (lambda x, s: mg.gather(x, 0, s), np.array([[0, 2, 1]]), np.array([[1, 1, 0]])),
    "where": (lambda x, s: mg.where(s, x, 0.0), np.array([True, False, True]), np.array([False, True, False])),
    "mul": (lambda x, s: x * s, np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])),
    "max_pool2d": (lambda x, s: mg.max_pool2d(x.reshape(1, 1, 4, 3), s, 1), [2, 1], [1, 2]),
    "max_pool2d stride": (lambda x, s: mg.max_pool2d(x.reshape(1, 1, 4, 3), 2, s), [2, 1], [1, 1]),
    "avg_pool2d padding": (lambda x, s: mg.avg_pool2d(x.reshape(1, 1, 4, 3), 2, 1, s), [1, 0], [0, 0]),
    "conv2d stride": (lambda x, s: mg.conv2d(x.reshape(1, 1, 4, 3), mg.ones(1, 1, 2, 2), stride=s), [2, 1], [1, 1]),
    "conv2d padding": (lambda x, s: mg.conv2d(x.reshape(1, 1, 4, 3), mg.ones(1, 1, 2, 2), padding=s), [1, 0], [0, 0]),
    "cross_entropy": (lambda x, s: mg.cross_entropy(x, s), np.array([0, 1, 2, 0]), np.array([1, 2, 0, 1])),
}


@pytest.mark.parametrize("around", [lambda f, x: f(x), mg.checkpoint], ids=["plain", "checkpoint"])
@pytest.mark.parametrize("name", BY_REFERENCE)
def test_what_the_caller_writes_into_a_setting_afterwards_changes_no_gradient(name, around):
    call, setting, change = BY_REFERENCE[name]

    def gradient(around, setting, change=None):
        x = leaf(np.arange(12.0).reshape(4, 3) ** 1.1)
        out = around(lambda x: call(x, setting), x)
        if isinstance(setting, list):
            setting[:] = change or setting
        elif isinstance(setting, mg.Tensor) and change is not None:
            setting.data = change.astype(setting.dtype)
        elif change is not None:
            setting[...] = change
        return mg.grad(out, [x], mg.tensor(np.cos(np.arange(out.size)).reshape(out.shape)))[0].numpy()

    def copied():
        return mg.tensor(setting.numpy()) if isinstance(setting, mg.Tensor) else setting.copy()

    expected = gradient(lambda f, x: f(x), copied())
    assert np.array_equal(gradient(around, copied(), change), expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_op_takes_a_tensor_that_requires_a_gradient_as_a_setting(name):
    op = registry[name]
    for sample in SAMPLES[name]:
        inputs = [mg.tensor(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        if not any(isinstance(x, mg.Tensor) for x in inputs):
            continue
        for setting in sample.settings.keys() & op.settings:
            with pytest.raises(mg.ArgumentError, match=setting):
                op(*inputs, **{**sample.settings, setting: leaf(1.0)})


def test_rates_scales_and_axes_that_are_no_numbers_are_refused():
    x, wrong = mg.ones(2, 3), leaf(0.5)
    for call in (
        lambda: mg.dropout(x, wrong), lambda: mg.dropout(x, "half"), lambda: mg.norm(x, "fro"),
        lambda: mg.scaled_dot_product_attention(x, x, x, scale=wrong),
        lambda: mg.flatten(x, 1.5), lambda: mg.flatten(x, [0, 1]), lambda: mg.split(x, 1, axis=0.5),
    ):  # fmt: skip
        with pytest.raises(mg.ArgumentError):
            call()
