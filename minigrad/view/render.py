"""render: a graph as a picture file."""

from pathlib import Path

from ..errors import ArgumentError
from .dot import picture_of
from .draw import draw, import_graphviz

TEXT_SUFFIXES = (".dot", ".gv")


def render(tensor, path, **how):
    """Draw `tensor` into the file `path`; returns the path. The suffix says which format.

    tensor  what `mg.draw` takes, or a graphviz.Digraph that it gave
    path    .svg, .png and .jpg work with any `dot`; .pdf and others if the system's Graphviz has them; .dot
            and .gv need no `dot`, they are the text
    how     the arguments of `mg.draw`

    Raises ArgumentError for a path without a suffix, and MinigradError if there is no `dot`, or if it fails.
    The file appears only when it is complete.

    >>> import minigrad as mg, pathlib, tempfile
    >>> x = mg.tensor([0.5], requires_grad=True, name="x")
    >>> path = mg.render(mg.tanh(x), pathlib.Path(tempfile.mkdtemp()) / "tanh.dot", gradients=True)
    >>> "gradient [1]" in path.read_text("utf-8")
    True
    """
    graph = tensor if isinstance(tensor, import_graphviz().Digraph) else draw(tensor, **how)
    path = Path(path)
    kind = path.suffix.lower()
    if not kind:
        raise ArgumentError(f"the suffix of the path says which format, and {str(path)!r} has none; try .svg")
    if kind in TEXT_SUFFIXES:
        path.write_text(graph.source, encoding="utf-8")
    else:
        path.write_bytes(picture_of(graph, kind[1:]))
    return path
