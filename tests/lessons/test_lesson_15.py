"""What lesson 15 says about a transformer under a budget. Times decide which schedule is fastest, so none is named."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules
from minigrad.view import columns

pytestmark = pytest.mark.lesson
N, T, WIDTH, HEADS, BLOCKS = 6, 64, 48, 4, 6


@pytest.fixture
def run(lesson):
    return lesson("15")


def test_the_probabilities_of_pairs_are_there_twice(run):
    pairs, state, wide = 4 * N * HEADS * T * T, 4 * N * T * WIDTH, 4 * N * T * 4 * WIDTH
    kept = run["kept"]
    assert kept["softmax", (N, HEADS, T, T)] == kept["dropout", (N, HEADS, T, T)] == pairs
    assert kept["relu", (N, T, 4 * WIDTH)] == kept["dropout", (N, T, 4 * WIDTH)] == wide
    assert run["of_pairs"] == 2 * pairs
    assert run["share_of_pairs"] == 2 * pairs / kept.total() < 0.5
    assert kept.total() == 2 * pairs + 2 * wide + 8 * state  # norms, q, k, v, heads put together, two sums


def test_blocks_are_nearly_all_that_a_step_holds(run):
    blocks = [layer for layer in run["measured"].layers if layer.name.endswith("TransformerBlock")]
    looks = N * HEADS * T  # a truth value for each row of scores, a constant: whether it may look at anything
    assert len(blocks) == BLOCKS and {layer.kept_bytes for layer in blocks} == {run["kept"].total() + looks}
    assert 0.95 < BLOCKS * run["kept"].total() / run["whole"] < 1
    assert run["whole"] == run["measured"].forecast(schedules.store_all()).peak_activation_bytes


@pytest.mark.parametrize("name, share", [("half", 0.5), ("three tenths", 0.3)])
def test_what_fit_chooses_fits_and_holds_what_it_has_predicted(run, name, share):
    schedule, tracer = run["fitted"][name], run["steps"][name]
    assert schedule.budget == int(share * run["whole"])
    assert tracer.peak_activation_bytes == schedule.predicted_bytes <= schedule.budget
    assert tracer.replayed_ops == schedule.replayed_ops > 0
    assert run["step_losses"][name] == run["plain_loss"]
    assert f"{name}: within the budget: True; as predicted: True; the same loss: True" in run.lines()


def test_losses_and_weights_are_the_same_bits_with_and_without_a_budget(run):
    losses, states = run["first_losses"], run["first_states"]
    assert set(losses) == {"storing all", "half", "three tenths"}
    assert all(len(each) == run["FIRST"] and each == losses["storing all"] for each in losses.values())
    assert len(set(losses["storing all"])) == run["FIRST"]  # it moves
    for state in states.values():
        for key, array in states["storing all"].items():
            assert array.tobytes() == state[key].tobytes()
    assert "losses of 15 steps, all three ways the same bits: True; weights: True" in run.lines()


def test_it_learns_as_the_first_steps_say(run):
    assert len(run["losses"]) == run["STEPS"]
    assert run["losses"][: run["FIRST"]] == run["first_losses"]["storing all"]
    assert max(run["last"], run["knows_shares"]) < run["knows_nothing"]
    assert abs(run["losses"][0] - run["knows_nothing"]) < 0.5
    assert len(run["text"]) == 2 + 160 and set(run["text"]) <= set(run["letters"])
    assert len(run.lines("it writes:")) == 1


@pytest.mark.slow
def test_it_learns_more_than_how_frequent_each_character_is(lesson):
    run = lesson("15", whole=True)
    assert len(run["losses"]) == run["STEPS"] == 150
    assert run["last"] < run["knows_shares"]


def test_no_schedule_of_whole_blocks_holds_less_than_a_block(run):
    least = int(re.search(r"the least possible is .*\(([\d,]+) bytes\)", run["refused"])[1].replace(",", ""))
    assert run["too_little"] < run["most_of_a_layer"] < least < 1.05 * run["most_of_a_layer"]
    assert run["most_of_a_layer"] == run["measured"].layers[1].kept_bytes


def test_halves_of_blocks_hold_less_and_change_nothing(run):
    assert run["most_of_a_finer_layer"] < run["too_little"]
    assert run["finer_step"].peak_activation_bytes == run["repaired"].predicted_bytes <= run["too_little"]
    assert run["finer_loss"] == run["plain_loss"]
    assert len(run["finer"]) == 1 + 2 * BLOCKS + 2


def test_policies_keep_part_of_each_block_and_change_nothing(run):
    held = {name: tracer.peak_activation_bytes / run["whole"] for name, tracer in run["inside"].items()}
    assert 0.3 > held["save_nothing()"] and held["within('600.0 kB')"] < held["attention_core()"] < 0.75
    replayed = [tracer.replayed_ops for tracer in run["inside"].values()]
    assert replayed == sorted(replayed)
    assert len([line for line in run.lines() if "of the bytes" in line and line.endswith("same loss: True")]) == 3


def test_attention_core_runs_one_product_of_each_block_again(run):
    again = run["again"]
    products = {op: count for op, count in again.items() if op in ("matmul", "linear", "einsum")}
    assert products == {"matmul": BLOCKS}
    assert again["softmax"] == again["dropout"] == BLOCKS
    everything = run["inside"]["save_nothing()"].replayed_ops
    assert again.total() == run["core"].replayed_ops < everything / 3
    cores = 2 * 4 * N * HEADS * T * T * (BLOCKS - 1)  # all but those of the block in hand
    assert run["core"].peak_activation_bytes == pytest.approx(run["whole"] - cores, rel=0.02)


def test_the_curves_are_those_of_the_tracers(run):
    for tracer in [*run["steps"].values(), run["core"]]:
        steps, held = run["held_by_step"](tracer)
        assert max(held) == tracer.peak_activation_bytes and len(steps) == len(held)
        hidden = ("parameter", "gradient", "value", "workspace")
        assert held == [column.total for column in columns.columns(tracer, hide=hidden, most=10**6)]
    svg = run.files["15-budgets-measured.svg"].read_text("utf-8")
    for name, tracer in {**run["steps"], "attention_core()": run["core"]}.items():
        assert f"{name}: {tracer.peak_activation_bytes / 1e6:.1f} MB" in svg


def test_only_lines_that_begin_with_time_tell_times_or_what_follows_from_them(run):
    assert not any("ms" in line.split() or "hetero" in line for line in run.lines())
    assert len([line for line in run.lines("time:") if line.endswith("ms a step")]) == 3


def test_attention_without_dropout_never_has_the_probabilities_of_all_pairs(run):
    """Said under 'In PyTorch and in JAX'."""
    block = mg.nn.TransformerBlock(WIDTH, HEADS, activation="relu", causal=True)
    saved = mg.saved(block(mg.randn(2, T, WIDTH)).sum())
    assert not any(row.node.shape[-2:] == (T, T) for row in saved)
    h = mg.checkpoint(block, mg.randn(2, T, WIDTH), policy=mg.policies.attention_core())
    with mg.Tracer() as tracer:
        h.sum().backward()
    assert tracer.replayed_ops == 0
    assert np.isfinite(block.norm1.weight.grad.numpy()).all()
