"""What lesson 00 says of a network of six layers, against counts made by hand."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.lesson

LAYERS = 6
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_the_tape_holds_the_data_and_each_tanh_output(lesson):
    run = lesson("00")
    held = [line.split() for line in run.lines("#")[: LAYERS * 2 + 8]]
    kinds = {words[1]: words for words in held}
    assert "160" in kinds["x"] and "160" in kinds["tanh"] and "-" in kinds["matmul"] and "-" in kinds["sum"]
    assert sum(words[1] == "tanh" for words in held) == LAYERS
    assert run["held_after_forward"] == LAYERS + 1
    assert run["plain"].live_activations == 0


def test_a_checkpoint_of_three_layers_drops_two_activations_and_replays_two_layers(lesson):
    run = lesson("00")
    plain, checkpointed = run["plain"], run["checkpointed"]
    assert (plain.peak_activations, plain.replayed_ops) == (LAYERS + 1, 0)
    assert (checkpointed.peak_activations, checkpointed.replayed_ops) == (LAYERS + 1 - 2, 2 * 2)
    assert run["same"] is True
    assert run.lines("plain ") == [f"plain           peak {LAYERS + 1} activations, 0 ops replayed"]
    assert run.lines("one checkpoint") == [f"one checkpoint  peak {LAYERS - 1} activations, 4 ops replayed"]


def test_backwards_gradient_is_the_slope(lesson):
    run = lesson("00")
    assert run["measured_slope"] == pytest.approx(run["plain_gradients"][0].data[0, 0], rel=1e-4)
    x, hs, ws = run["x"].data, [run["x"].data], [w.data for w in run["weights"]]
    for w in ws:
        hs.append(np.tanh(hs[-1] @ w))
    gradient = np.ones_like(x)
    for h, out, w, found in zip(hs[-2::-1], hs[:0:-1], ws[::-1], run["plain_gradients"][::-1], strict=True):
        gradient = gradient * (1 - out * out)
        np.testing.assert_allclose(found.data, h.T @ gradient, rtol=1e-12)
        gradient = gradient @ w.T


def test_backward_begins_at_the_end_and_the_tanh_frees_its_output(lesson):
    run = lesson("00")
    assert [step.node.op.name for step in run["first_three"]] == ["sum", "tanh", "matmul"]
    assert [step.freed for step in run["first_three"]] == [0, 5 * 4 * 8, 0]
    assert "gradient of w6 so far: None" in run.lines()
    kinds = [step.kind for step in run["others"]]
    assert kinds.count("replay") == 1 and kinds[-LAYERS:] == ["leaf"] * LAYERS


def test_a_second_backward_is_refused_and_retain_graph_repairs_it(lesson):
    run = lesson("00")
    assert "retain_graph=True" in run["second_backward"] and "compute the loss again" in run["second_backward"]
    assert run["held_for_another"] == LAYERS + 1


def test_the_picture_shows_the_checkpoint_and_what_is_held(lesson):
    svg = lesson("00").files["00-tour.svg"].read_text("utf-8")
    assert "checkpoint first three" in svg and "replay brings back 320 B" in svg


@pytest.mark.parametrize("command", ["step", "play", "plan"])
def test_the_commands_that_it_names_work(tmp_path, command):
    text = (ROOT / "lessons/00_tour.py").read_text("utf-8")
    (line,) = re.findall(rf"^#     (python -m minigrad {command} .*)$", text, re.MULTILINE)
    words = [sys.executable, *line.split()[1:]]
    words = [str(ROOT / word) if word.startswith("lessons/") else word for word in words]
    environment = os.environ | {"MINIGRAD_PICTURES": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, input="next\nvalues\nhelp\nquit\n",
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0 and not done.stderr
    if command == "step":
        assert "start at sum" in done.stdout and "Left after step 1" in done.stdout
    elif command == "play":
        assert "pass 1: 26 steps; at most 7 live activations; 0 ops replayed" in done.stdout
        assert "at most 5 live activations; 4 ops replayed" in done.stdout
        assert (tmp_path / "out/00_tour.html").exists()
    else:
        assert done.stdout.startswith("sqrt() on 100 layers: peak 19 activations, 81 layers replayed")
