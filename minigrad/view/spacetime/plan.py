"""The rows and spans of a space-time picture, from a plan alone: a schedule's tree, unfolded in the engine's order."""

from itertools import accumulate, islice
from typing import NamedTuple

from ...errors import ArgumentError
from .rows import FORWARD, OUTSIDE, REPLAY, SWEEP, Row, SpaceTime, Span, merged

MOST_ROWS = 2_000_000  # some seconds


class Part(NamedTuple):
    """Layers first ... stop-1: taped (schedule None), or a checkpoint under `schedule`, its boundary in slow memory?"""

    first: int
    stop: int
    schedule: object
    is_slow: bool

    @property
    def layers(self):
        return range(self.first, self.stop)


class Diary:
    """Rows as they are written, and since when each activation is live, in fast memory or in slow."""

    def __init__(self):
        self.rows, self.fast, self.slow, self.since = [], [], [], {}

    def row(self, hand, layer):
        self.rows.append(Row(hand, layer))

    def show(self, column, state):
        """From the next row on, x_column is live in this state."""
        key = column, state == "offloaded"
        if self.since.get(key, (None, 0))[0] != state:
            self.hide(*key)
            self.since[key] = state, len(self.rows)

    def hide(self, column, slow=False):
        """The last row was the last one with x_column in fast memory, or in slow."""
        state, first = self.since.pop((column, slow), (None, 0))
        if state is not None and first < len(self.rows):
            (self.slow if slow else self.fast).append(Span(column, state, first, len(self.rows) - 1))


class Unfolding:
    """A schedule on n layers, done step by step as the engine does it.

    diary    what has been done
    waiting  the parts that have not been swept yet; the last one is next
    """

    def __init__(self, schedule, n):
        self.schedule, self.diary, self.waiting, self.known = schedule, Diary(), [], {}
        self.forward(n)
        self.diary.row(OUTSIDE, None)
        while self.waiting:
            part = self.waiting.pop()
            if part.schedule is None:
                self.sweep(part)
            else:
                self.replay(part)
        self.diary.hide(0)

    def parts(self, part, schedule, replayed):
        """The parts of a stretch, which fast memory has the input of anyway, or not."""
        key = schedule, len(part.layers), replayed
        if key not in self.known:
            self.known[key] = (schedule.parts_of_replay if replayed else schedule.parts)(len(part.layers))
        first, found = part.first, []
        for length, inner in self.known[key]:
            goes_slow = inner is not None and inner.offload is not None
            is_input_at_hand = replayed and first == part.first and not part.is_slow
            found.append(Part(first, first + length, inner, goes_slow and not is_input_at_hand))
            first += length
        return found

    def forward(self, n):
        """The first run of all layers."""
        self.waiting = self.parts(Part(0, n, self.schedule, False), self.schedule, False)
        if hasattr(self.schedule, "keeper"):
            self.forward_online(n)
            return
        before = None
        for part in self.waiting:
            for layer in part.layers:
                self.take_input(layer, part, before, "activation")
                self.diary.row(FORWARD, layer)
            self.leave(part)
            before = part

    def forward_online(self, n):
        """The first run of a loop whose length is not known: states are kept, and some are dropped again."""
        keeper = self.schedule.keeper()
        for layer in range(n):
            dropped, store = keeper.step(layer)
            for state in dropped:
                self.diary.hide(state)
            if store:
                self.diary.show(layer, "boundary")
            self.diary.row(FORWARD, layer)

    def take_input(self, layer, part, before, state):
        """A layer of a part reads its input. The first one's is a boundary if a checkpoint stands at either side."""
        sides = part, before
        if layer == part.first and any(side is not None and side.schedule is not None for side in sides):
            self.diary.show(layer, "boundary")
        elif part.schedule is None:
            self.diary.show(layer, state)

    def leave(self, part):
        """A part has been run, and waits for backward; its boundary in slow memory, perhaps."""
        if part.is_slow:
            self.diary.hide(part.first)
            self.diary.show(part.first, "offloaded")

    def sweep(self, part):
        """Backward of a taped part."""
        for layer in reversed(part.layers):
            self.diary.row(SWEEP, layer)
            self.diary.hide(layer + 1)

    def replay(self, checkpoint):
        """Run a checkpoint again; its parts then wait to be swept."""
        self.diary.hide(checkpoint.stop)
        if checkpoint.is_slow:
            self.fetch(checkpoint)
        parts, before = self.parts(checkpoint, checkpoint.schedule, True), checkpoint
        for part in parts:
            runs = part.layers
            if part is parts[-1] and checkpoint.schedule.early_stop:  # its output is read by nobody
                runs = runs[:-1] if part.schedule is None else runs[:0]
            self.run_again(part, before, runs)
            before = part
        self.diary.hide(checkpoint.stop)
        if checkpoint.is_slow and not parts[0].is_slow:
            self.diary.hide(checkpoint.first, slow=True)
        self.waiting += parts

    def run_again(self, part, before, layers):
        """Replay these layers of a part: to tape them, or to come to the part's end."""
        for layer in layers:
            self.take_input(layer, part, before, "replayed")
            self.diary.show(layer + 1, "replayed")
            self.diary.row(REPLAY, layer)
            if part.schedule is not None and layer > part.first:
                self.diary.hide(layer)
        if not layers:
            self.take_input(part.first, part, before, "replayed")
        self.leave(part)

    def fetch(self, checkpoint):
        """Bring a boundary back from slow memory, and the next older ones too, if that is wanted."""
        older = (part for part in reversed(self.waiting) if part.is_slow)
        for part in (checkpoint, *islice(older, checkpoint.schedule.offload - 1)):
            self.diary.show(part.first, "boundary")


def from_plan(plan) -> SpaceTime:
    """Unfold a Plan into rows and spans. ArgumentError if there are more than two million rows.

    >>> from minigrad.schedules import uniform
    >>> picture = from_plan(uniform(10).plan(100))
    >>> len(picture.rows), picture.replays, picture.peak
    (282, 81, 19)
    """
    rows = 2 * plan.layers + plan.extra_forwards + 1
    if rows > MOST_ROWS:
        raise ArgumentError(
            f"{plan.schedule!r} takes {rows:,} steps on {plan.layers} layers, and a picture is made of at most "
            f"{MOST_ROWS:,}; draw it for fewer layers"
        )
    diary = Unfolding(plan.schedule, plan.layers).diary
    counts = counts_of(diary.fast, rows)
    found = SpaceTime(plan.layers, diary.rows, merged(diary.fast + diary.slow), counts, repr(plan.schedule))
    assert (found.peak, found.replays) == (plan.peak, plan.extra_forwards), f"{plan!r} is not what was unfolded"
    return found


def counts_of(spans, rows) -> list:
    """How many spans there are in each row."""
    changes = [0] * (rows + 1)
    for span in spans:
        changes[span.first] += 1
        changes[span.last + 1] -= 1
    return list(accumulate(changes[:rows]))
