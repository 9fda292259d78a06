"""`python -m minigrad lessons`: the lessons of the course; one to read or to run; checks of your exercises.

Lessons are the scripts `lessons/NN_name.py` beside this package, in percent cells. Nothing about them is written
down a second time: title, thesis, prerequisites and minutes are in a lesson's first cell, and its picture is the
first one that it shows. The index in lessons/README.md is made of these.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
import time
from typing import NamedTuple

from ..errors import MinigradError
from . import exercises

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "lessons"
WIDTH = 100
LAST_LINES = 30  # of what a lesson printed before it failed
HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
"""
FIRST_CELL = re.compile(
    r"# (?P<number>\d\d) (?P<title>[^\n]+)\n\n"
    r"\*\*(?P<thesis>.+?)\*\*\n\n"
    r"Needs: (?P<needs>[^.]+)\. Minutes: (?P<minutes>\d+)\.\n",
    re.DOTALL,
)
PICTURE = re.compile(r"!\[(?P<shows>[^\]]+)\]\((?P<file>pictures/[^)\s]+)\)")


class CourseError(MinigradError):
    """A lesson that is not there, or whose first cell does not say what a lesson's first cell must say."""


class Lesson(NamedTuple):
    """What a lesson says about itself.

    number    two digits, "07"
    path      of the script
    title, thesis  as in its first cell, the thesis without its asterisks and on one line
    needs     numbers of the lessons to read before it
    minutes   that it takes
    picture   (what one sees on it, its file within lessons/) of the first picture that it shows, or None
    """

    number: str
    path: pathlib.Path
    title: str
    thesis: str
    needs: tuple
    minutes: int
    picture: tuple


# ---- Reading -----------------------------------------------------------------------------------------


def cells(text) -> list:
    """The cells of a percent script in order, as (kind, text): "header", "markdown" without its #, or "code".

    >>> cells("# %% [markdown]\\n# # Title\\n#\\n# Words.\\n\\n# %%\\nx = 1\\n")
    [('markdown', '# Title\\n\\nWords.'), ('code', 'x = 1')]
    """
    found, kind, lines = [], "header", []
    for line in [*text.splitlines(), "# %%"]:
        if line.startswith("# %%"):
            body = "\n".join(lines).strip()
            if body:
                found.append((kind, body))
            kind, lines = ("markdown" if "[markdown]" in line else "code"), []
        else:
            lines.append(re.sub(r"^# ?", "", line) if kind == "markdown" else line)
    return found


def read(path) -> Lesson:
    """What the lesson in a file says about itself; CourseError where it does not follow the convention."""
    text = path.read_text("utf-8")
    markdown = [body + "\n" for kind, body in cells(text) if kind == "markdown"]
    found = FIRST_CELL.match(markdown[0]) if markdown and text.startswith(HEADER) else None
    if found is None or not path.name.startswith(found["number"] + "_"):
        raise CourseError(
            f"{path.name} does not begin as a lesson does; write jupytext's header, and a first markdown cell of "
            '"# 07 Title", "**The thesis.**" and "Needs: 05, 06. Minutes: 15."'
        )
    shown = PICTURE.search("\n".join(markdown))
    return Lesson(
        found["number"],
        path,
        found["title"].strip(),
        on_one_line(found["thesis"]),
        tuple(re.findall(r"\d\d", found["needs"])),
        int(found["minutes"]),
        shown and (on_one_line(shown["shows"]), shown["file"]),
    )


def on_one_line(text) -> str:
    return " ".join(text.split())


def lesson_files(folder=FOLDER) -> list:
    """The scripts of the lessons, in order; CourseError if there are none."""
    found = sorted(folder.glob("[0-9][0-9]_*.py"))
    if not found:
        raise CourseError(
            f"there are no lessons at {folder}; an installed minigrad comes without them: "
            "get its repository, and run this in its folder"
        )
    return found


def lesson_file(number, folder=FOLDER) -> pathlib.Path:
    """The script of a lesson by its number, "07" or "7"."""
    files = lesson_files(folder)
    for path in files:
        if number and path.name.startswith(f"{number:0>2}_"):
            return path
    numbers = ", ".join([path.name[:2] for path in files])
    raise CourseError(f"there is no lesson {number!r}; say which one by its number: {numbers}")


def course(folder=FOLDER) -> list:
    """All lessons, in order."""
    return [read(path) for path in lesson_files(folder)]


# ---- Showing -----------------------------------------------------------------------------------------


def as_text(lessons) -> str:
    """The lessons for a terminal: number, title, minutes, what to read before, and the thesis."""
    parts = []
    for lesson in lessons:
        side = f"{lesson.minutes} min" + (f", after {' '.join(lesson.needs)}" if lesson.needs else "")
        head = f"{lesson.number}  {lesson.title}"
        indent = " " * 4
        thesis = textwrap.fill(lesson.thesis, WIDTH, initial_indent=indent, subsequent_indent=indent)
        parts.append(f"{head}{side:>{max(WIDTH - len(head), len(side) + 2)}}\n{thesis}")
    return "\n\n".join(parts)


def as_lines(lessons) -> str:
    """The lessons as a list of Markdown, one line each, for the README above lessons/."""
    return "\n".join([f"- [{each.number} {each.title}](lessons/{each.path.name}): {each.thesis}" for each in lessons])


def as_markdown(lessons, folder=FOLDER) -> str:
    """The page lessons/README.md, without a line break at its end."""
    minutes = sum(lesson.minutes for lesson in lessons)
    parts = [
        "# The lessons",
        "Each lesson is a program in cells. Run it (`make lesson N=07`, or `python lessons/07_….py`), or open it as a "
        "notebook in VS Code or Jupyter (with jupytext). It says what it is about in one sentence, asks you for a "
        "prediction before it measures, breaks something on purpose and repairs it, and ends with exercises. Fill in "
        "the blanks in `lessons/exercises/`, and let `make check N=07` look at them.",
        "Beside the lessons: [the words](glossary.md), [how to debug](debugging.md), [every op](ops.md). This page is "
        "what `python -m minigrad lessons --markdown` prints.",
        f"{len(lessons)} lessons, which take {minutes // 60} h {minutes % 60} min together.",
        "| lesson | read before | minutes | exercises |\n|---|---|---|---|\n"
        + "\n".join([index_line(lesson, lessons, folder) for lesson in lessons]),
    ]
    return "\n\n".join([*parts, *[section(lesson) for lesson in lessons]])


def index_line(lesson, lessons, folder) -> str:
    known = {other.number: other.path.name for other in lessons}
    needs = ", ".join([f"[{number}]({known[number]})" if number in known else number for number in lesson.needs])
    file = exercises.file_of(lesson.number, "exercises", folder)
    exercise = f"[{file.name}](exercises/{file.name})" if file else "-"
    return f"| [{lesson.number} {lesson.title}]({lesson.path.name}) | {needs or '-'} | {lesson.minutes} | {exercise} |"


def section(lesson) -> str:
    """What the page shows of one lesson."""
    picture = "\n\n![{}]({})".format(*lesson.picture) if lesson.picture else ""
    return f"## {lesson.number} {lesson.title}\n\n{lesson.thesis}{picture}"


def open_lesson(path):
    """Say where a lesson is, and open it in $VISUAL or $EDITOR; without these or a terminal, show its start."""
    print(path)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor and sys.stdout.isatty():
        return subprocess.run([*shlex.split(editor), str(path)]).returncode
    beginning = next(body for kind, body in cells(path.read_text("utf-8")) if kind == "markdown")
    print(f"\n{beginning}")
    return 0


# ---- Running -----------------------------------------------------------------------------------------


def run(path) -> int:
    """Run a lesson as a program of its own; returns its exit status."""
    return subprocess.run([sys.executable, str(path)]).returncode


def run_all(paths) -> int:
    """Run lessons one after another, and say how long each took; of one that fails, show the last it printed."""
    failed, begin = [], time.perf_counter()
    for path in paths:
        start = time.perf_counter()
        print(f"{path.name:40}", end="", flush=True)
        child = subprocess.run([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        seconds = time.perf_counter() - start
        print(f"{seconds:6.1f} s{'' if child.returncode == 0 else '  FAILED'}")
        if child.returncode:
            failed.append(path.name)
            print("\n".join(child.stdout.decode("utf-8", "replace").splitlines()[-LAST_LINES:]) + "\n")
    print(f"{'all ' + str(len(paths)):40}{time.perf_counter() - begin:6.1f} s")
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}")
    return 1 if failed else 0


# ---- The program -------------------------------------------------------------------------------------


def main(arguments=None):
    """List the lessons, open, run or check one; returns the exit status."""
    options = parsed(arguments)
    try:
        return do(options, FOLDER)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="python -m minigrad lessons", description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("number", nargs="?", help="open this lesson, such as 07; without anything: list all lessons")
    what.add_argument("--run", metavar="NUMBER", help='run this lesson; "all": one after another, and time them')
    what.add_argument("--check", metavar="NUMBER", help="look at your exercises of this lesson")
    what.add_argument("--markdown", action="store_true", help="the page lessons/README.md")
    what.add_argument("--lines", action="store_true", help="the list in the repository's README.md")
    return parser.parse_args(arguments)


def do(options, folder):
    if options.run == "all":
        return run_all(lesson_files(folder))
    if options.run is not None:
        return run(lesson_file(options.run, folder))
    if options.check is not None:
        return exercises.report(lesson_file(options.check, folder).name[:2], folder)
    if options.number is not None:
        return open_lesson(lesson_file(options.number, folder))
    print(page(options, course(folder), folder))
    return 0


def page(options, lessons, folder) -> str:
    if options.markdown:
        return as_markdown(lessons, folder)
    return as_lines(lessons) if options.lines else as_text(lessons)
