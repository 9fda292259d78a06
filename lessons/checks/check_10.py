"""Looks at lessons/exercises/ex10_budgets.py."""

import numpy as np

import minigrad as mg
from minigrad import schedules

EQUAL = "Look at 'Equal segments' in lesson 10, and at 'Longer segments first' in lesson 07."
IN_ONE_CALL = "Look at 'In one call' in lesson 10."
ROWS = 2  # of the batch of the chains below; a number has 4 bytes
CHAINS = (
    [3, 3, 3, 3, 3, 3],
    [8, 4, 2, 1, 1, 1],
    [1, 1, 2, 4, 8, 4],
    [5, 1, 7, 1, 1, 6, 2],
    [9, 8, 7, 6, 5, 4, 3, 2, 1],
)


class Lengths(mg.Schedule):
    """Segments of these lengths, the last one taped."""

    def __init__(self, lengths):
        self.lengths = lengths

    def split(self, n):
        parts = [(length, schedules.store_all()) for length in self.lengths]
        return [*parts[:-1], (self.lengths[-1], None)]


class Layer:
    """h @ w, from one width to another; counts how often it has been called."""

    def __init__(self, inputs, outputs):
        self.w, self.calls = mg.tensor(np.ones((inputs, outputs), np.float32), requires_grad=True), 0

    def __call__(self, h):
        self.calls += 1
        return h @ self.w


def measured_bytes(widths, lengths):
    """What a tracer sees of a chain whose layers read rows of these widths."""
    layers = [Layer(*pair) for pair in zip(widths, [*widths[1:], 1], strict=True)]
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(layers, Lengths(lengths), mg.ones(ROWS, widths[0])).sum().backward()
    return tracer.peak_activation_bytes


def sizes_of(widths):
    return [4 * ROWS * width for width in widths]


def check_peak_bytes(answers):
    for widths in CHAINS:
        count = len(widths)
        for lengths in (
            [count],
            [2, count - 2],
            [count - 2, 2],
            [1, 2, count - 3],
            [count - 3, 2, 1],
            [2, 2, count - 4],
        ):
            found, right = answers.peak_bytes(sizes_of(widths), lengths), measured_bytes(widths, lengths)
            assert found == right, (
                f"peak_bytes({sizes_of(widths)}, {lengths}) gave {found!r}, and a tracer sees {right} bytes in a chain "
                "of such layers. Which inputs are held while segment j is replayed: those that begin the segments "
                f"before it, and all of its own? And which segment is the fullest? {EQUAL}"
            )


def check_best_cut(answers):
    for widths in CHAINS:
        cut, count = answers.best_cut(sizes_of(widths)), len(widths)
        case = f"best_cut({sizes_of(widths)}) gave {cut!r}"
        is_cut = isinstance(cut, int) and 1 <= cut < count
        assert is_cut, f"{case}; the first of two segments has from 1 to {count - 1} layers"
        found = measured_bytes(widths, [cut, count - cut])
        best = min(measured_bytes(widths, [other, count - other]) for other in range(1, count))
        assert found == best, (
            f"{case}: cut there, a tracer sees {found} bytes at the peak, and another cut gives {best}. The middle is "
            f"not always the best place, nor is the smallest activation. {EQUAL}"
        )


def check_largest_batch(answers):
    layers = [Layer(4, 4) for _ in range(6)]

    def make_input(rows):
        assert isinstance(rows, int) and rows > 0, f"largest_batch asked for an input of {rows!r} rows"
        return mg.ones(rows, 4)

    def is_enough(rows, budget):
        try:
            mg.fit(layers, make_input(rows), budget)
        except mg.BudgetError:
            return False
        return True

    for budget in (100, 1000, 6000):
        for layer in layers:
            layer.calls = 0
        rows = answers.largest_batch(layers, make_input, budget)
        tries = layers[0].calls
        case = f"six layers whose rows have 16 bytes, budget {budget}: largest_batch gave {rows!r}"
        assert isinstance(rows, int) and rows > 0, f"{case}; it must be a number of rows"
        assert is_enough(rows, budget), f"{case}, and mg.fit refuses so many. {IN_ONE_CALL}"
        assert not is_enough(rows + 1, budget), (
            f"{case}, and mg.fit finds a schedule for one row more. With checkpoints more fits than with everything "
            f"stored. {IN_ONE_CALL}"
        )
        assert tries <= 40, f"{case}, which is right; but it took {tries} profiles. Double, and then halve in on it"
    try:
        rows = answers.largest_batch(layers, make_input, 10)
    except mg.BudgetError:
        return
    raise AssertionError(f"not even one row fits into 10 bytes, and largest_batch gave {rows!r}; let the error pass")
