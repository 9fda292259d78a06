"""The doors: every import that waits until somebody asks.

Pictures stand above the rooms that can be asked for one; a door leads up there without a circle, and `import minigrad`
does not wait for what few programs need.
"""

from importlib import import_module

DOORS = {
    "view.curves": "Tracer.plot",
    "view.player": "Tracer.to_html",
    "view.spacetime": "Tracer.spacetime, Plan.draw",
    "view.diagram": "mg.draw, which needs graphviz",
}  # module -> who asks for it


def door(name):
    """The module `minigrad.NAME`, imported when somebody asks for what is in it."""
    if name not in DOORS:
        raise ImportError(f"there is no door to {name!r}; doors.py lists them")
    return import_module(f"minigrad.{name}")
