"""From DOT to a picture.

The program that lays a graph out is `dot`. The system's is used if there is one; otherwise the one that the
package graphviz-pure brings along, a port of Graphviz without dependencies, which writes SVG, PNG and JPEG
but no PDF. It is a program in the environment's folder of scripts, called `graphviz-pure`, not a module.
"""

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path

from ..errors import MinigradError

PNG_DPI, LARGE = 144, 400_000


def picture_of(graph, kind) -> bytes:
    """A graphviz.Digraph as a picture: "svg", "png" and so on. MinigradError if there is no `dot`, or if it fails."""
    program = find_dot()
    source = graph.source.encode("utf-8")
    command = [program, f"-K{graph.engine}", f"-T{kind}", "-q"]
    if kind == "png" and len(source) < LARGE:
        command.append(f"-Gdpi={PNG_DPI}")
    done = subprocess.run(command, input=source, capture_output=True)
    if done.returncode or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip()
        hint = ""
        if "not recognized" in said:
            hint = f". {Path(program).name} has no {kind}; .svg and .png always work"
        raise MinigradError(f"{program} could not draw this as {kind}: {said or f'status {done.returncode}'}{hint}")
    if kind == "svg":  # a viewer may make it smaller than its size in points, to fit
        return done.stdout.replace(b"<svg ", b'<svg style="max-width:100%;height:auto" ', 1)
    return done.stdout


def find_dot():
    """The path of the system's `dot`, or of graphviz-pure's."""
    found = shutil.which("dot") or embedded_dot() or shutil.which("graphviz-pure")
    if found is None:
        raise MinigradError(
            "making a picture file needs the program dot, and there is none here. Install Graphviz with the "
            'system\'s package manager, or pip install "minigrad[pictures]", which brings one along. Without '
            "it, mg.draw(tensor).source is the graph as DOT text, and mg.render(tensor, 'g.dot') saves that"
        )
    return found


def embedded_dot():
    """The program that graphviz-pure has installed, wherever pip put it; None if it is not installed."""
    try:
        files = importlib.metadata.files("graphviz-pure") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        program = file.locate()
        if file.stem == "graphviz-pure" and os.access(program, os.X_OK):
            return str(Path(program).resolve())
    return None
