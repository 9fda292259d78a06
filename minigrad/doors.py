"""Doors: modules that another room opens only when somebody asks, such as the pictures of a plan.

An import at the top of a file says what the file is built on. A door says that a method leads to a room which is built
on the method's own file. All of them are in this table, and no file imports a package of minigrad within a function.
"""

from importlib import import_module

DOORS = {
    "curves": "view.curves",
    "player": "view.player",
    "spacetime": "view.spacetime",
    "diagram": "view.diagram",
}


def door(name):
    """The module behind a door, imported when it is first opened.

    >>> door("spacetime").__name__
    'minigrad.view.spacetime'
    """
    return import_module(f"{__package__}.{DOORS[name]}")
