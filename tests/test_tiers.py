"""Boundaries in slow memory: which ones, how many at once, and how often they go there and come back."""

from collections import Counter
from functools import lru_cache

import pytest

import minigrad as mg
from minigrad import schedules as s
from minigrad.schedules import tiers
from minigrad.schedules.binomial import advances

LENGTHS = [1, 2, 3, 7, 16, 64, 100, 257]
FAST_AND_SLOW = [(1, 1), (1, 3), (2, 5), (3, 7), (5, 5), (5, 300), (300, 5)]


def accesses(schedule, n, place):
    """How often a boundary is written and read, by walking the whole tree: Counters by the place it is in.

    A boundary is written when its part has been run, unless it is there already: the first part's of a stretch
    whose own is in the same place. It is read each time its part is replayed.
    """
    writes, reads = Counter(), Counter()
    waiting = [(schedule, n, None)]
    while waiting:
        inner, length, own_place = waiting.pop()
        for index, (part_length, part) in enumerate(inner.split(length)):
            if part is None:
                continue
            if index > 0 or place(part) != own_place:
                writes[place(part)] += 1
            reads[place(part)] += 1
            waiting.append((part, part_length, place(part)))
    return writes, reads


def memory(part):
    return "fast" if part.offload is None else "slow"


def slot(part):
    return part.slot


# offloaded


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("n", [n for n in LENGTHS if n > 1])
def test_a_checkpoint_of_every_layer_leaves_the_window_in_fast_memory_and_replays_nothing(n, window):
    plan = s.offloaded(s.every(1), window).plan(n)
    assert plan.extra_forwards == 0
    assert plan.peak == max(1, min(window, n - 1))
    assert plan.writes == plan.reads == plan.slow_peak == n - 1  # the last layer is taped at once


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("k", [2, 5, 10, 50])
def test_each_of_k_boundaries_goes_to_slow_memory_once_and_comes_back_once(k, window):
    plan = s.offloaded(s.uniform(k, keep_last=False), window).plan(100)
    assert plan.writes + plan.reads == 2 * k
    assert plan.slow_peak == k
    assert plan.peak == 100 // k - 1 + min(window, k)  # the layers of one segment beside the window
    assert plan.extra_forwards == s.uniform(k, keep_last=False).plan(100).extra_forwards


@pytest.mark.parametrize(
    "schedule",
    [s.sqrt(), s.triangular(), s.bisection(), s.binomial(6), s.binomial(6, early_stop=False), s.mixed(9), s.online(4)],
    ids=str,
)
def test_offloading_changes_where_boundaries_are_and_nothing_else(schedule):
    for n in LENGTHS:
        here, there = schedule.split(n), s.offloaded(schedule, window=3).split(n)
        assert [length for length, _ in here] == [length for length, _ in there]
        assert s.offloaded(schedule).plan(n).extra_forwards == schedule.plan(n).extra_forwards
        for (length, inner), (_, moved) in zip(here, there, strict=True):
            if inner is None:
                assert moved is None
            else:
                assert (moved.offload, moved.early_stop) == (3, inner.early_stop)
                assert moved.split(length) == inner.split(length)


def test_a_number_of_segments_can_be_offloaded():
    assert s.offloaded(10) == s.offloaded(s.uniform(10))


def test_a_window_is_a_whole_number():
    for bad in (0, -1, 1.5, True, "all"):
        with pytest.raises(mg.BudgetError, match="window"):
            s.offloaded(s.sqrt(), bad)
    with pytest.raises(mg.MinigradError, match="a schedule is"):
        s.offloaded("sqrt")


# multistage


@pytest.mark.parametrize(
    "fast, slow, forwards, slow_writes, slow_reads, fast_writes, fast_reads",
    [(5, 5, 322, 15, 34, 40, 65), (3, 7, 322, 28, 57, 27, 42)],
)
def test_published_numbers_of_multistage(fast, slow, forwards, slow_writes, slow_reads, fast_writes, fast_reads):
    schedule = s.multistage(fast, slow, early_stop=False)
    plan = schedule.plan(100)
    assert (plan.total_forwards, plan.writes, plan.reads) == (forwards, slow_writes, slow_reads)
    writes, reads = accesses(schedule, 100, memory)
    assert (writes["slow"], reads["slow"]) == (slow_writes, slow_reads)
    assert (writes["fast"], reads["fast"]) == (fast_writes, fast_reads)


@pytest.mark.parametrize("fast, slow", [(0, 1), (0, 7), (4, 0), *FAST_AND_SLOW])
def test_two_kinds_of_slots_replay_as_little_as_one(fast, slow):
    for n in LENGTHS:
        assert s.multistage(fast, slow, early_stop=False).plan(n).extra_forwards == advances(n, fast + slow)
        assert s.multistage(fast, slow).plan(n).extra_forwards == advances(n, fast + slow) - (n - 1)


@lru_cache(None)
def fewest(n, slots):
    """(advances, writes besides the stretch's own boundary, the longest first part with as few), tried out."""
    if n == 1:
        return 0, 0, 0
    best = []
    for j in [n - 1] if slots == 1 else range(1, n):
        before, after = fewest(j, slots)[:2], fewest(n - j, slots - 1)[:2] if slots > 1 else (0, 0)
        best.append((j + before[0] + after[0], before[1] + after[1] + (n - j > 1), -j))
    forwards, writes, minus_j = min(best)
    return forwards, writes, -minus_j


@pytest.mark.parametrize("slots", range(1, 9))
def test_of_all_splits_with_the_fewest_replays_it_takes_one_with_the_fewest_writes(slots):
    for n in range(2, 50):
        forwards, writes, longest = fewest(n, slots)
        assert tiers.first_part(n, slots) == longest
        plan = s.multistage(0, slots, early_stop=False).plan(n)
        assert (plan.extra_forwards, plan.writes) == (forwards, writes + 1)


@pytest.mark.parametrize("fast, slow", FAST_AND_SLOW)
def test_the_slots_that_are_accessed_most_are_the_fast_ones(fast, slow):
    for n in LENGTHS:
        schedule = s.multistage(fast, slow)
        writes, reads = accesses(schedule, n, slot)
        slots = min(fast + slow, max(n - 1, 1))
        counts = [writes[i] + reads[i] for i in range(slots)]
        assert tiers.slot_accesses(n, slots) == counts
        slow_slots = {part.slot for _, part in schedule.split(n) if part is not None and part.offload}
        idle = min((counts[i] for i in set(range(slots)) - slow_slots), default=0)
        assert len(slow_slots) <= slow and all(counts[i] <= idle or len(slow_slots) == slots for i in slow_slots)


def test_slots_that_are_slow_are_not_always_the_first_ones():
    """With one layer more than fit, the first slot alone is read twice: it is the one to have in fast memory."""
    assert tiers.slot_accesses(12, 10) == [3, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    assert [part.offload for _, part in s.multistage(1, 9).split(12)[:-1]] == [None] + 9 * [1]


def test_multistage_needs_a_slot():
    with pytest.raises(mg.BudgetError, match="no slot for a boundary"):
        s.multistage(0, 0)
    for bad in (-1, 2.5, True, "ten"):
        with pytest.raises(mg.BudgetError, match="fast slots"):
            s.multistage(bad, 1)
        with pytest.raises(mg.BudgetError, match="slow slots"):
            s.multistage(1, bad)


@pytest.mark.parametrize("fast, slow", [(1, 1), (5, 5), (100, 100), (3, 4000), (5000, 5000)])
def test_ten_thousand_layers_are_planned(fast, slow):
    plan = s.multistage(fast, slow).plan(10_000)
    assert plan.slow_peak <= slow


# h_revolve


@pytest.mark.parametrize(
    "fast, slow, forwards, writes, reads",
    [(5, 5, 337, 5, 5), (3, 20, 285, 20, 20), (5, 100, 281, 13, 13)],
)
def test_published_numbers_of_h_revolve(fast, slow, forwards, writes, reads):
    """The last ones are those of Disk-Revolve, which has as many slow slots as it likes."""
    plan = s.h_revolve(fast, slow, early_stop=False).plan(100)
    assert (plan.total_forwards, plan.writes, plan.reads) == (forwards, writes, reads)


def least_time(n, fast, slow, write, read):
    """The recurrence of Herrmann and Pallez for two levels, one length after the other."""
    at_hand, stored = {}, {}
    for length in range(1, n + 1):
        in_fast = advances(length, fast)
        at_hand[length, 0] = in_fast
        for m in range(1, slow + 1):
            splits = [j + at_hand[length - j, m - 1] + read + stored[j, m] for j in range(1, length)]
            stored[length, m] = min([in_fast, *splits])
            at_hand[length, m] = min(in_fast, write + stored[length, m])
    return at_hand[n, slow]


@pytest.mark.parametrize("write, read", [(2, 2), (0, 0), (0, 3), (5, 0.5), (1, 40)])
@pytest.mark.parametrize("fast, slow", [(1, 1), (1, 4), (2, 3), (4, 2)])
def test_replays_and_transfers_take_the_least_time(fast, slow, write, read):
    for n in (1, 2, 3, 7, 16, 45):
        plan = s.h_revolve(fast, slow, write, read, early_stop=False).plan(n)
        time_spent = plan.extra_forwards + write * plan.writes + read * plan.reads
        assert time_spent == least_time(n, fast, slow, write, read)


def test_the_cost_of_transfers_is_what_multistage_leaves_out():
    for fast, slow in FAST_AND_SLOW:
        for n in LENGTHS:
            blind, aware = s.multistage(fast, slow).plan(n), s.h_revolve(fast, slow).plan(n)
            assert aware.extra_forwards >= blind.extra_forwards
            assert spent(aware) <= spent(blind)


def spent(plan):
    return plan.extra_forwards + 2 * plan.writes + 2 * plan.reads


@pytest.mark.parametrize("fast, slow", [(1, 1), (2, 5), (5, 5)])
def test_free_transfers_make_slow_slots_as_good_as_fast_ones_and_dear_ones_useless(fast, slow):
    for n in LENGTHS:
        free, dear = s.h_revolve(fast, slow, 0, 0).plan(n), s.h_revolve(fast, slow, 1e9, 0).plan(n)
        assert free.extra_forwards == advances(n, fast + slow) - (n - 1)
        assert (dear.extra_forwards, dear.writes) == (advances(n, fast) - (n - 1), 0)


def test_without_slow_slots_h_revolve_is_binomial():
    for n in LENGTHS:
        assert s.h_revolve(4, 0).split(n) == s.binomial(5).split(n)


def test_slow_slots_that_are_of_no_use_change_nothing():
    assert s.h_revolve(5, 13).plan(100).slow_peak == 13
    for slow in (14, 50, 1000):
        plan = s.h_revolve(5, slow).plan(100)
        assert (plan.writes, plan.reads, plan.slow_peak) == (13, 13, 13)


def test_a_table_that_would_take_too_long_is_refused_with_what_is_possible():
    with pytest.raises(mg.BudgetError, match="for 10000 layers at most 100 slow slots"):
        s.h_revolve(5, 101).plan(10_000)


def test_a_table_for_ten_thousand_layers_and_ten_slots_takes_little_time():
    plan = s.h_revolve(5, 10).plan(10_000)
    assert plan.slow_peak == 10


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, "2", None])
def test_a_cost_is_a_number_of_forwards(bad):
    with pytest.raises(mg.MinigradError, match="write_cost must be a number of forwards"):
        s.h_revolve(2, 2, write_cost=bad)
    with pytest.raises(mg.MinigradError, match="read_cost must be a number of forwards"):
        s.h_revolve(2, 2, read_cost=bad)


def test_h_revolve_needs_a_fast_slot():
    with pytest.raises(mg.BudgetError, match="fast slots must be a whole number from 1"):
        s.h_revolve(0, 5)
    with pytest.raises(mg.BudgetError, match="slow slots must be a whole number from 0"):
        s.h_revolve(5, -1)


# both


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("fast, slow", FAST_AND_SLOW)
@pytest.mark.parametrize("kind", [s.multistage, s.h_revolve])
def test_neither_memory_ever_holds_more_than_its_slots(kind, fast, slow, early_stop):
    for n in LENGTHS:
        schedule = kind(fast, slow, early_stop=early_stop)
        plan = schedule.plan(n)
        assert plan.slow_peak <= slow
        assert plan.peak <= fast + 2  # a running layer's input and output beside the boundaries
        if n <= 100:
            writes, reads = accesses(schedule, n, memory)
            assert (plan.writes, plan.reads) == (writes["slow"], reads["slow"])


@pytest.mark.parametrize("kind", [s.multistage, s.h_revolve])
def test_early_stop_leaves_out_one_run_of_each_layer_but_the_last(kind):
    for fast, slow in FAST_AND_SLOW:
        for n in LENGTHS:
            early, classic = kind(fast, slow).plan(n), kind(fast, slow, early_stop=False).plan(n)
            assert classic.extra_forwards == early.extra_forwards + n - 1
            assert (classic.writes, classic.reads) == (early.writes, early.reads)


def test_schedules_say_what_they_are():
    assert repr(s.offloaded(s.sqrt())) == "offloaded(sqrt())"
    assert repr(s.offloaded(s.sqrt(), 2)) == "offloaded(sqrt(), window=2)"
    assert repr(s.multistage(5, 5, early_stop=False)) == "multistage(5, 5, early_stop=False)"
    assert repr(s.h_revolve(5, 5)) == "h_revolve(5, 5)"
    assert repr(s.h_revolve(5, 5, 1.5, 3)) == "h_revolve(5, 5, write_cost=1.5, read_cost=3)"
    assert s.h_revolve(5, 5) == s.h_revolve(5, 5, 2.0, 2.0) != s.h_revolve(5, 5, 1)


# another program


def steps_of(their_schedule):
    """(forward steps, disk writes, disk reads) of a schedule of the checkpoint_schedules package."""
    forwards, writes, reads, kind = 0, 0, 0, None
    while kind != "EndReverse":
        action = next(their_schedule)
        kind = type(action).__name__
        if kind == "Forward":
            first, end, is_boundary, _, where = action.args
            forwards += end - first
            writes += is_boundary and where.name == "DISK"
        elif kind in ("Copy", "Move"):
            reads += action.args[1].name == "DISK"
    return forwards, writes, reads


@pytest.mark.parametrize("fast, slow", [(1, 1), (1, 4), (3, 2), (5, 5), (2, 30)])
@pytest.mark.parametrize("n", [2, 3, 7, 16, 33, 64])
def test_checkpoint_schedules_takes_as_many_steps_and_transfers(n, fast, slow):
    theirs = pytest.importorskip("checkpoint_schedules")
    plan = s.multistage(fast, slow, early_stop=False).plan(n)
    expected = steps_of(theirs.MultistageCheckpointSchedule(n, fast, slow))
    assert (plan.total_forwards, plan.writes, plan.reads) == expected
    plan = s.h_revolve(fast, slow, early_stop=False).plan(n)
    forwards, writes, reads = steps_of(theirs.HRevolve(n, fast, slow))
    assert n + spent(plan) == forwards + 2 * writes + 2 * reads
