"""`python -m minigrad pictures`: every picture of the README and the lessons, drawn again.

The demo draws two, minigrad.view some networks, curves and space-time pictures, and each lesson
draws its own: it is run with the environment variable MINIGRAD_PICTURES, in which
lessons/_pictures.py finds the folder. Each of them is a program of its own, so none can disturb another.
"""

import argparse
import os
import pathlib
import subprocess
import sys

from . import lessons as course


def programs(folder) -> dict:
    """Name -> the command that draws its pictures into `folder`."""
    demo = [sys.executable, "-m", "minigrad", "demo", "--epochs", "1", "--repeats", "1", "--out", str(folder)]
    gallery = [sys.executable, "-m", "minigrad.view.gallery", str(folder)]
    spacetime = "import sys; from minigrad.view.spacetime import write_pictures; write_pictures(sys.argv[1])"
    curves = "import sys; from minigrad.view.chain_pictures import write; write(sys.argv[1])"
    commands = {"the demo": demo, "networks": gallery}
    commands |= {"space-time": [sys.executable, "-c", spacetime, str(folder)]}
    commands |= {"curves": [sys.executable, "-c", curves, str(folder)]}
    lessons = course.lesson_files(course.FOLDER)
    return commands | {path.name: [sys.executable, str(path)] for path in lessons}


def draw(command, folder) -> int:
    """Run one of these programs; what it printed is shown only if it fails."""
    environment = {**os.environ, "MINIGRAD_PICTURES": str(folder)}
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if child.returncode:
        print(child.stdout.decode("utf-8", "replace"), file=sys.stderr)
    return child.returncode


def main(arguments=None):
    """Draw them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minigrad pictures", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=course.FOLDER / "pictures", help="folder (default: theirs)")
    folder = parser.parse_args(arguments).out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        commands = programs(folder)
    except course.CourseError as error:
        print(error, file=sys.stderr)
        return 2
    failed = []
    for name, command in commands.items():
        print(f"{name} ...", flush=True)
        if draw(command, folder):
            failed.append(name)
    print(f"{len(list(folder.iterdir()))} pictures in {folder}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0
