"""What lesson 07 says about segments, against plans and against the formula."""

import math
import re

import pytest

from minigrad import schedules

pytestmark = pytest.mark.lesson


@pytest.fixture
def run(lesson):
    return lesson("07")


def test_the_sweep_is_measured_for_every_k_and_as_planned(run):
    plans = {k: schedules.uniform(k).plan(100) for k in range(1, 101)}
    assert run["sweep"] == run["planned"] == {k: (plan.peak, plan.extra_forwards) for k, plan in plans.items()}
    assert run["sweep"][1] == (100, 0) and run["sweep"][10] == (19, 81)


def test_it_prints_a_hundred_nineteen_and_the_whole_sweep(run):
    assert "storing all: 100 live activations" in run.lines()
    assert "the best: 19 live activations, with k = 8 9 10 11 12 13" in run.lines()
    rows = [re.findall(r"\d+", line.split(":")[1]) for line in run.lines("  from ")]
    assert [int(number) for row in rows for number in row] == [peak for peak, _ in run["sweep"].values()]
    assert "planned and measured agree for every k: True" in run.lines()


def test_the_formula_is_what_is_measured_where_k_divides_the_layers(run):
    for k in (1, 2, 4, 5, 10, 20, 25, 50, 100):
        assert run["formula"](k) == run["sweep"][k][0] == k + 100 // k - 1
        assert re.search(rf"^k = +{k}: .* = {k + 100 // k - 1}$", run.output, re.MULTILINE)


def test_the_derivative_is_zero_at_the_root(run):
    assert run["best_k"] == pytest.approx(math.sqrt(100), rel=1e-9)
    assert run["best_formula"] == pytest.approx(19)
    slope, curvature = run["slopes"](4.0)
    assert (slope, curvature) == pytest.approx((1 - 100 / 4**2, 2 * 100 / 4**3))


def test_what_is_not_live_at_the_end_of_forward_is_computed_once_more(run):
    assert run["sums"] == {100}


def test_a_remainder_belongs_in_front(run):
    assert run["remainder"] == {"first": (19, 19), "last": (22, 22)}
    for schedule in (schedules.uniform(10), schedules.torch_compatible(10)):
        lengths = [length for length, _ in schedule.split(103)]
        assert run["peak_of"](lengths) == schedule.plan(103).peak


def test_the_remainder_in_the_last_segment_saves_nothing_for_nine_layers(run):
    assert (run["broken_lengths"], run["broken_peak"]) == ([1, 1, 1, 1, 5], 9)
    assert (run["repaired_lengths"], run["repaired_peak"]) == ([2, 2, 2, 2, 1], 5)
    assert run["broken_lengths"] == [length for length, _ in schedules.torch_compatible(5).split(9)]


def test_memory_grows_like_the_root_of_the_depth(run):
    assert run["growth"] == {n: schedules.sqrt().plan(n).peak for n in (16, 32, 64, 128, 256, 512, 1024)}
    assert run["growth"][1024] == 63
    assert run["slope"] == pytest.approx(0.5, abs=0.03)


def test_the_picture_has_every_measured_point(run):
    svg = run.files["07-sweep.svg"].read_text("utf-8")
    assert "100 measured, all as planned" in svg and "19 live activations instead of 100" in svg
