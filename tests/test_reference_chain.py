"""The counting that everything else rests on: 100 live activations become 19, measured = planned."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s


@pytest.mark.parametrize(
    "schedule, peak, replayed",
    [
        (s.store_all(), 100, 0),
        (1, 100, 0),
        (10, 19, 81),
        (s.every(10), 19, 81),
        (s.sqrt(), 19, 81),
        (s.triangular(), 14, 86),
    ],
    ids=str,
)
def test_a_hundred_layers(chain, schedule, peak, replayed):
    net = chain(100)
    tracer, _ = net.run(schedule)
    assert (tracer.peak_activations, tracer.replayed_ops) == (peak, replayed)
    assert tracer.live_activations == 0 and len(mg.saved(net.loss)) == 0  # while the graph itself is alive


def test_nine_layers_in_five_segments_keep_five(chain):
    tracer, _ = chain(9).run(5)
    assert tracer.peak_activations == 5


@pytest.mark.parametrize(
    "length, peak, replayed",
    [(16, 6, 10), (64, 11, 53), (100, 14, 86), (144, 17, 127), (400, 28, 372), (1024, 45, 979)],
)
def test_published_numbers_of_the_triangular_split(length, peak, replayed):
    plan = s.triangular().plan(length)
    assert (plan.peak, plan.extra_forwards) == (peak, replayed)


def test_triangular_segments_of_a_hundred_layers():
    lengths = [length for length, _ in s.triangular().split(100)]
    assert lengths == [14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 2, 1, 1, 1]


@pytest.mark.parametrize("length, k, peak, replayed", [(100, 10, 19, 81), (64, 8, 15, 49), (16, 4, 7, 9)])
def test_published_numbers_of_equal_segments(length, k, peak, replayed):
    plan = s.uniform(k).plan(length)
    assert (plan.peak, plan.extra_forwards) == (peak, replayed)


def test_longer_segments_come_first():
    assert [length for length, _ in s.uniform(5).split(9)] == [2, 2, 2, 2, 1]
    assert s.uniform(10).plan(103).peak == 19  # with the remainder last it would be 22


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_sqrt_takes_the_best_number_of_segments(step):
    for length in range(1, 200, step):
        best = min(s.uniform(k).plan(length).peak for k in range(1, length + 1))
        assert s.sqrt().plan(length).peak <= min(k + math.ceil(length / k) - 1 for k in range(1, length + 1))
        assert s.sqrt().plan(length).peak <= best + 1


def test_memory_under_sqrt_grows_like_the_root_of_the_depth(chain):
    lengths = [16, 64, 256, 1024, 4096]
    peaks = [chain(length, size=2).run(s.sqrt())[0].peak_activations for length in lengths]
    slope = np.polyfit(np.log(lengths), np.log(peaks), 1)[0]
    assert abs(slope - 0.5) < 0.03
    assert peaks == [s.sqrt().plan(length).peak for length in lengths]


def test_the_peak_stands_at_the_end_of_forward(chain):
    """Ten boundaries and nine inner activations: the saw-tooth's highest tooth is the taped last segment."""
    tracer, _ = chain(100).run(10)
    highest = next(event for event in tracer.events if event.live_activations == 19)
    assert highest.phase == "forward"
    assert max(event.live_activations for event in tracer.events if event.phase != "forward") <= 19


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "ten"])
def test_a_number_of_segments_must_be_a_whole_number(bad):
    with pytest.raises(mg.BudgetError, match="whole number"):
        s.uniform(bad)
    with pytest.raises(mg.BudgetError, match="whole number"):
        s.every(bad)


def test_more_segments_than_layers_is_an_error_that_says_how_many_there_can_be(chain):
    with pytest.raises(mg.BudgetError, match="at most 4"):
        chain(4).run(5)
    with pytest.raises(mg.BudgetError, match="at least one layer"):
        s.sqrt().plan(0)


def test_a_plan_prints_its_segments_and_its_cost():
    text = str(s.uniform(10).plan(100))
    assert "peak 19 activations, 81 layers replayed" in text
    assert "91-100" in text and "taped in full" in text
    assert all(len(line) <= 100 for line in text.splitlines())
