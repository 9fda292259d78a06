"""The character transformer of the lessons: it runs, it learns, and neither chance nor checkpoints change a loss."""

import importlib.util
import itertools
import math
import pathlib
import re

import numpy as np
import pytest

import minigrad as mg

LESSON = pathlib.Path(__file__).parent.parent / "lessons" / "char_transformer.py"
pytestmark = pytest.mark.lesson


@pytest.fixture(scope="module")
def lesson():
    spec = importlib.util.spec_from_file_location("char_transformer", LESSON)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small(lesson, **settings):
    """(model, ids) of a small model for the README."""
    mg.manual_seed(1)
    letters, ids = lesson.read_text()
    return lesson.CharTransformer(len(letters), width=32, heads=2, **settings), ids


def test_the_program_runs_from_start_to_end(lesson, capsys):
    lesson.main(["--steps", "2", "--write", "10"])
    printed = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+)$", printed, re.M)]
    characters = int(re.search(r"(\d+) different ones", printed)[1])
    assert len(losses) == 2 and abs(losses[0] - math.log(characters)) < 0.5
    assert len(printed.partition(f"{losses[-1]:.4f}\n\n")[2]) == 12  # the first, ten more, and print's end of line
    whole, checkpointed = map(float, re.search(r"step: ([\d.]+) MB.* ([\d.]+) MB", printed).groups())
    assert checkpointed < 0.8 * whole


def test_it_learns(lesson):
    model, ids = small(lesson)
    losses = list(lesson.train(model, ids, 60))
    assert np.mean(losses[-5:]) < 3.3 < 4 < np.mean(losses[:3])


def test_a_seed_gives_the_same_losses_and_so_do_checkpoints(lesson):
    runs = []
    for settings in ({}, {}, {"checkpoints": True}):
        model, ids = small(lesson)
        runs.append(list(lesson.train(model, ids, 4, **settings)))
    assert runs[0] == runs[1] == runs[2]


def test_no_place_sees_a_later_one(lesson):
    model, ids = small(lesson)
    changed = ids[:20].copy()
    changed[12:] = 0
    with mg.no_grad():
        a, b = [model(mg.tensor(text[None])).numpy() for text in (ids[:20], changed)]
    assert np.array_equal(a[:, :12], b[:, :12]) and not np.array_equal(a[:, 12], b[:, 12])


def test_targets_are_the_inputs_one_character_later(lesson):
    ids = np.arange(1000)
    for inputs, targets in itertools.islice(lesson.batches(ids, 50), 50):
        assert inputs.shape == (lesson.BATCH, lesson.CONTEXT) and np.array_equal(targets, inputs + 1)
        assert targets.max() < 1000
