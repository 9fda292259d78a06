"""Colours and words that mean the same in all pictures: diagrams, the player, curves.

The colours of roles and phases are decided in curves.py, where they are areas; here are those of boxes and lines,
what all of them look like on a dark page, and what the states of a value are called.
"""

from .curves import PHASE_COLOURS, ROLE_COLOURS, ROLE_WORDS

INK, PALE = "#1C2833", "#F3F4F6"
OP_LINE, PARAMETER_LINE, INPUT_LINE = "#1F5F8B", "#A05A00", "#1E7B4F"  # around what an op computes, and around leaves
CROSSING = "#B8431B"  # a line into a checkpoint
ERROR = "#B3122A"

# name -> (on a light page, on a dark page)
PAGE = {
    "page": ("#FFFFFF", "#12181E"),
    "card": (PALE, "#1B232B"),
    "ink": (INK, "#E8EDF1"),
    "grey": ("#5F6B75", "#A3AEB8"),
    "line": ("#C9CFD5", "#3A4650"),
    "accent": (OP_LINE, "#7FBCE4"),
    "op": (OP_LINE, "#7FBCE4"),
    "leaf": (INPUT_LINE, "#7CC79B"),
    "frame": (INK, "#8A97A3"),
}
DARK_ROLES = {"replayed": "#3479A8", "value": "#55626D", "parameter": "#C9963F", "input": "#7CC79B"}
ON_ROLE = {"replayed": "#FFFFFF"}  # what is written on an area of the role; elsewhere this:
ON_COLOUR = "#0B1116"
OFFLOADED = "#8F7F5E"
DARK_PHASES = {"forward": "#56636E", "replay": "#3479A8"}

# How a box looks: the state of its value, and the words for it. A state is also a shape and a kind of line.
STATES = {
    "future": "not computed yet",
    "dropped": "dropped: nobody needs it, or a replay computes it again",
    "variable": "in your variable only",
    "activation": "live: the tape keeps it for backward",
    "boundary": "live: kept for a checkpoint",
    "replayed": "live: computed again by a replay",
    "input": "live: data that backward reads",
}
HANDS = {"forward": ("▶", "runs"), "replay": ("↻", "replays"), "backward": ("◀", "is differentiated")}


def style_sheet() -> str:
    """The colours as custom properties of CSS, for a light page and, where the reader prefers it, a dark one."""
    light = {name: pair[0] for name, pair in PAGE.items()}
    dark = {name: pair[1] for name, pair in PAGE.items()}
    for role, colour in {**ROLE_COLOURS, "offloaded": ROLE_COLOURS.get("offloaded", OFFLOADED)}.items():
        light[f"role-{role}"], dark[f"role-{role}"] = colour, DARK_ROLES.get(role, colour)
        light[f"on-{role}"] = ON_ROLE.get(role, ON_COLOUR)
    for phase, colour in PHASE_COLOURS.items():
        light[f"phase-{phase}"], dark[f"phase-{phase}"] = colour, DARK_PHASES.get(phase, colour)
    return (
        f":root {{ color-scheme: light dark; {properties(light)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {properties(dark)} }} }}"
    )


def properties(colours) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def role_words() -> dict:
    """role -> what a legend calls it."""
    return {**ROLE_WORDS, "offloaded": ROLE_WORDS.get("offloaded", "in slow memory")}

