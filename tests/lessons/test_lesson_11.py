"""What lesson 11 says of a transformer layer and of policies: bytes and operations from shapes, by hand."""

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson

S, H, A = 64, 32, 8  # sequence, width, heads
ROW, PAIRS = 4 * S * H, 4 * A * S * S  # bytes of an activation, and of an array of the core


@pytest.fixture
def run(lesson):
    return lesson("11")


def test_products_with_weights_are_dear_for_their_bytes_and_scores_are_not(run):
    linear = [float(line.split()[-1]) for line in run.lines("linear ")]
    assert linear == pytest.approx([(H + 1) / 4] * 5 + [(4 * H + 1) / 4], abs=0.01)  # the bias is one operation more
    scores, values = [float(line.split()[-1]) for line in run.lines("matmul ")]
    assert scores == pytest.approx(H / A / 4) and values == pytest.approx(S / 4)


def test_the_layer_keeps_what_its_gradients_read(run):
    narrow = 8 * ROW  # x and norm1's output; q, k and v; the inputs of out, of norm2 and of up
    wide = 2 * 4 * ROW  # the inputs of gelu and of down
    assert run["everything"] == narrow + wide + 2 * PAIRS  # and the outputs of softmax and of its dropout


def test_policies_keep_what_they_say(run):
    results = run["results"]
    kept = {name: bytes_kept for name, (bytes_kept, *_) in results.items()}
    assert kept["no checkpoint"] == kept["save_everything()"] == run["everything"]
    assert kept["save_nothing()"] == ROW
    linear = ROW + 4 * ROW + 4 * ROW  # x; q, k, v and out; up. That of down nobody reads
    assert kept["save_ops('linear')"] == linear
    assert kept["save_ops('linear', 'matmul')"] == linear + PAIRS + ROW
    assert kept["by_cost(4)"] == linear + ROW  # the product of shares and values
    assert kept["attention_core()"] == run["everything"] - 2 * PAIRS


def test_no_linear_runs_again_if_their_outputs_are_kept(run):
    line, other = run.lines("    run again:")
    assert "linear" not in line and "matmul" in line
    assert "linear" not in other and "matmul" not in other


def test_a_replay_is_shorter_the_more_is_kept_and_nothing_beats_within(run):
    results = run["results"]
    assert results["save_nothing()"][2] > results["save_ops('linear')"][2] > results["by_cost(4)"][2]
    assert results["no checkpoint"][2] == results["save_everything()"][2] == 0
    assert set(run["in_as_many_bytes"]) == set(results) - {"no checkpoint", "save_nothing()", "save_everything()"}
    for name, share in run["in_as_many_bytes"].items():
        assert share <= results[name][2] + 1e-12
    core = results["attention_core()"]
    assert run["in_as_many_bytes"]["attention_core()"] == pytest.approx(core[2])
    assert run["in_as_many_bytes"]["save_ops('linear', 'matmul')"] < results["save_ops('linear', 'matmul')"][2] / 2
    shares = [share for _, share in sorted(run["curve"].items())]
    assert shares == sorted(shares, reverse=True)


def test_the_peak_holds_what_all_layers_keep_and_the_inside_of_one(run):
    for name, (kept, peak, *_) in run["results"].items():
        assert peak == 4 * kept + (run["everything"] - kept), name


def test_the_core_of_attention_is_70_per_cent_of_a_layer_of_gpt3_and_two_thirds_of_ours(run):
    s, h, a = 2048, 12288, 96
    assert run["saved_by_formula"] == pytest.approx(5 * a * s / h / (34 + 5 * a * s / h)) == pytest.approx(80 / 114)
    assert run["saved_measured"] == pytest.approx(8 * A * S / H / (64 + 8 * A * S / H)) == pytest.approx(2 / 3)
    assert run["kept_plain"] == 64 * S * H + 8 * A * S * S and run["kept_core"] == 64 * S * H
    assert A * S // H == a * s // h == 16
    assert any("70% saved" in line for line in run.lines()) and any("67% saved" in line for line in run.lines())


def test_it_costs_less_than_two_hundredths_of_a_forward_at_the_sizes_of_gpt3(run):
    assert run["ours"] == run["forward_operations"]
    assert run["ours_core"] / run["ours"] == pytest.approx(run["results"]["attention_core()"][2])
    s, h, a = 2048, 12288, 96
    products = 12 * s * h * h + 2 * s * s * h
    core = s * s * h + 24 * a * s * s
    assert run["theirs_core"] == core and run["theirs"] == pytest.approx(products, rel=0.01)
    assert 0.01 < core / products < 0.02


def test_all_outputs_together_are_more_than_plain_taping_keeps(run):
    wide = 2 * 4 * ROW  # up, gelu
    rest = 12 * ROW  # two norms, q, k, v, shares times values, out, down, two dropouts, two additions
    assert run["all_outputs"] == 4 * PAIRS + wide + rest > 1.7 * run["everything"]


def test_keeping_products_of_a_recurrent_network_holds_more_than_no_checkpoint(run):
    recurrent = run["recurrent"]
    state, steps = 8 * 16 * 4, 24
    data = steps * state + state  # the inputs, and the first state
    plain, wrong = recurrent["no checkpoint"], recurrent["save_ops('matmul')"]
    assert plain[0] == data + steps * state
    assert wrong[0] == data + 2 * steps * state + 3 * state  # and the state at which each later checkpoint begins
    assert wrong[0] > plain[0] and wrong[1] > plain[1] and wrong[2] > 0
    assert len(wrong[3]) == 4 and "saves nothing" in wrong[3][0]
    assert recurrent["by_cost(4)"][:3] == wrong[:3]
    repaired = recurrent["within('1.5 kB')"]
    assert repaired[0] < plain[0] and repaired[1] < plain[1] and repaired[3] == []
    assert run["kept_ops"] == ["tanh"] * 3


def test_policies_change_no_gradient(run):
    x, blocks = run["x"], run["blocks"]
    found = []
    for policy in (None, mg.policies.attention_core(), mg.policies.save_ops("linear")):
        mg.manual_seed(5)
        h = x
        for block in blocks:
            block.zero_grad()
            h = mg.checkpoint(block, h, policy=policy)
        h.sum().backward()
        found.append([parameter.grad.numpy() for block in blocks for parameter in block.parameters()])
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))
