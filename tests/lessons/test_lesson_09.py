"""What lesson 09 says of schedules below √L, against formulas, and against a search that knows nothing of schedules."""

import itertools
from math import comb

import pytest

from tests.pebbling import fewest_replays

pytestmark = pytest.mark.lesson

LAYERS = 100
# what plans say is tested elsewhere; these are known (Griewank and Walther 2000, and an exhaustive search)
MEASURED = {
    "sqrt()": (19, 81), "triangular()": (14, 86), "bisection()": (8, 217), "nested(4)": (11, 152),
    "from_input()": (3, 4851), "optimal(7)": (7, 189),
}  # fmt: skip


@pytest.fixture
def run(lesson):
    return lesson("09")


def numbers(line):
    """(planned peak, planned replays, measured peak, measured replays) of a line that compares."""
    planned, measured = line.split("layers:")[1].split(";")
    words = [word for part in (planned, measured) for word in part.replace(",", "").split()]
    return [int(word) for word in words if word.isdigit()]


def test_a_tracer_measures_what_was_planned_in_every_case(run):
    lines = [line for line in run.lines() if "planned peak" in line]
    assert len(lines) == 20
    for line in lines:
        planned_peak, planned_replays, peak, replays = numbers(line)
        assert (planned_peak, planned_replays) == (peak, replays), line


def test_a_hundred_layers_take_14_activations_in_triangular_segments(run):
    assert run["measured"] == MEASURED
    assert run["m"] == 14 and 13 * 14 // 2 < LAYERS <= 14 * 15 // 2
    assert "13 activations would do for 91 layers, 14 for 105" in run.lines()
    lengths = run["shrinking"]
    assert sum(lengths) == LAYERS and all(length <= 14 - place for place, length in enumerate(lengths))


def test_the_same_segments_the_other_way_round_need_nearly_twice_as_many(run):
    lengths = run["shrinking"][::-1]
    held = [boundaries + length - 1 for boundaries, length in enumerate(lengths, start=1)]
    assert run["broken_peak"] == max(held) == 27
    assert (run["repaired_peak"], run["repaired_replays"]) == MEASURED["triangular()"]


def test_segments_within_segments_hold_a_logarithm(run):
    for layers, (peak, replays) in run["deep"].items():
        levels = layers.bit_length() - 1
        assert 2**levels == layers and peak == levels + 1
        assert replays == layers // 2 * levels - (layers - 1)
    assert run["most_runs"] == 6
    for k, (formula, measured) in run["nested"].items():
        assert formula == measured, k


def test_from_the_input_alone_three_activations_will_do_for_any_depth(run):
    for layers, measured in run["from_input"].items():
        assert measured == (3, (layers - 1) * (layers - 2) // 2)


def test_the_longest_stretch_has_as_many_layers_as_there_are_paths(run):
    assert run["agree"] is True
    for slots, runs in itertools.product(range(1, 6), repeat=2):
        words = run["words"](slots, runs)
        assert len(words) == len(set(words)) == comb(slots + runs, slots)
        assert all(word.count("B") <= slots and word.count("R") <= runs for word in words)
        assert all(word.count("B") == slots or word.count("R") == runs for word in words)


def test_a_layer_runs_as_often_as_its_word_has_an_r(run):
    assert [line.endswith("True") for line in run.lines(" ") if "has run as often" in line] == [True] * 4
    assert run.lines("13 slots, 2 runs: 105 layers, peak 14; each has run as often as its word says: True")
    for (slots, runs), counted in run["counted"].items():
        letters = [word.count("R") for word in run["words"](slots, runs)]
        assert counted[:-1] == letters[:-1] and (counted[-1], letters[-1]) == (1, 0)
        assert max(counted) == runs


def test_more_runs_need_fewer_slots(run):
    assert run["slots_needed"] == {1: 99, 2: 13, 3: 7, 4: 5, 5: 4}
    for runs, slots in run["slots_needed"].items():
        assert comb(slots + runs, slots) >= LAYERS > comb(slots - 1 + runs, slots - 1)
    assert run["both"] == 12 and comb(24, 12) >= 1_000_000 > comb(22, 11)


def test_trying_everything_finds_nothing_better(run):
    assert set(run["tried"]) == {(layers, slots) for layers in (4, 5, 6, 7) for slots in range(3, layers + 1)}
    for (layers, slots), (found, planned) in run["tried"].items():
        assert found == planned == fewest_replays(layers, slots, strict=True)


def test_sqrt_replays_the_fewest_for_its_memory_and_bisection_does_not(run):
    enough = run["enough"]
    for name in ("sqrt()", "triangular()", "optimal(7)"):
        assert enough[name] == MEASURED[name][1]
    assert enough["bisection()"] == 157 and enough["nested(4)"] == 124 and enough["from_input()"] == 2401


def test_the_picture_of_words_has_twenty_columns_and_what_was_measured(run):
    assert run["counted"][3, 3] == [3, 3, 3, 2, 3, 3, 2, 3, 2, 1, 3, 3, 2, 3, 2, 1, 3, 2, 1, 1]
    assert "20 layers, 20 paths" in run.files["09-words.svg"].read_text("utf-8")
    assert "6 measured, all as planned" in run.files["09-pareto.svg"].read_text("utf-8")
