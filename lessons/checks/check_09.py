"""Looks at lessons/exercises/ex09_schedules.py."""

import itertools

import numpy as np

import minigrad as mg
from minigrad import schedules

WITHIN = "Look at 'Segments within segments' in lesson 09."
HOW_FAR = "Look at 'How far can one go?' in lesson 09."


class Layer:
    """h @ w, and how often it has been called."""

    def __init__(self, seed):
        square, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
        self.w, self.calls = mg.tensor(square, requires_grad=True), 0

    def __call__(self, h):
        self.calls += 1
        return h @ self.w


def check_halved(answers):
    for count in (1, 2, 16, 64):
        layers = [Layer(seed) for seed in range(count)]
        x = mg.tensor(np.random.default_rng(99).standard_normal((2, 3)))
        expected = x.numpy()
        for layer in layers:
            expected = expected @ layer.w.numpy()
        with mg.Tracer() as tracer:
            result = answers.halved(layers, x)
            assert isinstance(result, mg.Tensor), f"halved must give a tensor, not {type(result).__name__}"
            assert np.allclose(result.numpy(), expected), (
                f"of {count} layers the result is not that of all layers one after the other, from first to last"
            )
            calls = [layer.calls for layer in layers]
            assert set(calls) == {1}, f"each of {count} layers must be called once; they were called {calls} times"
            result.sum().backward()
        plan = schedules.bisection().plan(count)
        assert tracer.peak_activations <= plan.peak, (
            f"{count} layers: a tracer has seen {tracer.peak_activations} live activations at the peak, and "
            f"bisection() needs {plan.peak}. Is it the *first* half that is a checkpoint? And is it halved again "
            f"inside, with checkpoints inside the checkpoint? {WITHIN}"
        )
        assert tracer.replayed_ops <= plan.extra_forwards, (
            f"{count} layers: the peak is right, but {tracer.replayed_ops} layers were replayed, and bisection() "
            f"replays {plan.extra_forwards}. Backward begins with the second half: a checkpoint around that would be "
            f"replayed at once. {WITHIN}"
        )


def check_most_layers(answers):
    for slots, runs in itertools.product(range(7), repeat=2):
        found = answers.most_layers(slots, runs)
        case = f"most_layers({slots}, {runs}) gave {found!r}"
        assert isinstance(found, int) and found > 0, (
            f"{case}; it must be a whole number, and one layer can always be done"
        )
        if slots == 0 or runs == 0:
            assert found == 1, f"{case}: with no slot, or no run, one layer can be done, and no more. {HOW_FAR}"
            continue
        assert fits(slots, runs, found), (
            f"{case}; but with {slots} slots so many layers cannot all do with {runs} runs. What is left, of slots and "
            f"of runs, for the layers in front of a boundary, and for those behind it? {HOW_FAR}"
        )
        assert not fits(slots, runs, found + 1), (
            f"{case}; but there is room for one layer more. What is left, of slots and of runs, for the layers in "
            f"front of a boundary, and for those behind it? {HOW_FAR}"
        )


def fits(slots, runs, layers):
    """Whether, with so many slots for boundaries, a schedule runs none of the layers more often than that."""
    return layers == 1 or schedules.binomial(slots + 1).fewest_runs(layers, slots + 1) <= runs


def check_fewest_replays(answers):
    for layers, slots in itertools.product((1, 2, 3, 5, 8, 13), (1, 2, 3, 4)):
        found = answers.fewest_replays(layers, slots)
        best = schedules.binomial(slots + 1).plan(layers).extra_forwards
        hint = "Have you tried every j, and given back all slots to the layers in front?"
        if slots == 1:
            hint = "With one slot there is the input and nothing else: the next boundary is never kept."
        if layers > 1 and found == best + layers - 1:
            hint = f"Are the first runs taken off, {layers - 1} of them?"
        assert found == best, (
            f"{layers} layers, {slots} slots for boundaries: binomial({slots + 1}) replays {best}, and fewest_replays "
            f"says {found!r}. {hint} {HOW_FAR}"
        )
