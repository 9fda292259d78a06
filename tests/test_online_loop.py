"""Loops whose length nobody knows: the states that are kept while they run, and the backward afterwards."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s


def until_small(weight, threshold=0.05):
    """A loop that ends when the state has become small: layers that come out of a generator, one by one."""
    state = {"last": None}

    def step(h):
        state["last"] = h = mg.tanh(h @ weight)
        return h

    while state["last"] is None or abs(state["last"].numpy()).max() > threshold:
        yield step


def run(weight, x, schedule):
    weight.grad = None
    with mg.Tracer() as tracer:
        loss = (mg.checkpoint_sequential(until_small(weight), schedule, x) ** 2).sum()
        loss.backward()
    return tracer, weight.grad.numpy()


@pytest.fixture
def loop(parameter):
    weight = mg.tensor(np.linalg.qr(parameter(4, 4).numpy())[0] * 0.93, requires_grad=True)
    return weight, mg.tensor(np.random.default_rng(3).standard_normal((2, 4)))


def test_a_loop_of_unknown_length_gives_the_gradients_of_a_plain_one(loop, same_bits):
    weight, x = loop
    h, steps = x, 0
    for layer in until_small(weight):
        h, steps = layer(h), steps + 1
    (h**2).sum().backward()
    expected = weight.grad.numpy()
    assert steps > 20
    for slots in (1, 2, 5, 30):
        tracer, gradient = run(weight, x, s.online(slots))
        same_bits([gradient], [expected])
        assert tracer.live_activations == 0


def test_while_it_runs_it_holds_no_more_states_than_slots(chain):
    net = chain(200)
    held = []

    def watched(layer, tracer):
        def step(h):
            held.append(tracer.live_activations)
            return layer(h)

        return step

    with mg.Tracer() as tracer:
        y = mg.checkpoint_sequential((watched(layer, tracer) for layer in net.layers), s.online(6), net.x)
        assert max(held) == 6
        y.sum().backward()
    plan = s.online(6).plan(200)
    assert (tracer.peak_activations, tracer.replayed_ops) == (plan.peak, plan.extra_forwards)


def test_an_endless_iterable_can_be_cut(chain):
    net = chain(1)
    y = mg.checkpoint_sequential(itertools.islice(itertools.cycle(net.layers), 30), s.online(3), net.x)
    y.sum().backward()
    assert net.weights[0].grad is not None


def test_a_state_of_several_tensors_and_an_earlier_value_read_late(parameter, same_bits):
    weight, x = parameter(4, 4), parameter(2, 4, seed=5)
    first = {}

    def step(state):
        h, c = state
        first.setdefault("h", mg.tanh(h @ weight))
        return mg.tanh(h @ weight + c), c * 0.9 + first["h"]

    def loss(schedule):
        first.clear()
        h, c = mg.checkpoint_sequential([step] * 9, schedule, (x, x * 2))
        return (h * c).sum()

    first_loss = mg.checkpoint(lambda: loss(s.store_all()))  # one region: what is read across steps is inside
    expected = [g.numpy() for g in mg.grad(first_loss, [weight, x])]
    found = [g.numpy() for g in mg.grad(loss(s.online(3)), [weight, x])]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_no_layers_no_gradient_mode_and_an_outer_checkpoint(chain, same_bits):
    net = chain(12)
    assert mg.checkpoint_sequential([], s.online(3), net.x) is net.x
    with mg.no_grad():
        assert not mg.checkpoint_sequential(net.layers, s.online(3), net.x).requires_grad
    _, plain = net.run(s.store_all())
    for weight in net.weights:
        weight.grad = None
    mg.checkpoint(lambda: mg.checkpoint_sequential(iter(net.layers), s.online(3), net.x)).sum().backward()
    same_bits([weight.grad.numpy() for weight in net.weights], plain)


def test_an_error_in_a_step_leaves_nothing_behind(chain):
    net = chain(5)

    def broken(h):
        raise RuntimeError("stop")

    with mg.Tracer() as tracer, pytest.raises(RuntimeError, match="stop"):
        mg.checkpoint_sequential([*net.layers, broken], s.online(3), net.x)
    assert tracer.live_activations == 0
    net.run(s.online(2))
