"""Checkpoints for a loop of unknown length: what is held while it runs, and the order of what is run again."""


import pytest

import minigrad as mg
from minigrad import schedules as s
from minigrad.schedules.binomial import advances
from minigrad.schedules.online import Treeverse

LENGTHS = [1, 2, 3, 7, 16, 64, 100, 257]
SLOTS = [1, 2, 3, 4, 7, 20, 300]


def backward_order(schedule, n):
    """The layers in the order in which backward runs them, by walking the tree: the last part first."""
    order, waiting = [], with_starts(schedule.split(n), 0)
    while waiting:
        start, length, inner = waiting.pop()
        if inner is None:
            continue
        parts = inner.split(length)
        order += range(start, start + length - layers_left_out(parts, inner.early_stop))
        waiting += with_starts(parts, start)
    return order


def with_starts(parts, start):
    placed = []
    for length, inner in parts:
        placed.append((start, length, inner))
        start += length
    return placed


def layers_left_out(parts, early_stop):
    last, inner = parts[-1]
    return 0 if not early_stop else 1 if inner is None else last


def rows_end(slots):
    """How many steps there are before every new state must take a slot."""
    return (slots + 1) * (slots + 2) // 2 - 1


@pytest.mark.parametrize(
    "slots, order",
    [
        (1, "0,1,2 0,1 0"),
        (1, "0,1,2,3,4 0,1,2,3 0,1,2 0,1 0"),
        (2, "3,4 3 0,1,2 1 0"),
        (2, "7 0,1,2,3,4,5,6 3,4,5 3,4 3 0,1,2 1 0"),
        (3, "10 4,5,6,7,8,9 7,8 7 4,5,6 5 4 0,1,2,3 2 1 0"),
        (4, "3 2 1 0"),
        (4, "3,4 3 2 1 0"),
        (4, "5 2,3,4 3 2 1 0"),
        (4, "6 5 2,3,4 3 2 0,1 0"),
        (4, "7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "9 6,7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "10 9 5,6,7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "10,11 10 9 5,6,7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "12 9,10,11 10 9 5,6,7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (4, "12,13 12 9,10,11 10 9 5,6,7,8 7 6 5 0,1,2,3,4 3 2 1 0"),
        (9, "4 3 2 1 0"),
    ],
)
def test_steps_are_run_again_in_the_published_order(slots, order):
    """Published with Equinox's checkpointed_while_loop; those with four slots are the example of Stumm and Walther."""
    steps = [int(step) for step in order.replace(" ", ",").split(",")]
    assert backward_order(s.online(slots, early_stop=False), max(steps) + 1) == steps


def test_with_four_slots_each_step_from_the_fifth_on_costs_two_more_runs():
    runs = [s.online(4, early_stop=False).plan(n).extra_forwards for n in range(4, 15)]
    assert runs == [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24]


@pytest.mark.parametrize("slots", range(1, 10))
def test_in_the_rows_not_knowing_the_length_costs_one_step(slots):
    for n in range(1, rows_end(slots) + 1):
        known = advances(n, slots) - (n - 1)
        assert s.online(slots).plan(n).extra_forwards == known + (1 if n > slots else 0)


@pytest.mark.parametrize("slots", range(1, 10))
def test_the_rows_end_as_a_triangular_split(slots):
    lengths = [length for length, _ in s.online(slots).split(rows_end(slots))]
    assert lengths == list(range(slots + 1, 1, -1))


@pytest.mark.parametrize("slots", SLOTS)
def test_the_keeper_never_holds_more_than_its_slots_and_always_state_0(slots):
    keeper, stored = s.online(slots).keeper(), []
    for i in range(400):
        drop, store = keeper.step(i)
        for state in drop:
            stored.remove(state)
        if store:
            stored.append(i)
        assert stored == keeper.states
        assert len(stored) <= slots and stored[0] == 0


@pytest.mark.parametrize("slots", SLOTS)
def test_the_parts_lie_between_the_states_that_the_keeper_holds(slots):
    for n in LENGTHS:
        keeper, starts = s.online(slots).keeper(), [0]
        for i in range(n):
            keeper.step(i)
        for length, inner in s.online(slots).split(n):
            assert inner is not None
            starts.append(starts[-1] + length)
        assert starts == [*keeper.states, n]


def test_after_the_rows_the_youngest_state_moves_up_until_others_are_dispensable():
    keeper = s.online(4).keeper()
    held = []
    for i in range(23):
        keeper.step(i)
        held.append(keeper.states)
    assert held[13:] == [
        [0, 5, 9, 12],
        [0, 5, 9, 14],
        [0, 5, 9, 15],
        [0, 5, 15, 16],
        [0, 15, 16, 17],
        [0, 15, 16, 18],
        [0, 15, 16, 19],
        [0, 15, 19, 20],
        [0, 15, 19, 21],
        [0, 15, 19, 22],
    ]


def test_with_one_slot_only_state_0_is_held():
    keeper = s.online(1).keeper()
    assert [keeper.step(i) for i in range(20)] == [((), True)] + 19 * [((), False)]


def test_states_come_in_order():
    keeper = s.online(3).keeper()
    with pytest.raises(mg.MinigradError, match="state 0 is next, not 1"):
        keeper.step(1)
    keeper.step(0)
    with pytest.raises(mg.MinigradError, match="state 1 is next, not 0"):
        keeper.step(0)


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("slots", SLOTS)
def test_a_plan_never_holds_more_than_the_slots_and_the_running_state(slots, early_stop):
    for n in LENGTHS:
        schedule = s.online(slots, early_stop)
        plan = schedule.plan(n)
        assert plan.peak_between_ops <= slots + 1 and plan.peak <= slots + 2
        assert plan.extra_forwards == len(backward_order(schedule, n))


@pytest.mark.parametrize("slots", SLOTS)
def test_early_stop_leaves_out_one_run_of_each_step(slots):
    for n in LENGTHS:
        classic, early = s.online(slots, early_stop=False).plan(n), s.online(slots).plan(n)
        assert classic.extra_forwards == early.extra_forwards + n


def test_each_stretch_is_replayed_as_binomial_checkpointing_would_with_the_slots_that_are_free():
    for slots in (2, 3, 5):
        for n in LENGTHS:
            lengths = [length for length, _ in s.online(slots).split(n)]
            free = [advances(length, slots - older) for older, length in enumerate(lengths)]
            assert s.online(slots).plan(n).extra_forwards == sum(free)


@pytest.mark.parametrize("slots", range(2, 9))
def test_treeverse_is_binomial_with_the_shortest_first_part(slots):
    for n in range(2, 60):
        shortest = min(
            range(1, n), key=lambda j: (j + advances(j, slots - 1) + (advances_or_none(n - j, slots - 2)), j)
        )
        tree = Treeverse(slots, early_stop=False)
        assert tree.split(n)[0][0] == shortest
        assert tree.plan(n).extra_forwards == advances(n, slots - 1)


def advances_or_none(layers, snapshots):
    """Without a snapshot nothing can be advanced over and come back to."""
    return advances(layers, snapshots) if snapshots else 0 if layers == 1 else float("inf")


@pytest.mark.parametrize("slots", [1, 2, 5, 20, 140, 10_000])
def test_ten_thousand_steps_are_planned(slots):
    plan = s.online(slots).plan(10_000)
    assert plan.peak_between_ops <= slots + 1


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "ten"])
def test_the_number_of_slots_must_be_a_whole_number(bad):
    with pytest.raises(mg.BudgetError, match="number of slots"):
        s.online(bad)


def test_equal_schedules_are_equal_and_say_what_they_are():
    assert s.online(4) == s.online(4) != s.online(4, early_stop=False)
    assert repr(s.online(4)) == "online(4)"
    assert repr(s.online(4, early_stop=False)) == "online(4, early_stop=False)"
