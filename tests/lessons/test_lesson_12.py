"""What lesson 12 says of eviction on a chain and on a U-net, against plans, a formula, and budgets of its own."""

import pytest

import minigrad as mg
from minigrad import schedules
from minigrad.view import spacetime

pytestmark = pytest.mark.lesson

LAYERS, ROOM = 100, 20


def lru_runs(room):
    """What the picture shows: from the input to the value that is missing, each time room - 1 further down."""
    return sum(range(LAYERS - room, 0, -(room - 1)))


def test_room_for_twenty_costs_eighty_layers_and_no_bit_of_a_gradient(lesson):
    run = lesson("12")
    tracer, budget = run["tracer"], run["traced"]["dtr"]
    assert (tracer.peak_activations, tracer.replayed_ops) == (ROOM, 80) == (ROOM, budget.replayed_ops)
    assert run["same_bits"] is True
    assert run.lines("a tracer sees:") == ["a tracer sees: 20 live at the peak, 80 layers run again"]
    assert schedules.sqrt().plan(LAYERS).peak == 19 and schedules.sqrt().plan(LAYERS).extra_forwards == 81


def test_the_neighbourhood_is_worth_a_plan_and_lru_is_worse_than_dice(lesson):
    run = lesson("12")
    replayed = run["replayed"]
    assert replayed["dtr"] == run["planned"] == schedules.optimal(ROOM).plan(LAYERS).extra_forwards
    assert replayed["lru"] == replayed["local"] == lru_runs(ROOM) > 200
    assert replayed["dtr"] < replayed["random"] < replayed["lru"] < replayed["size"]
    assert {tracer.peak_activations for tracer in run["traced"].values()} == {ROOM}
    assert run.lines("lru  ") == [f"lru    20 live at the peak, {lru_runs(ROOM)} layers run again"]


def test_lru_holds_the_input_and_the_last_and_runs_the_first_layers_again_and_again(lesson):
    run = lesson("12")
    assert run["held"]["lru"] == [1, *range(LAYERS - ROOM + 2, LAYERS + 1)]
    gaps = [b - a for a, b in zip(run["held"]["dtr"], run["held"]["dtr"][1:], strict=False)]
    assert run["held"]["dtr"][0] == 1 and max(gaps) <= 16 and sorted(gaps, reverse=True) == gaps
    assert run["again"]["dtr"] == {0: 20, 1: 80}
    again = run["again"]["lru"]
    assert sum(times * layers for times, layers in again.items()) == lru_runs(ROOM) and max(again) == 5


def test_the_simulator_gives_the_counts_of_the_engine(lesson):
    run = lesson("12")
    counts = run["counts"]
    assert {name for _, name in counts} == {"dtr", "lru", "size"} and {room for room, _ in counts} >= {6, 20, 40}
    for room, name in counts:
        engine, simulated = counts[room, name]
        best = schedules.optimal(room).plan(LAYERS).extra_forwards
        assert engine == simulated >= best and (name != "dtr" or engine <= best * 4 / 3)
        assert name != "lru" or counts[room, "dtr"][0] < engine == lru_runs(room) < counts[room, "size"][0]
    assert counts[6, "dtr"][0] > schedules.optimal(6).plan(LAYERS).extra_forwards  # greedy
    assert run.lines("room for 20") == [
        "room for 20   best plan  80   dtr   80 /   80   lru  210 /  210   size  220 /  220"
    ]
    for layers, room in ((30, 3), (57, 9), (12, 12)):
        net = [mg.randn(2, 2, requires_grad=True) for _ in range(layers)]
        for name, score in run["scores"].items():
            h = x = mg.ones(3, 2)
            with mg.memory_budget(room * x.nbytes, evict=name) as budget:
                for w in net:
                    h = h @ w
                h.sum().backward()
            assert run["simulate"](layers, room, score) == budget.rematerialised


def test_the_u_net_stays_under_the_limit_however_often_its_loop_runs(lesson):
    run = lesson("12")
    assert run["all_same"] is True
    times = [line.split(" ran ")[1].split()[0] for line in run.lines() if "the bottom layer ran" in line]
    assert len(set(times)) == 2
    figures = run["u_net_figures"]
    for image in ("faint", "bright"):
        again = {evict: figures[image, evict][2] for evict in run["heuristics"]}
        assert 0 < again["dtr"] < again["size"] < again["lru"]
        for evict in run["heuristics"]:
            limit, peak, _ = figures[image, evict]
            assert peak <= limit
    dice = {image: figures[image, "random"][2] for image in ("faint", "bright")}
    others = {image: [figures[image, evict][2] for evict in ("dtr", "lru", "local", "size")] for image in dice}
    assert dice["faint"] < min(others["faint"]) and dice["bright"] > max(others["bright"])
    assert run.lines("memory budget of") and run.lines("op  ")


def test_a_budget_too_small_is_refused_and_the_errors_lead_to_one_that_is_not(lesson):
    run = lesson("12")
    assert "in layer 1 needs 256 bytes at once, and the memory budget is 128 bytes" in run["chain_error"]
    assert "12_without_a_plan.py:" in run["chain_error"] and "The least budget found so far is" in run["chain_error"]
    assert [limit // run["x"].nbytes for limit in run["chain_tried"]] == [1, 2, 3]
    assert run["runs_with_least"] > 2000
    tried, least = run["u_net_tried"], run["u_net_least"]
    assert tried == sorted(set(tried)) and len(tried) > 2
    assert tried[-2] < least < tried[-1] < run["wanted"]["faint"]
    assert run["u_net_under"](least)[0].peak_bytes <= least  # less than an error had asked for
    with pytest.raises(mg.BudgetError) as caught:
        run["u_net_under"](least - 2048)
    assert caught.value.least == tried[-1]


def test_the_picture_is_of_these_two_runs(lesson):
    run = lesson("12")
    svg = run.files["12-eviction.svg"].read_text("utf-8")
    assert svg.count("20 live at the peak") == 2 and "80 layers run again" in svg and "210 layers run again" in svg
    assert spacetime.from_run(run["traced"]["lru"]).peak == ROOM
