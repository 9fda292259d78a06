"""How boxes and lines of a diagram look: the states of palette.py as attributes of DOT, and what the legend says.

A state is a filling, and also a kind of line or of corner, so that nobody depends on telling colours apart.
"""

from .palette import (
    CROSSING,
    ERROR,
    HANDS,
    INK,
    INPUT_LINE,
    OFFLOADED,
    ON_COLOUR,
    ON_ROLE,
    OP_LINE,
    PAGE,
    PALE,
    PARAMETER_LINE,
    ROLE_COLOURS,
    STATES,
)

GREY, FAINT = PAGE["grey"][0], "#9AA5AE"
GRADIENT = ROLE_COLOURS["gradient"]
FONT = "Helvetica"
SIZE, SMALL = 10, 9  # points; in labels Graphviz takes whole ones only
FILLED = ("replayed", "boundary", "activation", "input")  # of several roles in one box, the first is shown


def look(line, fill="white", width=1.1, style="filled,rounded", ink=INK):
    return dict(color=line, fillcolor=fill, penwidth=str(width), style=style, fontcolor=ink)


# state -> (attributes of its box, what the legend says)
LOOKS = {
    "activation": (look(OP_LINE, ROLE_COLOURS["activation"], ink=ON_COLOUR), STATES["activation"]),
    "boundary": (look(INK, ROLE_COLOURS["boundary"], 2.2, "filled", ON_COLOUR), STATES["boundary"]),
    "replayed": (look(INK, ROLE_COLOURS["replayed"], ink=ON_ROLE["replayed"]), STATES["replayed"]),
    "dropped": (look(OP_LINE), STATES["dropped"]),
    "passed": (look(FAINT, ink=GREY), "passed: backward has been here"),
    "offloaded": (look(INK, OFFLOADED, 1.1, "filled,dashed", "white"), "in slow memory, until a replay is near"),
    "input": (look(INPUT_LINE, ROLE_COLOURS["input"], ink=ON_COLOUR), STATES["input"]),
    "unread": (look(INPUT_LINE), "data that backward does not read"),
    "parameter": (
        look(PARAMETER_LINE, ROLE_COLOURS["parameter"], style="filled", ink=ON_COLOUR), "parameter: a leaf that learns"
    ),
}

# A strip at the lower edge of a box: its colour, and that of what is written on it.
STRIPS = {
    "backward": ("#E9E1EF", ON_COLOUR),
    "waits": (GRADIENT, ON_COLOUR),
    "hand": (INK, "white"),
    "error": (ERROR, "white"),
    "highlight": (ERROR, "white"),
}

# What happens to the node in hand -> the words on its strip.
IN_HAND = {kind: f"in hand: {words}" for kind, (_, words) in HANDS.items()}
IN_HAND.update(leaf="in hand: has its gradient", next="the next in hand", error="in hand: failed")

NODE_STYLE = dict(
    shape="box", fontname=FONT, fontcolor=INK, fontsize=str(SIZE), height="0.26", width="0.5", penwidth="1.1",
    margin="0.07,0.035",
)  # fmt: skip
EDGE_STYLE = dict(color=GREY, arrowsize="0.55", penwidth="1")
CHECKPOINT_STYLE = dict(style="rounded,filled", fillcolor=PALE, color=INK, penwidth="2", margin="8", label="")
MODULE_STYLE = dict(
    style="rounded,filled", fillcolor="white", color=FAINT, penwidth="1", margin="7", fontsize=str(SIZE),
    labeljust="l", labelloc="t",
)  # fmt: skip
NOTE_STYLE = dict(shape="plain", fontsize=str(SMALL))
CROSSING_STYLE = dict(color=CROSSING, penwidth="2")


def state_of(box):
    """The state that a Box is in now."""
    if box.held:
        return box.role
    if box.slow:
        return "offloaded"
    if box.node.freed:
        return "passed"
    return "unread" if box.is_leaf else "dropped"


def state_of_all(boxes):
    """The state of several boxes in one: what is live comes first."""
    states = {state_of(box) for box in boxes}
    return next((state for state in (*FILLED, "offloaded", "dropped") if state in states), "passed")
