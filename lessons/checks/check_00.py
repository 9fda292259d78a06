"""Looks at lessons/exercises/ex00_tour.py."""

import numpy as np

import minigrad as mg


class Layer:
    """tanh(h @ w), and how often it has run."""

    def __init__(self, seed):
        self.w = mg.tensor(np.random.default_rng(seed).standard_normal((4, 4)) / 2, requires_grad=True)
        self.calls = 0

    def __call__(self, h):
        self.calls += 1
        return mg.tanh(h @ self.w)


def chain(length):
    return [Layer(seed) for seed in range(length)], mg.tensor(np.random.default_rng(99).standard_normal((5, 4)))


def run(layers, h):
    for layer in layers:
        h = layer(h)
    return h


def check_two_numbers(answers):
    layers, x = chain(8)

    def plain(h):
        return run(layers, h)

    def with_checkpoint(h):
        return run(layers[4:], mg.checkpoint(run, layers[:4], h))

    for name, network, expected in [("no checkpoint", plain, (9, 0)), ("a checkpoint", with_checkpoint, (6, 6))]:
        for layer in layers:
            layer.w.grad = None
        found = answers.two_numbers(network, x)
        assert all(layer.w.grad is not None for layer in layers), (
            "two_numbers ran no backward: the weights have no gradient afterwards. A training step is a forward and a "
            "backward, and the tracer must see both. Look at the cell under 'A checkpoint' of lesson 00."
        )
        is_pair = isinstance(found, tuple) and len(found) == 2
        assert is_pair, f"two_numbers must give a tuple of two numbers, not {found!r}"
        assert found[0] == expected[0], (
            f"A network of eight layers tanh(h @ w), {name}: at most {expected[0]} activations are live at once, and "
            f"two_numbers says {found[0]}. Does the tracer begin before the forward? And is it the highest number that "
            "you give, or the one at the end? Look at the cell under 'The tape' of lesson 00."
        )
        assert found[1] == expected[1], (
            f"A network of eight layers tanh(h @ w), {name}: {expected[1]} ops are replayed, and two_numbers says "
            f"{found[1]}. Look at the cell under 'A checkpoint' of lesson 00."
        )


def check_half_checkpointed(answers):
    layers, x = chain(8)
    expected = run(layers, x)
    for layer in layers:
        layer.calls = 0
    result = answers.half_checkpointed(layers, x)
    assert isinstance(result, mg.Tensor), f"half_checkpointed must give a tensor, not {type(result).__name__}"
    calls = [layer.calls for layer in layers]
    assert calls == [1] * 8, f"each of the eight layers must be called once; they were called {calls} times"
    assert np.array_equal(result.data, expected.data), (
        "the result is not that of the layers one after the other. In which order do they run?"
    )
    nodes = [node for node in mg.tape(result) if node.op is not None]
    checkpoints = [node for node in nodes if node.body is not None]
    assert len(checkpoints) == 1, (
        f"there should be one checkpoint on the tape, and there are {len(checkpoints)}. print(mg.tape(result)) shows "
        "each as a line. One function must run the whole half: see the cell under 'A checkpoint' of lesson 00."
    )
    outside = len(nodes) - 1
    assert outside == 8, (
        "the second half, four layers of a matmul and a tanh each, should be eight lines of the tape, and there are "
        f"{outside} lines besides the checkpoint"
    )
    assert checkpoints[0] is nodes[0], (
        "the checkpoint should stand for the first half of the layers, and the tape has ops before it. "
        "print(mg.tape(result)) shows the order"
    )


def check_freed_by(answers):
    layers, x = chain(3)
    where = "Look at the cell under 'Backward, step by step' of lesson 00."
    try:
        found = answers.freed_by(run(layers, x).sum())
    except AttributeError as error:
        raise AssertionError(
            f"{error}. Not every step is of kind 'op': the last ones of a walk are leaves, and no op has made a leaf "
            f"(its node.op is None). {where}"
        ) from error
    assert isinstance(found, dict), f"freed_by must give a dict, not {type(found).__name__}"
    assert "tanh" in found, f"three layers tanh(h @ w): the tape lets go of what tanh gave; yours is {found}. {where}"
    assert found["tanh"] == 3 * 160, (
        f"three tanhs of 160 bytes each are let go, {3 * 160} bytes; freed_by says {found['tanh']}. "
        f"Are the bytes of several nodes added up? {where}"
    )
    others = {name: count for name, count in found.items() if name != "tanh"}
    assert not others, (
        f"in three layers tanh(h @ w) only the tanhs free anything, and freed_by also has {others}. Bytes that a node "
        f"computed are not bytes that the tape held: a step says what was freed. {where}"
    )
    w = mg.tensor(np.ones((4, 4)), requires_grad=True)
    found = answers.freed_by((mg.exp(x @ w) * mg.tanh(x @ w)).sum())
    expected = {"tanh": 160, "exp": 160}
    assert found == expected, f"exp(x @ w) * tanh(x @ w) frees {expected}, and freed_by says {found}. {where}"
