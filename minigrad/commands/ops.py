"""`python -m minigrad ops`: every op, what its gradients read, and whether they can be differentiated again.

Nothing here is written down by hand. The ops are those of the registry; what a vjp reads is its signature, which is
also what decides what the tape keeps (op.py); what an op does is the first sentence of its docstring.

The signatures tell about second derivatives too. A vjp is linear in the gradient that it is given. If it reads no
buffer that itself depends on an input with a gradient, then the op's gradient is the same wherever the inputs are, and
the second derivative is 0. Otherwise it exists, because vjps are made of ops.
"""

import argparse
import inspect
import sys
import textwrap

from .. import ops
from ..engine.op import Op, registry
from ..table import table

WIDTH = 118
HEADERS = ("op", "inputs", "gradient reads", "again", "what it does")
LEGEND = (
    "gradient reads: for each input that has a gradient, the buffers that this one reads. The tape keeps them if that "
    "input needs a gradient. out is the op's output.",
    'again: the second derivative. "yes": it exists (and may be zero: relu is straight lines). "0": it is zero, '
    'as the gradient reads nothing that depends on an input. "-": there is no gradient.',
)


def families() -> dict:
    """title of a family -> its ops, in the order in which they were declared."""
    found = {}
    for op in registry.values():
        found.setdefault(op.forward.__module__.rpartition(".")[2], []).append(op)
    return found


def row(op) -> tuple:
    """The line of one op."""
    return op.name, " ".join(inputs_of(op)), reads_of(op), again(op), first_sentence(op.forward)


def inputs_of(op) -> list:
    return [f"*{op.parameters[0]}"] if op.variadic else op.parameters[: op.arity]


def buffers_read(op, vjp) -> list:
    """The buffers that a vjp names: `out`, and inputs; not shapes and settings."""
    names = {"out", *op.parameters[: op.arity]}
    return [name for name in list(inspect.signature(vjp).parameters)[1:] if name in names]


def reads_of(op) -> str:
    """`a: b; b: a` and the like; inputs whose gradients read the same stand together."""
    together = {}
    for name, vjp in op.vjps.items():
        together.setdefault(" ".join(buffers_read(op, vjp)) or "nothing", []).append(name)
    return "; ".join([f"{', '.join(names)}: {reads}" for reads, names in together.items()]) or "no gradient"


def again(op) -> str:
    """Whether the second derivative exists: "yes", "0" or "-"."""
    if not op.vjps:
        return "-"
    varying = {"out", *op.vjps}
    return "yes" if any(varying.intersection(buffers_read(op, vjp)) for vjp in op.vjps.values()) else "0"


def composed() -> list:
    """(name, what it does) of the functions that are made of ops, and are none themselves."""
    names = [name for name in ops.__all__ if not isinstance(getattr(ops, name), Op) and name not in registry]
    return [(name, first_sentence(getattr(ops, name))) for name in names]


def first_sentence(function) -> str:
    """The docstring up to the end of its first sentence, on one line."""
    words = " ".join(inspect.getdoc(function).split("\n\n")[0].split())
    return words.partition(". ")[0].removesuffix(".")


def about(module) -> str:
    """The first sentence of a family's docstring."""
    return first_sentence(sys.modules[f"{ops.__name__}.{module}"])


# ---- Printing ----------------------------------------------------------------------------------------


def as_text() -> str:
    parts = []
    for module, members in families().items():
        parts.append(f"{module}: {about(module)}\n\n" + table(HEADERS, map(row, members), width=WIDTH))
    parts.append("made of these:\n\n" + table(("function", "what it does"), composed(), width=WIDTH))
    return "\n\n".join([*parts, *[textwrap.fill(text, WIDTH) for text in LEGEND]])


def as_markdown() -> str:
    parts = [
        "# The ops",
        f"{len(registry)} ops, by family, and the functions that are made of them. This page is what "
        "`python -m minigrad ops --markdown` prints.",
        *LEGEND,
    ]
    for module, members in families().items():
        parts += [f"## {module}", f"{about(module)}. Source: [{module}.py](../minigrad/ops/{module}.py)"]
        parts.append(markdown_table(HEADERS, map(row, members)))
    parts += ["## Made of these", markdown_table(("function", "what it does"), composed())]
    return "\n\n".join(parts)


def markdown_table(headers, rows) -> str:
    lines = [headers, ["---"] * len(headers), *[[f"`{name}`", *map(escaped, rest)] for name, *rest in rows]]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in lines])


def escaped(text) -> str:
    """Text that Markdown shows as it is. Between backticks, a backslash would show; only a | needs one there too."""
    parts = text.split("`")
    for i, part in enumerate(parts):
        for sign in "|" if i % 2 else "\\*_|<>[":
            part = part.replace(sign, "\\" + sign)
        parts[i] = part
    return "`".join(parts)


def main(arguments=None):
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minigrad ops", description=__doc__.split("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="as a page of Markdown: lessons/ops.md")
    options = parser.parse_args(arguments)
    print(as_markdown() if options.markdown else as_text())
    return 0
