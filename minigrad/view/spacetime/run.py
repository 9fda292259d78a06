"""The rows and spans of a space-time picture, read off the events of a real run."""

from collections import defaultdict

from ...errors import ArgumentError
from .rows import FORWARD, OUTSIDE, REPLAY, SWEEP, Row, SpaceTime, Span, merged

HANDS = {"op": FORWARD, "replayed": REPLAY, "vjp": SWEEP}
# A held buffer's role -> its state; "value": a state of a loop that may become a boundary. Others: "activation".
STATE_OF = {"boundary": "boundary", "value": "boundary", "replayed": "replayed", "offloaded": "offloaded"}


def from_run(tracer) -> SpaceTime:
    """Read rows and spans off the events of a Tracer in whose block a chain of layers has run.

    Layers are known by their numbers in the paths of layers, as checkpoint_sequential and nn.Sequential give them.
    What a layer does in several ops is one row, and column i stands for all that layer i is the first to read; the
    counts are the tracer's. ArgumentError if nothing has run, or no layer has a number.
    """
    if not getattr(tracer, "events", None):
        raise ArgumentError("there is nothing to draw: this is no Tracer, or nothing ran in its block")
    reading = Reading(tracer)
    for event in tracer.events:
        reading.read(event)
    return reading.finish()


# ---- Which column a value stands in ------------------------------------------------------------------


class Chain:
    """The chain of layers of a run: `columns` has for each value its column, None if it has to do with no layer."""

    def __init__(self, values):
        self.start = start_of_chain(value.layer for value in values if value.op)
        makers = [self.number(value.layer) if value.op else None for value in values]
        self.layers = 1 + max(maker for maker in makers if maker is not None)
        self.columns = [maker if maker is None or maker + 1 < self.layers else self.layers for maker in makers]
        placed = set()
        for value, maker in zip(values, makers, strict=True):
            for source in value.inputs if maker is not None else ():
                if source >= 0 and source not in placed:
                    placed.add(source)
                    self.columns[source] = maker

    def number(self, path):
        """The number of the layer in a path of layers, None if that is outside of the chain."""
        parts, depth = path.split("."), len(self.start)
        inside = len(parts) > depth and parts[:depth] == self.start and is_number(parts[depth])
        return int(parts[depth]) if inside else None


def start_of_chain(paths) -> list:
    """What stands before the numbers of the layers, in paths such as blocks.3.attn; of several chains the longest."""
    numbers = defaultdict(set)
    for path in set(paths):
        parts = path.split(".")
        depth = next((depth for depth, part in enumerate(parts) if is_number(part)), None)
        if depth is not None:
            numbers[tuple(parts[:depth])].add(parts[depth])
    if not numbers:
        raise ArgumentError(
            "no layer of this run has a number, and so there are no columns to draw; run the layers with "
            "mg.checkpoint_sequential(layers, schedule, x), or in an nn.Sequential"
        )
    return list(max(sorted(numbers), key=lambda start: len(numbers[start])))


def is_number(part):
    return part.isascii() and part.isdigit()


# ---- When it is live ---------------------------------------------------------------------------------


class Reading:
    """Reads events one by one. Each op that runs, is replayed or is swept is a tick.

    ticks       (Row, value) of each
    counts      the most activations that are live in each
    live        buffer -> (state, first tick), of those that are live now; spans: of those that were
    first_read  value -> the tick in which it was read first since it was computed
    is_between  the last tick is over: what happens now belongs to the next one
    """

    def __init__(self, tracer):
        self.values = tracer.transcript.values
        self.value_of = {event.buffer: event.value for event in tracer.events if event.value >= 0}
        self.chain = Chain(self.values)
        self.ticks, self.counts, self.spans, self.live = [], [], [], {}
        self.first_read, self.corrections = {}, defaultdict(int)
        self.is_between, self.is_recorded_vjp = True, False

    def read(self, event):
        if event.kind in HANDS:
            self.begin_tick(event)
        else:
            self.change(event)

    @property
    def now(self):
        """The tick that what happens now belongs to."""
        return len(self.ticks) - 1 + self.is_between

    def begin_tick(self, event):
        layer, hand = self.chain.number(event.layer), HANDS[event.kind]
        row = Row(OUTSIDE, None) if layer is None else Row(hand, layer)
        self.is_recorded_vjp = event.kind == "op" and event.phase == "backward"  # with create_graph
        if self.is_recorded_vjp and self.ticks:
            row = self.ticks[-1][0]
        self.ticks.append((row, event.value))
        self.counts.append(event.live_activations)
        self.is_between = False
        if event.kind != "vjp":
            self.first_read.pop(event.value, None)
            for source in self.values[event.value].inputs:
                self.first_read.setdefault(source, self.now)

    def change(self, event):
        """The ledger has changed."""
        state, value = STATE_OF.get(event.role, "activation"), self.value_of.get(event.buffer)
        if event.kind == "hold":
            self.is_between = self.is_between or self.is_for_the_next(event)
            self.hold(event, state, value)
        elif event.kind in ("drop", "gone"):
            self.let_go(event.buffer)
        elif event.kind == "role" and event.buffer in self.live:
            self.change_state(event.buffer, state, value)
        elif event.kind == "new" and event.role == "offloaded":
            self.move(event, value)
        if not self.is_between:
            self.counts[-1] = max(self.counts[-1], event.live_activations)

    def is_for_the_next(self, event):
        """Whether a buffer is held for the next tick: a state that a loop keeps, or what a replay begins with."""
        return event.role == "value" or (event.phase == "backward" and not self.is_recorded_vjp)

    def hold(self, event, state, value):
        first = self.now
        if state == "boundary" and event.phase == "forward":
            first = self.boundary_since(value, first)
        self.live[event.buffer] = state, first

    def boundary_since(self, value, now):
        """A checkpoint is complete, and its boundary is booked: it has been needed from its first layer on."""
        first = min(now, self.first_read.get(value, now))
        for tick in range(first, now):
            self.corrections[tick] += 1
        return first

    def let_go(self, buffer):
        state, first = self.live.pop(buffer, (None, 0))
        if state is not None:
            last, value = len(self.ticks) - 1, self.value_of.get(buffer)
            self.spans.append((value, state, first, last))
            self.first_read.pop(value, None)

    def change_state(self, buffer, state, value):
        """A buffer that is held has a new role: a boundary from the tick on that read it, else from the next one on."""
        old, first = self.live[buffer]
        if state != old:
            read = self.first_read.get(value, -1)
            since = read if state == "boundary" and read >= first else len(self.ticks)
            self.spans.append((value, old, first, since - 1))
            self.live[buffer] = state, since

    def move(self, event, value):
        """A boundary goes to slow memory; until now it was in fast memory."""
        held = [buffer for buffer in self.live if self.value_of.get(buffer) == value]
        for buffer in held:
            self.change_state(buffer, "boundary", value)
        if not held:
            self.spans.append((value, "boundary", self.boundary_since(value, self.now + 1), self.now))
        self.live[event.buffer] = "offloaded", self.now

    # ---- From ticks to rows ------------------------------------------------------------------------

    def finish(self) -> SpaceTime:
        for buffer in list(self.live):
            self.let_go(buffer)
        rows, row_of, counts = self.rows()
        spans = []
        for value, state, first, last in self.spans:
            column = None if value is None else self.chain.columns[value]
            if column is not None and first <= last:
                spans.append(Span(column, state, row_of[first], row_of[last]))
        return SpaceTime(self.chain.layers, rows, merged(spans), counts, "A run")

    def rows(self):
        """(rows, the number of the row that each tick belongs to, counts): what a layer does at a time is one row."""
        rows, row_of, counts, seen = [], [], [], set()
        for tick, (row, value) in enumerate(self.ticks):
            if not rows or row != rows[-1] or (row.layer is not None and value in seen):
                rows.append(row)
                counts.append(0)
                seen = set()
            seen.add(value)
            row_of.append(len(rows) - 1)
            counts[-1] = max(counts[-1], self.counts[tick] + self.corrections.get(tick, 0))
        return rows, row_of, counts
