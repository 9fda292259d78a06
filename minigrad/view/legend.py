"""The legend in a diagram: a table that says what each colour and each kind of line in this picture means."""

from .looks import CHECKPOINT_STYLE, CROSSING_STYLE, GREY, LOOKS, MODULE_STYLE, SMALL, STRIPS
from .markup import BARE, text

# Of these, those that stand in the picture, in this order; boxes in all states (LOOKS) come before.
MEANINGS = {
    "checkpoint": "checkpoint: keeps what enters it, and replays what is inside",
    "module": "a layer that is made of layers",
    "boundary": "bold: enters a checkpoint, is part of its boundary",
    "plain": "is read by; gradients flow back along it",
    "no gradient": "dashed: no gradient flows back along it",
    "left out": "dotted: from or to what is left out",
    "swept": "dotted: by way of what backward has swept",
    "step": "in which step of backward its turn comes",
    "gradient": "the gradient that comes to it in backward",
    "waits": "a gradient waits here for its turn",
    "hand": "in hand now",
    "error": "where the error came up",
    "highlight": "what was to be highlighted",
}


def swatch(line, fill, border=1, rounded=True):
    """A cell of the legend that looks like a box."""
    bare = BARE.replace('border="0"', f'border="{border}"', 1)
    corners = 'style="rounded" ' if rounded else ""
    return (
        f'<table {bare} {corners}color="{line}" bgcolor="{fill}">'
        '<tr><td fixedsize="true" width="24" height="10"></td></tr></table>'
    )


def stroke(color, thickness, dashes=1):
    """A cell of the legend that looks like a line."""
    width = 24 // (2 * dashes - 1)
    mark = f'<td fixedsize="true" width="{width}" height="{thickness}" bgcolor="{color}"></td>'
    gap = f'<td fixedsize="true" width="{width}" height="{thickness}"></td>'
    return f"<table {BARE}><tr>{gap.join([mark] * dashes)}</tr></table>"


def state_swatch(state):
    look = LOOKS[state][0]
    return swatch(look["color"], look["fillcolor"], round(float(look["penwidth"])), "rounded" in look["style"])


MARKS = {
    "checkpoint": swatch(CHECKPOINT_STYLE["color"], CHECKPOINT_STYLE["fillcolor"], 2),
    "module": swatch(MODULE_STYLE["color"], MODULE_STYLE["fillcolor"]),
    "boundary": stroke(CROSSING_STYLE["color"], 3),
    "plain": stroke(GREY, 2),
    "no gradient": stroke(GREY, 2, dashes=3),
    "left out": stroke(GREY, 2, dashes=6),
    "swept": stroke(GREY, 2, dashes=6),
    "step": stroke(STRIPS["backward"][0], 8),
    "gradient": stroke(STRIPS["backward"][0], 8),
    "waits": stroke(STRIPS["waits"][0], 8),
    "hand": stroke(STRIPS["hand"][0], 8),
    "error": stroke(STRIPS["error"][0], 8),
    "highlight": stroke(STRIPS["highlight"][0], 8),
}


def legend_rows(states, meanings, notes=()):
    """(mark, words) for each state and each of MEANINGS that stands in the picture; then notes, without a mark."""
    rows = [(state_swatch(state), words) for state, (_, words) in LOOKS.items() if state in states]
    rows += [(MARKS[name], words) for name, words in MEANINGS.items() if name in meanings]
    return rows + [("", words) for words in notes]


def legend(rows, columns) -> str:
    """The rows as a table of so many columns, for the label of the graph."""
    height = -(-len(rows) // columns)
    lines = ['<tr><td height="4"></td></tr>']
    for i in range(height):
        cells = [
            f'<td width="30">{mark}</td><td align="left"><font point-size="{SMALL}">{text(words)}   </font></td>'
            for mark, words in rows[i::height]
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<<table border="0" cellborder="0" cellspacing="1" cellpadding="1">{"".join(lines)}</table>>'
