"""Looks at lessons/exercises/ex06_replay.py."""

import weakref

import numpy as np

import minigrad as mg
from minigrad import schedules

WATCH = "Look at the cell under 'Backward, one step at a time' of lesson 06."
ONCE = "Look at 'What runs again, and what does not' in lesson 06."


class Layer:
    """h @ w."""

    def __init__(self, w):
        self.w = mg.tensor(w, requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def chain(length, size=3):
    """(weights as arrays, input as an array)"""
    rng = np.random.default_rng(length)
    return list(rng.standard_normal((length, size, size)) / 2), rng.standard_normal((2, size))


class Lengths(mg.Schedule):
    """Segments of these lengths, the last one taped."""

    def __init__(self, lengths):
        self.lengths = lengths

    def split(self, n):
        parts = [(length, schedules.store_all()) for length in self.lengths]
        return [*parts[:-1], (self.lengths[-1], None)]


def replays_of(schedule, length):
    """(for each replay the layers that it ran, the gradients) of a chain under a schedule."""
    weights, x = chain(length)
    layers, replays = [Layer(w) for w in weights], []
    with mg.Tracer() as tracer:
        loss = mg.checkpoint_sequential(layers, schedule, mg.tensor(x)).sum()
        seen = len(tracer.events)
        for step in mg.steps(loss):
            if step.kind == "replay":
                replays.append([int(event.layer) for event in tracer.events[seen:] if event.kind == "replayed"])
            seen = len(tracer.events)
    return replays, [layer.w.grad.numpy() for layer in layers]


def check_runs_before(answers):
    for every, layers in ((10, 100), (4, 12), (5, 13), (1, 6), (7, 7)):
        replays, _ = replays_of(schedules.every(every), layers)
        for layer in (0, 1, layers // 3, layers // 2, layers // 2 + 1, layers - every, layers - 2, layers - 1):
            if not 0 <= layer < layers:
                continue
            found = answers.runs_before(layer, every, layers)
            assert isinstance(found, list), f"runs_before must give a list of numbers, not {found!r}"
            ran = next((ran for ran in replays if layer - 1 in ran), [])
            expected = [number for number in ran if number < layer] if layer % every else []
            assert found == expected, (
                f"layer {layer} of {layers}, a checkpoint every {every}: a tracer sees that the layers {expected} run "
                f"for it, and runs_before says {found}. What a layer needs is its input. Is that input a boundary, or "
                f"was the segment taped, so that nothing has to run? {WATCH}"
            )


def check_times_run(answers):
    for lengths in ([10] * 10, [3, 3, 2], [1, 1, 4], [5], [2, 1, 3, 1]):
        replays, _ = replays_of(Lengths(lengths), sum(lengths))
        again = [sum(layer in ran for ran in replays) for layer in range(sum(lengths))]
        expected, found = [1 + count for count in again], answers.times_run(lengths)
        assert isinstance(found, list) and len(found) == sum(lengths), (
            f"times_run({lengths}) must give a list of {sum(lengths)} numbers, one for each layer, not {found!r}"
        )
        wrong = [layer for layer in range(len(expected)) if found[layer] != expected[layer]]
        assert not wrong, (
            f"segments of {lengths} layers: a tracer sees layer {wrong[0]} run {expected[wrong[0]]} times, and "
            f"times_run says {found[wrong[0]]}. Who would read what that layer gives? {ONCE}"
        )


class Books:
    """A layer's forward and vjp that count, and know how many of their results are alive."""

    def __init__(self):
        self.runs = self.live = self.peak = 0

    def forward(self, h, w):
        self.runs += 1
        out = h @ w
        self.live += 1
        self.peak = max(self.peak, self.live)
        weakref.finalize(out, self.gone)
        return out

    def gone(self):
        self.live -= 1

    def vjp(self, g, h, w):
        return g @ w.T, h.T @ g


def check_gradients(answers):
    for every, length in ((10, 100), (4, 12), (5, 13), (1, 4), (6, 6)):
        weights, x = chain(length)
        _, expected = replays_of(schedules.store_all(), length)
        books = Books()
        found = answers.gradients(weights, x, every, books.forward, books.vjp)
        case = f"{length} layers, a checkpoint every {every}:"
        assert isinstance(found, list) and len(found) == length, (
            f"{case} gradients must give a list of {length} arrays, one for each weight, first layer first"
        )
        wrong = [i for i in range(length) if found[i] is None or not np.allclose(found[i], expected[i], rtol=1e-9)]
        assert not wrong, (
            f"{case} the gradient of weight {wrong[0]} is not that of minigrad. Do the inputs of a segment belong to "
            f"the right layers, and does g go through the layers from the last to the first? {WATCH}"
        )
        segments = -(-length // every)
        runs, most = length + length - segments, segments + every + 1
        assert books.peak <= most, (
            f"{case} {segments} boundaries and the inputs inside one segment of {every} are enough, and {books.peak} "
            "outputs of layers were alive at once. What is still held that backward has passed, or that a replay will "
            "compute again?"
        )
        assert books.runs == runs, (
            f"{case} {length} runs in forward, and {length - segments} in replays that leave out the last layer of "
            f"each segment: {runs}. Yours ran {books.runs}. {ONCE}"
        )
