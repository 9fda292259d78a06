"""The functions that are made of ops: their first and second gradients, and what they refuse."""

import numpy as np
import pytest

import minigrad as mg


def real(*shape):
    return mg.tensor(np.random.default_rng(sum(shape) + 1).standard_normal(shape), requires_grad=True)


def between(*shape):
    return mg.tensor(np.random.default_rng(2).uniform(0.1, 0.9, shape), requires_grad=True)


INDEX, MASK = mg.tensor([[0, 2, 1], [2, 2, 0]]), mg.tensor([[True, False, True], [False, False, True]])
MADE_OF_OPS = {
    "square": lambda: (mg.square, [real(2, 3)]),
    "reciprocal": lambda: (mg.reciprocal, [between(2, 3)]),
    "rsqrt": lambda: (mg.rsqrt, [between(2, 3)]),
    "lerp": lambda: (mg.lerp, [real(2, 3), real(3), real(2, 1)]),
    "relu6": lambda: (mg.relu6, [real(2, 3)]),
    "hardsigmoid": lambda: (mg.hardsigmoid, [real(2, 3)]),
    "hardswish": lambda: (mg.hardswish, [real(2, 3)]),
    "celu": lambda: (lambda x: mg.celu(x, 0.7), [real(2, 3)]),
    "selu": lambda: (mg.selu, [real(2, 3)]),
    "softsign": lambda: (mg.softsign, [real(2, 3)]),
    "mish": lambda: (mg.mish, [real(2, 3)]),
    "logsigmoid": lambda: (mg.logsigmoid, [real(2, 3)]),
    "softmin": lambda: (mg.softmin, [real(2, 3)]),
    "glu": lambda: (mg.glu, [real(2, 4)]),
    "tile": lambda: (lambda x: mg.tile(x, 2, 1, 2), [real(2, 3)]),
    "repeat": lambda: (lambda x: mg.repeat(x, 2, 3), [real(2, 3)]),
    "repeat_interleave": lambda: (lambda x: mg.repeat_interleave(x, [2, 0, 1], 1), [real(2, 3)]),
    "unfold": lambda: (lambda x: mg.unfold(x, 1, 3, 2), [real(2, 7)]),
    "expand": lambda: (lambda x: mg.expand(x, 4, -1, 3), [real(2, 1)]),
    "movedim": lambda: (lambda x: mg.movedim(x, 0, -1), [real(2, 3, 4)]),
    "masked_fill": lambda: (lambda x: mg.masked_fill(x, MASK, 2.0), [real(2, 3)]),
    "masked_select": lambda: (lambda x: mg.masked_select(x, MASK), [real(2, 3)]),
    "scatter": lambda: (lambda x, v: mg.scatter(x, 1, INDEX, v), [real(2, 3), real(2, 3)]),
    "topk": lambda: (lambda x: mg.topk(x, 2)[0], [real(2, 5)]),
    "dot": lambda: (mg.dot, [real(4), real(4)]),
    "smooth_l1_loss": lambda: (lambda x, t: mg.smooth_l1_loss(x, t, beta=0.5), [real(2, 3), real(3, 2).reshape(2, 3)]),
    "kl_div": lambda: (mg.kl_div, [real(2, 3), between(2, 3)]),
    "binary_cross_entropy": lambda: (mg.binary_cross_entropy, [between(2, 3), between(2, 3) * 0.5]),
    "cosine_similarity": lambda: (mg.cosine_similarity, [real(2, 3), between(2, 3)]),
    "cross_entropy": lambda: (
        lambda x: mg.cross_entropy(x, mg.tensor([2, -100]), weight=[0.5, 2.0, 1.5], label_smoothing=0.2),
        [real(2, 3)],
    ),
}


@pytest.mark.parametrize("name", MADE_OF_OPS)
def test_first_and_second_gradients_of_what_is_made_of_ops(name):
    function, inputs = MADE_OF_OPS[name]()
    inputs = [mg.tensor(x.data, requires_grad=True) for x in inputs]
    assert mg.gradcheck(function, inputs)
    assert mg.gradgradcheck(function, inputs)


REFUSED = [
    (lambda x: mg.repeat(x, 2), mg.ShapeError),
    (lambda x: mg.tile(x, -1), mg.ArgumentError),
    (lambda x: mg.repeat_interleave(x, [1, 2, 3, 4], 1), mg.ShapeError),
    (lambda x: mg.repeat_interleave(x, -1), mg.ShapeError),
    (lambda x: mg.repeat_interleave(x, 2, 2), mg.ShapeError),
    (lambda x: mg.unfold(x, 1, 4, 1), mg.ShapeError),
    (lambda x: mg.unfold(x, 1, 2, 0), mg.ShapeError),
    (lambda x: mg.unfold(x, 5, 2, 1), mg.ShapeError),
    (lambda x: mg.masked_fill(x, mg.tensor([1, 0, 1]), 0.0), mg.ArgumentError),
    (lambda x: mg.scatter(x, 1, mg.tensor([0]), 1.0), mg.ShapeError),
    (lambda x: mg.scatter(x, 1, INDEX, mg.ones(1, 3)), mg.ShapeError),
    (lambda x: mg.topk(x, 4), mg.ArgumentError),
    (lambda x: mg.topk(x, -1), mg.ArgumentError),
    (lambda x: mg.expand(x, 3), mg.ShapeError),
    (lambda x: mg.expand(x, -1, 2, 3), mg.ShapeError),
    (lambda x: mg.chunk(x, 0), mg.ArgumentError),
    (lambda x: mg.unbind(x, 2), mg.ShapeError),
    (lambda x: mg.movedim(x, 0, 2), mg.ShapeError),
    (lambda x: mg.movedim(x, (0, 1), (0,)), mg.ArgumentError),
    (lambda x: mg.glu(x, 1), mg.ShapeError),
    (lambda x: mg.celu(x, 0.0), mg.ArgumentError),
    (lambda x: mg.hardtanh(x, 1.0, 1.0), mg.ArgumentError),
    (lambda x: mg.dot(x, x), mg.ShapeError),
    (lambda x: mg.huber_loss(x, x, delta=0.0), mg.ArgumentError),
    (lambda x: mg.smooth_l1_loss(x, x, beta=0.0), mg.ArgumentError),
    (lambda x: mg.kl_div(x, x[0]), mg.ShapeError),
    (lambda x: mg.linspace(0, 1, -1), mg.ArgumentError),
    (lambda x: mg.cross_entropy(x, mg.tensor([0, 1]), weight=[1.0, 2.0]), mg.ShapeError),
    (lambda x: mg.cross_entropy(x, mg.tensor([0, 1]), "sum"), mg.ArgumentError),
    (lambda x: mg.cross_entropy(x, mg.tensor([0, 1]), label_smoothing=1.5), mg.ArgumentError),
]


@pytest.mark.parametrize("call, error", REFUSED)
def test_what_cannot_be_is_refused(call, error):
    with pytest.raises(error):
        call(mg.ones(2, 3))


def test_nothing_is_left_of_empty_tensors():
    x = mg.zeros(0, 3)
    assert mg.tile(x, 2, 2).shape == (0, 6) and mg.topk(x, 2)[0].shape == (0, 2) and mg.unbind(x) == ()
    assert mg.repeat_interleave(x, 2, 1).shape == (0, 6) and mg.unfold(x, 1, 2, 1).shape == (0, 2, 2)
    assert mg.linspace(0, 1, 0).shape == (0,) and mg.cumprod(x, 1).shape == (0, 3)


def test_a_clone_is_a_copy_through_which_gradients_flow():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    assert y.data is not x.data and not np.shares_memory(y.data, x.data)
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_the_slope_of_a_bounded_logarithm_is_finite_at_zero_and_one():
    x = mg.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = mg.binary_cross_entropy(x, mg.tensor([0.0, 1.0, 1.0, 0.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 200.0 and np.isfinite(x.grad.data).all()
