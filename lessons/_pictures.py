"""Where a lesson puts its picture: $MINIGRAD_PICTURES, or out/lessons in the folder above this one."""

import os
import pathlib


def path(name) -> pathlib.Path:
    """The file for the picture `name`, such as "07-sweep.svg"; its folder is made if there is none."""
    default = pathlib.Path(__file__).resolve().parent.parent / "out" / "lessons"
    folder = pathlib.Path(os.environ.get("MINIGRAD_PICTURES") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
