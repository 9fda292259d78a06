"""What lesson 04 says of a network that reads digits, and of what its training leaves behind, against NumPy."""

import math

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson

PIXELS, FIRST, SECOND, DIGITS = 64, 128, 64, 10


@pytest.fixture
def run(lesson):
    return lesson("04")


def relu(x):
    return np.maximum(x, 0)


def scores_of(network, x):
    w = network.state_dict()
    h = relu(x @ w["first.weight"].T + w["first.bias"])
    h = relu(h @ w["second.weight"].T + w["second.bias"])
    return h @ w["last.weight"].T + w["last.bias"]


def test_a_layer_learns_a_weight_for_each_pixel_and_digit_and_a_bias_for_each_digit(run):
    assert run["learned"](run["layer"]) == PIXELS * DIGITS + DIGITS
    assert f"numbers to learn: {PIXELS * DIGITS + DIGITS}" in run.lines()


def test_parameters_are_found_in_modules_within_modules_but_not_in_lists(run):
    widths = (PIXELS, FIRST, SECOND, DIGITS)
    count = sum(a * b + b for a, b in zip(widths, widths[1:], strict=False))
    assert f"numbers to learn: {count}" in run.lines()
    names = [name for name, _ in run["networks"]["Adam"].named_parameters()]
    assert names == [f"{layer}.{name}" for layer in ("first", "second", "last") for name in ("weight", "bias")]
    assert "in a list: 0" in run.lines()
    assert f"in an nn.ModuleList: {64 * 128 + 128 + 128 * 10 + 10}" in run.lines()


def test_an_untrained_network_has_the_loss_of_a_guess(run):
    assert run["first_loss"].item() == pytest.approx(math.log(DIGITS), abs=0.05)
    assert run["by_hand"] == pytest.approx(run["first_loss"].item(), rel=1e-5)


def test_a_step_against_the_gradient_lowers_the_loss_and_is_what_sgd_does(run):
    assert run["second_loss"].item() < run["first_loss"].item()
    assert run["same_step"] is True


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_more_than_95_of_100_unseen_digits_are_read(run, name):
    images, labels = run["held_out"]
    assert len(images) == 297 and len(run["training"][0]) == 1500
    read = scores_of(run["networks"][name], images).argmax(axis=1)
    assert (read == labels).mean() > 0.95
    assert run["accuracies"][name][1] == pytest.approx((read == labels).mean(), abs=1 / 297)
    assert run["accuracies"][name][0] >= run["accuracies"][name][1]
    assert np.mean(run["losses"][name][-30:]) < 0.1 < run["losses"][name][0]


def test_training_takes_seconds(run):
    assert run.seconds < 30


def test_with_no_grad_the_tape_keeps_nothing(run):
    rows = [row.shape for row in map(lambda kept: kept.array, mg.saved(run["loss_recorded"]))]
    assert rows == [(297, PIXELS), (297, FIRST), (297, SECOND), (297, DIGITS), (297,)]
    assert run["recorded"].live_activation_bytes == 297 * (4 * (PIXELS + FIRST + SECOND + DIGITS) + 8)
    assert run["unrecorded"].peak_activations == run["unrecorded"].peak_activation_bytes == 0


def test_gradients_add_up_until_they_are_forgotten(run):
    assert run["piled_up"] is True
    broken, repaired = run["accuracies"]["SGD without zero_grad"][1], run["accuracies"]["SGD"][1]
    assert broken < repaired - 0.2
    assert np.mean(run["losses"]["SGD without zero_grad"][-30:]) > 10 * np.mean(run["losses"]["SGD"][-30:])


def test_a_sum_of_loss_tensors_keeps_the_graph_of_every_batch(run):
    kept = run["recorded"].live_activations
    assert run["live_after"]["the sum of tensors"] == [kept * count for count in range(1, 9)]
    assert run["live_after"]["the sum of values"] == [0] * 8
    assert run["live_after"]["no_grad"] == [0] * 8
    assert run.lines("tensors in no_grad")[0].endswith("peak 0")
    assert run["runs"]["the sum of values"].peak_activations == kept
    assert run["runs"]["the sum of tensors"].peak_activations == 8 * kept


def test_both_sums_are_the_loss_of_all_held_out_pictures(run):
    images, labels = run["held_out"]
    scores = scores_of(run["trained"], images).astype("float64")
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(labels)), labels]).mean()
    said = [float(line.split("loss ")[1].split(",")[0]) for line in run.lines("the sum of ")]
    assert len(said) == 2 and said == pytest.approx([loss, loss], abs=1e-3)


def test_after_backward_a_sum_of_losses_keeps_lines_and_no_buffers(run):
    steps = 1500 // 50
    assert run["tracer"].live_activations == 0
    assert run["lines_of_total"] > (steps - 1) * 7 > run["lines_of_loss"]
