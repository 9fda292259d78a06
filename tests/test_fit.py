"""mg.fit: the fastest schedule that fits, and what it said it would cost."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s
from tests.test_profile import random_chain, run


def uneven_chain(seed, layers=12):
    """Linear layers of very different widths, with an activation each."""
    rng = np.random.default_rng(seed)
    mg.manual_seed(seed)
    widths = [int(width) for width in rng.integers(2, 60, layers + 1)]
    chain = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in zip(widths, widths[1:], strict=False)]
    return chain, mg.randn((16, widths[0]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_it_holds_what_it_said_and_no_more_than_the_budget(seed, share, same_bits):
    layers, x = uneven_chain(seed)
    tracer, plain = run(layers, s.store_all(), x)
    budget = int(tracer.peak_activation_bytes * share)
    measured = mg.profile(layers, x, repeats=1)
    try:
        schedule = mg.fit(measured, x, budget)
    except mg.BudgetError as error:
        assert int(str(error).split(" bytes")[0].split("(")[-1].replace(",", "")) > budget
        return
    tracer, gradients = run(layers, schedule, x)
    assert tracer.peak_activation_bytes == schedule.predicted_bytes <= budget
    assert tracer.replayed_ops == schedule.replayed_ops
    same_bits(gradients, plain)


def test_an_impossible_budget_says_the_least_and_the_least_is_possible():
    layers, x = uneven_chain(1)
    measured = mg.profile(layers, x, repeats=1)
    with pytest.raises(mg.BudgetError, match="least possible") as caught:
        mg.fit(measured, x, "1KB")
    least = int(str(caught.value).split(" bytes")[0].split("(")[-1].replace(",", ""))
    schedule = mg.fit(measured, x, least)
    assert schedule.predicted_bytes == least
    assert run(layers, schedule, x)[0].peak_activation_bytes == least
    with pytest.raises(mg.BudgetError, match="least possible"):
        mg.fit(measured, x, least - 1)


def test_a_budget_for_everything_replays_nothing():
    layers, x = uneven_chain(2)
    schedule = mg.fit(layers, x, "1GB", repeats=1)
    assert schedule.replayed_ops == 0
    assert schedule.predicted_bytes == run(layers, s.store_all(), x)[0].peak_activation_bytes


def test_unequal_layers_are_cut_where_it_is_cheap(same_bits):
    """Between two wide layers stands a narrow one: equal segments would keep a wide boundary."""
    mg.manual_seed(0)
    widths = [200, 4] * 6 + [200]
    layers = [nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False)]
    x = mg.randn((50, 200))
    measured = mg.profile(layers, x, repeats=1)
    equal = [measured.forecast(s.uniform(k)) for k in range(1, 13)]
    least_of_equal = min(forecast.peak_activation_bytes for forecast in equal)
    fitted = mg.fit(measured, x, least_of_equal - 1)
    tracer, _ = run(layers, fitted, x)
    assert tracer.peak_activation_bytes < least_of_equal


def test_print_says_what_it_will_cost_before_it_runs():
    layers, x = uneven_chain(3)
    text = str(mg.fit(layers, x, "40 kB", repeats=1))
    assert "at the peak" in text and "ops again" in text and "ms" in text


def test_it_is_made_for_one_chain_only():
    layers, x = uneven_chain(3)
    with pytest.raises(mg.ArgumentError, match="made for 12 layers"):
        mg.checkpoint_sequential(layers[:5], mg.fit(layers, x, "1GB", repeats=1), x)


@pytest.mark.parametrize("seed", range(12))
def test_hetero_on_a_measured_profile_never_exceeds_its_budget(seed, same_bits):
    """On layers of any kind, with dropout, statistics, views and constants that several of them read."""
    layers, x = random_chain(seed, longest=14)
    measured = mg.profile(layers, x, repeats=1)
    tracer, plain = run(layers, s.store_all(), x)
    everything = s.hetero(measured, "1GB")
    assert run(layers, everything, x)[0].replayed_ops == tracer.replayed_ops  # by a layer's own checkpoint, if any
    least, most = everything.least_budget, tracer.peak_activation_bytes
    for budget in {least, (least + most) // 2, max(least, most * 2 // 3), max(least, most)}:
        schedule = s.hetero(measured, budget)
        tracer, gradients = run(layers, schedule, x)
        assert tracer.peak_activation_bytes <= schedule.predicted_bytes <= budget
        same_bits(gradients, plain)
