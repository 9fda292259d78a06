"""A SpaceTime in as many rows and columns as there is room for: several steps in a row, several layers in a column."""

from dataclasses import dataclass

from .rows import FORWARD, OUTSIDE, REPLAY, SWEEP, Span, merged


@dataclass
class Grid:
    """A SpaceTime in rows and columns as there is room for.

    chain          how many layers there are
    steps, layers  how many of them a row and a column stand for
    rows, columns  how many there are
    spans          as those of a SpaceTime, in rows and columns of the grid
    waiting        (column, first row, last row) from an activation being computed to its layer being swept
    marks          hand -> {(row, column)} of the layers in hand
    counts         for each row the most activations that are live at once
    phases         ("forward" or "backward", first row, last row), in order; the loss belongs to forward
    """

    chain: int
    steps: int
    layers: int
    rows: int
    columns: int
    spans: list
    waiting: list
    marks: dict
    counts: list
    phases: list

    @property
    def peak(self):
        return max(self.counts, default=0)

    @property
    def is_folded(self):
        return self.steps > 1 or self.layers > 1


def fold(spacetime, steps, layers) -> Grid:
    """The grid in which a row stands for so many steps, and a column for so many layers."""
    rows, columns = -(-len(spacetime.rows) // steps), -(-columns_of(spacetime) // layers)
    spans = [Span(s.column // layers, s.state, s.first // steps, s.last // steps) for s in spacetime.spans]
    waiting = [(column // layers, first // steps, last // steps) for column, first, last in waits(spacetime)]
    marks = {FORWARD: set(), SWEEP: set(), REPLAY: set()}
    for number, row in enumerate(spacetime.rows):
        if row.hand != OUTSIDE:
            marks[row.hand].add((number // steps, row.layer // layers))
    phases = [(phase, first // steps, last // steps) for phase, first, last in phases_of(spacetime)]
    counts = [max(spacetime.counts[row * steps : (row + 1) * steps]) for row in range(rows)]
    return Grid(
        spacetime.layers, steps, layers, rows, columns, merged(spans), joined(waiting), marks, counts, phases
    )  # fmt: skip


def fitting(spacetimes, most_rows, most_columns) -> list:
    """Grids of several, all folded alike, as little as possible."""
    steps = -(-max(len(one.rows) for one in spacetimes) // most_rows)
    layers = -(-max(columns_of(one) for one in spacetimes) // most_columns)
    return [fold(one, steps, layers) for one in spacetimes]


def columns_of(spacetime):
    """One for each layer, and one more if the last one's output is ever live."""
    return max([spacetime.layers, *(span.column + 1 for span in spacetime.spans)])


def phases_of(spacetime) -> list:
    """(phase, first row, last row); what is outside of the chain belongs to what was before."""
    starts = []
    for number, (hand, _) in enumerate(spacetime.rows):
        phase = FORWARD if hand == FORWARD else SWEEP
        if hand != OUTSIDE and (not starts or starts[-1][0] != phase):
            starts.append((phase, number if starts else 0))
    ends = [number - 1 for _, number in starts[1:]] + [len(spacetime.rows) - 1]
    return [(phase, first, last) for (phase, first), last in zip(starts, ends, strict=True)]


def waits(spacetime) -> list:
    """(column, first row, last row) from an activation being computed to the layer that reads it being swept."""
    since, found = {}, []
    for number, (hand, layer) in enumerate(spacetime.rows):
        if hand == FORWARD:
            since.setdefault(layer, number)
            since.setdefault(layer + 1, number + 1)
        elif hand == SWEEP and layer in since:
            found.append((layer, since.pop(layer), number))
    last = len(spacetime.rows) - 1
    return found + [(column, first, last) for column, first in since.items() if column < spacetime.layers]


def joined(stretches) -> list:
    """(column, first, last), those that overlap in a column as one."""
    spans = merged([Span(column, "activation", first, last) for column, first, last in stretches])
    return [(span.column, span.first, span.last) for span in spans]
