"""gradcheck finds what is wrong, says where, and refuses what it cannot check."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.op import Op, registry


@pytest.fixture
def define(monkeypatch):
    """Make an op that leaves the registry again."""
    names = set(registry)
    yield lambda forward: Op(forward)
    for name in set(registry) - names:
        del registry[name]


def double(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape), requires_grad=True)


def test_right_gradients_pass():
    assert mg.gradcheck(lambda a, b: (mg.tanh(a @ b), (a * 2).sum()), [double(2, 3), double(3, 2)]) is True
    assert mg.gradgradcheck(lambda a, b: mg.tanh(a @ b), [double(2, 3), double(3, 2)]) is True
    assert mg.gradcheck(mg.exp, double(2, 3), per_element=True)


def test_one_wrong_element_is_found_and_named(define):
    @define
    def square(x):
        return x * x

    @square.vjp("x")
    def square_wrt_x(g, x):
        wrong = g * x * 2
        return wrong + 0.01 * mg.tensor([[0.0, 0.0], [0.0, 1.0]]).data * g

    for per_element in (False, True):
        with pytest.raises(mg.GradientMismatch, match=r"square: .*argument 0 .*index \(1, 1\).*gives .*difference"):
            mg.gradcheck(square, double(2, 2), per_element=per_element)


def test_the_argument_is_named():
    def fn(a, b):
        return a * b.detach()

    with pytest.raises(mg.GradientMismatch, match="fn: .*argument 1"):
        mg.gradcheck(fn, [double(3), double(3)])


def test_what_a_cotangent_of_ones_would_not_see(define):
    """The sum of a softmax is constant: under ones its gradient is zero, whatever the vjp does."""

    @define
    def soft(x):
        e = np.exp(x)
        return e / e.sum()

    @soft.vjp("x")
    def soft_wrt_x(g, out):
        return 5 * out * (g - (g * out).sum())

    ones = mg.grad(soft(x := double(3)).sum(), x)[0]
    np.testing.assert_allclose(ones.data, 0, atol=1e-15)
    with pytest.raises(mg.GradientMismatch):
        mg.gradcheck(soft, double(3))


def test_a_right_gradient_with_a_wrong_second_derivative(define):
    @define
    def cube(x):
        return x**3

    @cube.vjp("x")
    def cube_wrt_x(g, x):
        return g * 3 * mg.detach(x) * x

    assert mg.gradcheck(cube, double(3))
    with pytest.raises(mg.GradientMismatch, match="gradient of cube"):
        mg.gradgradcheck(cube, double(3))


def test_large_arrays_are_reported_by_direction():
    with pytest.raises(mg.GradientMismatch, match="random direction"):
        mg.gradcheck(lambda x: x * x.detach(), double(40, 40))


def test_nan_is_no_agreement():
    x = mg.tensor(np.zeros(2), requires_grad=True)
    with pytest.raises(mg.GradientMismatch):
        mg.gradcheck(lambda t: mg.sqrt(t) * 0.0, x)


def test_float32_is_refused():
    with pytest.raises(mg.DtypeError, match="float64.*argument 0|argument 0.*float32"):
        mg.gradcheck(mg.exp, mg.ones(2, requires_grad=True))
    with pytest.raises(mg.DtypeError, match="float32"):
        mg.gradcheck(lambda x: x.astype("float32"), double(2))


def test_there_must_be_something_to_check():
    with pytest.raises(mg.NoGradientError):
        mg.gradcheck(mg.exp, mg.tensor(np.ones(2)))


def test_chance_is_refused():
    with pytest.raises(mg.ArgumentError, match="manual_seed"):
        mg.gradcheck(lambda x: mg.dropout(x, 0.5), double(20))


def test_constants_integers_and_unused_inputs_are_fine():
    index = mg.tensor([0, 0, 1])
    assert mg.gradcheck(lambda x, i, n, unused: x[i] * n, [double(2), index, 3.0, double(2)])
    assert mg.gradcheck(lambda x: (x * 2, x.argmax()), double(3))
    assert mg.gradgradcheck(lambda x: x * 2, double(3))


def test_nothing_is_left_in_grad():
    x = double(2)
    mg.gradcheck(mg.exp, x)
    assert x.grad is None
