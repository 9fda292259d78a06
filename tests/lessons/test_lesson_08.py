"""What lesson 08 says about time: counts exactly, times so loosely that a busy machine cannot fail them."""

import pytest

from minigrad import schedules

pytestmark = pytest.mark.lesson


@pytest.fixture
def run(lesson):
    return lesson("08")


def test_shares_and_factors_are_those_of_the_plans(run):
    for layers, share in run["shares"].items():
        plan = schedules.sqrt().plan(layers)
        assert share == plan.extra_forwards / layers < 1
        assert run["predicted_factor"](share, 2) == pytest.approx(plan.time_factor)
    assert run["shares"][100] == 0.81
    assert run["predicted_factor"](1, 2) == pytest.approx(4 / 3)


def test_twenty_to_thirty_percent_is_a_backward_of_about_two_to_three_forwards(run):
    assert run["behind"] == pytest.approx({1.2: 3.05, 1.25: 2.24, 1.3: 1.70})
    for factor, ratio in run["behind"].items():
        assert run["predicted_factor"](0.81, ratio) == pytest.approx(factor)


def test_the_counts_do_not_depend_on_what_a_layer_does(run):
    plan = schedules.sqrt().plan(25)
    assert (plan.peak, plan.extra_forwards) == (9, 16)
    ops = {"products": 2, "convolutions": 2, "tiny ops": 3}
    assert run["counts"] == {name: (25 + 1, 9 + 1, 16 * count) for name, count in ops.items()}


@pytest.mark.parametrize("name", ["products", "convolutions", "tiny ops"])
def test_each_network_is_measured_and_its_factor_is_more_than_nothing(run, name):
    ratio, predicted, measured, found = run["times"][name]
    assert 0.1 < ratio < 30 and 0.3 < measured < 30
    assert predicted == pytest.approx((1 + ratio + 16 / 25) / (1 + ratio))
    assert measured == pytest.approx(sum(found["checkpoints"]) / sum(found["plain"]))
    assert found["plain"][1] == 0 < found["checkpoints"][1]
    assert len(run.lines(f"time: {name} ")) == 1


def test_a_cheap_backward_makes_replays_dear(run):
    ratio, predicted, _, _ = run["cheap_backward"]
    assert ratio < 0.8 and predicted > 1.35
    assert "gradcheck: True" in run.lines()


def test_from_input_replays_with_the_square_of_the_depth(run):
    assert run["least_plan"].extra_forwards == 11 * 10 // 2
    assert run["least_counted"].replayed_ops == 2 * 55
    assert run["least_counted"].peak_activations == run["least_plan"].peak + 1
    ratio, predicted, _, _ = run["from_input_times"]
    assert predicted == pytest.approx((1 + ratio + 55 / 12) / (1 + ratio))


def test_one_checkpoint_around_everything_costs_a_forward_and_saves_nothing(run):
    plan = schedules.uniform(1, keep_last=False).plan(25)
    assert (plan.peak, plan.extra_forwards) == (25, 24)
    assert run["kept_after_forward"] == 1
    peak, replayed = run["whole_counted"]
    assert peak >= run["counts"]["products"][0] and replayed == 2 * 25
    assert "stands for the whole network" in str(run["caught"][0].message)


def test_the_repair_is_the_root_again(run):
    assert (run["repaired"].peak_activations, run["repaired"].replayed_ops) == run["counts"]["products"][1:]


def test_only_lines_that_begin_with_time_tell_times(run):
    assert len(run.lines("time:")) == 3 + 3 + 3 + 2
    assert not any(" ms" in line or "measured" in line for line in run.lines())


def test_the_picture_is_computed_not_measured(run):
    svg = run.files["08-factor.svg"].read_text("utf-8")
    assert "20 to 30 %" in svg and "100 layers" in svg
