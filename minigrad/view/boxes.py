"""What a picture of the tape shows, before anything is drawn.

`Unfolded` makes a `Box` for each value that a tensor depends on. A checkpoint node becomes a `Frame` around the boxes
of its body, which is why a picture needs no replay: the program is there, only buffers are not. While a walk backward
is under way (moment.py) the fresh nodes of a replay are boxes too, in the frame of their checkpoint. `nearest` chooses
what to show when it is too much. Nothing here knows of colours or of Graphviz, and nothing is recursive.
"""

from collections import Counter

from ..engine.device import is_array
from ..engine.replay import CHECKPOINT, Call
from ..engine.tape import Node, reachable
from ..trace.saved import read_in_backward
from .moment import Moment

FAR_LEAVES = 4  # so many leaves are shown, the furthest, when much is left out


class Box:
    """One value of the tape.

    key      its id, such as "n17"
    node     the node that made it; inside a checkpoint, the line of the body
    held     whether the tape holds its buffer now; `slow`: whether its buffer waits in slow memory (offload)
    role     of the buffer, in the tracer's words: parameter, input, activation, boundary or replayed
    fresh    whether it is on the tape because of a replay in a walk that is under way
    marked   whether it is to look unlike others of its kind (marks.py)
    swept    it stands for a checkpoint whose replay is being swept; its sources are what is left of that
    waits    whether a gradient waits here for its turn
    frame    the innermost checkpoint around it, or None
    sources  what it reads, in order: Boxes, and plain numbers
    step     the step of backward that sweeps it, if that is known (order.py)
    """

    def __init__(self, node, frame=None, sources=()):
        self.key, self.node, self.frame, self.sources = f"n{node.number}", node, frame, list(sources)
        self.held, self.slow = node.out is not None, False
        self.fresh = self.marked = self.swept = self.waits = False
        self.role = "activation" if node.op is not None else node.role
        self.nbytes, self.step = node.nbytes, None

    @property
    def is_leaf(self):
        return self.node.op is None

    @property
    def passed(self):
        """Whether a backward has swept it."""
        return self.node.freed

    @property
    def inputs(self):
        return [source for source in self.sources if isinstance(source, Box)]

    def keeps(self, role):
        """The tape holds the buffer, for a reader that gives it this role."""
        self.held = True
        if self.role != "parameter":
            self.role = role


class Frame:
    """One checkpoint, to be drawn around what is inside.

    node    the checkpoint's node, or for a checkpoint inside of another one the Call
    parent  the checkpoint around it, or None
    body    its Body; None once a walk has begun to sweep what its replay has made
    lines   id of the attrs of a line, inner checkpoints' lines included -> its box
    held    lines of the body whose values the tape holds now
    step    the step of backward that replays it, if that is known
    """

    def __init__(self, body, node, parent):
        self.body, self.node, self.parent = body, node, parent
        self.lines = {} if parent is None or parent.body is None else parent.lines
        self.held, self.step = set(), None

    @property
    def name(self):
        """The checkpoint's name, "" if it has none."""
        return (self.node.name if isinstance(self.node, Node) else self.body.manner.name) or ""


class Unfolded:
    """The boxes of all that some nodes depend on.

    boxes  inputs before readers
    roots  the boxes of the nodes that were given
    known  node of the tape -> its box
    """

    def __init__(self, roots, moment=None):
        self.moment = moment or Moment()
        self.boxes, self.known = [], {}
        self.opened = {}  # (body, inputs) -> its Frame and the boxes of its outputs
        self.replays = {}  # what checkpoint nodes of one body share (`needs`) -> the Frame of its replay
        nodes = reachable([*roots, *self.moment.nodes])
        self.add_leaves(nodes)
        self.add_replays(nodes)
        for node in nodes:
            if node.op is not None:
                self.add(node)
        for node in nodes:
            if node not in self.known and node.dtype is not None:
                self.add_passed(node, nodes)
        for node in self.moment.waiting:
            if node in self.known:
                self.known[node].waits = True
        for frame in reversed(self.replays.values()):  # inner ones first
            self.boxes = with_what_is_left(frame, self.boxes)
        make_unique(self.boxes)
        self.roots = [self.known[root] for root in roots]

    def add_leaves(self, nodes):
        """A leaf and its twin, which holds no data, are one value."""
        leaves = {}
        for node in nodes:
            if node.op is None and node.dtype is not None:
                box = self.known[node] = leaves.setdefault(node.number, Box(node))
                box.held = box.held or node.out is not None
        self.boxes.extend(leaves.values())

    def add_replays(self, nodes):
        """A frame for each checkpoint of which a walk has yet to sweep what its replay has made; outer ones first."""
        for node in nodes:
            for checkpoint in reversed(self.moment.checkpoints_around(node)):
                if checkpoint.body is None and checkpoint.needs not in self.replays:
                    self.replays[checkpoint.needs] = Frame(None, checkpoint, self.frame_around(checkpoint))

    def frame_around(self, node):
        """The frame that a node of the tape belongs into: that of the replay which has made it."""
        around = self.moment.checkpoints_around(node)
        return self.replays.get(around[0].needs) if around else None

    def add(self, node):
        """The box of an op's node, or the boxes of a checkpoint."""
        if again := self.line_again(node):
            self.known[node], again.fresh = again, True
            if node.out is not None:
                again.keeps("replayed")
            return
        frame, around = self.frame_around(node), self.moment.checkpoints_around(node)
        if around and frame is None and node.op is CHECKPOINT and node.body is None:
            return  # see add_passed
        sources = [value_of(source, self.known) for source in node.inputs]
        if node.body is not None:
            self.add_checkpoint(node, sources, frame)
        else:
            box = self.known[node] = Box(node, self.replays.get(node.needs, frame), sources)
            self.boxes.append(box)
        box = self.known[node]
        box.fresh = bool(around)
        if node.body is not None:
            box.role = "boundary"
        elif around:
            box.role = "replayed"

    def line_again(self, node):
        """With retain_graph a checkpoint's body stays when it is replayed: the box of the line that a fresh node is."""
        around = self.moment.checkpoints_around(node)
        if not around or (around[-1].body, around[-1].inputs) not in self.opened:
            return None
        return self.opened[around[-1].body, around[-1].inputs][0].lines.get(id(line_of(node).attrs))

    def add_passed(self, checkpoint, nodes):
        """With retain_graph too, a checkpoint inside has lost its body if its replay is being swept.

        Its lines are boxes, all the same; the last of them that is still on the tape has its value, or leads there.
        """
        for node in reversed(nodes):
            if node in self.known and self.moment.checkpoints_around(node)[:1] == [checkpoint]:
                self.known[checkpoint] = self.known[node]
                return

    def add_checkpoint(self, node, sources, parent):
        if (node.body, node.inputs) not in self.opened:
            self.opened[node.body, node.inputs] = self.open_up(node, sources, parent)
            self.note_kept(node)
        frame, outputs = self.opened[node.body, node.inputs]
        box = self.known[node] = outputs[node.attrs["index"]]
        box.key = f"n{node.number}"
        if node.out is not None:
            box.held = True
            frame.held.add(node.body.outputs[node.attrs["index"]])

    def open_up(self, checkpoint, sources, parent):
        """Append the boxes of a checkpoint's body, and those of checkpoints in it.

        Returns the checkpoint's frame and the boxes of its outputs.
        """
        frame = Frame(checkpoint.body, checkpoint, parent)
        levels = [(frame, dict(zip(frame.body.boundary, sources, strict=True)), iter(frame.body.lines), None)]
        while True:
            frame, known, lines, _ = levels[-1]
            for line in lines:
                if isinstance(line, Call):
                    inner = Frame(line.body, line, frame)
                    outside = [known[source] for source in line.inputs]
                    boundary = dict(zip(line.body.boundary, outside, strict=True))
                    levels.append((inner, boundary, iter(line.body.lines), line))
                    break
                box = known[line] = Box(line, frame, [value_of(source, known) for source in line.inputs])
                frame.lines[id(line.attrs)] = box
                self.boxes.append(box)
            else:
                call = levels.pop()[3]
                outputs = [known[node] for node in frame.body.outputs]
                if call is None:
                    return frame, outputs
                levels[-1][1].update(zip(call.outputs, outputs, strict=True))

    def note_kept(self, checkpoint):
        """What the tape holds for a checkpoint: its boundary, in fast or slow memory, and what its policy keeps."""
        frame = self.opened[checkpoint.body, checkpoint.inputs][0]
        for source in read_in_backward(checkpoint):
            if source.out is not None:
                self.known[source].keeps("boundary")
        outside = dict(zip(checkpoint.body.boundary, checkpoint.inputs, strict=True))
        for source, value in checkpoint.needs.kept.items():
            if source not in outside:
                frame.lines[id(line_of(source).attrs)].keeps("boundary")
                frame.held.add(source)
            elif is_array(value) or value.fast is not None:
                self.known[outside[source]].keeps("boundary")
            else:
                self.known[outside[source]].slow = True


def value_of(source, known):
    """The box of a source; a plain number is its own value."""
    return known[source] if source.dtype is not None else source.out


def line_of(node):
    """The op that a node stands for: for a checkpoint's, the line of its body that gives the value."""
    while node.body is not None:
        node = node.body.outputs[node.attrs["index"]]
    return node


def with_what_is_left(frame, boxes) -> list:
    """Let the box of a checkpoint that is being swept read the fresh boxes which no other box reads.

    Those that did read them were passed, and are gone. Returns all boxes, with the fresh ones where the checkpoint is.
    """
    inside = [box for box in boxes if frame in frames_around(box)]
    own = [box for box in inside if box.node.needs is frame.node.needs]
    read = {source for box in inside for source in box.inputs}
    for box in own:
        box.swept, box.sources = True, []
    if not own:
        return boxes
    fresh = [box for box in inside if box not in own]
    own[0].sources = [box for box in fresh if box.fresh and box not in read]
    moved = set(fresh)
    rest = [box for box in boxes if box not in moved]
    place = rest.index(own[0])
    return [*rest[:place], *fresh, *rest[place:]]


def make_unique(boxes):
    """A body that stands in two checkpoints, as after a replay, has its lines twice; they get own keys."""
    seen = Counter()
    for box in boxes:
        seen[box.key] += 1
        if seen[box.key] > 1:
            box.key += f"_{seen[box.key]}"


def frames_around(box):
    """The checkpoints around a box, the outermost first."""
    frames, frame = [], box.frame
    while frame is not None:
        frames.append(frame)
        frame = frame.parent
    return frames[::-1]


# ---- Too much to show --------------------------------------------------------------------------------


def nearest(shown, roots, limit, wanted=()):
    """What to show if at most `limit` may be: what is `wanted`, the roots, what is nearest to them, some far leaves.

    shown  Boxes or Groups, in order; the answer keeps that order
    """
    if limit is None or len(shown) <= limit:
        return shown
    waiting, passed = list(dict.fromkeys([*wanted, *roots])), []
    seen = set(waiting)
    for box in waiting:  # grows while it is walked: breadth first
        if box.passed:
            passed.append(box)  # by way of it at the end only: of more interest is what backward has yet to come to
        else:
            waiting += unseen(box.inputs, seen)
    for box in passed:
        new = unseen(box.inputs, seen)
        passed += new
        waiting += new
    far_leaves = [box for box in waiting[limit:] if box.is_leaf]
    far_leaves.sort(key=data_last)
    reserved = min(len(far_leaves), limit // 4, FAR_LEAVES)
    keep = set(waiting[: max(limit - reserved, 1)]) | set(far_leaves[len(far_leaves) - reserved :])
    return [box for box in shown if box in keep]


def unseen(boxes, seen) -> list:
    """Those of the boxes that have not been seen; now they have."""
    new = [box for box in dict.fromkeys(boxes) if box not in seen]
    seen.update(new)
    return new


def data_last(leaf):
    return leaf.role != "parameter"
