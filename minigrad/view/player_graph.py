"""What the player shows of a run's graph, and where: boxes in columns and lanes, in the order in which ops ran.

A box is one value. Of data only what backward reads is a box, so that filled boxes and live activations are the same
number. A run of more values than a page can show is folded: a box is then a layer, or some neighbouring ops.

Columns follow the order of the run, with parallel branches in lanes of one column. Each box is placed once, by the
boxes that it reads; the page only cuts the columns into rows that are as wide as the window.
"""

import os
from collections import Counter
from dataclasses import dataclass, field

from ..table import bytes_text, shape_text
from ..trace.transcript import NONE

MOST_BOXES = 1200
LANES = 6  # side by side, at the most; data aside
REACH = 3  # a box may stand so many columns before the furthest one: branches run side by side, and no further


@dataclass
class Box:
    """What is shown as one.

    values      indices into the transcript, in order
    name        what sentences call it; `short` is for the box itself
    inputs      indices of the boxes that it reads
    column, lane   where it stands; a box in column -1 stands before the first
    """

    values: list
    name: str = ""
    short: str = ""
    inputs: list = field(default_factory=list)
    column: int = 0
    lane: int = 0


class Graph:
    """The boxes of a run.

    transcript  the run's values
    boxes       in order, and `place`: index of a value -> index of its box; what is not shown has none
    folded      whether a box stands for several values
    breaks      columns with which a new row should begin, with a caption for each
    """

    def __init__(self, transcript, data=(), limit=MOST_BOXES):
        """data: indices of the data that shall be boxes of their own; limit: the most boxes that there may be."""
        self.transcript = transcript
        shown = [i for i, value in enumerate(transcript.values) if value.op or i in data]
        self.folded = len(shown) > limit
        groups = folded(transcript, shown, limit) if self.folded else [[index] for index in shown]
        self.boxes = [Box(group) for group in groups]
        self.place = {index: number for number, box in enumerate(self.boxes) for index in box.values}
        for box in self.boxes:
            sources = [self.place.get(source) for index in box.values for source in transcript.values[index].inputs]
            box.inputs = [s for s in dict.fromkeys(sources) if s is not None and self.boxes[s] is not box]
        self._name_boxes()
        self._place_boxes()
        self.breaks = self._find_breaks()

    def first(self, box):
        """The first value of a box that an op has computed; for data, the data."""
        values = [self.transcript.values[index] for index in box.values]
        return next((value for value in values if value.op), values[0])

    def is_data(self, box):
        return not self.first(box).op

    def outermost(self, box):
        """The checkpoint that a box is in, the one around it if there is one, and so on outwards; -1 for none."""
        index = self.first(box).checkpoint
        while index != NONE and self.transcript.checkpoints[index].parent != NONE:
            index = self.transcript.checkpoints[index].parent
        return index

    @property
    def columns(self):
        return 1 + max([box.column for box in self.boxes], default=0)

    # ---- names -------------------------------------------------------------------------------------

    def _name_boxes(self):
        ops_of = Counter(value.layer for value in self.transcript.values if value.op)
        for box in self.boxes:
            box.name, box.short = self._group_names(box) if self.folded else value_names(self.first(box), ops_of)
        seen, many = Counter(), Counter(box.name for box in self.boxes)
        for box in self.boxes:
            if many[box.name] > 1:
                seen[box.name] += 1
                first, space, rest = box.name.partition(" in ")
                box.name = f"{first} no. {seen[box.name]}{space}{rest}"

    def _group_names(self, box):
        """The layers that a folded box stands for, or how many ops."""
        values = [self.transcript.values[index] for index in box.values]
        ops = [value for value in values if value.op]
        if not ops:
            return value_names(values[0], {})
        first, last, words = ops[0].layer, ops[-1].layer, f"{len(ops)} op{'s' if len(ops) > 1 else ''}"
        common = os.path.commonprefix([parts_of(first), parts_of(last)])
        rest = parts_of(first)[len(common) :], parts_of(last)[len(common) :]
        if all(rest) and rest[0][0].isdigit() and rest[1][0].isdigit():
            return f"layers {first} to {last}", rest[0][0]
        if not common:
            return words, ops[0].op
        return f"{words} of {layer_name('.'.join(common))}", common[-1]

    # ---- places ------------------------------------------------------------------------------------

    def _place_boxes(self):
        """Columns and lanes. A box stands in the lane of the first box that it reads, if that is free."""
        taken, furthest, start, around = set(), -1, 0, NONE
        for box in self.boxes:
            if self.is_data(box):
                continue
            sources = [self.boxes[s] for s in box.inputs if not self.is_data(self.boxes[s])]
            if self.outermost(box) != around:
                around, start = self.outermost(box), furthest + 1  # nothing stands among another checkpoint's boxes
            after = max([source.column + 1 for source in sources], default=0)
            box.column = max(after, furthest - REACH, start)
            while (box.column, LANES - 1) in taken:
                box.column += 1
            furthest = max(furthest, box.column)
            box.lane = free_lane(taken, box.column, sources[0].lane if sources else 0)
        readers = {s: box for box in reversed(self.boxes) for s in box.inputs}
        for number, box in enumerate(self.boxes):
            if self.is_data(box):
                box.column = readers[number].column - 1 if number in readers else max(furthest, 0)
                box.lane = free_lane(taken, box.column, 0)

    def _find_breaks(self):
        """Where a new row should begin: with a checkpoint, or where there are none, with a layer of the model."""
        uppermost = {}
        for box in self.boxes:
            other = uppermost.setdefault(box.column, box)
            if not self.is_data(box) and (self.is_data(other) or box.lane < other.lane):
                uppermost[box.column] = box
        boxes = [uppermost[column] for column in sorted(uppermost) if column >= 0]
        breaks = breaks_at([(box.column, self.outermost(box)) for box in boxes])
        for depth in (1, 2):
            if not breaks:
                breaks = breaks_at([(box.column, parts_of(self.first(box).layer, depth)) for box in boxes])
        return self.captioned(breaks)

    def captioned(self, columns):
        """The breaks at these columns, with a caption for what stands between each and the next."""
        found = []
        for start, end in zip(columns, [*columns, self.columns][1:], strict=True):
            boxes = [box for box in self.boxes if start <= box.column < end and not self.is_data(box)]
            found.append((start, self._caption(boxes)))
        return found

    def _caption(self, boxes):
        """What boxes have in common: the checkpoint, and the layer."""
        layer = os.path.commonprefix([parts_of(self.first(box).layer) for box in boxes])
        around = {self.outermost(box) for box in boxes}
        words = [".".join(layer)] if layer else []
        name = self.transcript.checkpoints[min(around)].name if len(around) == 1 and NONE not in around else ""
        return ": ".join([f"checkpoint {name}", *words] if name else words)


def free_lane(taken, column, wanted):
    """Take the wanted lane of a column, or the first that is free."""
    lane = wanted if (column, wanted) not in taken else 0
    while (column, lane) in taken:
        lane += 1
    taken.add((column, lane))
    return lane


def parts_of(layer, depth=None) -> list:
    return layer.split(".")[:depth] if layer else []


def breaks_at(columns) -> list:
    """Where stretches of (column, key) with one key begin; a short one joins the one before. None: all are one."""
    stretches = []
    for column, key in columns:
        if not stretches or stretches[-1][1] != key:
            stretches.append((column, key))
    ends = [column for column, _ in stretches[1:]] + [columns[-1][0] + 1 if columns else 0]
    long = [(start, key) for (start, key), end in zip(stretches, ends, strict=True) if end - start > 2 or start == 0]
    return [start for start, _ in long] if len(long) > 1 else []


def value_names(value, ops_of):
    """(name for sentences, name for the box) of one value; `ops_of` counts the ops of each layer."""
    if not value.op:
        return (f"data {value.name}", value.name) if value.name else (f"data of shape {list(value.shape)}", "data")
    if value.layer and ops_of[value.layer] == 1:
        tail = value.layer.rpartition(".")[2]
        return layer_name(value.layer), tail if tail.isdigit() else value.op
    return (f"{value.op} in {layer_name(value.layer)}" if value.layer else value.op), value.op


def layer_name(path):
    """A path as a name; a bare number is called a layer."""
    return f"layer {path}" if path.isdigit() else path


# ---- Folding -----------------------------------------------------------------------------------------


def folded(transcript, shown, limit):
    """At most `limit` groups of neighbours: by layer, as finely as fits, and evenly where layers do not tell."""
    values = transcript.values
    layers = [values[index].layer for index in shown if values[index].op]
    for depth in range(max((layer.count(".") + 1 for layer in layers), default=1), 0, -1):
        groups = neighbours(values, shown, depth)
        if len(groups) <= limit:
            break
    many = 1
    while len(groups) > limit and many < len(shown):
        many = max(many + 1, -(-len(groups) * many // limit))
        groups = joined(values, neighbours(values, shown, 1), many)
    if len(groups) >= limit:
        return groups if len(groups) == limit else evenly(shown, limit)
    longest = -(-len(shown) // (limit - len(groups)))
    return [group[i : i + longest] for group in groups for i in range(0, len(group), longest)]


def neighbours(values, shown, depth):
    """Neighbours that are in the same layer, as far as `depth` parts of its path tell, and in the same checkpoint."""
    groups, last = [], None
    for index in shown:
        value = values[index]
        key = parts_of(value.layer, depth), value.checkpoint
        if groups and (key == last or not value.op):
            groups[-1].append(index)
        else:
            groups.append([index])
            last = key
    return groups


def joined(values, groups, many):
    """So many neighbouring groups as one, but none across the border of a checkpoint."""
    found, count = [], many
    for group in groups:
        if count < many and values[group[-1]].checkpoint == values[found[-1][-1]].checkpoint:
            found[-1].extend(group)
            count += 1
        else:
            found.append(list(group))
            count = 1
    return found


def evenly(shown, limit):
    """Neighbours in `limit` groups, whatever they are."""
    longest = -(-len(shown) // limit)
    return [shown[i : i + longest] for i in range(0, len(shown), longest)]


# ---- For the page ------------------------------------------------------------------------------------


def as_data(graph, tables):
    """The graph as lists and strings, for the page; texts that many boxes share go into `tables`."""
    return {
        "boxes": [box_data(graph, box, tables) for box in graph.boxes],
        "breaks": graph.breaks,
        "folded": graph.folded,
        "checkpoints": [
            {"name": c.name, "parent": c.parent, "place": tables.place(c.place)} for c in graph.transcript.checkpoints
        ],
    }


def box_data(graph, box, tables):
    value = graph.first(box)
    vjps = [] if graph.folded else value.vjps
    return {
        "name": box.name,
        "short": box.short,
        "op": value.op,
        "parts": len(box.values),
        "layer": value.layer,
        "shape": shape_text(value),
        "size": bytes_text(sum(graph.transcript.values[index].nbytes for index in box.values)),
        "inputs": box.inputs,
        "column": box.column,
        "lane": box.lane,
        "checkpoint": value.checkpoint,
        "place": tables.place(value.place),
        "forward": NONE if graph.folded else tables.function(value.forward),
        "vjps": [tables.function(function) for _, function in vjps],
    }
