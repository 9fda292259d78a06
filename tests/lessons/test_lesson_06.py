"""What lesson 06 says about checkpoints, against plans and against a count by hand."""

import re

import numpy as np
import pytest

from minigrad import schedules

pytestmark = pytest.mark.lesson

SEGMENTS = [list(range(first, first + 10)) for first in range(0, 100, 10)]


@pytest.fixture
def run(lesson):
    return lesson("06")


def test_a_checkpoint_of_ten_layers_keeps_one_buffer_where_the_tape_keeps_ten(run):
    assert run["one_stretch"] == (10, 1)
    assert len(run["body"].lines) == 10 and all(line.out is None for line in run["body"].lines)
    assert "the same values: True" in run.lines()


def test_a_hundred_become_nineteen_ten_boundaries_and_nine_inside(run):
    assert run["kept_storing_all"] == 100
    rows = run["kept_checkpointed"].rows
    assert len(rows) == 19
    assert [row.node.layer for row in rows] == [""] * 10 + [str(layer) for layer in range(90, 99)]
    readers = [row.readers[0] for row in rows]
    assert [reader.op.name for reader in readers] == ["checkpoint"] * 9 + ["matmul"] * 10
    plan = schedules.every(10).plan(100)
    assert (run["peak"], run["replayed"]) == (plan.peak, plan.extra_forwards) == (19, 81)


def test_each_replay_runs_its_segment_but_for_the_last_layer_and_the_last_segment_is_not_replayed(run):
    assert run["replays"] == [segment[:-1] for segment in SEGMENTS[8::-1]]


def test_layer_15_comes_from_checkpoint_10_and_layer_55_from_checkpoint_50(run):
    assert run["came_from"] == {15: 10, 55: 50}
    told = run.lines("the input of layer")
    assert told[0].endswith("came from checkpoint 10, by way of layers 10 to 14")
    assert told[1].endswith("came from checkpoint 50, by way of layers 50 to 54")


def test_fewer_activations_are_live_after_each_replay(run):
    live = [int(re.search(r"(\d+) activations", line)[1]) for line in run.lines("replay from checkpoint")]
    assert live == [boundaries + 9 for boundaries in range(9, 0, -1)]


def test_the_stepper_shows_the_replay_and_both_layers(run):
    lines = run.lines()
    assert "(step) until 60" in lines and "(step) quit" in lines
    stops = [line for line in lines if re.match(r" +\d+  (start|matmul|replay)", line)]
    words = ("start at sum", "  in 60 ", "replay of checkpoint", "  in 55 ", "  in 15 ")
    assert len(stops) == len(words) and all(word in stop for word, stop in zip(words, stops, strict=True))
    live = [int(re.search(r"live (\d+) ", line)[1]) for line in stops]
    assert live == [10 + 9, 7, 6 + 9, 6 + 5, 2 + 5]  # boundaries, and what is live inside a segment
    assert any(re.search(r"9 ops ran again; fresh on the tape: 10 matmul", line) for line in lines)
    assert any("no .grad has been touched" in line for line in lines)


def test_the_last_layers_of_segments_and_the_last_segment_run_once(run):
    assert run["only_once"] == [segment[-1] for segment in SEGMENTS[:9]] + SEGMENTS[9]
    assert set(run["times_again"].values()) == {1}


def test_prints_do_not_repeat_dropout_is_the_same_and_the_bits_are_too(run):
    assert len(run["calls"]) == 4 and len(run.lines("  noisy_block runs")) == 4
    assert run["noisy_replayed"] > 0
    assert run["same_bits"] is True
    dropped = run["plain_gradients"][0]
    assert np.abs(dropped).sum() > 0


def test_a_checkpoint_around_one_op_saves_nothing_and_says_so(run):
    assert run["peak_of_single_ops"] == 100
    assert len(run["caught"]) == 100
    assert "saves nothing" in str(run["caught"][0].message)
    assert any(line.startswith("CheckpointWarning: the checkpoint at") for line in run.lines())


def test_smuggling_is_an_error_and_returning_it_repairs_the_gradient(run):
    assert "not returned from it" in str(run["smuggled"]) and "return it from the function" in str(run["smuggled"])
    assert run["repaired"] is True
    w1, w2, w3 = (layer.w.data.astype(float) for layer in run["layers"][:3])
    h = np.tanh(run["x"].data.astype(float) @ w3)
    middle = np.tanh(h @ w1)
    arriving = np.ones_like(h) @ w2.T + 2 * middle / middle.size
    expected = h.T @ (arriving * (1 - middle * middle))
    np.testing.assert_allclose(run["gradient_with_penalty"](run["plain_call"]), expected, rtol=1e-3, atol=1e-4)


def test_the_picture_is_of_this_run(run):
    svg = run.files["06-spacetime.svg"].read_text("utf-8")
    assert "at most 19 activations live" in svg and "81 layers run again" in svg
