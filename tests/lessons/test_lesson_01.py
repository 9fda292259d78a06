"""What lesson 01 says of its tape, against differences, minigrad, and formulas by hand."""

import math
import pathlib

import numpy as np
import pytest

import minigrad as mg
from minigrad.commands.lessons import cells

pytestmark = pytest.mark.lesson

PATH = pathlib.Path(__file__).resolve().parent.parent.parent / "lessons" / "01_tape_in_forty_lines.py"


def test_the_tape_is_no_longer_than_its_title_says():
    (code,) = [body for kind, body in cells(PATH.read_text("utf-8")) if kind == "code" and body.startswith("tape = []")]
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert "mg." not in code and "import" not in code  # nothing but Python


def test_the_gradients_are_those_of_the_formula(lesson):
    run = lesson("01")
    a, b = 1.5, 0.4
    slope = 1 - math.tanh(a * b) ** 2
    by_hand = [slope * b + 2 * a * b, slope * a + a * a]
    assert run["ours"] == pytest.approx(by_hand, rel=1e-14)
    assert run["theirs"] == pytest.approx(by_hand, rel=1e-14)
    assert run["measured"] == pytest.approx(by_hand, rel=1e-8)


def test_every_line_reads_earlier_lines_and_two_are_read_twice(lesson):
    lines = lesson("01").lines("#")[:6]
    assert [line.split()[1] for line in lines] == ["leaf", "leaf", "mul", "tanh", "mul", "add"]
    reads = [[int(word.split()[0]) for word in line.split("#")[2:]] for line in lines]
    assert reads == [[], [], [0, 1], [2], [2, 0], [3, 4]]


def test_without_the_plus_only_shared_values_are_wrong(lesson):
    run = lesson("01")
    assert [line.endswith("WRONG") for line in run.lines("#")[-6:]] == [True, True, True, False, False, False]
    assert run["right_without_sharing"] is True


def test_it_learns_the_exclusive_or(lesson):
    run = lesson("01")
    losses, values = run["losses"], np.array(run["values"]).reshape(4, 4)
    assert losses[0] > 1 and losses[-1] < 1e-3
    assert {(x, y) for x, y, _ in run["POINTS"]} == {(-1, -1), (-1, 1), (1, -1), (1, 1)}
    for x, y, target in run["POINTS"]:
        assert target == (1 if x != y else -1)
        found = sum(np.tanh(w[0] * x + w[1] * y + w[2]) * w[3] for w in values)
        assert found == pytest.approx(target, abs=0.05)


def test_its_network_has_minigrads_gradients(lesson):
    """The lesson's own `network`, on minigrad's tensors."""
    run = lesson("01")
    node, tape = run["Node"], run["tape"]
    tape.clear()
    values = [0.1 * (i % 7) - 0.2 for i in range(16)]
    weights = [node("leaf", value) for value in values]
    gradients = run["backward"](run["squared_error"](weights))
    loss_of, own_tanh = run["squared_error"], run["tanh"]
    tensors = [mg.tensor(value, dtype="float64", requires_grad=True) for value in values]
    loss_of.__globals__["tanh"] = mg.tanh
    try:
        loss_of(tensors).backward()
    finally:
        loss_of.__globals__["tanh"] = own_tanh
    np.testing.assert_allclose([t.grad.item() for t in tensors], [gradients[w.number] for w in weights], rtol=1e-12)


def test_what_is_missing_is_measured(lesson):
    run = lesson("01")
    step = run["lines_per_step"]
    assert run["lengths"] == [2 * step, 3 * step, 4 * step]
    assert (run["visited"], run["useful"]) == (3 + 2 * 100, 3)
    assert run.lines("lines on the tape before") == [f"lines on the tape before backward and after it: {203} {203}"]


def test_the_picture_has_all_lines_and_gradients(lesson):
    run = lesson("01")
    svg = run.files["01-tape.svg"].read_text("utf-8")
    assert all(f'id="node-{number}"' in svg for number in range(6))
    assert f">{run['ours'][0]:.3g}<" in svg and f">{run['ours'][1]:.3g}<" in svg
