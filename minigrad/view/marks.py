"""Which boxes of a picture are marked: the node in hand, where an error came up, what was to be highlighted."""

from ..engine.messages import ErrorNode
from ..engine.tape import Node
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from .boxes import frames_around
from .looks import IN_HAND


class Mark:
    """Something to be shown in red.

    kind     "error" or "highlight"
    numbers  of the nodes by which it may be found; the first is its own
    told     the node, or the words that an error has of it: both have op, line, layer and shape
    """

    def __init__(self, thing):
        self.kind = "error" if isinstance(thing, BaseException) else "highlight"
        self.told = thing.node if isinstance(thing, (Tensor, BaseException)) and hasattr(thing, "node") else thing
        if not isinstance(self.told, (Node, ErrorNode)):
            raise ArgumentError(
                f"highlight takes a Tensor, a Node, or an error of minigrad's that knows its node, not {thing!r:.80}"
            )
        self.numbers = self.told.numbers if isinstance(self.told, ErrorNode) else (self.told.number,)

    @property
    def nodes(self) -> list:
        """The node of an error, if it is still alive: it may be on no tape any more."""
        node = self.told.node if isinstance(self.told, ErrorNode) else None
        return [] if node is None else [node]

    def words(self, box):
        """What is written on the strip: the source line; and the op, if the box is not the node itself."""
        place = self.told.line or self.told.name or "here"
        if box.node.number == self.numbers[0] or op_name(box.node) == op_name(self.told):
            return f"error at {place}" if self.kind == "error" else place
        return f"error in {op_name(self.told)} at {place}"


def marks_from(highlight) -> list:
    """A Mark for each thing to be highlighted."""
    if highlight is None:
        return []
    return [Mark(thing) for thing in (highlight if isinstance(highlight, (list, tuple)) else [highlight])]


def strips_on(unfolded, marks) -> dict:
    """Box -> its strips, as (kind, words): for the node in hand, and for marks."""
    strips, moment = {}, unfolded.moment
    if moment.hand is not None:
        if moment.hand not in unfolded.known:
            raise ArgumentError(
                f"at has {moment.hand!r} in hand, which is not in this picture: draw what mg.steps was given, and "
                "before its next step is taken"
            )
        strip = ("hand", IN_HAND[moment.kind])
        if moment.kind == "error":
            strip = "error", f"error at {moment.hand.line}"
        strips[unfolded.known[moment.hand]] = [strip]
    for mark in marks:
        box = find(mark, unfolded)
        strips.setdefault(box, []).append((mark.kind, mark.words(box)))
    for box in strips:
        box.marked = True
    return strips


def strips_on_items(strips, tree) -> dict:
    """The same in a picture by layers: each strip stands on what shows its box, and says which of several ops it is."""
    found = {}
    for box, marks in strips.items():
        item, name = tree.shows(box), op_name(box.node) or box.node.name or box.node.role
        alone = item is box or item.boxes == [box]
        found.setdefault(item, []).extend((kind, words if alone else f"{name}: {words}") for kind, words in marks)
    return found


def find(mark, unfolded):
    """The box of a Mark: its own, or that of the checkpoint in whose replay it was. ArgumentError if there is none."""
    boxes = {box.node.number: box for box in unfolded.boxes}
    boxes.update((node.number, box) for node, box in unfolded.known.items())
    for number in mark.numbers:
        if number in boxes:
            box = boxes[number]
            return box if number == mark.numbers[0] else line_like(mark.told, box, unfolded.boxes)
    raise ArgumentError(f"{mark.told!r} is not in this picture, so it cannot be highlighted")


def line_like(told, output, boxes):
    """Of the boxes of a checkpoint that has this output, the one that an error tells of; else the output itself."""
    frames = frames_around(output)[:1]
    for box in boxes:
        if frames and frames[0] in frames_around(box) and looks_of(box.node) == looks_of(told):
            return box
    return output


def looks_of(node):
    return op_name(node), node.line, node.layer, node.shape


def op_name(node):
    return getattr(node.op, "name", node.op)
