"""A plan read back from JSON: the schedule that `Plan.to_json` (report.py) has written, or another program.

Nothing here is recursive, since a tree may be as deep as the chain is long.
"""

import json
from collections import deque

from ..errors import ArgumentError
from .report import DEEPEST
from .schedule import Schedule


class Explicit(Schedule):
    """A split that is written out: for one number of layers, and no rule behind it."""

    def __init__(self, parts, early_stop=True, offload=None):
        self.written, self.early_stop, self.offload = tuple(parts), early_stop, offload
        self.layers = sum(length for length, _ in self.written)
        self.label = f"the written split of {self.layers} layers"

    def split(self, n):
        if n != self.layers:
            raise ArgumentError(f"{self.label} ({self.layers} parts) cannot split {n} layers; write a plan for {n}")
        return list(self.written)


class Reading:
    """A checkpoint while its parts are read, or the whole tree: what is left to read, and what is done.

    place     where it stands in the JSON, for errors         entries   its parts that are left to read
    next      the layer at which the next part must start     number    how many have been read
    last      the layer at which the last one must end        done      those, as (length, None | Schedule)
    settings  early_stop, offload
    """

    def __init__(self, place, entries, first, last=None, settings=(True, None)):
        self.place, self.entries, self.next, self.last, self.settings = place, deque(entries), first, last, settings
        self.number, self.done = 0, []

    def take(self):
        """(place, last layer, JSON) of the next part."""
        place, entry = f"{self.place}[{self.number}]", self.entries.popleft()
        self.number += 1
        return place, last_layer(entry, place, self.next), entry

    def finish(self, last, schedule):
        """The part that ends at layer `last` has been read."""
        self.done.append((last - self.next + 1, schedule))
        self.next = last + 1


def from_json(text) -> Schedule:
    """The schedule of a plan that `Plan.to_json` has written, for as many layers as the plan had.

    Its plan has the same numbers, and a model runs under it as under the original. Only "tree" is read, so other
    programs can write one too. ArgumentError for what is not such a tree, and for one that was cut at a max_depth.

    >>> import minigrad as mg
    >>> mg.schedules.from_json(mg.schedules.uniform(10).plan(100).to_json()).plan(100)
    Plan(from_json(uniform(10) on 100 layers), 100 layers: peak 19 activations, 81 layers replayed)
    """
    try:
        written = json.loads(text)
    except RecursionError:
        raise ArgumentError(f"this JSON is nested deeper than the {DEEPEST} levels that a plan may have") from None
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"a plan is JSON text as Plan.to_json() writes it, and this is not: {error}") from None
    if not isinstance(written, dict) or not isinstance(written.get("tree"), list) or not written["tree"]:
        raise ArgumentError('a plan in JSON is an object with a "tree", a list of parts, as Plan.to_json() writes it')
    schedule = read_tree(written["tree"])
    if written.get("layers", schedule.layers) != schedule.layers:
        raise ArgumentError(f'"layers" is {written["layers"]!r:.20}, but the tree has {schedule.layers} layers')
    name = "".join(filter(str.isprintable, str(written.get("schedule", "a tree"))[:60]))
    schedule.label = f"from_json({name} on {schedule.layers} layers)"
    return schedule


def read_tree(tree) -> Explicit:
    """The schedule that a list of parts describes. Equal splits become one object, so that a plan counts them once."""
    made, readings = {}, [Reading("tree", tree, 1)]
    while True:
        reading = readings[-1]
        if reading.entries:
            place, last, entry = reading.take()
            if entry["kept"] == "taped":
                reading.finish(last, None)
            else:
                readings.append(reading_of(entry, place, reading.next, last))
            continue
        readings.pop()
        schedule = made.setdefault((*reading.done, reading.settings), Explicit(reading.done, *reading.settings))
        if not readings:
            return schedule
        if reading.next != reading.last + 1:
            raise ArgumentError(f"{reading.place} end at layer {reading.next - 1}, not at {reading.last}")
        readings[-1].finish(reading.last, schedule)


def last_layer(entry, place, first) -> int:
    """The layer at which a part ends; ArgumentError if it is no part, or does not start at layer `first`."""
    layers = entry.get("layers") if isinstance(entry, dict) else None
    if not isinstance(layers, list) or [type(layer) for layer in layers] != [int, int] or layers[0] > layers[1]:
        raise ArgumentError(f'{place} is {entry!r:.80}; a part has "layers": [first, last], and "kept"')
    if layers[0] != first:
        raise ArgumentError(f"{place} starts at layer {layers[0]}, but the parts before it end at {first - 1}")
    if entry.get("kept") not in ("taped", "checkpoint"):
        raise ArgumentError(f'{place} has "kept": {entry.get("kept")!r:.40}; it is "taped" or "checkpoint"')
    return layers[1]


def reading_of(entry, place, first, last) -> Reading:
    """A checkpoint that is about to be read."""
    parts, early_stop, offload = entry.get("parts"), entry.get("early_stop", True), entry.get("offload")
    if not isinstance(parts, list) or not parts:
        raise ArgumentError(
            f'{place} is a checkpoint of layers {first}-{last} without a list of "parts", as when a plan is written '
            "with max_depth; write the whole plan to run it"
        )
    if not isinstance(early_stop, bool) or not (offload is None or type(offload) is int and offload >= 1):
        raise ArgumentError(
            f'{place} has "early_stop": {early_stop!r:.20} and "offload": {offload!r:.20}; the one is true or false, '
            "the other null or a number from 1"
        )
    return Reading(f"{place}.parts", parts, first, last, (early_stop, offload))
