"""Checkpoints that do not keep their output: a boundary less for each, and no op runs twice."""

import numpy as np
import pytest

import minigrad as mg


def norm(x, scale):
    return mg.layer_norm(x, 8) * scale


def network(x, scale, weights, keep_output):
    """norm, matmul, norm, matmul, …: each matmul reads what the norm in front of it returned."""
    h = x
    for weight in weights:
        h = mg.checkpoint(norm, h, scale, keep_output=keep_output) @ weight
    return (h * h).sum()


@pytest.fixture
def parts(parameter):
    return parameter(4, 8), parameter(8, seed=1), [parameter(8, 8, seed=2 + i) for i in range(5)]


def run(parts, keep_output, **options):
    x, scale, weights = parts
    leaves = [x, scale, *weights]
    for leaf in leaves:
        leaf.grad = None
    with mg.Tracer() as tracer:
        loss = network(x, scale, weights, keep_output)
        held = len(mg.saved(loss))
        loss.backward(**options)
    return tracer, held, [leaf.grad.numpy() for leaf in leaves], loss


def test_one_boundary_less_for_each_checkpoint(parts, same_bits):
    kept, held, gradients, _ = run(parts, True)
    discarded, held_without, others, _ = run(parts, False)
    same_bits(others, gradients)
    assert held_without == held - 5
    assert discarded.peak_activations < kept.peak_activations
    assert discarded.live_activations == 0


def test_no_op_runs_twice(parts):
    """Three ops of a norm for the output, and nothing more for its own backward."""
    ops_in_a_norm = len(mg.checkpoint(norm, parts[0], parts[1]).node.body.lines)
    assert run(parts, False)[0].replayed_ops == 5 * ops_in_a_norm
    assert run(parts, True)[0].replayed_ops < 5 * ops_in_a_norm


def test_a_second_backward_and_second_derivatives(parts, same_bits):
    x, scale, weights = parts
    _, _, once, loss = run(parts, False, retain_graph=True)
    for leaf in (x, scale, *weights):
        leaf.grad = None
    loss.backward()
    same_bits([leaf.grad.numpy() for leaf in (x, scale, *weights)], once)

    def second(keep_output):
        (g,) = mg.grad(network(x, scale, weights, keep_output), x, create_graph=True)
        return [t.numpy() for t in mg.grad((g * g).sum(), [x, scale, *weights])]

    for ours, theirs in zip(second(False), second(True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_the_output_as_boundary_of_another_checkpoint_is_kept_by_that_one(parameter, same_bits):
    x, scale = parameter(4, 8), parameter(8, seed=1)

    def loss(keep_output):
        h = mg.checkpoint(norm, x, scale, keep_output=keep_output)
        return mg.checkpoint(norm, h, scale).sum()

    expected = mg.grad(loss(True), [x, scale])
    with mg.Tracer() as tracer:
        found = mg.grad(loss(False), [x, scale])
    same_bits([g.numpy() for g in found], [g.numpy() for g in expected])
    assert tracer.live_activations == 0


@pytest.mark.parametrize("options", [{"offload": True}, {"policy": True}, {"verify": True}])
def test_with_the_other_options_of_a_checkpoint(parts, same_bits, options):
    x, scale, weights = parts
    if "policy" in options:
        options = {"policy": mg.policies.save_ops("layer_norm")}

    def loss(**options):
        h = x
        for weight in weights:
            h = mg.checkpoint(norm, h, scale, **options) @ weight
        return h.sum()

    expected = mg.grad(loss(), [x, scale, *weights])
    with mg.Tracer() as tracer:
        found = mg.grad(loss(keep_output=False, **options), [x, scale, *weights])
    same_bits([g.numpy() for g in found], [g.numpy() for g in expected])
    assert tracer.live_activations == 0 and tracer.live("offloaded") == 0


def test_inside_another_checkpoint_and_with_several_outputs(parts, same_bits):
    x, scale, weights = parts

    def both(h):
        n = norm(h, scale)
        return n, mg.tanh(n)

    def block(h, keep):
        a, b = mg.checkpoint(both, h, keep_output=keep)
        return (a @ weights[0]) * (b @ weights[1])

    expected = mg.grad(mg.checkpoint(block, x, True).sum(), [x, scale, *weights[:2]])
    found = mg.grad(mg.checkpoint(block, x, False).sum(), [x, scale, *weights[:2]])
    same_bits([g.numpy() for g in found], [g.numpy() for g in expected])


def test_reading_it_after_backward_is_the_usual_error(parts):
    loss = run(parts, False)[-1]
    with pytest.raises(mg.GraphFreedError):
        loss.backward()


def test_a_constant_that_only_the_forward_reads_is_there_when_the_output_is_asked_for(parameter):
    x, constant = parameter(3), mg.tensor([1.0, 2.0, 3.0], dtype="float64")
    y = mg.checkpoint(lambda t: mg.sin(t) + constant, x, keep_output=False)
    (found,) = mg.grad((y * y).sum(), x)
    np.testing.assert_allclose(found.numpy(), 2 * (np.sin(x.numpy()) + constant.numpy()) * np.cos(x.numpy()))
