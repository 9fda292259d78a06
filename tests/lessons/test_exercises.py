"""The checks of the exercises: right answers pass, blanks and plausible wrong answers fail and are told why."""

import ast
import inspect
import pathlib
import types

import pytest

from minigrad.commands import exercises
from minigrad.commands import lessons as course

pytestmark = pytest.mark.lesson
WRONG = pathlib.Path(__file__).resolve().parent / "wrong"
NUMBERS = [file.stem.removeprefix("check_") for file in sorted((course.FOLDER / "checks").glob("check_*.py"))]
WRONG_FILES = sorted(WRONG.glob("ex*.py"))

each_lesson = pytest.mark.parametrize("number", NUMBERS)


def file_of(number, kind):
    return exercises.file_of(number, kind, course.FOLDER)


def checks_of(number):
    return exercises.checks_of(file_of(number, "checks"))


def solution_of(number):
    return exercises.load(file_of(number, "solutions"))


def put_over(solution, wrong):
    """The solution as a module in which the functions of `wrong` stand in the place of its own."""
    answers = types.ModuleType(wrong.__name__)
    vars(answers).update({**vars(solution), **exercises.functions_of(wrong), "__file__": wrong.__file__})
    return answers


def test_every_lesson_has_exercises_with_solutions_and_checks():
    lessons = [path.name[:2] for path in sorted(course.FOLDER.glob("[0-9][0-9]_*.py"))]
    assert NUMBERS == lessons
    for number in NUMBERS:
        assert file_of(number, "exercises").name == file_of(number, "solutions").name
    for kind in ("exercises", "solutions"):
        assert len(list((course.FOLDER / kind).glob("*.py"))) == len(NUMBERS)


@each_lesson
def test_the_checks_pass_on_the_solutions(number):
    solution = solution_of(number)
    for name, check in checks_of(number).items():
        assert exercises.shortcoming(name, check, solution) == "", name


@each_lesson
def test_the_blanks_say_that_it_is_the_readers_turn(number):
    blanks = exercises.load(file_of(number, "exercises"))
    checks = checks_of(number)
    for name, function in exercises.functions_of(blanks).items():
        if name in checks:
            assert exercises.shortcoming(name, checks[name], blanks).startswith("your turn")
            assert function.__doc__, f"{name} does not say what to do"


@each_lesson
def test_the_solutions_answer_what_the_exercises_ask(number):
    """The same functions with the same parameters, two or three of them, each with a check."""
    asked = exercises.functions_of(exercises.load(file_of(number, "exercises")))
    solved = exercises.functions_of(solution_of(number))
    for name in checks_of(number):
        assert inspect.signature(asked[name]) == inspect.signature(solved[name])
    assert 2 <= len(checks_of(number)) <= 4


@each_lesson
def test_every_assert_of_a_check_has_a_message(number):
    tree = ast.parse(file_of(number, "checks").read_text("utf-8"))
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert asserts and [node.lineno for node in asserts if node.msg is None] == []


@each_lesson
def test_every_check_is_tried_on_a_wrong_answer(number):
    tried = {name for file in WRONG.glob(f"ex{number}_*.py") for name in exercises.functions_of(exercises.load(file))}
    assert set(checks_of(number)) <= tried


@pytest.mark.parametrize("file", WRONG_FILES, ids=[file.stem for file in WRONG_FILES])
def test_a_wrong_answer_fails_and_is_told_why(file):
    number = file.name[2:4]
    wrong, checks = exercises.load(file), checks_of(number)
    assert file.read_text("utf-8").startswith("# "), "the first line says the misconception, as a comment"
    answers = put_over(solution_of(number), wrong)
    functions = set(exercises.functions_of(wrong)) & set(checks)
    assert functions, "none of its functions is an exercise"
    for name in functions:
        with pytest.raises((AssertionError, NotImplementedError)) as caught:
            checks[name](answers)
        assert len(str(caught.value)) > 20
