"""The layout keeps what it promises: who imports whom, no circles, no import inside a function, how long things are.

`python -m tests.layout` prints what is counted. A figure in LIMITS is what it is today and may fall: a test asks for it
to be lowered then, so that it cannot rise again unseen.
"""

import re

import pytest

from minigrad.doors import DOORS
from tests import layout

README = layout.ROOT / "README.md"
BELOW = {"errors", "table"}  # what every room may import
ARROWS = {
    "errors": set(),
    "table": set(),
    "doors": set(),
    "data": set(),
    "engine": set(),
    "schedules": {"doors"},
    "ops": {"engine"},
    "optim": {"engine"},
    "retention": {"engine", "ops", "schedules"},
    "trace": {"engine", "retention", "doors"},
    "budget": {"engine", "ops", "retention", "trace"},
    "chain": {"engine", "schedules", "retention", "trace"},
    "nn": {"engine", "ops", "schedules", "chain"},
    "__init__": {"engine", "ops", "schedules", "retention", "trace", "chain"},
    "view": {"__init__", "engine", "ops", "nn", "schedules", "retention", "trace", "budget", "chain", "doors"},
    "commands": {"__init__", "data", "engine", "ops", "nn", "optim", "schedules", "trace", "view"},
    "__main__": set(),
}  # room -> the rooms that it may import
FURTHER = set()  # (room, room) beyond these: none may stay here that is no longer there
WITHIN_FUNCTIONS = {
    ("engine.device", "cupy"): "CuPy is not installed everywhere",
    ("view.draw", "graphviz"): "graphviz is imported when somebody draws",
    ("view.canvas", "matplotlib"): "matplotlib is imported when somebody draws",
    ("view.tradeoff", "matplotlib"): "matplotlib is imported when somebody draws",
    ("view.stepper", "readline"): "there is none on Windows",
    ("commands.demo", "tqdm"): "tqdm comes with the demo alone",
    ("minigrad", "importlib"): "`mg.importlib` would be a public name",
}
LIMITS = {"lines of engine/": 2240, "lines of a function": 56, "branches of a function": 34}


def imports():
    return [(one.source.removeprefix("minigrad."), one.target, one.function) for one in layout.imports()]


def is_allowed(source, room):
    return room in BELOW or room in ARROWS[source]


def test_every_room_has_a_line_in_the_table():
    assert {layout.room_of(module) for module in layout.files_of()} == set(ARROWS)


def test_a_room_imports_only_what_stands_below_it():
    found = {arrow for arrow in layout.arrows() if not is_allowed(*arrow)}
    assert found - FURTHER == set()
    assert FURTHER - found == set(), "gone: take it out of FURTHER"


def test_an_arrow_that_is_allowed_is_there():
    allowed = {(source, room) for source, rooms in ARROWS.items() for room in rooms}
    assert allowed - set(layout.arrows()) == set(), "gone: take it out of ARROWS"


def test_no_file_leads_to_itself():
    assert layout.circles() == []


def test_an_import_within_a_function_is_of_a_package_that_may_be_missing():
    within = {(source, target.partition(".")[0]) for source, target, function in imports() if function}
    assert within == set(WITHIN_FUNCTIONS)


def test_a_door_is_opened_by_somebody_and_leads_to_a_module():
    modules = layout.files_of()
    opened = {
        name
        for path in modules.values()
        for name in re.findall(r'\bdoor\("([\w.]+)"\)', path.read_text("utf-8"))
    }  # fmt: skip
    assert opened == set(DOORS)
    assert {f"minigrad.{name}" for name in DOORS} <= set(modules)


def figures():
    functions = layout.functions("engine")
    return {
        "lines of engine/": layout.lines_by_package()["engine"],
        "lines of a function": max(one.lines for one in functions),
        "branches of a function": max(one.branches for one in functions),
    }


@pytest.mark.parametrize("what", LIMITS)
def test_the_engine_grows_no_more(what):
    found = figures()[what]
    assert found <= LIMITS[what], "python -m tests.layout shows which"
    assert found > 0.7 * LIMITS[what], f"{found} now: lower the limit"


def test_the_readme_says_how_long_the_engine_and_all_of_it_are():
    """To three in a hundred, so that not every line that is written changes the README."""
    said = re.search(r"([\d,]+) lines of code, ([\d,]+) of them in\s+`minigrad/engine/`", README.read_text("utf-8"))
    everything, engine = (int(number.replace(",", "")) for number in said.groups())
    packages = layout.lines_by_package()
    assert everything == pytest.approx(sum(packages.values()), rel=0.03)
    assert engine == pytest.approx(packages["engine"], rel=0.03)


# ---- What counts it ----------------------------------------------------------------------------------


def test_it_counts_no_comments_and_no_docstrings():
    text = '"""What."""\n\nX = """not a\ndocstring"""  # why\n\n\nclass A:\n    """What."""\n    # why\n'
    text += "    x = [\n        1]\n"
    assert sorted(layout.code_lines(text)) == [3, 4, 7, 10, 11]


def a_package(folder, monkeypatch, **files):
    """A package `minigrad` of these files in `folder`, to be counted."""
    for name, text in files.items():
        path = folder / "minigrad" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(layout, "ROOT", folder)


def test_it_finds_circles_arrows_and_imports_within_functions(tmp_path, monkeypatch):
    a_package(
        tmp_path, monkeypatch,
        a__one="from ..b import two\nimport json\n", b__two="def f():\n    from minigrad.a.one import x\n",
        b__three="from . import two\nfrom ..table import table\n", table="", **{"b____init__": ""},
    )  # fmt: skip
    assert layout.circles() == [["minigrad.a.one", "minigrad.b.two"]]
    assert layout.arrows() == {("a", "b"): 1, ("b", "a"): 1, ("b", "table"): 1}
    assert [one for one in layout.imports() if one.function] == [("minigrad.b.two", "minigrad.a.one", "f")]


def test_it_counts_the_lines_and_the_branches_of_a_function():
    text = 'def f(x):\n    """What."""\n    if x and x > 1 or x < 0:\n'
    text += "        return [y for y in x if y]\n    return 1\n"
    (function,) = layout.functions_in(text)
    assert (function.lines, function.branches) == (4, 4)


def test_the_program_prints_the_counts(capsys):
    layout.main()
    said = capsys.readouterr().out
    assert re.search(rf"engine +{layout.lines_by_package()['engine']}\n", said) and "circles: none" in said
