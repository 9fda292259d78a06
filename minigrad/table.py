"""Plain text tables that fit a terminal of 100 columns, for tapes, tracers and plans; and bytes as text."""

import operator
import re

from .errors import ArgumentError

WIDTH = 100
UNITS = {"": 1, "b": 1}
UNITS.update({letter + "b": 1000**power for power, letter in enumerate("kmgt", 1)})
UNITS.update({letter + "ib": 1024**power for power, letter in enumerate("kmgt", 1)})


def table(headers, rows, right=(), note="", width=WIDTH) -> str:
    """Rows of text under headers, columns aligned, cut to `width` characters with a visible "…".

    `right` lists the columns aligned to the right. A column too wide for the line gives way first.
    """
    rows = [[str(cell) for cell in row] for row in rows]
    columns = list(zip(headers, *rows, strict=True)) if rows else [(header,) for header in headers]
    sizes = [max(map(len, column)) for column in columns]
    while sum(sizes) + 2 * (len(sizes) - 1) > width and max(sizes) > 6:
        sizes[sizes.index(max(sizes))] -= 1
    lines = [_line(headers, sizes, right), "  ".join("-" * size for size in sizes)]
    lines += [_line(row, sizes, right) for row in rows]
    if note:
        lines += ["", note]
    return "\n".join(lines)


def _line(cells, sizes, right):
    parts = []
    for i, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        text = cell if len(cell) <= size else cell[: size - 1] + "…"
        parts.append(text.rjust(size) if i in right else text.ljust(size))
    return "  ".join(parts).rstrip()


def bytes_text(count) -> str:
    """A number of bytes for people: 512 B, 1.5 kB, 12.3 MB (powers of 1000).

    >>> bytes_text(12_345_678)
    '12.3 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} B"


def parse_bytes(size) -> int:
    """A number of bytes, from an int or from text: KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024.

    Capitals do not matter, and a fraction is rounded to whole bytes. ArgumentError for anything else, and for
    less than nothing.

    >>> parse_bytes("64 MB"), parse_bytes("1.5KiB"), parse_bytes(4096)
    (64000000, 1536, 4096)
    """
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", size.strip().lower(), re.ASCII)
        if match and match[2] in UNITS:
            return round(float(match[1]) * UNITS[match[2]])
    elif not isinstance(size, bool) and hasattr(size, "__index__") and operator.index(size) >= 0:
        return operator.index(size)
    raise ArgumentError(f'a number of bytes is an int from 0 on, or text such as "64MB" or "1.5 GiB", not {size!r:.60}')


# ---- Nodes in tables ---------------------------------------------------------------------------------


def tape_table(nodes) -> str:
    """The lines of a tape as a table."""
    rows = [
        (
            f"#{node.number}",
            describe(node),
            " ".join(f"#{n.number}" if n.dtype is not None else repr(n.out) for n in node.inputs),
            shape_text(node),
            held_text(node),
            node.layer,
            node.line,
        )
        for node in nodes
    ]
    note = "holds: bytes that the tape keeps of this value for backward; '-' when it keeps none."
    return table(("node", "op", "reads", "value", "holds", "layer", "line"), rows, right=(4,), note=note)


def describe(node) -> str:
    """What a table calls a node: its op with its settings, or a leaf's name."""
    if node.op is None:
        return node.name or node.role
    settings = ", ".join(f"{key}={short(value)}" for key, value in node.attrs.items())
    label = f" {node.name}" if node.name else ""
    return f"{node.op.name}{label}({settings})" if settings else node.op.name + label


def short(value) -> str:
    text = repr(value)
    return text if len(text) <= 16 else text[:13] + "..."


def shape_text(node) -> str:
    return f"{node.dtype}{list(node.shape)}" if node.dtype is not None else "number"


def held_text(node) -> str:
    return f"{node.out.nbytes:,}" if hasattr(node.out, "nbytes") else "-"
