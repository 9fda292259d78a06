"""Looks at lessons/exercises/ex04_training.py."""

import numpy as np

import minigrad as mg
from minigrad import nn, optim

HOW_WRONG = "Look at 'How wrong it is' in lesson 04."
ONE_STEP = "Look at 'One step' in lesson 04."
PILE_UP = "Look at 'Break it: gradients that pile up' and 'Break it: graphs that pile up' in lesson 04."


def leaf(array):
    return mg.tensor(array, requires_grad=True)


def check_cross_entropy(answers):
    rng = np.random.default_rng(0)
    labels = mg.tensor(np.array([2, 0, 0, 1, 2]))
    for scale, what in ((1.0, "small scores"), (1000.0, "scores in the thousands")):
        scores = leaf(scale * rng.standard_normal((5, 3)))
        with np.errstate(all="ignore"):
            loss = answers.cross_entropy(scores, labels)
        assert isinstance(loss, mg.Tensor), f"cross_entropy must give a tensor, not {type(loss).__name__}"
        assert loss.shape == (), f"the loss of a batch is one number, and yours has shape {loss.shape}: take the mean"
        expected = mg.cross_entropy(scores, labels).item()
        assert np.isfinite(loss.item()), (
            f"with {what} the loss is {loss.item()}, and should be {expected:.4f}. exp of a large number is infinite, "
            f"and log of nothing is too; an op that does both at once need not go there. {HOW_WRONG}"
        )
        assert np.isclose(loss.item(), expected), (
            f"with {what} the loss should be {expected:.4f}, and is {loss.item():.4f}. Is it the right class of each "
            f"row, the logarithm, the mean over the batch, and the sign? {HOW_WRONG}"
        )
        assert loss.requires_grad, "no gradient can flow from this loss to the scores: stay with ops of minigrad"
        (gradient,) = mg.grad(loss, scores)
        (right,) = mg.grad(mg.cross_entropy(scores, labels), scores)
        assert np.allclose(gradient.data, right.data), (
            f"with {what} the loss is right, but its gradient for the scores is not: {gradient.data[0]} in the first "
            f"row, and should be {right.data[0]}"
        )


def check_momentum_step(answers):
    rng = np.random.default_rng(1)
    start = [rng.standard_normal((3, 2)), rng.standard_normal(2)]
    mine, theirs = [leaf(a) for a in start], [leaf(a) for a in start]
    idle, velocities = leaf(np.ones(2)), {}
    optimizer = optim.SGD(theirs, lr=0.1, momentum=0.9)
    for step in range(3):
        for w, b in (mine, theirs):
            w.grad = b.grad = None
            ((mg.tensor(np.ones((4, 3))) @ w + b) ** 2).sum().backward()
        optimizer.step()
        before = [parameter.data for parameter in mine]
        answers.momentum_step([*mine, idle], velocities, 0.1, 0.9)
        assert all(parameter.is_leaf for parameter in mine), (
            f"after the step a parameter must be a leaf still, the same tensor with a new array. {ONE_STEP}"
        )
        moved = [not np.array_equal(a, p.data) for a, p in zip(before, mine, strict=True)]
        assert all(moved), f"step {step + 1} has not moved parameter {moved.index(False)}. {ONE_STEP}"
        for number, (parameter, right) in enumerate(zip(mine, theirs, strict=True)):
            assert np.allclose(parameter.data, right.data), (
                f"after step {step + 1} parameter {number} begins with {parameter.data.ravel()[0]:.6f}, and should "
                f"begin with {right.data.ravel()[0]:.6f}. "
                + ("At the first step v is g. " if step == 0 else "Does v outlive the call, in `velocities`? ")
                + ONE_STEP
            )
    assert np.array_equal(idle.data, np.ones(2)), "a parameter without a gradient stays as it is"


def check_backward_in_parts(answers):
    mg.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    rng = np.random.default_rng(2)
    x, labels = mg.tensor(rng.standard_normal((12, 6)).astype("float32")), mg.tensor(rng.integers(0, 3, 12))
    with mg.Tracer(ignore=[x, labels]) as whole:
        mg.cross_entropy(network(x), labels).backward()
    expected = [np.array(parameter.grad.data) for parameter in network.parameters()]
    for parts in (1, 3, 4):
        network.zero_grad()
        with mg.Tracer(ignore=[x, labels]) as tracer:
            answers.backward_in_parts(network, x, labels, parts)
        for (name, parameter), right in zip(network.named_parameters(), expected, strict=True):
            assert parameter.grad is not None, f"with {parts} parts, parameter {name} has no gradient afterwards"
            ratio = float((parameter.grad.data * right).sum() / (right * right).sum())
            assert np.allclose(parameter.grad.data, right, atol=1e-6), (
                f"with {parts} parts the gradient of {name} is not that of the whole batch; along that one it is "
                f"{ratio:.3f} times as long. The whole loss is a mean over all rows, and the gradients of all parts "
                f"must be there together at the end. {PILE_UP}"
            )
        allowed = (whole.peak_activation_bytes + x.nbytes + labels.nbytes) // parts  # a part may be a copy
        assert tracer.peak_activation_bytes <= allowed, (
            f"with {parts} parts at most {allowed} bytes of activations need be alive at once, and a tracer has seen "
            f"{tracer.peak_activation_bytes}; the whole batch has {whole.peak_activation_bytes}. Does one graph go "
            f"before the next one comes? {PILE_UP}"
        )
