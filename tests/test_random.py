"""Randomness comes from keys, and keys do not run backwards."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.keys import generator, next_key


def test_a_seed_makes_the_same_numbers_again():
    def draw():
        mg.manual_seed(5)
        return [t.tolist() for t in (mg.rand(3), mg.randn(2, 2), mg.randint(0, 9, (4,)), mg.randperm(5))]

    assert draw() == draw()
    mg.manual_seed(6)
    assert mg.rand(3).tolist() != draw()[0]


@pytest.mark.parametrize("seed", [0, -1, 2**64 + 1, np.int64(3)])
def test_any_integer_is_a_seed(seed):
    mg.manual_seed(seed)
    assert mg.rand(2).shape == (2,)


def test_a_seed_that_is_no_integer():
    with pytest.raises(mg.ArgumentError):
        mg.manual_seed(1.5)


def test_each_call_draws_other_numbers():
    drawn = {tuple(mg.rand(4).tolist()) for _ in range(100)}
    assert len(drawn) == 100


def test_numpys_own_state_is_neither_read_nor_moved():
    np.random.seed(0)
    before = np.random.get_state()[1].tolist()
    mg.manual_seed(1)
    mg.rand(3), mg.dropout(mg.ones(3), 0.5)
    assert np.random.get_state()[1].tolist() == before


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_distributions(dtype):
    u, n = mg.rand(20000, dtype=dtype).astype("float64").data, mg.randn(20000, dtype=dtype).astype("float64").data
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.01
    assert abs(n.mean()) < 0.03 and abs(n.var() - 1) < 0.05


def test_integers_and_permutations():
    drawn = mg.randint(-2, 3, (1000,))
    assert drawn.dtype == "int64" and sorted(set(drawn.tolist())) == [-2, -1, 0, 1, 2]
    assert sorted(mg.randperm(50).tolist()) == list(range(50))


def test_threads_never_get_the_same_key():
    keys = []

    def take():
        keys.extend(next_key() for _ in range(500))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 2000


def test_a_key_is_a_pure_function():
    assert generator((1, 2)).random() == generator((1, 2)).random() != generator((1, 3)).random()


# ---- Dropout -----------------------------------------------------------------------------------------


def test_dropout_drops_about_p_and_scales_the_rest_and_so_does_its_gradient():
    x = mg.ones(10000, requires_grad=True)
    y = mg.dropout(x, 0.3)
    y.sum().backward()
    assert abs((y.data == 0).mean() - 0.3) < 0.02
    assert set(np.unique(y.data).tolist()) == {0.0, np.float32(1 / 0.7).item()}
    assert y.data.tobytes() == x.grad.data.tobytes()


def test_dropout_keeps_no_mask_and_no_input():
    x = mg.exp(mg.ones(10, requires_grad=True))
    node = mg.dropout(x, 0.5).node
    assert not node.needs.inputs and not node.needs.out
    assert set(node.attrs) == {"p", "key"}


def test_dropout_of_nothing_of_everything_and_outside_training():
    x = mg.tensor([1.0, np.inf, np.nan], requires_grad=True)
    assert mg.dropout(x, 0.0) is x and mg.dropout(x, 0.5, training=False) is x
    y = mg.dropout(x, 1.0)
    y.sum().backward()
    assert y.tolist() == [0, 0, 0] and x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_dropout_needs_a_probability(p):
    with pytest.raises(mg.ArgumentError):
        mg.dropout(mg.ones(2), p)


def test_a_replay_draws_nothing_and_finds_the_same_mask():
    def run(in_a_checkpoint):
        mg.manual_seed(2)
        x = mg.ones(100, requires_grad=True)

        def layer(t):
            return mg.dropout(mg.dropout(t, 0.2) * 2, 0.5)

        y = mg.checkpoint(layer, x) if in_a_checkpoint else layer(x)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), mg.rand(3).tolist()

    assert run(True) == run(False)


def test_second_derivatives_use_the_same_mask():
    x = mg.tensor(np.ones(50), requires_grad=True)
    y = mg.dropout(x, 0.5)
    (dx,) = mg.grad((y * y).sum(), x, create_graph=True)
    (ddx,) = mg.grad(dx.sum(), x)
    np.testing.assert_array_equal(ddx.data, 2 * y.data**2)
