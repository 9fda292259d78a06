"""A chain of layers, set like text: a checkpoint is a row, and so are ten layers outside of one.

So what each checkpoint keeps stands at the end of its row. In a long chain of much the same layers, what most of them
have in common is said once, below the picture, and a box says only what is different about it.
"""

from collections import Counter

from .labels import words_on
from .layers import Group
from .looks import NOTE_STYLE, SIZE, SMALL
from .markup import bold, note, plain, small, width_of

WIDTH = 650  # points: 870 pixels, about what a README is wide
GAP, MARGIN = 10, 16  # points between boxes, and beside the text in one
WIDER = 1.6  # where there is room, boxes are so much wider than they need be
ROW, LONG = 10, 12  # layers in a row if there is no other reason; layers that make a long chain
MOST = 0.75  # what so many layers have in common is said once


def is_chain(boxes, parts):
    """Whether each Group reads the Group before it and no other, and nothing but checkpoints is around them."""
    groups = [box for box in boxes if isinstance(box, Group)]
    for before, group in zip(groups, groups[1:], strict=False):
        if [source for source in group.inputs if isinstance(source, Group)] != [before]:
            return False
    return len(groups) > 1 and all(part.kind == "checkpoint" for part in parts)


class Rows:
    """The rows of a Picture whose boxes are a chain.

    rows    lists of boxes
    width   of a box, 0 for as wide as it must be, and `margin`, of the words beside the rows, both in points
    """

    def __init__(self, picture):
        self.picture, self.inside = picture, picture.inside
        say_once(picture)
        lines = [line for part in picture.parents for line in words(part)]
        self.margin = max(map(width_of, lines), default=0) * SMALL / SIZE
        room = WIDTH - self.margin - 3 * GAP
        widths = {box: width_of_box(picture.entries[box]) for box in picture.boxes if not box.is_leaf}
        usual = sorted(widths.values())[9 * len(widths) // 10]  # nine in ten need no more
        if len(widths) >= LONG:
            widths = dict.fromkeys(widths, usual)
        self.rows = [row for run in runs_of(picture) for row in pieces(run, widths, room)]
        most = max(map(len, self.rows))
        self.width = min(WIDER * usual, room / most - GAP) if len(widths) >= LONG else 0

    def write(self, drawn, rest=None):
        """Put the boxes into what is `drawn`: Part -> graph. A row begins with a note; notes stand below each other.

        rest  the key of the box for what is left out; it comes between the leaves and the layers
        """
        margin, previous = [], None
        for number, row in enumerate(self.rows):
            part, key, lines = self.inside[row[0]], f"note_{number}", [""]
            if part is not previous:
                lines = words(part)
            if not row[0].is_leaf:
                previous = part
            with drawn[part].subgraph(graph_attr=dict(rank="same")) as line:
                line.node(key, note(lines, round(self.margin)), **NOTE_STYLE)
                line.edge(key, row[0].key, style="invis")
                for box in row:
                    style = self.picture.style(box)
                    if not box.is_leaf and self.width:
                        style.update(width=f"{self.width / 72:.2f}")
                    line.node(box.key, **style)
            margin.append(key)
            if rest is not None and row[0].is_leaf and not any(row[0].is_leaf for row in self.rows[number + 1 :]):
                margin.append(rest)
        for above, below in zip(margin, margin[1:], strict=False):
            drawn[None].edge(above, below, style="invis", weight="100")
        place = {box: number for number, row in enumerate(self.rows) for box in row}
        for tail, head, style in self.picture.edges:
            if place.get(tail) != place.get(head):
                style.update(constraint="false")


def words(part):
    """What is said beside the rows of a checkpoint, and beside those that are in none."""
    return words_on(part) if part is not None else [bold("taped in full")]


def say_once(picture):
    """Take what most layers have in common out of their boxes; numbered layers keep only their number."""
    groups = [box for box in picture.boxes if isinstance(box, Group) and box.name and box.count == 1]
    if len(groups) < LONG:
        return
    usual = [usual_line([picture.entries[group].lines[index] for group in groups]) for index in (1, 2)]
    for group in groups:
        entry = picture.entries[group]
        name, *lines = entry.lines
        lines = [line for line, common in zip(lines, usual, strict=True) if line != common]
        entry.lines = [bold(group.name) if group.name.isdigit() else name, *lines]
        entry.strips = [(kind, words.removeprefix("step ")) for kind, words in entry.strips]
    said = [f"{verb} {plain(line)}" for verb, line in zip(("is", "gives"), usual, strict=True) if line is not None]
    if said:
        picture.notes.append(f"where nothing else is said, a layer {' and '.join(said)}")


def usual_line(lines):
    """The line that most of these are; None if they differ."""
    line, count = Counter(lines).most_common(1)[0]
    return line if count >= MOST * len(lines) else None


def width_of_box(entry):
    """Points that a box needs for what is written in it."""
    return MARGIN + max(map(width_of, [*entry.lines, *(small(words) for _, words in entry.strips)]))


def runs_of(picture):
    """Neighbours that are in the same checkpoint, or in none, or are leaves."""
    runs = []
    for box in picture.boxes:
        last = runs[-1][-1] if runs else None
        if last is not None and last.is_leaf == box.is_leaf and picture.inside[last] is picture.inside[box]:
            runs[-1].append(box)
        else:
            runs.append([box])
    return runs


def pieces(run, widths, room):
    """A run cut into rows: one if it fits, or rows of ten, or as few equal ones as fit."""
    for size in (len(run), ROW, *(-(-len(run) // rows) for rows in range(2, len(run) + 1))):
        rows = [run[i : i + size] for i in range(0, len(run), size)]
        if all(sum(widths.get(box, 0) + GAP for box in row) <= room for row in rows):
            break
    return rows
