"""Boundaries in slow memory: what fast memory then holds, what is moved, and that nothing else changes."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s
from tests.test_all_schedules import InSlowMemory, run_as_planned


@pytest.mark.parametrize("window", [1, 2, 5])
def test_every_layer_offloaded_replays_nothing_and_holds_the_window(chain, same_bits, window):
    tracer, plan = run_as_planned(chain(50), InSlowMemory(s.uniform(50, keep_last=False), window), same_bits)
    assert plan.peak == window and plan.extra_forwards == 0
    assert plan.writes == plan.reads == 50
    assert tracer.peak("offloaded") == 50 * 3 * 4 * 4  # each x_i is 3 x 4 float32


def test_ten_boundaries_in_slow_memory_leave_the_nine_inner_ones_and_the_window(chain, same_bits):
    tracer, plan = run_as_planned(chain(100), InSlowMemory(s.uniform(10)), same_bits)
    assert (plan.peak, plan.writes, plan.reads, plan.slow_peak) == (10, 9, 9, 9)


def block(x, weight):
    return mg.tanh(mg.tanh(x @ weight) @ weight)


def test_offload_of_a_single_checkpoint_gives_the_same_bits(parameter, same_bits):
    weight, x = parameter(6, 6, seed=1), parameter(5, 6, seed=2)
    gradients = {}
    for offload in (False, True, 2):
        weight.grad = x.grad = None
        h = x * 2
        for _ in range(4):
            h = mg.checkpoint(block, h, weight, offload=offload)
        (h * h).sum().backward()
        gradients[offload] = [weight.grad.numpy(), x.grad.numpy()]
    same_bits(gradients[True], gradients[False])
    same_bits(gradients[2], gradients[False])


def test_a_second_backward_and_second_derivatives_take_the_copy_again(parameter, same_bits):
    weight, x = parameter(6, 6, seed=1), parameter(5, 6, seed=2)

    def loss(offload):
        h = mg.checkpoint(block, x + 1, weight, offload=offload)
        return mg.checkpoint(block, h, weight, offload=offload).sum()

    def first_and_second(offload):
        (g,) = mg.grad(loss(offload), x, create_graph=True)
        return [g.numpy(), *[t.numpy() for t in mg.grad((g * g).sum(), [x, weight])]]

    for ours, theirs in zip(first_and_second(True), first_and_second(False), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    twice = loss(True)
    twice.backward(retain_graph=True)
    once = weight.grad.numpy()
    weight.grad = None
    twice.backward()
    same_bits([weight.grad.numpy()], [once])


def test_one_copy_serves_all_checkpoints_and_constants_stay(parameter):
    weight = parameter(6, 6)
    mask = mg.tensor(np.ones((5, 6)))
    x = mg.tensor(np.ones((5, 6)))

    def masked(h):
        return mg.tanh((h * mask) @ weight) * mask

    with mg.Tracer() as tracer:
        h = x
        for _ in range(3):
            h = mg.checkpoint(masked, h, offload=True)
        h = mg.checkpoint(lambda t: masked(t) + x, h, offload=True)
        assert tracer.writes == 4  # x, and three states between; the mask is there anyway
        h.sum().backward()
    assert tracer.live("offloaded") == 0


def test_fast_memory_lets_go_of_what_has_been_offloaded(parameter):
    weight = parameter(6, 6)
    h = mg.checkpoint(block, mg.tensor(np.ones((5, 6))), weight, offload=True)
    array = weakref.ref(h.data)
    loss = mg.checkpoint(block, h, weight, offload=True).sum()
    del h
    gc.collect()
    assert array() is None
    assert all(row.node.op is not None for row in mg.saved(loss))
    loss.backward()


def test_what_another_op_retains_anyway_is_not_copied(parameter):
    weight = parameter(6, 6)
    with mg.Tracer() as tracer:
        h = mg.tanh(mg.tensor(np.ones((5, 6))) @ weight)  # tanh keeps its output
        mg.checkpoint(block, h, weight, offload=True).sum().backward()
    assert tracer.writes == tracer.reads == 0


def test_a_copy_keeps_the_value_of_data_that_is_overwritten_later(parameter):
    weight, x = parameter(6, 6), mg.tensor(np.ones((5, 6)))
    loss = mg.checkpoint(block, x, weight, offload=True).sum()
    (expected,) = mg.grad(mg.checkpoint(block, mg.tensor(np.ones((5, 6))), weight).sum(), weight)
    x.assign_(np.zeros((5, 6)))
    loss.backward()
    np.testing.assert_array_equal(weight.grad.numpy(), expected.numpy())


def test_a_window_must_be_a_whole_number(parameter):
    with pytest.raises(mg.BudgetError, match="whole number"):
        mg.checkpoint(block, parameter(2, 2), parameter(2, 2), offload=0)


def test_with_retain_graph_only_what_the_replay_reads_comes_back(parameter):
    x = parameter(5, 6)

    def two(a, b):
        return mg.tanh(mg.tanh(a)), mg.exp(mg.cos(b))

    u, _ = mg.checkpoint(two, x * 2, x * 3, offload=True)
    with mg.Tracer() as tracer:
        u.sum().backward(retain_graph=True)
    assert tracer.reads == 1


def test_a_value_that_came_back_is_live_while_the_replay_reads_it(parameter):
    peaks = []
    for offload in (False, True):
        h = parameter(5, 6) * 2
        loss = mg.checkpoint(lambda t: mg.tanh(mg.tanh(t + 1.0) + 1.0), h, offload=offload).sum()
        del h
        with mg.Tracer() as tracer:
            loss.backward()
        peaks.append(tracer.peak_activations)
    assert peaks[0] == peaks[1] > 0
