"""What a picture of the tape shows, before anything is drawn.

`unfold` makes a `Box` for each value that a tensor depends on. A checkpoint node becomes a `Frame` around
the boxes of its body, which is why a picture needs no replay: the program is there, only buffers are not.
`layers` puts the boxes together by the nn layer that was running. `nearest` chooses what to show when it is
too much. Nothing here knows of colours or of Graphviz, and nothing is recursive.
"""

import re
from collections import Counter

from ..replay import Call
from ..tape import reachable

LONGEST_PERIOD = 24


class Box:
    """One value of the tape.

    key      its id, such as "n17"
    node     the node that made it; inside a checkpoint, the line of the body
    held     whether the tape holds its buffer now
    frame    the innermost checkpoint around it, or None
    sources  what it reads, in order: Boxes, and plain numbers
    """

    def __init__(self, node, frame=None, sources=()):
        self.key, self.node, self.frame, self.sources = f"n{node.number}", node, frame, list(sources)
        self.held = node.out is not None
        self.nbytes = node.nbytes

    @property
    def is_leaf(self):
        return self.node.op is None

    @property
    def inputs(self):
        return [source for source in self.sources if isinstance(source, (Box, Group))]


class Group:
    """The boxes of one layer, or of several repeats of it.

    path     of the layer; "" for what ran outside of all
    boxes    its values, in order
    last     path of the last layer, and `count`, how many layers it stands for, when repeats are folded
    inputs   groups and leaf boxes that it reads
    """

    is_leaf = False

    def __init__(self, path, frame, boxes):
        self.path, self.last, self.frame, self.boxes = path, path, frame, boxes
        self.count, self.inputs = 1, []

    @property
    def key(self):
        return f"layer_{self.boxes[0].key}"

    @property
    def held(self):
        return any(box.held for box in self.boxes)

    @property
    def structure(self):
        """What repeats have in common: the path but for its numbers, the ops, and what is held."""
        lines = tuple((box.node.op, box.node.shape, box.node.dtype, box.held) for box in self.boxes)
        return re.sub(r"\d+", "#", self.path), self.frame, lines

    def ops(self):
        """op name -> how often, in the order of first use."""
        return Counter(box.node.op.name for box in self.boxes)


class Frame:
    """One checkpoint, to be drawn around what is inside.

    node    the checkpoint's node, or for a checkpoint inside of another one the Call
    parent  the checkpoint around it, or None
    held    lines of the body whose values the tape holds now, as outputs of the checkpoint
    """

    def __init__(self, body, node, parent):
        self.body, self.node, self.parent = body, node, parent
        self.held = set()


def unfold(roots):
    """The boxes of all that the nodes `roots` depend on, inputs before readers, and the boxes of `roots`."""
    leaves, known, opened, boxes = {}, {}, {}, []
    nodes = reachable(roots)
    for node in nodes:
        if node.op is None and node.dtype is not None:
            box = known[node] = leaves.setdefault(node.number, Box(node))  # a leaf and its twin are one value
            box.held = box.held or node.out is not None
    boxes.extend(leaves.values())
    for node in nodes:
        if node.op is None:
            continue
        sources = [value_of(source, known) for source in node.inputs]
        if node.body is None:
            known[node] = Box(node, None, sources)
            boxes.append(known[node])
            continue
        if (node.body, node.inputs) not in opened:
            opened[node.body, node.inputs] = open_up(node, sources, boxes)
        frame, outputs = opened[node.body, node.inputs]
        box = known[node] = outputs[node.attrs["index"]]
        box.key = f"n{node.number}"
        if node.out is not None:
            box.held = True
            frame.held.add(node.body.outputs[node.attrs["index"]])
    make_unique(boxes)
    return boxes, [known[root] for root in roots]


def open_up(checkpoint, sources, boxes):
    """Append the boxes of a checkpoint's body to `boxes`, and those of checkpoints in it.

    Returns the checkpoint's frame and the boxes of its outputs.
    """
    frame = Frame(checkpoint.body, checkpoint, None)
    levels = [(frame, dict(zip(frame.body.boundary, sources, strict=True)), iter(frame.body.lines), None)]
    while True:
        frame, known, lines, _ = levels[-1]
        for line in lines:
            if isinstance(line, Call):
                inner = Frame(line.body, line, frame)
                outside = [known[source] for source in line.inputs]
                levels.append(
                    (inner, dict(zip(line.body.boundary, outside, strict=True)), iter(line.body.lines), line)
                )
                break
            known[line] = Box(line, frame, [value_of(source, known) for source in line.inputs])
            boxes.append(known[line])
        else:
            call = levels.pop()[3]
            outputs = [known[node] for node in frame.body.outputs]
            if call is None:
                return frame, outputs
            levels[-1][1].update(zip(call.outputs, outputs, strict=True))


def value_of(source, known):
    """The box of a source; a plain number is its own value."""
    return known[source] if source.dtype is not None else source.out


def make_unique(boxes):
    """A body that stands in two checkpoints, as after a replay, has its lines twice; they get own keys."""
    seen = Counter()
    for box in boxes:
        seen[box.key] += 1
        if seen[box.key] > 1:
            box.key += f"_{seen[box.key]}"


# ---- Layers ------------------------------------------------------------------------------------------


def layers(boxes, depth=None):
    """The boxes grouped: neighbours of one layer, in one checkpoint, become a Group. Parameters disappear.

    depth  how many parts of a path count: with 2, "blocks.3.attn" and "blocks.3.mlp" are both "blocks.3"

    Returns leaf boxes and Groups in order, and a dict of box -> what shows it.
    """
    groups, place = [], {}
    for box in boxes:
        if box.is_leaf:
            continue
        path = ".".join(box.node.layer.split(".")[:depth])
        last = groups[-1] if groups else None
        if last is not None and last.path == path and last.frame is box.frame:
            last.boxes.append(box)
        else:
            groups.append(Group(path, box.frame, [box]))
        place[box] = groups[-1]
    leaves = inputs_to_show(groups, place)
    place.update({leaf: leaf for leaf in leaves})
    shown = leaves + groups
    connect(shown, place)
    return shown, place


def inputs_to_show(groups, place):
    """The leaves that are inputs of the whole, and no layer's own constants.

    An input without a name becomes a node when the first layer reads it, and looks like a constant that this
    layer has made; but then that layer reads nothing else.
    """
    leaves = []
    for group in groups:
        sources = list(dict.fromkeys(source for box in group.boxes for source in box.inputs))
        first = not any(source in place and place[source] is not group for source in sources)
        for leaf in sources:
            if leaf.is_leaf and leaf.node.role != "parameter":
                if leaf.node.name or not leaf.node.layer or first:
                    leaves.append(leaf)
    return list(dict.fromkeys(leaves))


def connect(shown, place):
    """Find which groups read which."""
    for group in shown:
        if isinstance(group, Group):
            sources = [place.get(source) for box in group.boxes for source in box.inputs]
            group.inputs = [s for s in dict.fromkeys(sources) if s is not None and s is not group]


def fold(shown, place):
    """Put consecutive repeats of the same layers together: ten equal layers become a Group of count 10."""
    folded, start = [], 0
    structures = [group.structure if isinstance(group, Group) else None for group in shown]
    while start < len(shown):
        period, count = repeats_at(structures, start)
        if count == 1:
            folded.append(shown[start])
            start += 1
            continue
        run = shown[start : start + period * count]
        whole = Group(run[0].path, run[0].frame, [box for group in run for box in group.boxes])
        whole.last, whole.count = run[-1].path, count
        place.update(dict.fromkeys(whole.boxes, whole))
        folded.append(whole)
        start += period * count
    connect(folded, place)
    return folded


def repeats_at(structures, start):
    """(period, count) of the repetition at `start` that covers most; count is 1 if there is none."""
    best = 1, 1
    for period in range(1, LONGEST_PERIOD + 1):
        unit = structures[start : start + period]
        if None in unit or len(unit) < period or any(s[1] is not unit[0][1] for s in unit):
            break
        count = 1
        while structures[start + count * period : start + (count + 1) * period] == unit:
            count += 1
        if count > 1 and period * count > best[0] * best[1]:
            best = period, count
    return best


# ---- Too much to show --------------------------------------------------------------------------------


def nearest(shown, roots, limit):
    """What to show if at most `limit` may be: the roots, what is nearest to them, and some of the far leaves.

    shown  Boxes or Groups, in order; the answer keeps that order
    """
    if limit is None or len(shown) <= limit:
        return shown
    distance, waiting = dict.fromkeys(roots, 0), list(roots)
    for box in waiting:  # grows while it is walked: breadth first
        for source in box.inputs:
            if source not in distance:
                distance[source] = distance[box] + 1
                waiting.append(source)
    far_leaves = [box for box in waiting[limit:] if box.is_leaf]
    reserved = min(len(far_leaves), limit // 4)
    keep = set(waiting[: max(limit - reserved, 1)]) | set(far_leaves[len(far_leaves) - reserved :])
    return [box for box in shown if box in keep]
