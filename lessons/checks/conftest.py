"""`pytest -m exercise07`: looks at the exercises of lesson 07, as `make check N=07` does.

A plain run of the tests collects nothing here, because the blanks in lessons/exercises are wrong until a reader has
filled them in. Each check is a test, and what it says when it fails is the message of its assert, and no traceback.
"""

import pathlib

import pytest

from minigrad.commands import exercises

CHECKS = pathlib.Path(__file__).resolve().parent


class NotYet(Exception):
    """An exercise is not right; the text says what is not."""


class CheckFile(pytest.File):
    """check_07.py: a test for each function that it looks at."""

    def collect(self):
        for name in exercises.checks_of(self.path):
            item = Check.from_parent(self, name=name)
            item.add_marker(f"exercise{item.number}")
            yield item


class Check(pytest.Item):
    """Look at one function of the reader's."""

    @property
    def number(self):
        return self.path.stem.removeprefix("check_")

    def runtest(self):
        words = exercises.look_at(self.name, self.number, CHECKS.parent)
        if words:
            raise NotYet(words)

    def repr_failure(self, error):
        return str(error.value) if isinstance(error.value, NotYet) else super().repr_failure(error)

    def reportinfo(self):
        return self.path, None, f"lesson {self.number}: {self.name}"


def is_asked_for(config) -> bool:
    """Whether the command line says a marker of the exercises, or a path in this folder."""
    if "exercise" in (config.option.markexpr or ""):
        return True
    paths = [pathlib.Path(argument.partition("::")[0]) for argument in config.invocation_params.args]
    return any(path.exists() and path.resolve().is_relative_to(CHECKS) for path in paths)


def pytest_ignore_collect(collection_path, config):
    return None if is_asked_for(config) and collection_path.name != "conftest.py" else True


def pytest_collect_file(file_path, parent):
    if file_path.match("check_*.py"):
        return CheckFile.from_parent(parent, path=file_path)
