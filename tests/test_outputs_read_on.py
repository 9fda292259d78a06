"""Outputs that a checkpoint's body reads on: gradients reach them from outside, and from inside.

    u, v = mg.checkpoint(lambda t: (u := mg.tanh(t), mg.exp(u)), x)

Whatever is asked of u must be what the program without checkpoints says: hooks, retain_grad, mg.grad, derivatives of
higher order; at any depth of checkpoints, and for any of the outputs.
"""

import itertools

import numpy as np
import pytest

import minigrad as mg


def plainly(function, *args, **kwargs):
    return function(*args)


def read_on(t):
    u = mg.tanh(t)
    w = mg.sin(u) * t
    return u, w, mg.exp(u) * w


def wrapped(run, depth, inner=read_on):
    """`inner` in so many checkpoints, one around the other."""
    function = inner
    for _ in range(depth):
        function = (lambda f: lambda t: run(f, t))(function)
    return function


def program(run, depth, used):
    """(x, outputs, a loss that reads those outputs that are `used`)."""
    x = mg.tensor(np.array([0.3, -0.4, 0.9]), requires_grad=True)
    outputs = wrapped(run, depth)(x * 1.5)
    loss = sum(((i + 1) * mg.cos(outputs[i]) * outputs[i] for i in used), mg.zeros(3)).sum()
    return x, outputs, loss


USED = [used for n in (1, 2, 3) for used in itertools.combinations(range(3), n)]
DEPTHS = (1, 2, 3)


@pytest.mark.parametrize("depth, used", [*itertools.product(DEPTHS, USED)])
def test_a_hook_sees_the_whole_gradient_once(depth, used):
    def run(how):
        x, outputs, loss = program(how, depth, used)
        seen = []
        for i, output in enumerate(outputs):
            output.register_hook(lambda g, i=i: seen.append((i, g.tolist())) or g * (i + 2))
        loss.backward()
        return sorted(seen), x.grad.tolist()

    assert run(mg.checkpoint) == run(plainly)


@pytest.mark.parametrize("depth, used", [*itertools.product(DEPTHS, USED)])
def test_retain_grad_leaves_the_whole_gradient(depth, used):
    def run(how):
        x, outputs, loss = program(how, depth, used)
        for output in outputs:
            output.retain_grad()
        loss.backward()
        return [None if output.grad is None else output.grad.tolist() for output in outputs]

    assert run(mg.checkpoint) == run(plainly)


@pytest.mark.parametrize("depth, used, wanted", [*itertools.product(DEPTHS, USED, USED)])
def test_grad_of_outputs(depth, used, wanted):
    """Also of several at once; and hooks of those that lead to no target are not called."""

    def run(how):
        x, outputs, loss = program(how, depth, used)
        called = []
        for i, output in enumerate(outputs):
            output.register_hook(lambda g, i=i: called.append(i))
        found = mg.grad(loss, [outputs[i] for i in wanted], allow_unused=True)
        return [None if g is None else g.tolist() for g in found], sorted(called)

    assert run(mg.checkpoint) == run(plainly)


@pytest.mark.parametrize("depth, used", [*itertools.product(DEPTHS, USED)])
@pytest.mark.parametrize("how_asked", ["grad", "retain_grad", "hook", "leaf"])
def test_second_derivatives(depth, used, how_asked):
    def run(how):
        x, outputs, loss = program(how, depth, used)
        seen = []
        (first,) = mg.grad(loss, [x], create_graph=True)
        second = (first * first).sum()
        if how_asked == "grad":
            found = mg.grad(second, list(outputs), allow_unused=True)
            return [0.0 if g is None else g.data for g in found]
        if how_asked == "hook":
            for i, output in enumerate(outputs):
                output.register_hook(lambda g, i=i: seen.append((i, g)))
        if how_asked == "retain_grad":
            for output in outputs:
                output.retain_grad()
        second.backward()
        if how_asked == "retain_grad":
            return [0.0 if output.grad is None else output.grad.data for output in outputs]
        return [g.data for _, g in sorted(seen, key=lambda one: one[0])] or [x.grad.data]

    checked, plain = run(mg.checkpoint), run(plainly)
    assert len(checked) == len(plain)
    for got, expected in zip(checked, plain, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("depth", DEPTHS)
def test_third_derivatives(depth):
    def run(how):
        x, outputs, loss = program(how, depth, (0, 1, 2))
        found = loss
        for _ in range(2):
            (found,) = mg.grad((found * found).sum(), [x], create_graph=True)
        return [g.data for g in mg.grad(found.sum(), [x, *outputs])]

    for got, expected in zip(run(mg.checkpoint), run(plainly), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("depth", DEPTHS)
def test_grad_within_an_open_checkpoint(depth):
    def run(how):
        x, outputs, loss = program(how, depth, (0, 1, 2))

        def penalty(t):
            u, w, v = wrapped(how, depth)(t)
            (g,) = mg.grad((u * v).sum(), [u], create_graph=True)
            (h,) = mg.grad((w * w).sum(), [t], create_graph=True)
            return (g * g + h * h).sum()

        (how(penalty, x) + loss).backward()
        return x.grad.data

    np.testing.assert_allclose(run(mg.checkpoint), run(plainly), rtol=1e-12)


def test_a_target_with_nothing_below_it_costs_no_replay():
    x, outputs, loss = program(mg.checkpoint, 1, (2,))
    with mg.Tracer() as tracer:
        mg.grad(loss, [outputs[2]])
    assert tracer.replayed_ops == 0


@pytest.mark.parametrize("policy", [None, mg.policies.save_everything(), mg.policies.save_ops("tanh")])
@pytest.mark.parametrize("options", [{}, {"verify": True}, {"offload": 2}, {"keep_output": False}])
def test_with_every_option(policy, options):
    def run(how):
        x = mg.tensor(np.array([0.3, -0.4, 0.9]), requires_grad=True)
        u, w, v = how(read_on, mg.sin(x), policy=policy, **options)
        u.retain_grad()
        seen = []
        w.register_hook(lambda g: seen.append(g.tolist()))
        (u * v + w * w).sum().backward()
        return x.grad.tolist(), u.grad.tolist(), seen

    assert run(mg.checkpoint) == run(plainly)
