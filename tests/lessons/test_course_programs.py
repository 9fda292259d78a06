"""The programs around the lessons, on a course of two small lessons: list, open, run, check, draw; and the fixture."""

import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.commands import exercises, pictures
from minigrad.commands import lessons as course
from minigrad.ops import defaults

SOURCE = course.FOLDER
ROOT = SOURCE.parent
FIRST = (
    course.HEADER
    + '''# # 01 A sum
#
# **A sum has the gradient one,
# everywhere.**
#
# Needs: nothing. Minutes: 5.

# %% [markdown]
# ![A straight line
# that climbs](pictures/01-line.svg)

# %%
import _pictures as pictures
import minigrad as mg

mg.manual_seed(7)
x = mg.rand(3, requires_grad=True)
x.sum().backward()
print("gradient:", x.grad.tolist())
print("time: 0.1 s")
pictures.path("01-line.svg").write_text("<svg/>")
'''
)
SECOND = (
    course.HEADER
    + """# # 02 A product
#
# **A product has the gradient of the other factor.**
#
# Needs: 01. Minutes: 10.

# %%
raise SystemExit("stopped on purpose")
"""
)
UNTIDY = """
import _pictures
import os, sys, warnings
import numpy as np
import minigrad as mg
from minigrad.ops import defaults

mg.manual_seed(99)
defaults.set_default_dtype("float64")
mg.no_grad().__enter__()
mg.Tracer().__enter__()
np.random.seed(1)
np.set_printoptions(precision=1)
os.chdir("/")
os.environ.update(SETTING="changed", OTHER="new")
sys.path.insert(0, "elsewhere")
warnings.warn("careful", UserWarning)
warnings.warn("old", DeprecationWarning)
"""
EXERCISE = '''
def double(x):
    """Twice x."""
    raise NotImplementedError("your turn: twice x")


def half(x):
    """Half of x."""
    return 1 / (x - x)


def same(x):
    return x
'''
CHECK = """
def check_double(answers):
    assert answers.double(2) == 4, "twice 2 is 4"


def check_half(answers):
    assert answers.half(4) == 2, "half of 4 is 2"


def check_same(answers):
    assert answers.same(3) == 3, "3 is 3"


def check_triple(answers):
    assert answers.triple(1) == 3, "three times 1 is 3"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder lessons/ with two lessons and the exercises of the first."""
    folder = tmp_path / "lessons"
    for name, text in {
        "01_sum.py": FIRST,
        "02_product.py": SECOND,
        "exercises/ex01_sum.py": EXERCISE,
        "solutions/ex01_sum.py": EXERCISE,
        "checks/check_01.py": CHECK,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    shutil.copy(SOURCE / "_pictures.py", folder)
    monkeypatch.setattr(course, "FOLDER", folder)
    monkeypatch.delenv("MINIGRAD_PICTURES", raising=False)
    return folder


def pytest_in(folder, *arguments):
    """(what `python -m pytest` prints, its exit status) in a small repository with this course and our settings."""
    shutil.copy(ROOT / "setup.cfg", folder.parent)
    shutil.copy(SOURCE / "checks" / "conftest.py", folder / "checks")
    (folder.parent / "tests").mkdir()
    (folder.parent / "README.md").write_text("")
    (folder.parent / "tests" / "test_nothing.py").write_text("def test_nothing(): pass\n")
    settings = ["-p", "no:cacheprovider", "-o", "testpaths=tests README.md lessons/checks"]
    command = [sys.executable, "-m", "pytest", *settings, *arguments]
    child = subprocess.run(command, cwd=folder.parent, capture_output=True, encoding="utf-8")
    return child.stdout + child.stderr, child.returncode


# ---- Reading and showing -----------------------------------------------------------------------------


def test_a_lesson_says_everything_about_itself(folder):
    first, second = course.course(folder)
    assert first == ("01", folder / "01_sum.py", "A sum", "A sum has the gradient one, everywhere.", (), 5,
                     ("A straight line that climbs", "pictures/01-line.svg"))  # fmt: skip
    assert second.needs == ("01",) and second.minutes == 10 and second.picture is None


@pytest.mark.parametrize(
    "old, new",
    [
        ("# # 01", "# # 02"),
        ("**A sum", "A sum"),
        ("# Needs: nothing. Minutes: 5.\n", ""),
        ("Minutes: 5", "Minutes: five"),
        ("# # 01 A sum\n#\n", "# # 01 A sum\n"),
        ("format_name: percent", "format_name: light"),
    ],
)
def test_a_first_cell_that_leaves_something_out_is_refused(folder, capsys, old, new):
    path = folder / "01_sum.py"
    path.write_text(FIRST.replace(old, new), "utf-8")
    with pytest.raises(course.CourseError, match="01_sum.py does not begin as a lesson does"):
        course.read(path)
    assert course.main([]) == 2 and "01_sum.py" in capsys.readouterr().err


def test_the_list_has_every_lesson_with_its_thesis(folder, capsys):
    assert course.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("01  A sum  ") and lines[0].endswith("5 min")
    assert lines[1] == "    A sum has the gradient one, everywhere."
    assert lines[3].startswith("02  A product  ") and lines[3].endswith("10 min, after 01")
    assert max(map(len, lines)) <= course.WIDTH


def test_the_page_links_lessons_prerequisites_exercises_and_pictures(folder, capsys):
    assert course.main(["--markdown"]) == 0
    page = capsys.readouterr().out
    assert "| [01 A sum](01_sum.py) | - | 5 | [ex01_sum.py](exercises/ex01_sum.py) |" in page
    assert "| [02 A product](02_product.py) | [01](01_sum.py) | 10 | - |" in page
    assert "![A straight line that climbs](pictures/01-line.svg)" in page
    assert "2 lessons, which take 0 h 15 min together." in page
    assert course.main(["--lines"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "- [02 A product](lessons/02_product.py): A product has the gradient of the other factor."
    )


def test_where_there_are_no_lessons_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(course, "FOLDER", tmp_path)
    for arguments in ([], ["07"], ["--run", "all"], ["--check", "07"]):
        assert course.main(arguments) == 2
        assert f"there are no lessons at {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["", "3", "one", "001"])
def test_a_lesson_that_is_not_there_is_not_run(folder, capsys, number):
    (folder / "00_start.py").write_text(FIRST.replace("# # 01", "# # 00"), "utf-8")
    assert course.main(["--run", number]) == 2
    assert "say which one by its number: 00, 01, 02" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["1", "01"])
def test_a_lesson_is_shown_by_its_beginning(folder, monkeypatch, capsys, number):
    monkeypatch.setenv("EDITOR", "false")
    assert course.main([number]) == 0
    path, _, title, *_ = capsys.readouterr().out.splitlines()
    assert path == str(folder / "01_sum.py") and title == "# 01 A sum"


def test_at_a_terminal_a_lesson_opens_in_the_editor(folder, monkeypatch, capsys):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f'"{sys.executable}" -c "import sys; open(sys.argv[1], \'a\').write(\'# seen\')"')
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert course.main(["1"]) == 0
    assert (folder / "01_sum.py").read_text("utf-8").endswith("# seen")
    assert capsys.readouterr().out == f"{folder / '01_sum.py'}\n"


# ---- Running -----------------------------------------------------------------------------------------


def test_a_lesson_runs_as_a_program(folder, capfd):
    assert course.main(["--run", "1"]) == 0
    assert capfd.readouterr().out == "gradient: [1.0, 1.0, 1.0]\ntime: 0.1 s\n"
    assert (folder.parent / "out" / "lessons" / "01-line.svg").read_text() == "<svg/>"
    assert course.main(["--run", "2"]) == 1


def test_all_lessons_run_one_after_another_and_one_that_fails_is_shown(folder, capsys):
    assert course.main(["--run", "all"]) == 1
    first, second, said, *_, total, failed = capsys.readouterr().out.splitlines()
    assert first.startswith("01_sum.py ") and first.endswith(" s")
    assert second.startswith("02_product.py ") and second.endswith(" s  FAILED")
    assert said == "stopped on purpose" and total.startswith("all 2 ") and failed == "1 failed: 02_product.py"
    (folder / "02_product.py").unlink()
    assert course.main(["--run", "all"]) == 0
    assert "gradient" not in capsys.readouterr().out


def test_pictures_are_drawn_by_the_demo_and_by_every_lesson(folder, tmp_path, monkeypatch, capsys):
    commands = pictures.programs(tmp_path)
    assert list(commands) == ["the demo", "networks", "space-time", "curves", "01_sum.py", "02_product.py"]
    assert commands["the demo"][2:4] == ["minigrad", "demo"] and str(tmp_path) in commands["the demo"]
    monkeypatch.setattr(pictures, "programs", lambda folder: {name: commands[name] for name in list(commands)[-2:]})
    assert pictures.main(["--out", str(tmp_path / "drawn")]) == 1
    said = capsys.readouterr()
    assert (tmp_path / "drawn" / "01-line.svg").exists() and said.err == "stopped on purpose\n\n"
    assert said.out.endswith(f"1 pictures in {tmp_path / 'drawn'}; failed: 02_product.py\n")


# ---- Exercises ---------------------------------------------------------------------------------------


def test_a_check_says_what_is_not_right_and_where(folder, capsys):
    assert course.main(["--check", "1"]) == 1
    file, _, *lines = capsys.readouterr().out.splitlines()
    assert file == str(folder / "exercises" / "ex01_sum.py")
    assert lines == [
        "  double: not yet",
        "      your turn: twice x",
        "",
        "  half: not yet",
        "      ZeroDivisionError: division by zero",
        "      in half, line 9: return 1 / (x - x)",
        "",
        "  same: right",
        "  triple: not yet",
        "      the function triple is missing: it has to keep its name",
        "",
    ]


def test_all_right_is_said_and_leads_to_the_solution(folder, capsys):
    (folder / "checks" / "check_01.py").write_text(CHECK.partition("def check_half")[0])
    (folder / "exercises" / "ex01_sum.py").write_text("def double(x):\n    return 2 * x\n")
    assert course.main(["--check", "01"]) == 0
    said = capsys.readouterr().out
    assert "double: right" in said and str(folder / "solutions" / "ex01_sum.py") in said


def test_a_lesson_without_exercises_has_nothing_to_check(folder, capsys):
    assert course.main(["--check", "02"]) == 0
    assert capsys.readouterr().out == "lesson 02 has no exercises\n"


def test_a_file_that_cannot_be_imported_is_told_in_a_few_words(folder):
    (folder / "exercises" / "ex01_sum.py").write_text("def double(x):\n    return 2 *\n")
    words = exercises.look_at("double", "01", folder)
    assert words.startswith("ex01_sum.py cannot be imported:") and "line 2" in words and "invalid syntax" in words
    (folder / "exercises" / "ex01_sum.py").write_text("import numpy\nnumpy.nothing\n")
    assert exercises.look_at("double", "01", folder).endswith("in <module>, line 2: numpy.nothing")


def test_an_error_of_the_engine_is_told_with_the_readers_own_line(folder):
    file = folder / "exercises" / "ex01_sum.py"
    file.write_text("import minigrad as mg\n\ndef double(x):\n    return mg.ones(2) @ mg.ones(3)\n")
    words = exercises.look_at("double", "01", folder)
    assert words.endswith("in double, line 4: return mg.ones(2) @ mg.ones(3)") and "arithmetic.py" not in words
    file.write_text("def twice(x):\n    return x.double\n\n\ndef double(x):\n    return twice(x)\n")
    assert exercises.look_at("double", "01", folder).endswith("in twice, line 2: return x.double")


def test_the_marker_of_a_lessons_exercises_runs_its_checks_and_shows_no_traceback(folder):
    said, status = pytest_in(folder, "-m", "exercise01")
    assert status == 1 and "3 failed, 1 passed" in said
    assert "your turn: twice x" in said and "in half, line 9: return 1 / (x - x)" in said
    assert not [word for word in ("raise", "Traceback", "NotYet", "conftest.py", "exercises.py:") if word in said]
    said, status = pytest_in_again(folder, "-m", "exercise02")
    assert status == 5 and "failed" not in said  # nothing was selected
    said, status = pytest_in_again(folder, "lessons/checks/check_01.py")
    assert status == 1 and "3 failed, 1 passed" in said


def pytest_in_again(folder, *arguments):
    shutil.rmtree(folder.parent / "tests")
    return pytest_in(folder, *arguments)


def test_a_plain_run_of_the_tests_does_not_look_at_the_exercises(folder):
    said, status = pytest_in(folder)
    assert status == 0 and "1 passed" in said and "check_01" not in said


# ---- The fixture -------------------------------------------------------------------------------------


def test_a_run_has_the_lessons_names_its_output_and_its_pictures(folder, run_lesson, tmp_path):
    (tmp_path / "run").mkdir()
    run = run_lesson(folder / "01_sum.py", tmp_path / "run")
    assert run["x"].shape == run.names["x"].shape == (3,)
    assert run.output == "gradient: [1.0, 1.0, 1.0]\ntime: 0.1 s\n"
    assert run.lines() == ["gradient: [1.0, 1.0, 1.0]"] and run.lines("time") == ["time: 0.1 s"]
    assert list(run.files) == ["01-line.svg"] and run.files["01-line.svg"].parent == tmp_path / "run" / "pictures"
    assert run.warnings == [] and run.seconds < 60


def test_after_a_run_everything_is_as_before(folder, run_lesson, tmp_path, monkeypatch):
    monkeypatch.setenv("SETTING", "before")
    path, before = folder / "01_sum.py", (sys.argv, list(sys.path), tmp_path.cwd(), sys.modules["__main__"])
    path.write_text(UNTIDY, "utf-8")
    (tmp_path / "run").mkdir()
    mg.manual_seed(3)
    expected = mg.rand(2).tolist()
    mg.manual_seed(3)
    run = run_lesson(path, tmp_path / "run")
    assert run.warnings == ["UserWarning: careful"]
    assert os.environ["SETTING"] == "before" and "OTHER" not in os.environ and "_pictures" not in sys.modules
    assert mg.rand(2).tolist() == expected
    assert defaults.get_default_dtype() == np.float32 and mg.is_grad_enabled()
    with mg.Tracer() as tracer:
        mg.ones(3) * 2
    assert tracer.live_buffers == 0
    assert np.get_printoptions()["precision"] == 8
    assert (sys.argv, list(sys.path), tmp_path.cwd(), sys.modules["__main__"]) == before
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("still heard", UserWarning, stacklevel=1)
    assert len(caught) == 1


def test_a_lesson_runs_once_in_a_session(folder, lesson):
    """Under a number that no lesson has, since this one stays in the session."""
    (folder / "98_sum.py").write_text(FIRST, "utf-8")
    assert lesson("98") is lesson("98")
    with pytest.raises(course.CourseError, match="no lesson '99'"):
        lesson("99")
