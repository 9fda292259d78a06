"""draw: what a tensor was computed by, as a picture in Graphviz's language.

The Python package `graphviz` is imported on the first call, never before; it only writes text. `render`
(dot.py) runs the program that lays the picture out.
"""

from ..errors import ArgumentError
from ..replay import CHECKPOINT
from ..table import bytes_text, short
from ..tape import Node
from ..tensor import Tensor
from .boxes import Box, Group, fold, layers, nearest, unfold
from .markup import INPUT, OP, PARAMETER, bold, italic, small, text
from .picture import Picture


def draw(tensor, level="op", max_nodes=200, depth=None, folded=None):
    """What `tensor` was computed by, as a graphviz.Digraph. Nothing is replayed and nothing kept alive.

    A filled box is a value whose buffer the tape holds now. A checkpoint is a frame around its body. Plain
    numbers stand in the label of the op that was given them. The legend in the picture explains the rest.

    tensor     a Tensor (or a Node), or a list of them
    level      "op": a box for each value. "layer": a box for each nn layer; a chain of layers is set in rows
    max_nodes  show at most so many boxes, those nearest to the tensor, and one that says how many more there
               are; None for all of them
    depth      for level="layer", how many parts of a layer's path count: with 2, all that is in
               "blocks.3.attn" and "blocks.3.mlp" is the box "blocks.3"
    folded     for level="layer", whether consecutive repeats of the same layers are one box; None: only if
               there would be more than max_nodes boxes

    The result's `.source` is the text, and `mg.render` makes a file of it.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 2.0], requires_grad=True, name="w")
    >>> "tanh" in mg.draw(mg.tanh(w)).source
    True
    """
    if level not in ("op", "layer"):
        raise ArgumentError(f'level must be "op" or "layer", not {level!r}')
    for name, value in (("max_nodes", max_nodes), ("depth", depth)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ArgumentError(f"{name} must be a whole number from 1, or None, not {value!r}")
    boxes, roots = unfold(nodes_of(tensor))
    if level == "layer":
        boxes, place = layers(boxes, depth)
        if folded or (folded is None and max_nodes is not None and len(boxes) > max_nodes):
            boxes = fold(boxes, place)
        roots = list(dict.fromkeys(place[root] for root in roots if root in place))
    picture = Picture(level)
    for box in nearest(boxes, roots, max_nodes):
        picture.add(box, *(layer_box(box) if isinstance(box, Group) else op_box(box)))
    picture.connect(boxes)
    return picture.digraph()


def nodes_of(tensor):
    """The nodes to begin at."""
    things = tensor if isinstance(tensor, (list, tuple)) else [tensor]
    nodes = [thing.node if isinstance(thing, Tensor) else thing for thing in things]
    if not nodes or not all(isinstance(node, Node) for node in nodes):
        raise ArgumentError(f"draw takes a Tensor or a list of them, not {type(tensor).__name__}")
    return list(dict.fromkeys(nodes))


def op_box(box):
    """Label, colours and tooltip of one value."""
    node, number = box.node, box.key.removeprefix("n")
    if box.is_leaf:
        kind = PARAMETER if node.role == "parameter" else INPUT
        lines, tooltip = [bold(node.name or node.role)], f"{node.role}   #{number}"
    else:
        kind = OP
        lines = [bold(node.op.name) + text(arguments(box)) + (f" {italic(node.name)}" if node.name else "")]
        tooltip = f"{node.line}   #{number}" + (f"   in {node.layer}" if node.layer else "")
    lines.append(small(text(f"{node.dtype}{list(node.shape)} · {bytes_text(box.nbytes)}")))
    if node.layer and not box.is_leaf:
        lines.append(small(italic(layer_name(node.layer))))
    return lines, kind, tooltip


def arguments(box):
    """In brackets, what an op was given besides tensors: "(·, 2.0)" or "(axis=0)"; nothing if nothing."""
    node, words = box.node, []
    if not all(isinstance(source, Box) for source in box.sources):
        words = ["·" if isinstance(source, Box) else short(source) for source in box.sources]
    if node.op is CHECKPOINT:  # it has been swept, and its body is gone
        return ""
    defaults = node.op.defaults
    words += [
        f"{key}={short(value)}" for key, value in node.attrs.items() if value is not defaults.get(key, ...)
    ]
    line = ", ".join(words)
    return f"({line if len(line) <= 40 else line[:39] + '…'})" if words else ""


def layer_box(group):
    """Label, colours and tooltip of a layer."""
    boxes = group.boxes
    held = sum(box.nbytes for box in boxes if box.held)
    lines = [bold(group_name(group)), small(text(ops_of(group)))] if group.path else [bold(ops_of(group))]
    lines.append(small(text(list(boxes[-1].node.shape) or "scalar")))
    tooltip = f"{boxes[0].node.line}   {len(boxes)} ops; the tape holds {bytes_text(held)} of their outputs"
    return lines, OP, tooltip


def layer_name(path):
    """A path as a name; a bare number is called a layer."""
    return f"layer {path}" if path.isdigit() else path


def group_name(group):
    """ "blocks.3", or for folded repeats "blocks.3–9"."""
    if group.count == 1:
        return layer_name(group.path)
    first, last = group.path.split("."), group.last.split(".")
    common = 0
    while common < min(len(first), len(last)) - 1 and first[common] == last[common]:
        common += 1
    name = ".".join([*first[:common], f"{first[common]}–{last[common]}"])
    return f"layers {name}" if first[0].isdigit() else name


def ops_of(group):
    """The ops of a layer in a few words: "matmul, add, tanh", or for repeats "(matmul, tanh) × 10"."""
    parts = []
    for name, count in group.ops().items():
        each = count // group.count
        parts.append(name if each == 1 else f"{name} × {each}")
    words = ", ".join(parts[:3]) + (", …" if len(parts) > 3 else "")
    return words if group.count == 1 else f"({words}) × {group.count}"
