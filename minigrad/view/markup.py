"""The bits of text that Graphviz's HTML-like labels are made of."""

import html
import re

from ..engine.device import is_array
from .looks import SIZE, SMALL, STRIPS

BARE = 'border="0" cellborder="0" cellpadding="0" cellspacing="0"'
LONGEST_VALUE = 22


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
    return f'<font point-size="{SMALL}">{markup}</font>'


def plain(markup):
    """What a reader sees of a line of markup."""
    return html.unescape(re.sub("<[^>]*>", "", markup))


def width_of(line):
    """About how many points a line of markup is wide."""
    size = SMALL if line.startswith("<font") else SIZE
    return len(plain(line)) * size * (0.58 if "<b>" in line else 0.52)


# ---- Labels ------------------------------------------------------------------------------------------


def label(lines, strips=()):
    """Lines of markup, centred, as a label; below them, strips: (kind, text) in the colours of STRIPS."""
    if not strips:
        return "<" + "<br/>".join(lines) + ">"
    rows = [f"<tr><td>{'<br/>'.join(lines)}</td></tr>", '<tr><td height="3"></td></tr>']
    for kind, words in strips:
        fill, ink = STRIPS[kind]
        written = f'<font color="{ink}">{small(text(words))}</font>'
        rows.append(f'<tr><td bgcolor="{fill}" cellpadding="1">{written}</td></tr>')
    return f"<<table {BARE}>{''.join(rows)}</table>>"


def note(lines, width=0):
    """Lines of markup at the left of a cell that is at least so many points wide."""
    cell = f'<td width="{width}" align="left" balign="left">{"<br/>".join(lines)}</td>'
    return f"<<table {BARE}><tr>{cell}</tr></table>>"


# ---- Values ------------------------------------------------------------------------------------------


def brief(value):
    """A setting of an op in a few characters: 0.3536, (2, 8), 3:, float32[10]."""
    if isinstance(value, slice):
        parts = [value.start, value.stop, value.step][: 2 if value.step is None else 3]
        words = ":".join("" if part is None else str(part) for part in parts)
    elif value is Ellipsis:
        words = "…"
    elif isinstance(value, float):
        words = f"{value:.4g}"
    elif isinstance(value, tuple):
        words = f"({', '.join(map(brief, value))}{',' * (len(value) == 1)})"
    elif is_array(value):
        words = f"{value.dtype}{list(value.shape)}"
    else:
        words = repr(value)
    return words if len(words) <= LONGEST_VALUE else words[: LONGEST_VALUE - 1] + "…"


def brief_index(pattern):
    """What stood in square brackets, of the pattern of an op such as getitem."""
    return f"[{', '.join(part if isinstance(part, str) else brief(part) for part in pattern)}]"
