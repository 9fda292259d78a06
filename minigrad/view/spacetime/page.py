"""The page that space-time pictures are set on: SVG text, its colours for light and dark pages, a heading, a legend.

A colour is a class with two values, and the reader's own preference decides between them. Cells snap to whole pixels,
so that no seams show. The same calls give the same text, byte by byte.
"""

import html
from pathlib import Path

from ...errors import ArgumentError
from ..palette import DARK_ROLES, PAGE, PHASE_COLOURS, ROLE_COLOURS
from .rows import STATES

LETTER = 0.54  # the width of a letter in heights of the font, on average
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, sans-serif"
DARK_DROPPED = "#28323B"


class Svg(str):
    """A picture as SVG text; a notebook shows the picture itself."""

    def _repr_svg_(self):
        return str(self)

    def __repr__(self):
        return f"<Svg of {len(self):,} characters>"


class Page:
    """Bits of SVG, collected; `bottom` is how far down they reach."""

    def __init__(self, width, margin=24):
        self.width, self.margin, self.bottom, self.bits = width, margin, 0, []

    def open(self, kind):
        """What follows is of this class, until `close`."""
        self.bits.append(f'<g class="{kind}">')

    def close(self):
        self.bits.append("</g>")

    def rect(self, x, y, width, height, kind="", tooltip=""):
        self.bottom = max(self.bottom, y + height)
        end = f"><title>{html.escape(tooltip)}</title></rect>" if tooltip else "/>"
        kind = f' class="{kind}"' if kind else ""
        self.bits.append(f'<rect{kind} x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}"{end}')

    def path(self, points, kind):
        if points:
            self.bits.append(f'<path class="{kind}" d="{points}"/>')

    def line(self, x, y, to_x, to_y, kind="st-line"):
        self.path(f"M{n(x)} {n(y)}L{n(to_x)} {n(to_y)}", kind)

    def dot(self, x, y):
        self.bits.append(f'<circle class="st-text" cx="{n(x)}" cy="{n(y)}" r="3.5"/>')

    def text(self, x, y, words, kind="", anchor="start", size=12, turned=False):
        self.bottom = max(self.bottom, y)
        turn = f' transform="rotate(-90 {n(x)} {n(y)})"' if turned else ""
        self.bits.append(
            f'<text class="st-text {kind}" x="{n(x)}" y="{n(y)}" font-size="{n(size)}" text-anchor="{anchor}"{turn}>'
            f"{html.escape(words, quote=False)}</text>"
        )

    def heading(self, title, facts):
        """The finding, and lines of facts below it."""
        room = (self.width - 2 * self.margin) / LETTER
        self.text(self.margin, 34, title, "st-title", size=min(17, 0.9 * room / len(title)))
        for number, fact in enumerate(facts):
            self.text(self.margin, 55 + 17 * number, fact, "st-grey", size=min(12.5, room / len(fact)))

    def legend(self, entries, top):
        """(class, words) side by side, in as many lines as they need."""
        x, y = self.margin, top
        for kind, words in entries:
            width = 20 + LETTER * 12 * len(words)
            if x + width > self.width - self.margin and x > self.margin:
                x, y = self.margin, y + 19
            self.rect(x, y, 14, 11, kind)
            self.text(x + 20, y + 10, words)
            x += width + 22

    def svg(self, label) -> Svg:
        """The whole text; `label` is what a screen reader says."""
        size = f'width="{n(self.width)}" height="{n(self.bottom + self.margin)}"'
        box = f"0 0 {n(self.width)} {n(self.bottom + self.margin)}"
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="st-page" {size} viewBox="{box}" '
            f'style="max-width: 100%; height: auto" role="img" aria-label="{html.escape(label)}">',
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="st-ground" {size}/>',
            *self.bits,
            "</svg>",
        ]
        return Svg("\n".join(lines) + "\n")


def n(length) -> str:
    """A length in pixels, to a hundredth."""
    return f"{length:.2f}".rstrip("0").rstrip(".")


def saved(svg, path) -> Svg:
    """The picture, which is written to a file too if there is a path."""
    if path is not None:
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ArgumentError(f"a space-time picture is an SVG file, and {path.name!r} does not end in .svg")
        path.write_text(svg, encoding="utf-8", newline="\n")
    return svg


# ---- Colours -----------------------------------------------------------------------------------------


def both(colour, on_dark=None):
    return colour, on_dark or colour


# class -> the colour of its areas on a light page, and on a dark one
FILLS = {f"st-{state}": both(ROLE_COLOURS[state], DARK_ROLES.get(state)) for state in STATES}
FILLS |= {
    "st-ground": PAGE["page"],
    "st-dropped": both(PHASE_COLOURS["forward"], DARK_DROPPED),
    "st-forward": PAGE["ink"],
    "st-replay": PAGE["ink"],
    "st-backward": both(ROLE_COLOURS["gradient"]),
    "st-text": PAGE["ink"],
    "st-grey": PAGE["grey"],
    "st-area": PAGE["line"],
}
STROKES = {"st-line": PAGE["line"], "st-curve": PAGE["ink"]}
SHAPES = f"""\
.st-text {{ font-family: {FONT} }}
.st-title {{ font-weight: 600 }}
.st-bold {{ font-weight: 700 }}
.st-page rect, .st-mark {{ shape-rendering: crispEdges }}
.st-mark {{ pointer-events: none }}
.st-step {{ fill: none; pointer-events: all }}"""


def rules(is_dark) -> str:
    fills = [f".{name} {{ fill: {pair[is_dark]} }}" for name, pair in FILLS.items()]
    strokes = [f".{name} {{ fill: none; stroke: {pair[is_dark]} }}" for name, pair in STROKES.items()]
    return "\n".join(fills + strokes)


STYLE = f"{SHAPES}\n{rules(False)}\n@media (prefers-color-scheme: dark) {{\n{rules(True)}\n}}"
