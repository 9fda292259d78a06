"""A run as a film: one frame for each step, made of what the tracer wrote down.

A step is an op, a replayed op, or a node that is swept. Much comes and goes within it. A frame shows the moment of
its step at which the most activations were live, and of such moments the last; so the fullest frame shows the
tracer's peak. Bytes have a highest moment of their own, as in curves.py. One frame more, after the last step, shows
what is left.
"""

import itertools
from collections import Counter
from dataclasses import dataclass, field

from ..errors import ArgumentError
from ..trace.recorder import Tracer
from .palette import STATES

KINDS = {"op": "forward", "replayed": "replay", "vjp": "backward"}
CODES = {name: code for code, name in enumerate(STATES)}
WAITING = 8  # is added to a code if a gradient waits at the box
HELD = ("replayed", "boundary", "activation", "input")  # of several roles in one box, the first is shown


@dataclass
class Frame:
    """One step, or in a folded graph neighbouring steps of the same kind in the same box.

    kind, box       what runs; box is None if it is not shown
    steps           [first, last] of the tracer's steps
    activations, bytes   how many are live at the highest moment; counts, sizes: the same by role
    changes         box -> code of its state, of those that look different than in the frame before
    kept, dropped   boxes of which the tape or a replay took hold, or let go
    """

    kind: str
    box: int | None
    steps: list
    activations: int = -1
    bytes: int = -1
    counts: Counter = field(default_factory=Counter)
    sizes: Counter = field(default_factory=Counter)
    changes: dict = field(default_factory=dict)
    kept: list = field(default_factory=list)
    dropped: list = field(default_factory=list)


class Ledger:
    """What each box holds after the events so far.

    held      value -> the roles of its buffers that the tape or a replay holds
    roles     box -> role -> how many buffers of its values are held; `there`: how many are alive
    counts    role -> how many activations are live; `sizes`: role -> how many bytes
    """

    def __init__(self, graph, events):
        self.graph, self.place, self.values = graph, graph.place, graph.transcript.values
        self.held, self.there, self.counts, self.sizes = {}, Counter(), Counter(), Counter()
        self.roles = [Counter() for _ in graph.boxes]
        self.computed, self.waiting, self.touched = set(), set(), set()
        self.activations = 0
        self.sweeps_to_come = Counter(event.value for event in events if event.kind == "vjp")

    def tell(self, event):
        """The next event."""
        fewer = event.live_activations < self.activations
        self.activations = event.live_activations
        self.sizes[event.role] += event.nbytes
        box = self.place.get(event.value)
        if box is None:
            return
        self.touched.add(box)
        roles = self.held.setdefault(event.value, [])
        if event.kind == "hold":
            self._book(box, roles, None, event.role)
        elif event.kind == "drop" or (event.kind == "gone" and fewer):
            self._book(box, roles, event.role, None)
        elif event.kind == "role" and roles and event.nbytes > 0:
            self._book(box, roles, roles[-1], event.role)
        if event.kind == "vjp":
            self._pass_gradients_on(event.value, box)
        if event.kind == "new" or event.kind in KINDS:
            self.computed.add(box)
        self.there[box] += {"new": 1, "gone": -1}.get(event.kind, 0)

    def _book(self, box, roles, old, new):
        """One of a value's buffers is no longer held in its old role, and from now on in its new one."""
        if old is not None and roles:
            old = old if old in roles else roles[-1]
            roles.remove(old)
            self.counts[old] -= 1
            self.roles[box][old] -= 1
        if new is not None:
            roles.append(new)
            self.counts[new] += 1
            self.roles[box][new] += 1

    def _pass_gradients_on(self, value, box):
        """The vjps of a value give gradients to what it was computed from; shown if it is a box that comes later."""
        self.sweeps_to_come[value] -= 1
        self.waiting.discard(box)
        for position, _ in self.values[value].vjps:
            inputs = self.values[value].inputs
            source = inputs[position] if position < len(inputs) else None
            if self.sweeps_to_come[source] > 0 and self.place.get(source, box) != box:
                self.waiting.add(self.place[source])
                self.touched.add(self.place[source])

    def holds(self, box) -> bool:
        """Whether a buffer of the box is live as an activation."""
        return any(self.roles[box].values())

    def code(self, box) -> int:
        """How a box looks now."""
        if self.holds(box):
            name = next((role for role in HELD if self.roles[box][role]), "activation")
        elif self.there[box] > 0:
            name = "variable"
        else:
            name = "dropped" if box in self.computed else "future"
        return CODES[name] + WAITING * (box in self.waiting)

    def counts_by_role(self) -> Counter:
        """role -> live activations; what no box is known for counts as "activation"."""
        found = +self.counts
        found["activation"] += self.activations - sum(found.values())
        return +found


def film(tracer, graph) -> list:
    """The frames of a run."""
    cuts = cut(tracer, graph)
    ledger, frames, codes = Ledger(graph, tracer.events), [], {}
    for frame, events in cuts:
        fullest = last_highest(events, "live_activations")
        largest = last_highest(events, "live_bytes")
        before = {}
        for number, event in enumerate(events):
            box = graph.place.get(event.value)
            if box is not None and box not in before:
                before[box] = ledger.holds(box)
            ledger.tell(event)
            if number == fullest:
                show(frame, ledger, codes)
            if number == largest:
                frame.bytes, frame.sizes = event.live_bytes, +ledger.sizes
        for box, was in before.items():
            if ledger.holds(box) != was:
                (frame.dropped if was else frame.kept).append(box)
        frames.append(frame)
    last = Frame("end", None, [frames[-1].steps[1] + 1] * 2, bytes=tracer.events[-1].live_bytes, sizes=+ledger.sizes)
    show(last, ledger, codes)
    return [*frames, last]


def show(frame, ledger, codes):
    """Let a frame show this moment."""
    frame.activations, frame.counts = ledger.activations, ledger.counts_by_role()
    for box in ledger.touched:
        code = ledger.code(box)
        if codes.get(box, CODES["future"]) != code:
            codes[box] = frame.changes[box] = code
    ledger.touched.clear()


def cut(tracer, graph) -> list:
    """[(frame, its events)], by steps; what there was before the first step belongs to that."""
    main = {event.step: event for event in tracer.events if event.kind in KINDS}
    first, now, cuts = min(main), None, []
    for event in tracer.events:
        step = max(event.step, first)
        if step != now and step in main:
            now, kind, box = step, KINDS[main[step].kind], graph.place.get(main[step].value)
            if graph.folded and cuts and (cuts[-1][0].kind, cuts[-1][0].box) == (kind, box):
                cuts[-1][0].steps[1] = step
            else:
                cuts.append((Frame(kind, box, [step, step]), []))
        cuts[-1][1].append(event)
    return cuts


def check(tracer, name):
    """Raise ArgumentError if there is nothing to play."""
    which = f" in {name!r}" if name else ""
    if not isinstance(tracer, Tracer):
        raise ArgumentError(f"the player plays what a mg.Tracer has seen, and was given {tracer!r:.60}{which}")
    if not any(event.kind in KINDS for event in tracer.events):
        raise ArgumentError(f"there is nothing to play{which}: no op ran in the tracer's block")


def last_highest(events, name) -> int:
    """The index of the event with the highest value of a field, the last one of several."""
    return max(range(len(events)), key=lambda i: (getattr(events[i], name), i))


def replayed_so_far(frames) -> list:
    """For each frame, how many ops have been replayed up to its end."""
    counts = [frame.steps[1] - frame.steps[0] + 1 if frame.kind == "replay" else 0 for frame in frames]
    return list(itertools.accumulate(counts))


def held_data(tracer) -> set:
    """The data that was live as an activation at some time."""
    values = tracer.transcript.values
    held = {event.value for event in tracer.events if event.kind == "hold" and event.value >= 0}
    return {index for index in held if not values[index].op}


# ---- For the page ------------------------------------------------------------------------------------


def as_data(frames) -> dict:
    """The frames as lists, one for each field."""
    roles = list(dict.fromkeys(role for frame in frames for role in (*frame.counts, *frame.sizes)))
    return {
        "kind": [frame.kind for frame in frames],
        "box": [-1 if frame.box is None else frame.box for frame in frames],
        "steps": [frame.steps for frame in frames],
        "activations": [frame.activations for frame in frames],
        "bytes": [frame.bytes for frame in frames],
        "changes": [[number for pair in frame.changes.items() for number in pair] for frame in frames],
        "kept": [frame.kept for frame in frames],
        "dropped": [frame.dropped for frame in frames],
        "replayed": replayed_so_far(frames),
        "activationsByRole": {role: [frame.counts[role] for frame in frames] for role in roles},
        "bytesByRole": {role: [frame.sizes[role] for frame in frames] for role in roles},
    }
