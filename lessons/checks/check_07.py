"""Looks at lessons/exercises/ex07_segments.py."""

import math

import numpy as np

import minigrad as mg
from minigrad import schedules

FIRST = "Look at 'Longer segments first' in lesson 07."


class Lengths(mg.Schedule):
    """Segments of these lengths, the last one taped."""

    def __init__(self, lengths):
        self.lengths = lengths

    def split(self, n):
        parts = [(length, schedules.store_all()) for length in self.lengths]
        return [*parts[:-1], (self.lengths[-1], None)]


class Layer:
    """h @ w."""

    def __init__(self, seed):
        self.w = mg.tensor(np.random.default_rng(seed).standard_normal((2, 2)), requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def measured_peak(lengths):
    """What a tracer sees of a chain that is cut into segments of these lengths."""
    layers = [Layer(seed) for seed in range(sum(lengths))]
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(layers, Lengths(lengths), mg.ones(3, 2, dtype="float64")).sum().backward()
    return tracer.peak_activations


def formula(layers, k):
    return k + math.ceil(layers / k) - 1


def check_best_number(answers):
    for layers in [*range(1, 130), 400, 1000, 1024, 5000]:
        k = answers.best_number(layers)
        is_number = isinstance(k, int) and 1 <= k <= layers
        assert is_number, f"best_number({layers}) must give a whole number from 1 to {layers}, not {k!r}"
        smallest = min(formula(layers, other) for other in range(1, layers + 1))
        assert formula(layers, k) == smallest, (
            f"{layers} layers in {k} segments: the formula gives {formula(layers, k)}, and another number of segments "
            f"gives {smallest}. Have you compared them all, with the length rounded up? Look at 'Count' in lesson 07."
        )


def check_equal_lengths(answers):
    for layers, segments in ((9, 5), (103, 10), (100, 10), (7, 7), (11, 4), (5, 1), (23, 6)):
        lengths = answers.equal_lengths(layers, segments)
        case = f"equal_lengths({layers}, {segments}) gave {lengths!r}"
        is_list = isinstance(lengths, list) and all(isinstance(length, int) for length in lengths)
        assert is_list, f"{case}; it must be a list of whole numbers"
        assert len(lengths) == segments, f"{case}: that is {len(lengths)} segments, not {segments}"
        assert sum(lengths) == layers, f"{case}: that is {sum(lengths)} layers in all, not {layers}"
        assert min(lengths) > 0, f"{case}: a segment has at least one layer"
        assert max(lengths) - min(lengths) <= 1, (
            f"{case}: the longest has {max(lengths) - min(lengths)} layers more than the shortest; one more is enough"
        )
        best, found = schedules.uniform(segments).plan(layers).peak, measured_peak(lengths)
        assert lengths == sorted(lengths, reverse=True), (
            f"{case}: a longer segment stands behind a shorter one, where more boundaries are alive. A tracer sees "
            f"{found} activations live at the peak; with the longer ones first it is {best}. {FIRST}"
        )


def check_longest_lengths(answers):
    for peak in (1, 2, 3, 5, 8, 13):
        lengths = answers.longest_lengths(peak)
        case = f"longest_lengths({peak}) gave {lengths!r}"
        is_list = isinstance(lengths, list) and all(isinstance(length, int) and length > 0 for length in lengths)
        assert is_list and lengths, f"{case}; it must be a list of lengths, none of them 0"
        found = measured_peak(lengths)
        assert found <= peak, f"{case}: of these segments a tracer sees {found} activations live at the peak. {FIRST}"
        for j, length in enumerate(lengths, start=1):
            assert j + length - 1 == peak, (
                f"{case}: while segment {j} is replayed, {j} boundaries and {length - 1} activations inside it are "
                f"alive, {j + length - 1} in all. {peak} are allowed. {FIRST}"
            )
        assert len(lengths) == peak, (
            f"{case}: behind the last of these segments there is room for another one. How many boundaries may there "
            f"be, if {peak} activations may be alive? {FIRST}"
        )
