"""The bits of text that Graphviz's HTML-like labels are made of, and the colours.

Three hues that differ in lightness too: blue for what ops compute, orange for parameters, green for inputs.
"""

import html
import re

INK, GREY, PALE, CROSSING = "#1C2833", "#7A858F", "#F3F4F6", "#B8431B"
OP, PARAMETER, INPUT = ("#1F5F8B", "#A9D3EE"), ("#A05A00", "#FFCF85"), ("#1E7B4F", "#BFE6CD")
FONT = "Helvetica"
BARE = 'border="0" cellborder="0" cellpadding="0" cellspacing="0"'


def printable(value):
    """Any value as text on one line: what cannot be printed is written as Python would escape it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def text(value):
    """Any value, literally, for an HTML-like label."""
    return html.escape(escaped(value))


def escaped(value):
    """Any value, literally, for an attribute such as a tooltip, where backslashes have a meaning."""
    return printable(value).replace("\\", "\\\\")


def bold(value):
    return f"<b>{text(value)}</b>"


def italic(value):
    return f"<i>{text(value)}</i>"


def small(markup):
    return f'<font point-size="9">{markup}</font>'


def label(lines):
    """Lines of markup, centred, as a label."""
    return "<" + "<br/>".join(lines) + ">"


def note(lines, width=0):
    """Lines of markup at the left of a cell that is at least so many points wide."""
    cell = f'<td width="{width}" align="left" balign="left">{"<br/>".join(lines)}</td>'
    return f"<<table {BARE}><tr>{cell}</tr></table>>"


def longest_line(markup):
    """Characters in the longest line of a label."""
    return max(len(html.unescape(re.sub("<[^>]*>", "", line))) for line in markup[1:-1].split("<br/>"))


# ---- The legend --------------------------------------------------------------------------------------


def swatch(kind, filled=True, border=1):
    """A cell of the legend that looks like a box."""
    fill = kind[1] if filled else "white"
    bare = BARE.replace('border="0"', f'border="{border}"', 1)
    return (
        f'<table {bare} style="rounded" color="{kind[0]}" bgcolor="{fill}">'
        '<tr><td fixedsize="true" width="24" height="11"></td></tr></table>'
    )


def stroke(color, thickness, dashes=1):
    """A cell of the legend that looks like a line."""
    width = 24 // (2 * dashes - 1)
    mark = f'<td fixedsize="true" width="{width}" height="{thickness}" bgcolor="{color}"></td>'
    gap = f'<td fixedsize="true" width="{width}" height="{thickness}"></td>'
    return f"<table {BARE}><tr>{gap.join([mark] * dashes)}</tr></table>"


def legend_table(rows, columns):
    """(mark, words) rows as a table of so many columns."""
    height = -(-len(rows) // columns)
    lines = []
    for i in range(height):
        cells = [
            f'<td width="30">{mark}</td><td align="left">{text(words)}   </td>'
            for mark, words in rows[i::height]
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<<table border="0" cellborder="0" cellspacing="1" cellpadding="1">{"".join(lines)}</table>>'
