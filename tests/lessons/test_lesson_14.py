"""What lesson 14 says of second derivatives: against NumPy, against counts made by hand, and against each other."""

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson

LAYERS, ROWS, WIDTH = 24, 128, 8
BUFFER = ROWS * WIDTH * 8  # bytes


@pytest.fixture
def run(lesson):
    return lesson("14")


def test_without_create_graph_a_gradient_has_no_history(run):
    assert "does not require grad" in run["no_history"]
    tanh = np.tanh(0.5)
    assert run["slope"].item() == pytest.approx(1 - tanh**2)
    assert run["curvature"].item() == pytest.approx(-2 * tanh * (1 - tanh**2))
    held = [line.split() for line in run.lines("#")]
    assert [words[1] for words in held] == ["parameter", "tanh", "mul", "input", "sub", "input", "mul"]


def test_six_derivatives_are_those_of_a_polynomial_and_each_tape_is_longer(run):
    assert len(run["lengths"]) == 6 and run["lengths"][0] == 7 and run["lengths"] == sorted(set(run["lengths"]))
    assert max(run["differences"]) < 1e-12


def test_a_product_with_the_hessian_is_right_through_checkpoints_too(run):
    assert run["hessian_error"] < 1e-6 and run["checkpoint_error"] < 1e-13
    assert "u · Hv and v · Hu agree: True" in run.lines()
    assert run.lines("64 weights") == ["64 weights, so the Hessian has 4,096 numbers; its product with v has 64"]


def test_checkpoints_inside_a_recorded_backward_save_nothing(run):
    peaks = {name: tracer.peak_activations for name, tracer in run["runs"].items()}
    assert peaks["first_order, plain"] == LAYERS
    assert peaks["first_order, checkpoint"] == 10 < LAYERS / 2
    assert peaks["second_order, plain"] == peaks["second_order, checkpoint"] == 4 * LAYERS
    replayed = {name: tracer.replayed_ops for name, tracer in run["runs"].items()}
    assert replayed["second_order, plain"] == 0 < replayed["first_order, checkpoint"]
    assert replayed["second_order, checkpoint"] > replayed["first_order, checkpoint"]


def test_a_checkpoint_around_each_of_four_parts_holds_a_quarter_and_so_does_a_budget(run):
    bytes_of = {name: tracer.peak_activation_bytes for name, tracer in run["runs"].items()}
    stored = bytes_of["second_order, plain"]
    assert stored == bytes_of["second_order, checkpoint"] and stored > 0.98 * 4 * (LAYERS - 1) * BUFFER
    assert bytes_of["around four parts"] / stored == pytest.approx(0.25, rel=0.03)
    assert bytes_of["a budget"] <= stored // 4
    replayed = {name: tracer.replayed_ops for name, tracer in run["runs"].items()}
    assert 0 < replayed["a budget"] < replayed["around four parts"]
    with pytest.warns(mg.CheckpointWarning, match="stands for the whole network"):
        around_everything, _ = run["measure"](run["in_parts"], 1)
    assert around_everything.peak_activation_bytes >= stored


def test_their_gradients_are_the_same_to_rounding_and_the_budgets_to_the_last_bit(run):
    rounding = run["rounding"]
    assert rounding["storing all"] == rounding["a budget"] == 0
    assert 0 < rounding["inside"] < 1e-13 and 0 < rounding["around"] < 1e-13
    assert sum(line.endswith("the same bits") for line in run.lines()) == 2
    assert sum(line.endswith("the same to rounding") for line in run.lines()) == 2


def test_the_slopes_that_the_penalty_wants_are_those_of_numpy(run):
    x, (w, *others) = run["points"], [w.numpy() for w in run["weights"]]
    h, chain = np.tanh(x @ w), []
    chain.append((w, h))
    for w in others:
        h = np.tanh(h @ w)
        chain.append((w, h))
    slope = np.ones_like(h)
    for w, h in reversed(chain):
        slope = (slope * (1 - h * h)) @ w.T
    expected = ((slope**2).sum(axis=1) - 1) ** 2
    found = run["penalty"](mg.tensor(x, requires_grad=True), mg.checkpoint)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_only_the_second_check_sees_the_wrong_second_derivative(run):
    assert run["first_check"] is True and run["repaired_check"] is True
    assert "the gradient of cube" in run["second_check"] and "backward gives 0" in run["second_check"]


def test_a_second_backward_over_one_tape_needs_retain_graph(run):
    assert "retain_graph=True" in run["freed"]


def test_the_pendulum_swings_as_it_should(run):
    assert run["distances"][0] > 1 and run["distances"][-1] < 2e-3 and len(run["distances"]) == 31
    energy = run["SPEED"] ** 2 / 2  # at the highest point there is no motion: cos(angle) = 1 - energy
    assert np.arccos(1 - energy) >= run["exact"].max() > np.arccos(1 - energy) - 0.01
    assert len(run.lines("step ")) == 7


def test_the_picture_compares_four_runs(run):
    svg = run.files["14-around.svg"].read_text("utf-8")
    for name in ("storing all", "inside", "around", "a budget"):
        assert f">{name}: " in svg
