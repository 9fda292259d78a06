"""What a space-time picture shows: which layer runs in which step, and which activations are live then.

Time runs in rows. A row is one layer that runs forward, is run again by a replay, or is swept; what happens outside
of the chain of layers between two of these is one row as well (the loss, as a rule). Column i is x_i, the activation
that layer i reads, layers counted from 0. A `Span` says from which row to which an activation is live, and how.

plan.py unfolds the tree of a schedule and does what the engine would do; run.py reads the events of a tracer. On the
reference chain the two are equal, span by span.

When is x_i live? The tape takes it when layer i reads it, and lets it go once layer i - 1, which made it, has been
swept; if a checkpoint made it, when that is replayed. A replay holds what a layer gives from the moment it gives it.
A checkpoint needs its boundary from its first layer on; a tracer books it only when the checkpoint is complete, and
here that is put right.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

FORWARD, REPLAY, SWEEP, OUTSIDE = "forward", "replay", "backward", ""
STATES = ("boundary", "activation", "replayed", "offloaded")  # the one that is shown, if a column has several


class Row(NamedTuple):
    """One step: `hand` is "forward", "replay" or "backward", and `layer` whose; "" and None outside of the chain."""

    hand: str
    layer: int | None


class Span(NamedTuple):
    """x_`column` is live in the rows `first` to `last`, both included. `state` is one of STATES."""

    column: int
    state: str
    first: int
    last: int


@dataclass
class SpaceTime:
    """Rows and spans of one plan or run.

    layers  how many there are; column `layers` is the output of the last one, which is seldom live
    rows    in the order of time
    spans   where activations are live, sorted, those in slow memory ("offloaded") too
    counts  for each row the most activations that are live at once in fast memory
    name    of the schedule, or of the run
    """

    layers: int
    rows: list
    spans: list
    counts: list
    name: str = field(default="", compare=False)

    @property
    def peak(self) -> int:
        return max(self.counts, default=0)

    @property
    def replays(self) -> int:
        """How many layers are run again."""
        return sum(row.hand == REPLAY for row in self.rows)

    def live(self, row) -> dict:
        """column -> state, of what is live in a row."""
        return {span.column: span.state for span in self.spans if span.first <= row <= span.last}


def merged(spans) -> list:
    """Spans without overlaps: where a column has several, the state that comes first in STATES; sorted."""
    edges = defaultdict(list)  # column -> (row, change, state)
    for column, state, first, last in spans:
        if first <= last:
            edges[column] += (first, 1, state), (last + 1, -1, state)
    found = []
    for column in sorted(edges):
        there, shown, since = dict.fromkeys(STATES, 0), None, 0
        changes = sorted(edges[column], key=row_of)
        for position, (row, change, state) in enumerate(changes):
            there[state] += change
            if position + 1 < len(changes) and changes[position + 1][0] == row:
                continue
            now = next((state for state in STATES if there[state]), None)
            if now != shown:
                if shown is not None:
                    found.append(Span(column, shown, since, row - 1))
                shown, since = now, row
    return found


def row_of(edge):
    return edge[0]
