"""Corners of checkpoints, schedules and loops in which the engine was once caught out."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s

DEEP = [s.from_input(), s.binomial(2), s.online(1), s.bisection(), s.multistage(2, 2)]


@pytest.fixture
def weights(parameter):
    return [parameter(4, 4, seed=i) for i in range(3)]


@pytest.fixture
def x():
    return mg.tensor(np.random.default_rng(9).standard_normal((3, 4)))


@pytest.mark.parametrize("schedule", DEEP, ids=str)
def test_a_hook_inside_runs_once_however_often_its_stretch_is_split(weights, x, schedule):
    def gradients(schedule):
        seen = []

        def hooked(h):
            u = mg.tanh(h @ weights[1])
            u.register_hook(lambda g: g * 0.5)
            u.retain_grad()
            seen.append(u)
            return u

        layers = [lambda h: h @ weights[0], hooked, mg.gelu, lambda h: h @ weights[2]]
        weights[0].grad = None
        mg.checkpoint_sequential(layers, schedule, x).sum().backward()
        return weights[0].grad.numpy(), seen[0].grad.numpy()

    for ours, theirs in zip(gradients(schedule), gradients(s.store_all()), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("schedule", [*DEEP, s.online(2), s.online(2, early_stop=False), s.h_revolve(2, 2)], ids=str)
def test_a_state_may_carry_data_that_changes(weights, x, schedule, same_bits):
    def step(state):
        return mg.tanh(state[0] @ weights[0]) * state[1], state[1] * 0.5

    def gradient(schedule):
        h, _ = mg.checkpoint_sequential([step] * 9, schedule, (x, mg.ones((3, 4), dtype="float64")))
        return mg.grad(h.sum(), weights[0])[0].numpy()

    same_bits([gradient(schedule)], [gradient(s.store_all())])


def test_nested_checkpoints_may_hand_on_data(weights, x, same_bits):
    def step(state):
        return mg.tanh(state[0] @ weights[0]) * state[1], state[1] * 0.5

    def three(h, around):
        state = around(step, (h, mg.ones((3, 4), dtype="float64")))
        return around(step, around(step, state))[0]

    def plainly(function, *args):
        return function(*args)

    nested = mg.checkpoint(lambda h: three(h, mg.checkpoint), x).sum()
    same_bits([mg.grad(nested, weights[0])[0].numpy()], [mg.grad(three(x, plainly).sum(), weights[0])[0].numpy()])


@pytest.mark.parametrize("schedule", [s.online(1), s.online(2), s.from_input(), s.offloaded(s.every(1))], ids=str)
def test_layers_without_gradient_may_come_first_or_a_detach_in_between(weights, x, schedule, same_bits):
    def gradient(schedule):
        layers = [mg.tanh, lambda h: h @ weights[0], lambda h: h.detach() + h, mg.tanh, lambda h: h @ weights[1]]
        return [g.numpy() for g in mg.grad(mg.checkpoint_sequential(layers, schedule, x).sum(), weights[:2])]

    same_bits(gradient(schedule), gradient(s.store_all()))


@pytest.mark.parametrize("last", ["tanh", "exp", "softmax"])
def test_a_second_derivative_with_respect_to_a_checkpoints_output(weights, x, last):
    """The recorded backward reads the output again, and that is a way to it."""
    finish = {"tanh": mg.tanh, "exp": mg.exp, "softmax": lambda t: mg.softmax(t, axis=-1)}[last]

    def second(around):
        h = x @ weights[1]
        y = around(lambda t: finish(t @ weights[0]), h)
        _, g = mg.grad((mg.sin(y) * y).sum(), [y, h], create_graph=True)
        return [t.numpy() for t in mg.grad((g * g).sum(), [y, *weights[:2]])]

    for ours, theirs in zip(second(mg.checkpoint), second(lambda f, *args: f(*args)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_what_an_unswept_output_of_a_checkpoint_has_read_is_let_go(weights, x):
    with mg.Tracer() as tracer:
        p, q = mg.softmax(x @ weights[0], axis=-1), mg.sin(x @ weights[1])
        a, b = mg.checkpoint(lambda u, v: (u * 2, mg.tanh(v)), p, q)
        loss = b.sum()
        del p, q, a, b
        loss.backward()
        assert tracer.live_activations == 0


def test_a_training_loop_leaves_nothing_in_a_tracer_or_a_budget(weights, x):
    with mg.Tracer() as tracer, mg.memory_budget(300) as budget:
        for _ in range(5):
            h = x
            for _ in range(6):
                h = mg.tanh(h @ weights[0])
            h.sum().backward()
            assert len(tracer._replay_holders) == 0 and budget.held_bytes == 0


class Circle(s.Schedule):
    def __init__(self, other=None):
        self.other = other or Circle(self)

    def split(self, n):
        return [(n, self.other)]


class Nothing(s.Schedule):
    def split(self, n):
        return None


def test_schedules_that_do_not_split_are_told(x):
    with pytest.raises(mg.ArgumentError, match="circle"):
        Circle().plan(5)
    with pytest.raises(mg.ArgumentError, match="a split is a list"):
        Nothing().plan(5)


def test_a_profile_needs_a_whole_number_of_repeats(weights, x):
    for repeats in (0, 1.5, "three"):
        with pytest.raises(mg.BudgetError, match="whole number"):
            mg.profile([lambda h: h @ weights[0]], x, repeats=repeats)


def test_ops_and_what_names_them_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(mg.matmul)) is mg.matmul is copy.deepcopy(mg.matmul)
    assert repr(pickle.loads(pickle.dumps(mg.policies.save_ops("matmul")))) == repr(mg.policies.save_ops("matmul"))

    @mg.op
    def mine(x):
        return x * 2

    with pytest.raises(mg.ArgumentError, match="op of your own"):
        pickle.dumps(mine)


def test_a_negative_pad_is_refused_and_told_what_fits():
    with pytest.raises(mg.ShapeError, match="both >= 0"):
        mg.pad(mg.ones(3), (-1, 2))


def test_a_scalar_cannot_be_split():
    with pytest.raises(mg.MinigradError):
        mg.split(mg.tensor(1.0), 1)


def test_clamp_takes_a_tensor_as_its_only_bound():
    assert mg.clamp(mg.tensor([0.0, 1.0]), mg.tensor([0.5, 0.5])).tolist() == [0.5, 1.0]
