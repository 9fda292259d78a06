"""A float wins over integers, whatever their width; functions of integers give floats; what is no number is refused."""

import itertools

import numpy as np
import pytest

import minigrad as mg

FLOATS, INTEGERS = ("float16", "float32", "float64"), ("bool", "uint8", "int16", "int32", "int64")
TOGETHER = [mg.add, mg.sub, mg.mul, mg.div, mg.floor_divide, mg.remainder, mg.maximum, mg.minimum, mg.pow, mg.matmul,
            mg.outer, mg.fmod, mg.mse_loss, mg.l1_loss, mg.huber_loss]  # fmt: skip
ALONE = [mg.exp, mg.log, mg.sqrt, mg.sin, mg.tanh, mg.sigmoid, mg.mean, mg.var, mg.std, mg.softmax, mg.logsumexp,
         mg.gelu, mg.silu, mg.atan, mg.log2, mg.norm]  # fmt: skip


@pytest.mark.parametrize("floating, integer", [*itertools.product(FLOATS, INTEGERS)])
@pytest.mark.parametrize("op", TOGETHER, ids=lambda op: op.__name__)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_float_wins(floating, integer, op, checkpointed):
    x, i = mg.tensor(np.array([1, 2, 3], floating), requires_grad=True), mg.tensor(np.array([1, 1, 1], integer))
    for first, second in ((x, i), (i, x)):
        run = (lambda a, b: mg.checkpoint(op, a, b)) if checkpointed else op
        out = run(first, second)
        assert out.dtype == floating
        if out.requires_grad:
            out.sum().backward()
            assert x.grad.dtype == floating


@pytest.mark.parametrize("floating, integer", [*itertools.product(FLOATS, INTEGERS)])
def test_a_float_wins_in_where_cat_stack_and_with_scalars(floating, integer):
    x, i = mg.tensor(np.ones(3, floating), requires_grad=True), mg.tensor(np.ones(3, integer))
    condition = mg.tensor([True, False, True])
    zero_d = mg.tensor(np.array(1, integer))
    found = [mg.where(condition, x, i), mg.where(condition, i, x), mg.cat([x, i]), mg.stack([i, x]), x * zero_d,
             zero_d + x, mg.where(condition, x, 1), x * np.int64(2), x + True, x * 2]  # fmt: skip
    assert {out.dtype for out in found} == {np.dtype(floating)}


def test_of_two_floats_the_wider_wins():
    wide, narrow = mg.ones(2, dtype="float64", requires_grad=True), mg.ones(2, requires_grad=True)
    (wide * narrow).sum().backward()
    assert (wide * narrow).dtype == np.float64 and narrow.grad.dtype == np.float32


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("op", ALONE, ids=lambda op: op.__name__)
def test_functions_of_integers_give_the_default_float(op, integer):
    x = mg.tensor(np.array([1, 1, 1], integer))
    assert op(x).dtype == np.float32
    mg.set_default_dtype("float64")
    try:
        assert op(x).dtype == np.float64
    finally:
        mg.set_default_dtype("float32")


def test_integers_among_themselves_stay_integers():
    a, b = mg.tensor([1, 2]), mg.tensor(np.array([1, 2], "int32"))
    assert (a + b).dtype == np.int64 and (b * b).dtype == np.int32 and (a / b).dtype == np.float32


NO_NUMBERS = [np.ones(4) * 1j, np.array([None] * 4), np.array(["a"] * 4), np.ma.masked_array(np.ones(4), [0, 0, 1, 0])]


@pytest.mark.parametrize("array", NO_NUMBERS)
def test_what_is_no_plain_number_is_refused(array):
    x = mg.tensor(np.ones(4), requires_grad=True)
    for act in (lambda: mg.sin(x).backward(array), lambda: mg.grad(mg.sin(x), x, array), lambda: x * array,
                lambda: mg.add(array, x)):  # fmt: skip
        with pytest.raises(mg.MinigradError):
            act()
    y = mg.sin(x)
    y.register_hook(lambda g: array)
    with pytest.raises(mg.MinigradError):
        y.sum().backward()
    assert x.grad is None
