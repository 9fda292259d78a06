"""What the tests of the lessons share: each lesson runs once, and its tests look at what it left behind."""

import contextlib
import io
import os
import pathlib
import runpy
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from minigrad.commands import lessons as course
from minigrad.engine.modes import Context, local
from minigrad.ops import defaults
from minigrad.ops import keys as random

OLD = (DeprecationWarning, PendingDeprecationWarning)  # of packages about themselves; the others are ours


@dataclass
class Run:
    """What a lesson left behind.

    names     its global names
    output    all that it printed
    files     name of a picture -> its path, of all that it wrote into the folder of the pictures
    warnings  those that it did not catch, as text
    seconds   how long it took
    """

    names: dict
    output: str
    files: dict
    warnings: list
    seconds: float

    def __getitem__(self, name):
        return self.names[name]

    def lines(self, prefix=None) -> list:
        """The printed lines that begin with `prefix`; without one, all but those that tell times."""
        if prefix is None:
            return [line for line in self.output.splitlines() if not line.startswith("time:")]
        return [line for line in self.output.splitlines() if line.startswith(prefix)]


@contextlib.contextmanager
def everything_as_before(scripts):
    """Restore what a lesson may change for good: seed, default dtype, modes of the thread, paths, NumPy's settings.

    What it imports from the folder of its script is forgotten too.
    """
    seed = random._seed, random._count
    dtype, numbers, printing = defaults.get_default_dtype(), np.random.get_state(), np.get_printoptions()
    context, folder, environment = local.context, os.getcwd(), dict(os.environ)
    path, arguments, modules = list(sys.path), sys.argv, set(sys.modules)
    local.context = Context()
    try:
        yield
    finally:
        random._seed, random._count = seed
        defaults.set_default_dtype(dtype)
        np.random.set_state(numbers)
        np.set_printoptions(**printing)
        local.context, sys.path[:], sys.argv = context, path, arguments
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for name in set(sys.modules) - modules:
            if pathlib.Path(getattr(sys.modules[name], "__file__", None) or "/").parent == scripts:
                del sys.modules[name]


SHORTER = {"15": ("STEPS, FIRST, BATCH, CONTEXT = 150, 15,", "STEPS, FIRST, BATCH, CONTEXT = 50, 15,")}


def shortened(path, folder):
    """A lesson that trains for long, as a program that trains for fewer steps; another lesson as it is."""
    if path.name[:2] not in SHORTER:
        return path
    text, (whole, fewer) = path.read_text("utf-8"), SHORTER[path.name[:2]]
    assert text.count(whole) == 1
    program = folder / path.name
    program.write_text(text.replace(whole, fewer), "utf-8")
    return program


def run_lesson(path, folder, scripts=None) -> Run:
    """Run a lesson as `python lessons/07_….py` does, in `folder`, with its pictures in `folder`/pictures.

    scripts  the folder of the lessons, if that is not where `path` is
    """
    scripts = scripts or path.parent
    pictures, output = folder / "pictures", io.StringIO()
    pictures.mkdir()
    with everything_as_before(scripts), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.chdir(folder)
        os.environ["MINIGRAD_PICTURES"] = str(pictures)
        sys.argv = [str(path)]
        sys.path.insert(0, str(scripts))
        start = time.perf_counter()
        with contextlib.redirect_stdout(output):
            names = runpy.run_path(str(path), run_name="__main__")
        seconds = time.perf_counter() - start
    files = {file.name: file for file in sorted(pictures.iterdir())}
    told = [f"{each.category.__name__}: {each.message}" for each in caught if not issubclass(each.category, OLD)]
    return Run(names, output.getvalue(), files, told, seconds)


@pytest.fixture(name="run_lesson", scope="session")
def run_lesson_fixture():
    return run_lesson


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    """`lesson("07")`: the Run of that lesson, which happens once in a session. whole=True: with no step left out."""
    runs = {}

    def run(number, whole=False):
        if (number, whole) not in runs:
            path = course.lesson_file(number, course.FOLDER)
            folder = tmp_path_factory.mktemp(path.stem)
            program = path if whole else shortened(path, folder)
            runs[number, whole] = run_lesson(program, folder, path.parent)
        return runs[number, whole]

    return run
