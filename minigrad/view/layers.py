"""The boxes of a picture put together by the nn layers that ran: the tree of modules, with repeats folded.

Neighbours in one layer and one checkpoint become a `Group`, which is drawn as one box. Layers in a layer, and layers
in a checkpoint, become a `Part`, which is drawn around them. Where neighbours in the tree repeat each other, ten
blocks, say, `fold` leaves the first of them, which then stands for all ten.
"""

import re
from collections import Counter

from ..errors import ArgumentError
from .boxes import Box, frames_around
from .looks import state_of

LONGEST_PERIOD = 24


class Group:
    """The boxes of one layer, or of what ran beside the layers in a layer.

    name    of the layer, below the one around it; "" for what belongs to that itself, or to no layer
    path    of the layer
    boxes   its values, in order
    frame   the innermost checkpoint around it, or None
    count   how many repeats it stands for, if they are folded; `names`, those of all repeats
    others  Groups that are not shown because it stands for them
    inputs  Groups and leaf boxes that it reads
    """

    is_leaf, structure_number = False, None

    def __init__(self, path, frame, number):
        self.path, self.frame, self.number = path, frame, number
        self.names, self.count = [""], 1
        self.boxes, self.others, self.inputs = [], [], []

    @property
    def name(self):
        return self.names[0]

    @property
    def key(self):
        return f"layer_{self.boxes[0].key}"

    @property
    def passed(self):
        return all(box.passed for box in self.boxes)

    @property
    def all_boxes(self):
        """Its boxes, and those of the Groups that it stands for."""
        return [box for group in (self, *self.others) for box in group.boxes]

    def ops(self):
        """op name -> how often, in the order of first use."""
        return Counter(box.node.op.name for box in self.boxes)

    def structure(self):
        """What repeats have in common: the name but for its numbers, the ops, and what is live; no mark on either."""
        lines = tuple((box.node.op, box.node.shape, box.node.dtype, *looks_of(box)) for box in self.boxes)
        return "layer", numberless(self.name), lines


class Part:
    """What is drawn around several Groups and Parts: a module, a checkpoint, or one period of what repeats.

    kind      "module", "checkpoint" or "repeat"
    name, names, path, count   as for a Group
    frame     of a checkpoint: its Frame
    children  what is in it, in order
    """

    structure_number = None

    def __init__(self, kind, path, frame=None):
        self.kind, self.path, self.frame = kind, path, frame
        self.names, self.count = [frame.name if frame is not None else ""], 1
        self.children = []

    @property
    def name(self):
        return self.names[0]


class Tree:
    """The picture of some boxes by layers.

    children  Groups, Parts and leaf boxes, in order
    place     box -> the Group, or the leaf, that shows it
    """

    path = ""

    def __init__(self, boxes, depth=None):
        """depth: how many parts of a path count; with 2, "blocks.3.attn" is shown as "blocks.3". None: all."""
        self.depth, self.children, self.place = depth, [], {}
        self.prefixes = common_names(boxes, depth)
        open_parts = [(None, self)]
        for box in boxes:
            if not box.is_leaf:
                self.put(box, open_parts)
        simplify(self)
        leaves = inputs_to_show(self.groups(), self.place)
        self.place.update((leaf, leaf) for leaf in leaves)
        self.children[:0] = leaves
        self.connect()

    def put(self, box, open_parts):
        """Into the Group and the Parts that the box belongs to; new ones where the box before was elsewhere."""
        chain, same = self.chain(box), 0
        while same < min(len(chain), len(open_parts) - 1) and open_parts[same + 1][0] == chain[same]:
            same += 1
        del open_parts[same + 1 :]
        for link in chain[same:]:
            part = Part(*link)
            open_parts[-1][1].children.append(part)
            open_parts.append((link, part))
        inner = open_parts[-1][1]
        if not inner.children or not isinstance(inner.children[-1], Group):
            inner.children.append(Group(inner.path, box.frame, len(self.place)))
        inner.children[-1].boxes.append(box)
        self.place[box] = inner.children[-1]

    def chain(self, box):
        """The Parts around a box, outermost first: modules, and checkpoints where they were called."""
        names, chain, done = names_of(box.node.layer, self.depth), [], 0
        for frame in [*frames_around(box), None]:
            end = len(names) if frame is None else max(done, len(self.prefixes[frame]))
            chain += [("module", ".".join(names[: i + 1]), None) for i in range(done, end)]
            done = end
            if frame is not None:
                chain.append(("checkpoint", ".".join(names[:done]), frame))
        return chain

    def groups(self) -> list:
        """The leaf boxes and Groups, in order."""
        found = [item for part in all_parts(self) for item in part.children if not isinstance(item, Part)]
        return sorted(found, key=number_of)

    def shows(self, box):
        """What shows a box; for a parameter, which is not drawn, the first layer that reads it."""
        if box in self.place:
            return self.place[box]
        groups = [group for group in self.groups() if isinstance(group, Group)]
        for group in groups:
            if any(box in reader.inputs for reader in group.all_boxes):
                return group
        raise ArgumentError(f"{box.node!r} is a leaf that no layer reads, so a picture of layers has no place for it")

    def connect(self):
        """Find which groups read which. Of folded repeats only the first tells what it reads."""
        for group in self.groups():
            if isinstance(group, Group):
                sources = [self.place.get(source) for box in group.boxes for source in box.inputs]
                group.inputs = [s for s in dict.fromkeys(sources) if s is not None and s is not group]

    def fold(self):
        """Put neighbours that repeat each other together, inner ones first."""
        numbers = {}  # of structures: equal ones get the same
        for part in reversed(list(all_parts(self))):
            part.children = folded(part, numbers)
        for group in self.groups():
            if isinstance(group, Group):
                self.place.update(dict.fromkeys(group.all_boxes, group))
        self.connect()


def all_parts(root):
    """The tree itself and its Parts, each before those in it."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(child for child in reversed(part.children) if isinstance(child, Part))


def looks_of(box):
    state = state_of(box)
    return state if state in ("dropped", "passed") else "live", box.waits, box if box.marked else None


def number_of(item):
    return item.number if isinstance(item, Group) else -1


# ---- Names -------------------------------------------------------------------------------------------


def names_of(layer, depth=None) -> list:
    """A path as the names of the modules around: "blocks.3.attn" is attn in blocks.3, which is one module."""
    names = []
    for word in layer.split(".")[:depth] if layer else []:
        if word.isdigit() and names and not names[-1].rpartition(".")[2].isdigit():
            names[-1] += f".{word}"
        else:
            names.append(word)
    return names


def common_names(boxes, depth) -> dict:
    """frame -> the names of the modules that it is in, with all that is in it."""
    found = {}
    for box in boxes:
        names = names_of(box.node.layer, depth)
        for frame in frames_around(box):
            known = found.get(frame)
            known = names_of(frame.node.layer, depth) if known is None else known
            same = 0
            while same < min(len(known), len(names)) and known[same] == names[same]:
                same += 1
            found[frame] = known[:same]
    return found


def simplify(tree):
    """A module in which there is but one thing is drawn as that, and everything gets the name that it has there."""
    for part in reversed(list(all_parts(tree))):
        for index, child in enumerate(part.children):
            if isinstance(child, Part) and child.kind == "module" and len(child.children) == 1:
                (inner,) = child.children
                if isinstance(inner, Group) or inner.kind == "module":
                    part.children[index] = inner
    for part in all_parts(tree):
        for child in part.children:
            if isinstance(child, Group) or child.kind == "module":
                child.names = [below(child.path, part.path)]


def below(path, outer):
    """A path as seen from an outer one: "attn" for blocks.3.attn in blocks.3."""
    if not outer:
        return path
    return path[len(outer) + 1 :] if path.startswith(f"{outer}.") else path * (path != outer)


def numberless(name):
    return re.sub(r"\d+", "#", name)


# ---- Leaves ------------------------------------------------------------------------------------------


def inputs_to_show(groups, place):
    """The leaves that are inputs of the whole, and no layer's own constants.

    What has no name and is read in a layer looks like a constant that this layer has made; but the first layer, which
    reads nothing else, reads an input.
    """
    leaves = []
    for group in groups:
        sources = list(dict.fromkeys(source for box in group.boxes for source in box.inputs))
        first = not any(source in place and place[source] is not group for source in sources)
        for leaf in sources:
            if leaf.is_leaf and leaf.node.role != "parameter":
                if leaf.node.name or not group.path or first:
                    leaves.append(leaf)
    return list(dict.fromkeys(leaves))


# ---- Folding -----------------------------------------------------------------------------------------


def folded(part, numbers) -> list:
    """The children of a Part, with repeats of the same put together. What is in them has been folded before."""
    children, result, start = part.children, [], 0
    structures = [structure_of(child, numbers) for child in children]
    while start < len(children):
        period, count = repeats_at(structures, start)
        run = children[start : start + period * count]
        first = run[0] if count == 1 else stand_for_all(run, period, part.path)
        if isinstance(first, (Group, Part)):
            unit = tuple(structures[start : start + period])
            first.structure_number = numbers.setdefault((unit, count), len(numbers))
        result.append(first)
        start += len(run)
    return result


def structure_of(item, numbers):
    """A number that things of equal structure have in common; None for a leaf, which nothing repeats."""
    if isinstance(item, Box):
        return None
    if isinstance(item, Group):
        structure = item.structure()
    else:
        structure = item.kind, numberless(item.name), tuple(child.structure_number for child in item.children)
    return numbers.setdefault(structure, len(numbers))


def repeats_at(structures, start):
    """(period, count) of the repetition at `start` that covers most; count is 1 if there is none."""
    best = 1, 1
    for period in range(1, LONGEST_PERIOD + 1):
        unit = structures[start : start + period]
        if None in unit or len(unit) < period:
            break
        count = 1
        while structures[start + count * period : start + (count + 1) * period] == unit:
            count += 1
        if count > 1 and period * count > best[0] * best[1]:
            best = period, count
    return best


def stand_for_all(run, period, path):
    """The first of several repeats, which from now on stands for all of them."""
    for index in range(period, len(run)):
        for shown, same in zip(items_in(run[index % period]), items_in(run[index]), strict=True):
            shown.names += same.names
            if isinstance(shown, Group):
                shown.others += [same, *same.others]
    first = run[0]
    if period > 1:
        first = Part("repeat", path)
        first.children, first.names = run[:period], [name for item in run for name in item.names]
    first.count = len(run) // period
    return first


def items_in(item) -> list:
    """A Group; or a Part and all that is in it."""
    if isinstance(item, Group):
        return [item]
    return [item, *(child for part in all_parts(item) for child in part.children)]
