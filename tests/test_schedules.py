"""Schedules for layers of equal cost: the published numbers, the recurrences, every strategy tried, and the engine.

Numbers of activations M are those between two layers (`peak_between_ops`), as papers count them, unless a
test speaks of the peak, which is what the tracer measures. R is `extra_forwards`.
"""

import functools
import itertools
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s
from minigrad.schedules.binomial import advances
from tests.pebbling import fewest_replays


def m_and_r(schedule, layers):
    plan = schedule.plan(layers)
    return plan.peak_between_ops, plan.extra_forwards


def lengths(schedule, layers):
    return [length for length, _ in schedule.split(layers)]


# ---- nothing kept, equal segments, the split of torch, triangular segments


@pytest.mark.parametrize("layers, replayed", [(1, 0), (2, 0), (3, 1), (10, 36), (100, 4851)])
def test_from_input_keeps_two_activations_and_replays_half_the_square(layers, replayed):
    plan = s.from_input().plan(layers)
    assert (plan.peak_between_ops, plan.peak) == (min(layers, 2), min(layers, 2) if layers < 4 else 3)
    assert plan.extra_forwards == replayed == (layers - 1) * (layers - 2) // 2


@pytest.mark.parametrize(
    "layers, k, kept, replayed",
    [(100, 10, 19, (100, 90, 90, 81)), (64, 8, 15, (64, 56, 56, 49)), (16, 4, 7, (16, 12, 12, 9))],
)
def test_the_four_kinds_of_equal_segments_differ_in_replays_and_not_in_memory(layers, k, kept, replayed):
    kinds = [(False, False), (False, True), (True, False), (True, True)]
    plans = [s.uniform(k, keep_last, early_stop).plan(layers) for keep_last, early_stop in kinds]
    assert tuple(plan.extra_forwards for plan in plans) == replayed
    assert {plan.peak_between_ops for plan in plans} == {kept}


BEST_EQUAL = {9: 5, 10: 6, 12: 6, 20: 8, 50: 14, 64: 15, 100: 19, 103: 20, 128: 22, 200: 28, 1000: 63}


@pytest.mark.parametrize("layers, kept", BEST_EQUAL.items())
def test_sqrt_is_within_the_best_peak_of_equal_segments(layers, kept):
    assert kept == min(k + math.ceil(layers / k) - 1 for k in range(1, layers + 1))
    assert s.sqrt().plan(layers).peak in (kept - 1, kept)  # one less when the shorter segments stand last
    assert layers not in (9, 64, 100) or s.sqrt().plan(layers).peak == kept


def test_torch_puts_the_remainder_last_where_it_costs_most():
    torch_like, balanced = s.torch_compatible(5), s.uniform(5)
    assert lengths(torch_like, 9) == [1, 1, 1, 1, 5] and lengths(balanced, 9) == [2, 2, 2, 2, 1]
    assert (torch_like.plan(9).peak, balanced.plan(9).peak) == (9, 5)
    assert (s.torch_compatible(10).plan(103).peak, s.uniform(10).plan(103).peak) == (22, 19)
    assert (s.torch_compatible(10).plan(64).peak, s.uniform(10).plan(64).peak) == (19, 15)


def test_torch_without_early_stop_runs_ninety_of_a_hundred_layers_again():
    assert s.torch_compatible(10, early_stop=False).plan(100).extra_forwards == 90
    assert s.torch_compatible(10).plan(100).extra_forwards == 81


TRIANGULAR = {
    16: (7, 9, 6, 10),
    36: (11, 25, 8, 28),
    64: (15, 49, 11, 53),
    100: (19, 81, 14, 86),
    144: (23, 121, 17, 127),
    256: (31, 225, 23, 233),
    400: (39, 361, 28, 372),
    1024: (63, 961, 45, 979),
}


@pytest.mark.parametrize("layers, numbers", TRIANGULAR.items())
def test_triangular_segments_need_less_memory_than_equal_ones_for_a_few_more_replays(layers, numbers):
    assert (*m_and_r(s.sqrt(), layers), *m_and_r(s.triangular(), layers)) == numbers
    assert numbers[2] == math.ceil((math.sqrt(8 * layers + 1) - 1) / 2)


@pytest.mark.parametrize("m", [3, 8, 10])
def test_a_full_triangle_fits_its_peak_only_because_its_first_run_holds_nothing_in_passing(m):
    full = m * (m + 1) // 2
    assert s.triangular().plan(full).peak == m
    assert s.optimal(m).plan(full).extra_forwards > full - m >= s.optimal(m + 1).plan(full).extra_forwards
    assert s.optimal(m).plan(full - 1).extra_forwards == full - 1 - m


def test_triangular_is_binomial_with_two_runs_per_layer():
    for layers in range(4, 200):
        kept, replayed = m_and_r(s.triangular(), layers)
        assert s.binomial(kept).plan(layers).extra_forwards == replayed
        assert advances(layers, kept - 2) > 2 * layers - 1 - kept  # with one slot less it takes more than two


# ---- segments in segments

NESTED = [  # k, d, layers, M, R, and the fewest replays with that M
    (2, 6, 64, 7, 129, 93),
    (4, 3, 64, 10, 81, 63),
    (8, 2, 64, 15, 49, 49),
    (3, 4, 81, 9, 136, 108),
    (10, 2, 100, 19, 81, 81),
    (10, 3, 1000, 28, 1701, 1566),
    (4, 5, 1024, 16, 2817, 2104),
    (2, 10, 1024, 11, 4097, 2732),
]


@pytest.mark.parametrize("k, d, layers, kept, replayed, fewest", NESTED)
def test_published_numbers_of_nested_segments(k, d, layers, kept, replayed, fewest):
    assert layers == k**d
    assert (kept, replayed) == (d * (k - 1) + 1, d * (k - 1) * k ** (d - 1) - (layers - 1))
    assert m_and_r(s.nested(k), layers) == (kept, replayed)
    assert m_and_r(s.binomial(kept), layers) == (kept, fewest)


def test_bisection_of_a_hundred_layers():
    assert m_and_r(s.bisection(), 100) == (8, 217)
    assert m_and_r(s.binomial(8), 100) == (8, 156)


def test_bisection_keeps_one_more_than_the_logarithm_and_is_nested_by_two():
    for layers in range(1, 300):
        assert s.bisection().plan(layers).peak == math.ceil(math.log2(layers)) + 1
        assert m_and_r(s.bisection(), layers) == m_and_r(s.nested(2), layers)


def test_whole_replays_of_a_bisection_are_half_of_n_log_n():
    plan = s.bisection(early_stop=False).plan(64)
    assert (plan.peak_between_ops, plan.extra_forwards) == (7, 192)
    assert [s.bisection(False).plan(2**d).extra_forwards for d in range(11)] == [2**d * d // 2 for d in range(11)]


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_nested_never_keeps_more_than_a_full_tree_of_its_depth(k):
    for layers in range(1, 300):
        depth = next(d for d in range(10) if k**d >= layers)
        plan = s.nested(k).plan(layers)
        assert plan.peak == plan.peak_between_ops <= depth * (k - 1) + 1


def test_a_single_layer_is_a_checkpoint_only_if_its_replay_is_to_run_it():
    assert s.nested(4).split(4) == [(4, None)]
    assert s.nested(4).split(5) == [(1, None), (1, None), (1, None), (2, None)]
    whole = s.nested(4, early_stop=False)
    assert whole.split(4) == [(1, whole), (1, whole), (1, whole), (1, None)]


# ---- binomial, optimal, mixed: the published tables

P_COLUMNS = range(1, 11)
P = {
    2: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    3: [3, 2, 2, 2, 2, 2, 2, 2, 2, 2],
    4: [6, 4, 3, 3, 3, 3, 3, 3, 3, 3],
    5: [10, 6, 5, 4, 4, 4, 4, 4, 4, 4],
    6: [15, 8, 7, 6, 5, 5, 5, 5, 5, 5],
    8: [28, 14, 11, 10, 9, 8, 7, 7, 7, 7],
    10: [45, 20, 15, 14, 13, 12, 11, 10, 9, 9],
    16: [120, 45, 33, 27, 25, 24, 23, 22, 21, 20],
    20: [190, 65, 45, 39, 33, 32, 31, 30, 29, 28],
    32: [496, 140, 93, 75, 68, 60, 55, 54, 53, 52],
    50: [1225, 285, 180, 144, 122, 114, 105, 95, 89, 88],
    64: [2016, 420, 258, 200, 172, 156, 147, 137, 126, 116],
    100: [4950, 845, 490, 374, 316, 280, 255, 245, 234, 222],
    128: [8128, 1240, 694, 516, 430, 392, 347, 329, 318, 306],
    250: [31125, 3479, 1785, 1288, 1040, 920, 835, 780, 714, 672],
    500: [124750, 10044, 4680, 3213, 2576, 2208, 2005, 1785, 1714, 1636],
    1000: [499500, 28820, 12155, 7998, 6284, 5284, 4713, 4285, 3999, 3636],
}
R_OPT_COLUMNS = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 20, 24, 32]
R_OPT = {
    4: [3, 1, 0],
    8: [21, 7, 4, 3, 2, 1, 0],
    10: [36, 11, 6, 5, 4, 3, 2, 0],
    16: [105, 30, 18, 12, 10, 9, 8, 6, 4, 2, 0],
    20: [171, 46, 26, 20, 14, 13, 12, 10, 8, 6, 4, 1, 0],
    32: [465, 109, 62, 44, 37, 29, 24, 22, 20, 18, 16, 13, 12, 8, 0],
    50: [1176, 236, 131, 95, 73, 65, 56, 40, 38, 36, 34, 31, 30, 26, 18],
    64: [1953, 357, 195, 137, 109, 93, 84, 63, 52, 50, 48, 45, 44, 40, 32],
    100: [4851, 746, 391, 275, 217, 181, 156, 135, 110, 86, 84, 81, 80, 76, 68],
    128: [8001, 1113, 567, 389, 303, 265, 220, 191, 166, 137, 112, 109, 108, 104, 96],
    256: [32385, 3353, 1590, 1075, 819, 695, 604, 483, 422, 393, 360, 303, 282, 232, 224],
    1000: [498501, 27821, 11156, 6999, 5285, 4285, 3714, 3000, 2546, 2321, 2032, 1791, 1770, 1676, 1440],
}
R_STRICT_COLUMNS = [3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 16, 19, 20, 24]
R_STRICT = {
    10: [16, 7, 5, 4, 3, 2, 0],
    16: [49, 19, 13, 10, 9, 8, 6, 4, 2, 1, 0],
    20: [81, 31, 21, 14, 13, 12, 10, 8, 6, 5, 4, 1, 0],
    32: [225, 74, 47, 38, 30, 24, 22, 20, 18, 17, 16, 13, 12, 8],
    50: [576, 161, 101, 74, 66, 57, 40, 38, 36, 35, 34, 31, 30, 26],
    64: [961, 245, 152, 116, 94, 85, 64, 52, 50, 49, 48, 45, 44, 40],
    100: [2401, 516, 305, 224, 189, 157, 136, 111, 86, 85, 84, 81, 80, 76],
}
CLASSIC_TOTALS = [  # layers, snapshots, layers run in all
    (10, 2, 30), (10, 3, 25), (20, 4, 59), (50, 5, 172), (64, 6, 220), (100, 3, 590), (100, 5, 416), (100, 9, 334),
    (100, 13, 285), (100, 18, 280), (100, 99, 199), (10, 9, 19), (100, 50, 248),
]  # fmt: skip
MIXED_TOTALS = [
    (10, 2, 26), (10, 3, 19), (10, 9, 10), (50, 5, 138), (100, 5, 352), (100, 9, 250), (100, 13, 197), (100, 18, 187),
    (100, 50, 150), (100, 99, 100),
]  # fmt: skip


@pytest.mark.parametrize("layers", P)
def test_published_numbers_of_advances(layers):
    assert [advances(layers, snapshots) for snapshots in P_COLUMNS] == P[layers]


@pytest.mark.parametrize("layers", R_OPT)
def test_published_numbers_of_binomial(layers):
    plans = [s.binomial(slots).plan(layers) for slots in R_OPT_COLUMNS[: len(R_OPT[layers])]]
    assert [plan.extra_forwards for plan in plans] == R_OPT[layers]
    assert [plan.peak_between_ops for plan in plans] == [min(m, layers) for m in R_OPT_COLUMNS[: len(plans)]]


@pytest.mark.parametrize("layers", R_STRICT)
def test_published_numbers_of_optimal(layers):
    plans = [s.optimal(slots).plan(layers) for slots in R_STRICT_COLUMNS[: len(R_STRICT[layers])]]
    assert [plan.extra_forwards for plan in plans] == R_STRICT[layers]
    assert [plan.peak for plan in plans] == [min(m, layers) for m in R_STRICT_COLUMNS[: len(plans)]]


@pytest.mark.parametrize("layers, snapshots, total", CLASSIC_TOTALS)
def test_published_totals_of_the_classic_mode(layers, snapshots, total):
    plan = s.binomial(snapshots + 1, early_stop=False).plan(layers)
    assert plan.total_forwards == total == layers + advances(layers, snapshots)
    assert plan.peak_between_ops == min(layers, snapshots + 1)


@pytest.mark.parametrize("layers, slots, total", MIXED_TOTALS)
def test_published_totals_of_mixed(layers, slots, total):
    plan = s.mixed(slots).plan(layers)
    assert plan.total_forwards == total
    assert plan.peak_between_ops == min(layers, slots + 1)


# ---- the closed forms against the recurrences that they solve, each place of the next boundary tried


@functools.cache
def cheapest_advances(layers, most_slots):
    """cost[m, l]: D(l, m) = min over j of j + D(j, m) + D(l - j, m - 1)."""
    cost = np.full((most_slots + 1, layers + 1), math.inf)
    cost[1:, 1] = 0
    for m in range(2, most_slots + 1):
        for n in range(2, layers + 1):
            cost[m, n] = (np.arange(1, n) + cost[m, 1:n] + cost[m - 1, n - 1 : 0 : -1]).min()
    return cost


@functools.cache
def cheapest_advances_strictly(layers, most_slots):
    """The same where an advance over more than one layer needs three slots, and over one layer two."""
    cost = np.full((most_slots + 1, layers + 1), math.inf)
    cost[1:, 1], cost[2, 2] = 0, 1
    for m in range(3, most_slots + 1):
        for n in range(2, layers + 1):
            cost[m, n] = (np.arange(1, n) + cost[m, 1:n] + cost[m - 1, n - 1 : 0 : -1]).min()
    return cost


@functools.cache
def cheapest_mixed(layers, most_slots):
    """cost[s, n] of Maddison 2024: tape the first layer, or advance over i >= 2 and hold what comes before them."""
    cost = np.full((most_slots + 1, layers + 1), math.inf)
    cost[0, 1] = 1
    for m in range(1, most_slots + 1):
        for n in range(1, layers + 1):
            if n <= m + 1:
                cost[m, n] = n
                continue
            held = np.arange(2, n) + cost[m, 2:n] + cost[m - 1, n - 2 : 0 : -1]
            cost[m, n] = min(1 + cost[m - 1, n - 1], held.min())
    return cost


LAYERS, SLOTS = 120, 20
ALL = [(n, m) for n in range(1, LAYERS + 1) for m in range(1, min(n, SLOTS) + 1)]
MANY = [(n, m) for n in (199, 250, 257, 330, 400) for m in (2, 3, 4, 5, 6, 7, 9, 12, 17, 20, 24, 29, 40)]


def test_advances_in_closed_form_solves_the_recurrence():
    cost = cheapest_advances(LAYERS, LAYERS + 1)
    for n in range(1, LAYERS + 1):
        assert [advances(n, snapshots) for snapshots in range(1, LAYERS + 1)] == cost[2:, n].tolist()


@pytest.mark.parametrize("pairs", [ALL, MANY], ids=["all", "many"])
def test_binomial_solves_the_recurrence(pairs):
    cost = cheapest_advances(*map(max, zip(*pairs, strict=True)))
    for n, slots in pairs:
        if slots == 1 < n:
            continue
        assert m_and_r(s.binomial(slots), n) == (slots, cost[slots, n] - (n - 1))
        classic = s.binomial(slots, early_stop=False).plan(n)
        assert (classic.peak_between_ops, classic.total_forwards) == (slots, cost[slots, n] + n)


@pytest.mark.parametrize("pairs", [ALL, MANY], ids=["all", "many"])
def test_optimal_solves_the_recurrence(pairs):
    cost = cheapest_advances_strictly(*map(max, zip(*pairs, strict=True)))
    for n, slots in pairs:
        if math.isfinite(cost[slots, n]):
            plan = s.optimal(slots).plan(n)
            assert (plan.peak, plan.extra_forwards) == (slots, cost[slots, n] - (n - 1))
        else:
            assert slots < 3


@pytest.mark.parametrize("pairs", [ALL, MANY], ids=["all", "many"])
def test_mixed_solves_the_recurrence(pairs):
    cost = cheapest_mixed(*map(max, zip(*pairs, strict=True)))
    for n, slots in pairs:
        plan = s.mixed(slots).plan(n)
        assert (plan.peak_between_ops, plan.total_forwards) == (min(n, slots + 1), cost[slots, n])


# ---- every strategy tried


@pytest.mark.parametrize("layers", range(1, 10))
def test_no_strategy_at_all_replays_less_than_binomial(layers):
    for slots in range(1, layers + 2):
        fewest = fewest_replays(layers, slots, strict=False)
        if fewest is None:
            with pytest.raises(mg.BudgetError):
                s.binomial(slots).plan(layers)
        else:
            assert s.binomial(slots).plan(layers).extra_forwards == fewest


@pytest.mark.parametrize("layers", range(1, 10))
def test_no_strategy_at_all_replays_less_than_optimal(layers):
    for slots in range(1, layers + 2):
        fewest = fewest_replays(layers, slots, strict=True)
        if fewest is None:
            with pytest.raises(mg.BudgetError):
                s.optimal(slots).plan(layers)
        else:
            assert s.optimal(slots).plan(layers).extra_forwards == fewest


# ---- an outside oracle


def forwards_of(schedule):
    """Layers run by a schedule of the checkpoint_schedules package."""
    from checkpoint_schedules import Forward

    return sum(action.n1 - action.n0 for action in schedule if isinstance(action, Forward))


@pytest.mark.filterwarnings("ignore:Numba not available")
def test_totals_are_those_of_the_package_checkpoint_schedules():
    package = pytest.importorskip("checkpoint_schedules")
    for n in (*range(2, 41), 64, 100):
        for snapshots in {1, 2, 3, 4, 5, 6, 9, 13, 18, n - 1}.intersection(range(1, n)):
            ours = s.binomial(snapshots + 1, early_stop=False).plan(n).total_forwards
            assert ours == forwards_of(package.MultistageCheckpointSchedule(n, snapshots, 0))
            assert ours == forwards_of(package.Revolve(n, snapshots))
            mixed = package.MixedCheckpointSchedule(n, snapshots)
            assert s.mixed(snapshots).plan(n).total_forwards == forwards_of(mixed)


# ---- what slots mean, how long plans take, and mistakes


@pytest.mark.parametrize("make", [s.binomial, s.optimal, s.mixed])
def test_more_slots_than_layers_store_everything(make):
    for layers in (1, 2, 3, 7, 100):
        plan = make(layers + 3).plan(layers)
        assert (plan.peak, plan.extra_forwards) == (layers, 0)


def test_every_slot_more_costs_fewer_replays_until_none_is_left():
    for make, least in ((s.binomial, 2), (s.optimal, 3), (s.mixed, 1)):
        replayed = [make(slots).plan(60).extra_forwards for slots in range(least, 61)]
        assert all(more > fewer or more == fewer == 0 for more, fewer in itertools.pairwise(replayed))
        assert replayed[-1] == 0


PLANNED_FAST = [s.store_all(), s.from_input(), s.sqrt(), s.triangular(), s.bisection(), s.bisection(early_stop=False)]
PLANNED_FAST += [make(k) for make in (s.uniform, s.every, s.torch_compatible, s.nested) for k in (2, 7, 100, 9999)]
PLANNED_FAST += [
    make(m) for make in (s.binomial, s.optimal, s.mixed) for m in (3, 4, 6, 20, 37, 140, 141, 200, 5000, 20000)
]
PLANNED_FAST += [s.binomial(m, early_stop=False) for m in (2, 3, 6, 37, 141, 5000, 20000)]
PLANNED_FAST += [s.binomial(2), s.mixed(1), s.mixed(2), s.nested(20000, early_stop=False)]


@pytest.mark.parametrize("schedule", PLANNED_FAST, ids=str)
def test_ten_thousand_layers_are_planned(schedule):
    plan = schedule.plan(10_000)
    assert plan.peak <= 10_000


@pytest.mark.parametrize("slots", [2, 3, 4, 6, 14, 37, 140, 141, 200, 5000, 9999, 10_000, 20_000])
def test_a_long_chain_replays_what_the_closed_form_says(slots):
    plan = s.binomial(slots).plan(10_000)
    assert plan.peak_between_ops == min(slots, 10_000)
    assert plan.extra_forwards == advances(10_000, slots - 1) - 9_999


@pytest.mark.parametrize(
    "schedule, layers, least",
    [
        (s.binomial(1), 2, 2),
        (s.binomial(1, early_stop=False), 100, 2),
        (s.optimal(1), 2, 2),
        (s.optimal(1), 3, 3),
        (s.optimal(2), 100, 3),
    ],
    ids=str,
)
def test_too_few_slots_is_an_error_that_says_the_least(chain, schedule, layers, least):
    with pytest.raises(mg.BudgetError, match=rf"{layers} layers; the least possible is {least}$"):
        schedule.plan(layers)
    with pytest.raises(mg.BudgetError, match="least possible"):
        chain(layers).run(schedule)
    assert type(schedule)(least).plan(layers).layers == layers


@pytest.mark.parametrize("make", [s.torch_compatible, s.nested, s.binomial, s.optimal, s.mixed])
@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "ten", None])
def test_a_number_of_anything_must_be_a_whole_number(make, bad):
    with pytest.raises(mg.BudgetError, match="whole number"):
        make(bad)


def test_one_segment_in_each_segment_would_never_end():
    with pytest.raises(mg.BudgetError, match="from 2"):
        s.nested(1)


def test_more_segments_than_layers_is_an_error_in_torch_compatible_too():
    with pytest.raises(mg.BudgetError, match="at most 4"):
        s.torch_compatible(5).plan(4)


def test_schedules_are_equal_by_what_they_say_and_their_names_can_be_typed():
    for text in (
        "from_input()", "torch_compatible(5)", "torch_compatible(5, early_stop=False)", "nested(3)",
        "nested(3, early_stop=False)", "bisection()", "bisection(early_stop=False)", "binomial(4)",
        "binomial(4, early_stop=False)", "optimal(4)", "mixed(4)",
    ):  # fmt: skip
        schedule = eval(f"s.{text}")
        assert repr(schedule) == text
        assert schedule == eval(f"s.{text}") and hash(schedule) == hash(eval(f"s.{text}"))
