"""A diagram: boxes in the checkpoints and layers around them, the edges, a legend; written as a graphviz.Digraph.

Graphviz decides where things stand, except for a chain of layers, which is set in rows (rows.py).
"""

from dataclasses import dataclass

from ..engine.place import source_line
from .boxes import Box, frames_around
from .labels import name_of, title_of, words_on
from .layers import Group, Part, all_parts
from .legend import legend, legend_rows
from .looks import (
    CHECKPOINT_STYLE,
    CROSSING_STYLE,
    EDGE_STYLE,
    FONT,
    GREY,
    INK,
    LOOKS,
    MODULE_STYLE,
    NODE_STYLE,
    NOTE_STYLE,
    SIZE,
    STRIPS,
)
from .markup import bold, escaped, label, note, small, text
from .rows import Rows, is_chain

REST = "rest"
MANY = 20  # of so many boxes on, the legend has two columns


@dataclass
class Entry:
    """How a box is to look: its state, lines of markup, strips at its lower edge as (kind, words), and a tooltip."""

    state: str
    lines: list
    strips: list
    tooltip: str


class Picture:
    """What is to be drawn, collected; `write` puts it into a graphviz.Digraph.

    boxes     the Boxes and Groups that are shown, in order, and `entries`: box -> Entry, to be filled
    inside    box -> the Part that is drawn around it, or None
    parents   Part -> the Part around it, or None; outer ones before those inside
    edges     (key, key, attributes)
    left_out  boxes that are not shown
    meanings  what the legend has to explain, and `notes`, what it says besides
    """

    def __init__(self, boxes, everything, inside, parents):
        self.boxes, self.inside, self.parents = boxes, inside, parents
        shown = set(boxes)
        self.left_out = [box for box in everything if box not in shown]
        self.entries, self.edges, self.notes, self.meanings = {}, [], [], set()
        self.connect(everything, shown)

    def style(self, box):
        """The attributes of a box's node in DOT."""
        entry = self.entries[box]
        style = dict(LOOKS[entry.state][0], label=label(entry.lines, entry.strips), tooltip=escaped(entry.tooltip))
        if box.is_leaf and box.node.role != "parameter":
            style.update(shape="ellipse", margin="0,0.01")
        if isinstance(box, Group) and box.count > 1:
            style.update(peripheries="2")
        for kind, _ in entry.strips:
            if kind not in ("backward", "waits"):
                style.update(color=STRIPS[kind][0], penwidth="2.6")
        return style

    # ---- edges -------------------------------------------------------------------------------------

    def connect(self, everything, shown):
        """The edges between the boxes that are shown, and those from and to what is left out."""
        cut = {}
        for box in everything:
            for source in box.inputs:
                if box in shown and source in shown:
                    self.edges.append((source, box, self.edge_style(source, box)))
                elif box in shown:
                    cut[REST, box] = dict(style="dotted")
                elif source in shown:
                    cut[source, REST] = dict(style="dotted", constraint="true" if source.is_leaf else "false")
        self.edges += [(tail, head, style) for (tail, head), style in cut.items()]
        self.meanings.update(["left out"] if cut else [])

    def edge_style(self, source, box):
        if is_swept(box):
            self.meanings.add("swept")
            return dict(style="dotted")
        style = {} if source.is_leaf else dict(weight="4")
        if enters(source.frame, box.frame):
            style.update(CROSSING_STYLE)
            self.meanings.add("boundary")
            if is_parameter(source):
                style.update(penwidth="1")
        if isinstance(source, Box) and not source.node.requires_grad:
            style.update(style="dashed")
            self.meanings.add("no gradient")
        elif "color" not in style:
            self.meanings.add("plain")
        return style

    # ---- writing -----------------------------------------------------------------------------------

    def write(self, new_graph):
        """All of it as a graph. new_graph(name, **attributes) makes one, or a part of one."""
        rows = Rows(self) if is_chain(self.boxes, self.parents) else None
        graph = new_graph("minigrad", graph_attr=graph_style(rows), node_attr=NODE_STYLE, edge_attr=EDGE_STYLE)
        drawn = {None: graph}
        for part, name in self.names_of_parts():
            drawn[part] = new_graph(name, graph_attr=part_style(part))
        if self.left_out:
            graph.node(REST, label(self.words_on_rest()), style="rounded,dashed", color=GREY)
        if rows is not None:
            rows.write(drawn, REST if self.left_out else None)
        else:
            self.write_boxes(drawn)
        for part in reversed(self.parents):
            drawn[self.parents[part]].subgraph(drawn[part])
        for tail, head, style in self.edges:
            graph.edge(key_of(tail), key_of(head), **style)
        states = {entry.state for entry in self.entries.values()}
        columns = 2 if rows is not None or len(self.boxes) >= MANY else 1
        graph.attr(label=legend(legend_rows(states, self.meanings, self.notes), columns))
        return graph

    def names_of_parts(self):
        """(Part, its name in DOT): checkpoints are numbered, and so is the rest."""
        checkpoints = modules = 0
        for part in self.parents:
            if part.kind == "checkpoint":
                self.meanings.add("checkpoint")
                yield part, f"cluster_{checkpoints}"
                checkpoints += 1
            else:
                self.meanings.add("module")
                yield part, f"cluster_m{modules}"
                modules += 1

    def write_boxes(self, drawn):
        """Boxes where Graphviz likes them; in each checkpoint a note beside the first one."""
        for box in self.boxes:
            drawn[self.inside[box]].node(box.key, **self.style(box))
        firsts = self.first_boxes()
        for number, part in enumerate(part for part in self.parents if part.kind == "checkpoint"):
            first = firsts[part]
            beside = dict(rank="same") if self.inside[first] is part else {}  # or else above the layer that it is in
            with drawn[part].subgraph(graph_attr=beside) as line:
                line.node(f"note_{number}", note(words_on(part)), **NOTE_STYLE)
                line.edge(f"note_{number}", first.key, style="invis")
            for source in first.inputs if not beside else ():
                if source in self.inside:
                    drawn[None].edge(source.key, f"note_{number}", style="invis")

    def first_boxes(self):
        """Part -> the first box in it, which is not the checkpoint's own one while there are others."""
        firsts = {}
        for box in sorted(self.boxes, key=is_swept):
            part = self.inside[box]
            while part is not None and part not in firsts:
                firsts[part] = box
                part = self.parents[part]
        return firsts

    def words_on_rest(self):
        """How much is left out, and what it is."""
        count = len(self.left_out)
        if any(isinstance(box, Group) for box in self.left_out):
            return [bold(f"… {count:,} more layers"), small("left out; see max_nodes")]
        leaves = sum(box.is_leaf for box in self.left_out)
        words = [f"{n:,} {word}{'s' if n > 1 else ''}" for n, word in ((count - leaves, "op"), (leaves, "leaf")) if n]
        words = " and ".join(words).replace("leafs", "leaves")
        return [bold(f"… {count:,} more"), small(text(f"{words} left out; see max_nodes"))]


def key_of(box):
    return box if box is REST else box.key


def is_swept(box):
    return isinstance(box, Box) and box.swept


def is_parameter(source):
    return isinstance(source, Box) and source.is_leaf and source.node.role == "parameter"


def enters(inner, frame):
    """Whether an edge from a box in the frame `inner` to one in `frame` goes into a checkpoint."""
    while inner is not None and inner is not frame:
        inner = inner.parent
    return inner is not frame


def graph_style(rows):
    return dict(
        rankdir="TB",
        nodesep="0.14" if rows else "0.2",
        ranksep="0.36" if rows else "0.3",
        pad="0.15",
        bgcolor="white",
        fontname=FONT,
        fontcolor=INK,
        fontsize=str(SIZE),
        labelloc="b",
        labeljust="l",
    )


def part_style(part):
    if part.kind == "checkpoint":
        return dict(CHECKPOINT_STYLE, tooltip=escaped(f"checkpoint at {source_line(part.frame.node.where)}"))
    return dict(MODULE_STYLE, label=label([title_of(part)]), tooltip=escaped(part.path or name_of(part)))


# ---- What stands around what -------------------------------------------------------------------------


def checkpoints_around(boxes):
    """(inside, parents) of Boxes: around them are the checkpoints that they are in."""
    parts, inside, parents = {}, {}, {}
    for box in boxes:
        for frame in frames_around(box):
            if frame not in parts:
                parts[frame] = Part("checkpoint", "", frame)
                parents[parts[frame]] = parts.get(frame.parent)
        inside[box] = parts.get(box.frame)
    return inside, parents


def parts_around(boxes, tree):
    """(inside, parents) of the Groups of a tree: around them are its Parts, as far as anything in them is shown."""
    inside, outer = {}, {}
    for part in all_parts(tree):
        around = None if part is tree else part
        for child in part.children:
            (outer if isinstance(child, Part) else inside)[child] = around
    shown = set()
    for box in boxes:
        part = inside[box]
        while part is not None and part not in shown:
            shown.add(part)
            part = outer[part]
    return inside, {part: around for part, around in outer.items() if part in shown}
