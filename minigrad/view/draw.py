"""draw: what a tensor was computed by, as a picture in Graphviz's language.

The Python package `graphviz` is imported on the first call, never before; it only writes text. `render`
(dot.py) runs the program that lays the picture out.

What is shown is found in boxes.py (values), layers.py (the nn tree) and moment.py (a walk that is under way); what is
written, in labels.py; how it looks, in looks.py, with the colours of palette.py. picture.py puts it together.
"""

from ..doors import door
from ..engine.tape import Node
from ..engine.tensor import Tensor
from ..errors import ArgumentError, MinigradError
from .boxes import Box, Unfolded, nearest
from .labels import Words
from .layers import Tree, all_parts
from .looks import state_of, state_of_all
from .marks import marks_from, strips_on, strips_on_items
from .moment import Moment
from .order import number_steps
from .picture import Entry, Picture, checkpoints_around, parts_around
from .rows import is_chain


def draw(
    tensor, level="op", max_nodes=200, depth=None, folded=None, order=False, gradients=False, highlight=None, at=None
):
    """What `tensor` was computed by, as a graphviz.Digraph. Nothing is replayed and nothing kept alive.

    A filled box is a value whose buffer the tape holds now, a hollow one a value that it has dropped. A checkpoint is
    a frame around its body, and bold lines are its boundary. Plain numbers stand in the label of the op that was given
    them. The legend in the picture explains the rest. While a walk backward over `tensor` is under way, the picture is
    of that moment: the fresh nodes of a replay stand in the frame of their checkpoint.

    tensor     a Tensor (or a Node), or a list of them
    level      "op": a box for each value. "layer": the nn layers as boxes in boxes; a chain of layers is set in rows
    max_nodes  show at most so many boxes, those nearest to the tensor, and one that says how many more there
               are; None for all of them
    depth      for level="layer", how many parts of a layer's path count: with 2, all that is in
               "blocks.3.attn" and "blocks.3.mlp" is the box "blocks.3"
    folded     for level="layer", whether repeats of the same layers are one box ("× 24"); None: yes, but not for a
               chain of at most max_nodes layers
    order      number the boxes in the order of backward: the steps are those of `mg.steps(tensor)`
    gradients  write into each box the shape of the gradient that comes to it
    highlight  show in red, with its source line: a Tensor, a Node, or an error that has an `error.node`, such as that
               of `mg.detect_anomaly`; or a list of them
    at         a Step of mg.steps: show the node in hand

    Raises ArgumentError for anything else, and for a highlight or a step that is not in the picture.

    The result's `.source` is the text, notebooks show it, and `mg.render` makes a file of it.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 2.0], requires_grad=True, name="w")
    >>> "tanh" in mg.draw(mg.tanh(w)).source
    True
    >>> "step 1" in mg.draw(mg.tanh(w), order=True).source
    True
    """
    check(level, max_nodes, depth)
    roots, marks = nodes_of(tensor), marks_from(highlight)
    unfolded = Unfolded(roots, Moment(roots, at, [node for mark in marks for node in mark.nodes]))
    strips = strips_on(unfolded, marks)
    if order:
        number_steps(unfolded)
    words = Words(unfolded.boxes, gradients)
    here = [box for box in unfolded.boxes if box.waits and not box.is_leaf]
    if level == "op":
        shown = nearest(unfolded.boxes, unfolded.roots, max_nodes, [*strips, *here])
        picture = Picture(shown, unfolded.boxes, *checkpoints_around(shown))
    else:
        tree = Tree(unfolded.boxes, depth)
        if folded or (folded is None and is_to_be_folded(tree, max_nodes)):
            tree.fold()
        everything = tree.groups()
        strips = strips_on_items(strips, tree)
        roots = [tree.place[root] for root in unfolded.roots if root in tree.place]
        shown = nearest(everything, roots, max_nodes, [*strips, *map(tree.shows, here)])
        picture = Picture(shown, everything, *parts_around(shown, tree))
        picture.notes.append("a layer is filled if the tape holds some output of it; parameters are not drawn")
    for box in shown:
        picture.entries[box] = entry_of(box, words, strips)
    note_strips(picture)
    return picture.write(import_diagram())


def check(level, max_nodes, depth):
    if level not in ("op", "layer"):
        raise ArgumentError(f'level must be "op" or "layer", not {level!r}')
    for name, value in (("max_nodes", max_nodes), ("depth", depth)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ArgumentError(f"{name} must be a whole number from 1, or None, not {value!r}")


def nodes_of(tensor):
    """The nodes to begin at."""
    things = tensor if isinstance(tensor, (list, tuple)) else [tensor]
    nodes = [thing.node if isinstance(thing, Tensor) else thing for thing in things]
    if not nodes or not all(isinstance(node, Node) for node in nodes):
        raise ArgumentError(f"draw takes a Tensor or a list of them, not {type(tensor).__name__}")
    return list(dict.fromkeys(nodes))


def is_to_be_folded(tree, max_nodes):
    """Whether repeats are folded if nobody says: not in a chain of layers that fits."""
    parts = [part for part in all_parts(tree) if part is not tree]
    return not is_chain(tree.groups(), parts) or (max_nodes is not None and len(tree.groups()) > max_nodes)


def entry_of(item, words, strips):
    """How a Box or a Group is to look."""
    if isinstance(item, Box):
        state, (lines, tooltip) = state_of(item), words.on_value(item)
    else:
        state, (lines, tooltip) = state_of_all(item.all_boxes), words.on_layer(item)
    return Entry(state, lines, [*words.backward(item), *strips.get(item, [])], tooltip)


def note_strips(picture):
    """Let the legend explain the strips that there are."""
    for entry in picture.entries.values():
        for kind, text in entry.strips:
            if kind != "backward":
                picture.meanings.add(kind)
            else:
                picture.meanings.update(word for word in ("step", "gradient") if word in text)


def import_graphviz():
    """The Python package graphviz, on first use."""
    try:
        import graphviz
    except ImportError as error:
        raise MinigradError(
            "pictures need the Python package graphviz, which is not installed: pip install graphviz"
        ) from error
    return graphviz


def import_diagram():
    """The class of what is returned, which needs graphviz too."""
    import_graphviz()
    return door("view.diagram").Diagram
