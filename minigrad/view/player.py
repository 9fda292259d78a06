"""The player: a run as one HTML file, in which one goes through it step by step.

`write` puts together what the run left behind (tracer.py, transcript.py) as boxes (player_graph.py) and frames
(player_film.py), and inlines the page's own three files, which stand beside this one in page/. The file needs no
network, no server and no other file; its policy forbids the browser to fetch anything.

Whatever came from the user's program (names, source lines) reaches the page as JSON and is shown as text, never as
markup.
"""

import ast
import html
import inspect
import json
import linecache
import os
import re
import textwrap
from pathlib import Path

from ..errors import ArgumentError
from ..table import bytes_text
from ..trace.transcript import NONE
from . import player_film, player_graph
from .findings import runs_facts, runs_title
from .palette import HANDS, STATES, role_words, style_sheet

PAGE = Path(__file__).parent / "page"
LONGEST = 60  # lines of source that are shown of one function


def write(path, runs, title=None, most_boxes=player_graph.MOST_BOXES):
    """Write the player of a run, or of several on one time line, to an HTML file; returns the path.

    path        where to write it
    runs        a Tracer, or name -> Tracer: {"store all": a, "every 10": b}
    title       of the page; None: what the runs show, in a sentence
    most_boxes  a run of more values than this is folded: a box is then a layer, or some neighbouring ops

    Raises ArgumentError if a run is no Tracer's, or if nothing ran.

    >>> import minigrad as mg, tempfile, pathlib
    >>> x = mg.tensor([0.5], requires_grad=True)
    >>> with mg.Tracer() as tracer:
    ...     (mg.tanh(x) * x).sum().backward()
    >>> path = write(pathlib.Path(tempfile.mkdtemp()) / "run.html", tracer)
    >>> "tanh_wrt_x" in path.read_text("utf-8")
    True
    """
    path = Path(path)
    path.write_text(page(runs, title, most_boxes), encoding="utf-8", errors="xmlcharrefreplace")
    return path


def page(runs, title=None, most_boxes=player_graph.MOST_BOXES) -> str:
    """The text of the HTML file that `write` writes."""
    runs = runs if isinstance(runs, dict) else {"": runs}
    if not runs:
        raise ArgumentError("the player needs at least one run: {name: tracer}")
    film = film_of(runs, most_boxes)
    film["title"] = title or title_of(runs)
    film["facts"] = facts_of(runs)
    parts = {
        "title": html.escape(film["title"]),
        "colours": style_sheet(),
        "style": (PAGE / "player.css").read_text("utf-8"),
        "script": (PAGE / "player.js").read_text("utf-8"),
        "film": as_json(film),
    }
    template = (PAGE / "player.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def film_of(runs, most_boxes) -> dict:
    """All that the page is to show, as what JSON can say."""
    graphs = {}
    for name, tracer in runs.items():
        player_film.check(tracer, name)
        graphs[name] = player_graph.Graph(tracer.transcript, player_film.held_data(tracer), most_boxes)
    share_breaks(list(graphs.values()))
    tables = Tables()
    return {
        "runs": [run_data(name, runs[name], graph, tables) for name, graph in graphs.items()],
        "places": tables.places,
        "functions": tables.functions,
        "states": STATES,
        "roles": role_words(),
        "hands": HANDS,
    }


def run_data(name, tracer, graph, tables) -> dict:
    return {
        "name": str(name),
        "graph": player_graph.as_data(graph, tables),
        "frames": player_film.as_data(player_film.film(tracer, graph)),
        "peakActivations": tracer.peak_activations,
        "peakBytes": tracer.peak_bytes,
        "replayedOps": tracer.replayed_ops,
        "steps": tracer.step,
    }


def share_breaks(graphs):
    """Runs of one program have their boxes in the same rows: those of the run that has checkpoints."""
    donors = [graph for graph in graphs if graph.breaks and graph.transcript.checkpoints]
    for graph in graphs:
        for donor in donors:
            if not graph.transcript.checkpoints and graph.columns == donor.columns:
                graph.breaks = graph.captioned([column for column, _ in donor.breaks])


def title_of(runs) -> str:
    """What the runs show, in a sentence."""
    if len(runs) > 1:
        return runs_title({name: tracer.peak_activations for name, tracer in runs.items()}, "activations", str)
    (tracer,) = runs.values()
    many = tracer.peak_activations
    return f"{many} activation{' was' if many == 1 else 's were'} live at once, at the most"


def facts_of(runs) -> str:
    """The line below: what it costs."""
    if len(runs) > 1:
        return runs_facts(runs)
    (tracer,) = runs.values()
    return f"{bytes_text(tracer.peak_bytes)} at the peak; ops replayed: {tracer.replayed_ops}"


def as_json(film) -> str:
    """JSON that can stand inside a script element: no "<" could end it."""
    return json.dumps(film, separators=(",", ":")).replace("<", "\\u003c")


# ---- Source ------------------------------------------------------------------------------------------


class Tables:
    """Texts that many boxes share, each once; a box names them by index.

    places     {"name": "train.py:41", "text": the line}
    functions  {"name", "place": "loss.py:39", "text": the source}
    """

    def __init__(self):
        self.places, self.functions, self._index = [], [], {}

    def place(self, place) -> int:
        """The index of a (file, line number); -1 for None."""
        if place is None:
            return NONE
        if place not in self._index:
            self._index[place] = len(self.places)
            text = linecache.getline(*place).strip()
            self.places.append({"name": place_name(*place), "text": text})
        return self._index[place]

    def function(self, function) -> int:
        """The index of a transcript's Function; -1 for None."""
        if function is None:
            return NONE
        if function not in self._index:
            self._index[function] = len(self.functions)
            name = place_name(function.file, function.line)
            self.functions.append({"name": function.name, "place": name, "text": source_of(function)})
        return self._index[function]


def place_name(file, line) -> str:
    return f"{os.path.basename(file)}:{line}"


def source_of(function) -> str:
    """The source of a function without its docstring; "" if there is none to be had."""
    lines = linecache.getlines(function.file)[function.line - 1 :]
    text = textwrap.dedent("".join(inspect.getblock(lines))) if lines else ""
    kept = without_docstring(text).splitlines()
    return "\n".join(kept if len(kept) <= LONGEST else [*kept[:LONGEST], "…"])


def without_docstring(text) -> str:
    """The source of one function without its docstring; as it is, if it is something else."""
    try:
        (function,) = ast.parse(text).body
        first, *more = function.body
    except (SyntaxError, ValueError, AttributeError, TypeError):
        return text
    if not more or not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(lines[: first.lineno - 1] + lines[first.end_lineno :])
