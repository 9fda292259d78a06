"""What lesson 13 says of two kinds of checkpoints, against gradients and means that follow from its cases."""

import pathlib

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson

WRONG = ("dropout", "numpy_dice", "flag", "cache", "loop", "scale", "mask", "update", "aside", "only_data")
REFUSED = ("update", "aside")


@pytest.fixture
def run(lesson):
    return lesson("13")


def test_both_are_right_on_a_function_that_does_the_same_each_time(run):
    assert run["results"]["pure"] == {"naive": 0.0, "checkpoint": 0.0}
    assert "pure          naive      gradient off by 0%" in run.lines()


@pytest.mark.parametrize("case", WRONG)
def test_calling_again_is_wrong_and_replaying_is_right_to_the_last_bit_or_refuses(run, case):
    found = run["results"][case]
    assert found["naive"] > 0.1
    if case in REFUSED:
        assert isinstance(found["checkpoint"], str) and "13_what_goes_wrong.py:" in found["checkpoint"]
    else:
        assert found["checkpoint"] == 0.0
    assert any(line.startswith(f"{case:13} naive      gradient off by {found['naive']:.0%}") for line in run.lines())


def test_every_case_is_among_these(run):
    assert set(run["results"]) == {"pure", "batch_norm", *WRONG}


def test_how_wrong_it_is_where_that_can_be_told_beforehand(run):
    results = run["results"]
    assert results["flag"]["naive"] == pytest.approx(0.5)  # half the output, so half the gradient
    assert results["scale"]["naive"] == pytest.approx(1.0)  # twice the output
    right = run["gradient"](run["only_data"], run["plain"]).reshape(4, -1)
    first, w1, w2, w3 = np.square(right).sum(axis=1)
    assert first == 0 and results["only_data"]["naive"] == pytest.approx(np.sqrt((w1 + w3) / (w1 + w2 + w3)))
    assert run.lines("weights that got a gradient:") == ["weights that got a gradient: w3"]


def test_dropout_keeps_no_mask_and_numpys_dice_cost_one(run):
    assert run["kept"] == {"dropout": 3, "numpy_dice": 4}


def test_a_running_mean_moves_twice_if_the_function_is_called_twice(run):
    mean = np.tanh(run["data"].numpy() @ run["start"][0]) @ run["start"][1]
    for name, moved, batches in (("plain", 0.1, 1), ("naive", 0.1 + 0.9 * 0.1, 2), ("checkpoint", 0.1, 1)):
        np.testing.assert_allclose(run["means"][name], moved * mean.mean(axis=0), rtol=1e-9)
        assert run["batches"][name] == batches
    assert run["results"]["batch_norm"] == {"naive": 0.0, "checkpoint": 0.0}
    assert run["mean_off"]["naive"] == pytest.approx(0.9) and run["mean_off"]["checkpoint"] == 0


def test_errors_name_what_was_overwritten_or_smuggled(run):
    update, aside = (run["results"][case]["checkpoint"] for case in REFUSED)
    assert update.startswith("OverwrittenError: parameter w2 was overwritten after the matmul")
    assert aside.startswith("CheckpointError: this tensor (tanh, float64[8, 6]")
    with pytest.raises(mg.OverwrittenError):
        run["gradient"](run["update"], run["plain"])  # without a checkpoint too


def test_one_product_in_a_checkpoint_saves_nothing_and_is_told_so(run):
    assert run["peaks"] == {"plain": 3, "checkpoint": 3}
    assert len(run["saves_nothing"]) == 3 and all("saves nothing" in text for text in run["saves_nothing"])


def test_verify_finds_the_op_that_is_not_pure(run):
    found = run["impure_found"]
    assert found["naive"] == pytest.approx(found["checkpoint"]) and found["checkpoint"] > 0.1
    line = next(i for i, text in enumerate(source(run), 1) if "yield call(lambda t: noise(" in text)
    assert f"the replay of noise at 13_what_goes_wrong.py:{line} gave another value" in run["verify_error"]
    assert run["repaired_found"]["checkpoint"] == 0.0 < run["repaired_found"]["naive"] and run["verified_off"] == 0.0


def source(run):
    return pathlib.Path(run["__file__"]).read_text("utf-8").splitlines()


def test_the_ten_lines_are_ten_or_so(run):
    lines = source(run)
    first, last = lines.index("def call_again(x, fn=None):"), lines.index("def naive(fn, x):")
    assert len([line for line in lines[first - 1 : last] if line]) == 10


def test_the_picture_has_a_bar_for_each_case(run):
    svg = run.files["13-wrong.svg"].read_text("utf-8")
    for name, found in run["off_by"].items():
        assert f">{name}<" in svg and f">{found['naive']:.0%}<" in svg
