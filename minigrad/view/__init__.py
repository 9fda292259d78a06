"""Pictures: graphs (`draw`, `render`) and curves of memory (`plot_run`, `plot_runs`).

`import minigrad` does not import this package, and this package imports graphviz and matplotlib only when a
picture is asked for.
"""

from .curves import plot_run, plot_runs
from .draw import draw
from .render import render

__all__ = ["draw", "render", "plot_run", "plot_runs"]
