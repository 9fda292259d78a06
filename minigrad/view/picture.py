"""A picture of boxes, as a graphviz.Digraph: boxes in their frames, the edges, a legend.

Graphviz decides where things stand, except for a chain of layers. A chain is set like text: a checkpoint is
a line, and so are ten layers outside of one; so what each checkpoint keeps stands at the end of its line.
"""

from ..advice import buffers_of_plain_taping, is_parameter
from ..errors import MinigradError
from ..replay import results
from ..table import bytes_text
from ..tape import Node, source_line
from .boxes import Box, Group
from .markup import (
    CROSSING,
    FONT,
    GREY,
    INK,
    INPUT,
    OP,
    PALE,
    PARAMETER,
    bold,
    escaped,
    label,
    legend_table,
    longest_line,
    note,
    small,
    stroke,
    swatch,
    text,
)

LONGEST_ROW, ROW = 16, 10
REST = "rest"


class Picture:
    """What is to be drawn, collected; `digraph` writes it down.

    level     "op" or "layer"
    boxes     the Boxes and Groups that are shown, in order, and `style`: box -> attributes of its DOT node
    edges     (key, key, attributes)
    left_out  how many boxes are not shown
    marks     what the legend has to explain
    """

    def __init__(self, level):
        self.level, self.left_out = level, 0
        self.boxes, self.style, self.edges, self.marks = [], {}, [], set()

    def add(self, box, markup, kind, tooltip):
        """Show a box, with a label of lines of markup and the colours (line, filling) of its kind."""
        self.boxes.append(box)
        self.style[box] = dict(
            label=label(markup),
            shape="ellipse" if box.is_leaf else "box",
            style="filled" if box.is_leaf else "filled,rounded",
            color=kind[0],
            fillcolor=kind[1] if box.held else "white",
            tooltip=escaped(tooltip),
            margin="0.0,0.02" if box.is_leaf else "0.09,0.05",
        )
        self.marks.add((kind, box.held))

    def connect(self, everything):
        """Once the boxes are there: the edges between them, and those from and to what is left out."""
        shown = set(self.boxes)
        self.left_out = len(everything) - len(shown)
        cut = {}
        for box in everything:
            for source in box.inputs:
                if box in shown and source in shown:
                    self.edges.append((source.key, box.key, self.edge_style(source, box)))
                elif box in shown:
                    cut[REST, box.key] = dict(style="dotted")
                elif source in shown:
                    forwards = "true" if source.is_leaf else "false"
                    cut[source.key, REST] = dict(style="dotted", constraint=forwards)
        self.edges += [(tail, head, style) for (tail, head), style in cut.items()]

    def edge_style(self, source, box):
        style = {} if source.is_leaf else dict(weight="4")
        if enters(source.frame, box.frame):
            style.update(penwidth="2", color=CROSSING)
            self.marks.add("boundary")
        if isinstance(source, Box) and not source.node.requires_grad:
            style.update(style="dashed")
            self.marks.add("no gradient")
        elif "color" not in style:
            self.marks.add("plain")
        return style

    # ---- writing -----------------------------------------------------------------------------------

    def digraph(self):
        """All of it as a graphviz.Digraph."""
        graphviz = import_graphviz()
        rows = rows_of(self.boxes) if self.level == "layer" and is_chain(self.boxes) else []
        frames = frames_of(self.boxes)
        graph = graphviz.Digraph(
            "minigrad", graph_attr=graph_style(rows), node_attr=NODE_STYLE, edge_attr=EDGE_STYLE
        )
        drawn = {None: graph}
        for number, frame in enumerate(frames):
            tooltip = escaped(f"checkpoint at {source_line(frame.node.where)}")
            drawn[frame] = graphviz.Digraph(
                f"cluster_{number}", graph_attr=dict(FRAME_STYLE, tooltip=tooltip)
            )
        if self.left_out:
            what = "more" if self.level == "op" else "more layers"
            lines = [bold(f"… {self.left_out:,} {what}"), small("left out; see max_nodes")]
            graph.node(REST, label(lines), style="rounded,dashed", color=GREY)
        if rows:
            self.write_rows(rows, drawn)
        else:
            self.write_boxes(frames, drawn)
        for frame in reversed(frames):
            drawn[frame.parent].subgraph(drawn[frame])
        for tail, head, style in self.edges:
            graph.edge(tail, head, **style)
        graph.attr(label=self.legend(frames, columns=2 if rows and max(map(len, rows)) > 6 else 1))
        return graph

    def write_boxes(self, frames, drawn):
        """Boxes where Graphviz likes them; in each frame a note beside the first one."""
        for box in self.boxes:
            drawn[box.frame].node(box.key, **self.style[box])
        for number, frame in enumerate(frames):
            first = next((box for box in self.boxes if box.frame is frame), None)
            with drawn[frame].subgraph(graph_attr=dict(rank="same")) as line:
                line.node(f"note_{number}", note(words_on(frame)), **NOTE_STYLE)
                if first is not None:
                    line.edge(f"note_{number}", first.key, style="invis")

    def write_rows(self, rows, drawn):
        """A chain in rows: each begins with a note, and the notes stand below each other."""
        width = f"{max(0.075 * longest_line(self.style[box]['label']) for box in self.boxes):.2f}"
        margin, previous = [], None
        note_width = NOTE_WIDTH if len(drawn) > 1 else 0
        for number, row in enumerate(rows):
            frame, key, words = row[0].frame, f"note_{number}", [""]
            if frame is not previous:
                words = words_on(frame) if frame is not None else [bold("taped in full")]
            if not row[0].is_leaf:
                previous = frame
            with drawn[frame].subgraph(graph_attr=dict(rank="same")) as line:
                line.node(key, note(words, note_width), **NOTE_STYLE)
                line.edge(key, row[0].key, style="invis")
                for box in row:
                    line.node(box.key, **{**self.style[box], "width": width})
            margin.append(key)
            if row[0].is_leaf and self.left_out and not rows[number + 1][0].is_leaf:
                margin.append(REST)
        for above, below in zip(margin, margin[1:], strict=False):
            drawn[None].edge(above, below, style="invis", weight="100")
        place = {box.key: i for i, row in enumerate(rows) for box in row}
        for tail, head, style in self.edges:
            if place.get(tail) != place.get(head):
                style.update(constraint="false")

    def legend(self, frames, columns):
        """A table that says what each colour and each kind of line in this picture means."""
        layer = self.level == "layer"
        meanings = {
            (
                OP,
                True,
            ): f"{'some output of the layer' if layer else 'output'} held: the tape keeps it for backward",
            (OP, False): "no output held: nobody reads it, or a replay computes it again",
            (PARAMETER, True): "parameter: a leaf that learns",
            (INPUT, True): "input or constant",
            (INPUT, False): "input or constant that backward does not read",
        }
        rows = [(swatch(*mark), words) for mark, words in meanings.items() if mark in self.marks]
        if frames:
            frame = swatch((INK, PALE), border=2)
            rows.append((frame, "checkpoint: keeps what enters it, and replays what is inside"))
        if "boundary" in self.marks:
            rows.append((stroke(CROSSING, 3), "bold: enters a checkpoint, is part of its boundary"))
        if "plain" in self.marks:
            rows.append(
                (stroke(GREY, 2), "is read by" if layer else "is read by; gradients flow back along it")
            )
        if "no gradient" in self.marks:
            rows.append((stroke(GREY, 2, dashes=3), "dashed: no gradient flows back along it"))
        if self.left_out:
            rows.append((stroke(GREY, 2, dashes=6), "dotted: from or to what is left out"))
        if layer:
            rows.append(("", "parameters are not drawn; × counts repeats"))
        return legend_table(rows, columns)


def enters(inner, frame):
    """Whether an edge from a box in the frame `inner` to one in `frame` goes into a checkpoint."""
    while inner is not None and inner is not frame:
        inner = inner.parent
    return inner is not frame


def frames_of(boxes):
    """The frames around the boxes, outer ones before those inside."""
    found = {}
    for box in boxes:
        inwards, frame = [], box.frame
        while frame is not None and frame not in found:
            inwards.append(frame)
            frame = frame.parent
        found.update(dict.fromkeys(reversed(inwards)))
    return list(found)


def is_chain(boxes):
    """Whether each group reads the group before it and no other, leaves aside."""
    groups = [box for box in boxes if isinstance(box, Group)]
    for before, group in zip(groups, groups[1:], strict=False):
        if [source for source in group.inputs if isinstance(source, Group)] != [before]:
            return False
    return len(groups) > 1


def rows_of(boxes):
    """A chain cut into rows: where a checkpoint begins or ends, and where a row would be too long."""
    runs = []
    for box in boxes:
        last = runs[-1][-1] if runs else None
        joins = last is not None and last.frame is box.frame and last.is_leaf == box.is_leaf
        if joins and (box.is_leaf or box.path or len(runs[-1]) < ROW):
            runs[-1].append(box)
        else:
            runs.append([box])
    rows = []
    for run in runs:
        size = len(run) if len(run) <= LONGEST_ROW else ROW
        rows += [run[i : i + size] for i in range(0, len(run), size)]
    return rows


def words_on(frame):
    """What is written beside the boxes of a checkpoint: its name, what it keeps, what replay brings back."""
    inside = {node for line in frame.body.lines for node in results(line)} - frame.held
    rebuilt = sum(node.nbytes for node in buffers_of_plain_taping(frame.body) if node in inside)
    lines = [bold(f"checkpoint {frame.body.manner.name or ''}".strip())]
    if isinstance(frame.node, Node):
        kept = [s for s in frame.node.inputs if s.out is not None and not is_parameter(s)]
        lines.append(text(f"keeps {bytes_text(sum(s.nbytes for s in kept))}"))
    lines.append(text(f"replay brings back {bytes_text(rebuilt)}"))
    return lines


def graph_style(rows):
    return dict(
        rankdir="TB",
        nodesep="0.2" if rows else "0.25",
        ranksep="0.5" if rows else "0.36",
        pad="0.2",
        bgcolor="white",
        fontname=FONT,
        fontcolor=INK,
        fontsize="10",
        labelloc="b",
        labeljust="l",
    )


NODE_STYLE = dict(
    shape="box", fontname=FONT, fontcolor=INK, fontsize="11", height="0.3", width="0.6", penwidth="1.2"
)
EDGE_STYLE = dict(color=GREY, arrowsize="0.6", penwidth="1.1")
FRAME_STYLE = dict(style="rounded,filled", fillcolor=PALE, color=INK, penwidth="2.2", margin="9", label="")
NOTE_STYLE = dict(shape="plain", fontsize="9")
NOTE_WIDTH = 112


def import_graphviz():
    """The Python package graphviz, on first use."""
    try:
        import graphviz
    except ImportError as error:
        raise MinigradError(
            "pictures need the Python package graphviz, which is not installed: pip install graphviz"
        ) from error
    return graphviz
