"""Unequal layers: the best persistent schedule within a budget, against brute force, other solvers, and the engine."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import schedules as s
from minigrad.schedules import LayerCosts, exhaustive_optimum, hetero
from minigrad.schedules.hetero import Needs, Table
from minigrad.schedules.layer_costs import SIZES
from tests.checkmate import cheapest, training_graph


def published(activations, tapes, forward, backward):
    """A chain as papers have it: its last layer is a loss without size and time, and gradients count."""
    sizes = activations[1:]
    return LayerCosts(activations[0], sizes, tapes, [*forward, 0], [*backward, 0], gradient_bytes=sizes)


THREE_EQUAL = published([1, 1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1], [1, 1, 1])
FOUR = published([2, 3, 1, 2, 1, 0], [5, 2, 6, 1, 0], [2, 1, 4, 1], [4, 2, 8, 2])
FIVE = published([4, 4, 2, 2, 1, 1, 0], [8, 6, 4, 4, 2, 0], [3, 3, 2, 2, 1], [6, 6, 4, 4, 2])
PUBLISHED = [  # costs, {budget: (best persistent schedule, best of all)}
    (THREE_EQUAL, {4: (8, 7), 5: (6, 6)}),
    (FOUR, {11: (27, 27), 12: (27, 26), 15: (26, 26), 16: (25, 25), 17: (24, 24)}),
    (FIVE, {16: (44, 44), 17: (42, 42), 19: (41, 41), 20: (39, 38), 21: (39, 36), 23: (38, 36), 25: (36, 36),
            27: (35, 35), 29: (33, 33)}),
]  # fmt: skip


# ---- Against published values and other solvers --------------------------------------------------------


@pytest.mark.parametrize("costs, values", PUBLISHED, ids=["three equal", "four", "five"])
def test_published_times_of_unequal_chains(costs, values):
    for budget, (persistent, unrestricted) in values.items():
        assert hetero(costs, budget, count_first_run=True).predicted_time == persistent
        assert exhaustive_optimum(costs, budget).time == unrestricted


@pytest.mark.parametrize("costs, least", [(THREE_EQUAL, 4), (FOUR, 11), (FIVE, 16)])
def test_an_impossible_budget_is_told_the_least_possible_one(costs, least):
    for solve in (functools.partial(hetero, count_first_run=True), exhaustive_optimum):
        for budget in (0, 1, least - 1):
            with pytest.raises(mg.BudgetError, match=rf"in {budget} B; the least possible is {least} B"):
                solve(costs, budget)
        solve(costs, least)


def test_letting_go_of_a_tape_early_can_be_faster_than_any_persistent_schedule():
    best = exhaustive_optimum(THREE_EQUAL, 4)
    assert best.time == 7 and hetero(THREE_EQUAL, 4, count_first_run=True).predicted_time == 8
    runs = [move for move in best.moves if move.startswith(("tape", "run"))]
    assert sorted(move[-1] for move in runs) == ["0", "0", "1", "2", "3"]  # only the first layer runs twice


@pytest.mark.parametrize("output_is_read, best", [(1, 4), (0, 3)])
def test_an_output_that_backward_reads_must_be_there(output_is_read, best):
    """Three layers, of which the first must let go of its output for the sake of the third."""
    costs = LayerCosts(
        1, (1, 1, 0), (1, 1, 1), forward=1, backward=0, reads_input=(True, False, True),
        last_kept_bytes=0, held_output_bytes=(output_is_read, 0, 0),
    )  # fmt: skip
    assert exhaustive_optimum(costs, 3).time == best


def random_costs(rng, layers, engine=True):
    """A chain whose every field is a random small number, often 0. Without `engine` as papers have it."""

    def row(high, low=0):
        return rng.integers(low, high, layers).tolist()

    output, inner, early = row(5, low=1), row(5), {}
    if engine:
        held = [size * is_read for size, is_read in zip(output, row(2), strict=True)]
        early = {"last_forward": row(3), "last_kept_bytes": inner, "last_extra": row(2), "held_output_bytes": held}
        early |= {"reads_input": [True, *row(2)[1:]], "passing_extra": row(3)}
    return LayerCosts(
        int(rng.integers(1, 5)), output, [a + b for a, b in zip(output, inner, strict=True)],
        forward=row(5, low=1), backward=row(5), forward_extra=[3 + n for n in row(2)],
        taped_extra=row(3), backward_extra=row(2), gradient_bytes=row(3), **early,
    )  # fmt: skip


def budgets(costs, rng, count, **options):
    """Random budgets from the least possible one to one that is ample."""
    least = hetero(costs, 10**6, **options).least_budget
    return rng.integers(least, max(costs.store_all_bytes + 4, least + 1), count).tolist()


@pytest.mark.parametrize("engine", [False, True])
def test_the_unrestricted_optimum_is_never_worse_and_sometimes_better(engine):
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(150):
        costs = random_costs(rng, int(rng.integers(1, 5)), engine)
        for budget in budgets(costs, rng, 1, count_first_run=True):
            persistent = hetero(costs, budget, count_first_run=True).predicted_time
            gains.append(persistent - exhaustive_optimum(costs, budget).time)
    assert min(gains) == 0
    assert 5 <= sum(gain > 0 for gain in gains) <= 75


def plain_recurrence(costs, budget, count_first_run):
    """The recurrence, written down as it stands: the least time, or inf."""
    a, g, h = costs.activations, (None, *costs.gradient_bytes), (None, *costs.held_output_bytes)

    @functools.cache
    def best(start, stop, memory, in_the_middle):
        first_run = stop == costs.layers
        waits = g[stop] if first_run else g[stop] + h[stop]
        may_go = in_the_middle and not costs.reads_input[start] and not h[start]

        def fits(in_forward, in_backward):
            counts = count_first_run or not first_run
            return memory >= max(a[start] + waits + in_forward if counts else 0, a[start] * (not may_go) + in_backward)

        kept, time = costs.kept_bytes[start], costs.forward[start] + costs.backward[start]
        beside = g[start + 1] + costs.backward_extra[start]
        taped = kept + costs.taped_extra[start], kept + beside if beside or stop == start + 1 else -a[start]
        if stop == start + 1:
            if not first_run:
                kept, time = costs.last_kept_bytes[start], costs.last_forward[start] + costs.backward[start]
                taped = kept + costs.last_extra[start], kept + waits + costs.backward_extra[start]
            return time if fits(*taped) else math.inf
        times = []
        if fits(*taped):
            held = a[start] * (not may_go) + kept - a[start + 1]
            times.append(time + best(start + 1, stop, memory - held, True))
        for cut in range(start + 1, stop):
            extra = costs.forward_extra if first_run else costs.passing_extra
            inner = [a[i] + a[i + 1] + extra[i] for i in range(start + 1, cut)]
            if fits(max([a[start + 1] + costs.forward_extra[start], *inner]), 0):
                rest = best(cut, stop, memory - a[start], True)
                times.append(sum(costs.forward[start:cut]) + rest + best(start, cut, memory, False))
        return min(times, default=math.inf)

    return best(0, costs.layers, budget, False)


@pytest.mark.parametrize("count_first_run", [False, True])
def test_the_table_gives_what_the_plain_recurrence_gives(count_first_run):
    rng = np.random.default_rng(1)
    for _ in range(60):
        costs = random_costs(rng, int(rng.integers(1, 8)))
        least = hetero(costs, 10**6, count_first_run=count_first_run).least_budget
        assert plain_recurrence(costs, least - 1, count_first_run) == math.inf
        for budget in [least, *budgets(costs, rng, 3, count_first_run=count_first_run)]:
            schedule = hetero(costs, budget, count_first_run=count_first_run)
            assert schedule.predicted_time == plain_recurrence(costs, budget, count_first_run)
            assert schedule.predicted_bytes <= budget
            assert schedule.predicted_time == plain_recurrence(costs, schedule.predicted_bytes, count_first_run)


@pytest.mark.parametrize("layers", [10, 16, 32, 64, 100])
def test_equal_layers_are_the_uniform_optimum_under_strict_counting(layers):
    costs = LayerCosts.unit(layers)
    for slots in (3, 5, 8, 14, 19):
        schedule = hetero(costs, slots, count_first_run=True)
        replayed = schedule.predicted_time - costs.store_all_time
        assert replayed == s.optimal(min(slots, layers)).plan(layers).extra_forwards


@pytest.mark.parametrize(
    "layers, slots, replayed", [(10, 3, 16), (32, 5, 47), (64, 15, 49), (100, 4, 516), (100, 14, 86)]
)
def test_published_replays_of_equal_layers(layers, slots, replayed):
    costs = LayerCosts.unit(layers)
    assert hetero(costs, slots, count_first_run=True).predicted_time == costs.store_all_time + replayed


def test_the_input_of_a_replayed_stretch_stays_although_its_first_layer_does_not_read_it():
    """Layers 1 and 2 are replayed. Backward of layer 1 does not read layer 0's output, which is held nevertheless."""
    costs = LayerCosts(
        1, (4, 4, 4, 3), (4, 8, 7, 4), forward=(4, 4, 2, 5), backward=1,
        reads_input=(True, False, True, True), last_kept_bytes=(0, 4, 3, 1),
    )  # fmt: skip
    schedule = hetero(costs, 16)
    lengths, inner = zip(*schedule.split(4), strict=True)
    assert lengths == (1, 2, 1) and inner[1].split(2) == [(2, None)]
    assert schedule.predicted_bytes == 1 + 4 + 4 + 4 + 3


class Tree(s.Schedule):
    def __init__(self, parts):
        self.made = parts

    def split(self, n):
        return self.made


@functools.cache
def trees(n):
    """All trees of stretches over n layers."""
    found = []
    for cuts in itertools.product([False, True], repeat=n - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [n]
        lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        choices = [[(k, None)] + [(k, tree) for tree in (trees(k) if k < n else [])] for k in lengths]
        found += [Tree(list(parts)) for parts in itertools.product(*choices)]
    return found


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
def test_no_tree_of_checkpoints_replays_less_in_as_many_activations(layers):
    plans = [tree.plan(layers) for tree in trees(layers)]
    costs = LayerCosts.unit(layers)
    least = min(plan.peak for plan in plans)
    assert hetero(costs, layers).least_budget == least
    for slots in range(least, layers + 1):
        schedule = hetero(costs, slots)
        best = min(plan.extra_forwards for plan in plans if plan.peak <= slots)
        assert schedule.predicted_time - costs.store_all_time == best == schedule.plan(layers).extra_forwards
        assert schedule.predicted_bytes == schedule.plan(layers).peak <= slots


# ---- Against an integer program ------------------------------------------------------------------------

UNEQUAL_FIVE = {"sizes": [4, 1, 3, 2], "costs": [2, 5, 1, 4, 1]}


def as_costs(sizes, costs):
    """The chain of `training_graph` as LayerCosts: a layer keeps its output for the next, and nothing else."""
    kept = [*sizes, 0]
    return LayerCosts(0, kept, kept, forward=costs, backward=0, last_forward=0, last_kept_bytes=0)


def test_unequal_chain_of_the_integer_program():
    costs = as_costs(**UNEQUAL_FIVE)
    assert [exhaustive_optimum(costs, budget).time for budget in range(5, 11)] == [20, 15, 15, 15, 15, 13]
    with pytest.raises(mg.BudgetError, match="least possible is 5 B"):
        exhaustive_optimum(costs, 4)


@pytest.mark.parametrize("layers, replayed", [(4, [1, 0]), (5, [2, 1, 0]), (6, [4, 2, 1, 0])])
def test_an_integer_program_finds_the_same_replays(layers, replayed):
    pytest.importorskip("scipy", reason="the integer program needs SciPy")
    graph = training_graph(layers)
    assert [cheapest(graph, budget) for budget in range(1, layers)] == [None, *[layers + r for r in replayed]]
    costs = LayerCosts.unit(layers)
    for budget, again in enumerate(replayed, 2):
        strict = hetero(costs, budget + 1, count_first_run=True)  # the program does not count the input
        assert strict.predicted_time - costs.store_all_time == again


def test_an_integer_program_takes_skips():
    pytest.importorskip("scipy", reason="the integer program needs SciPy")
    graph = training_graph(6, skips=[(1, 4)])
    assert [cheapest(graph, budget) for budget in (2, 3, 4, 5)] == [None, 6 + 2, 6 + 1, 6]


def test_an_integer_program_agrees_on_unequal_layers():
    pytest.importorskip("scipy", reason="the integer program needs SciPy")
    graph = training_graph(5, **UNEQUAL_FIVE)
    assert [cheapest(graph, budget) for budget in range(4, 12)] == [None, 20, 15, 15, 15, 15, 13, 13]
    rng = np.random.default_rng(2)
    for _ in range(5):
        sizes, times = rng.integers(1, 5, 3).tolist(), rng.integers(1, 5, 4).tolist()
        costs, graph = as_costs(sizes, times), training_graph(4, sizes, times)
        least = next(b for b in range(20) if cheapest(graph, b) is not None)
        for budget in range(least, sum(sizes) + 1):
            assert exhaustive_optimum(costs, budget).time == cheapest(graph, budget)
        with pytest.raises(mg.BudgetError, match=f"least possible is {least} B"):
            exhaustive_optimum(costs, least - 1)


# ---- Through the engine --------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 3, 7, 16, 100])
def test_the_reference_chain_runs_as_predicted(chain, same_bits, layers):
    net, costs = chain(layers), LayerCosts.unit(layers)
    _, plain = net.run(s.store_all())
    least = hetero(costs, layers).least_budget
    for slots in {least, min(layers, 5), min(layers, 14), layers}:
        schedule = hetero(costs, slots)
        tracer, gradients = net.run(schedule)
        assert tracer.peak_activations == schedule.predicted_bytes <= slots
        assert tracer.replayed_ops == schedule.predicted_time - costs.store_all_time
        assert tracer.live_activations == 0
        same_bits(gradients, plain)


# Which buffers backward reads: a product its input, tanh its own output, a sum none.
PRODUCT, BENT, BENT_FIRST, TANH, SHIFT = "h @ W", "tanh(h @ W)", "tanh(h) @ W", "tanh(h)", "h + 1"
FIRST_OP = {PRODUCT: "matmul", BENT: "matmul", BENT_FIRST: "tanh", TANH: "tanh", SHIFT: "add"}


class Dense:
    def __init__(self, weight, kind):
        self.weight, self.kind = weight, kind

    def __call__(self, h):
        if self.kind in (TANH, BENT_FIRST):
            h = mg.tanh(h)
        if self.kind in (PRODUCT, BENT, BENT_FIRST):
            h = h @ self.weight
        if self.kind == BENT:
            h = mg.tanh(h)
        return h + 1 if self.kind == SHIFT else h


def is_vague(kind, next_kind):
    """Whether an output that the layer's backward reads is held before that only if the next layer is not taped."""
    return kind in (BENT, TANH) and next_kind in (BENT_FIRST, TANH, SHIFT)


def costs_of_dense(size_in, size_out, time, kind, next_kind):
    """What such a layer costs."""
    row = dict.fromkeys(("forward_extra", "taped_extra", "held_output_bytes"), 0)
    row |= dict.fromkeys(("last_forward", "last_kept_bytes", "last_extra", "passing_extra"), 0)
    row |= {"output_bytes": size_out, "kept_bytes": 0 if next_kind is None else size_out}
    row["reads_input"] = kind in (PRODUCT, BENT)
    if kind in (BENT, TANH):  # when it is replayed as the last, its output is at hand, and nothing needs to run
        row["kept_bytes"] = row["held_output_bytes"] = size_out
        if is_vague(kind, next_kind):
            row["last_forward"] = time
    if kind == BENT:
        row["forward_extra"] = row["taped_extra"] = size_out
        row["passing_extra"] = max(0, size_out - size_in)
        row["last_extra"] = size_out * (row["last_forward"] > 0)
    if kind == BENT_FIRST:  # it keeps the tanh inside, which it needs in any case
        row["forward_extra"], row["passing_extra"] = size_in, max(0, size_in - size_out)
        row["kept_bytes"], row["last_kept_bytes"], row["last_forward"] = row["kept_bytes"] + size_in, size_in, time
    return row


class UnequalChain:
    """Layers of these widths, the first one that of the input."""

    def __init__(self, widths, kinds, times):
        rng = np.random.default_rng(0)
        self.x = mg.tensor(rng.standard_normal((3, widths[0])).astype(np.float32))
        shapes = zip(widths[:-1], widths[1:], strict=True)
        weights = [mg.tensor(rng.standard_normal(shape), np.float32, requires_grad=True) for shape in shapes]
        self.layers = [Dense(*pair) for pair in zip(weights, kinds, strict=True)]
        self.weights = [weight for weight, kind in zip(weights, kinds, strict=True) if kind not in (TANH, SHIFT)]
        sizes, next_kinds = [3 * 4 * width for width in widths], [*kinds[1:], None]
        rows = map(costs_of_dense, sizes[:-1], sizes[1:], times, kinds, next_kinds)
        self.times, self.costs = times, LayerCosts(sizes[0], forward=times, backward=0, **columns(list(rows)))
        self.is_vague = any(map(is_vague, kinds, next_kinds))

    def run(self, schedule):
        for weight in self.weights:
            weight.grad = None
        with mg.Tracer() as tracer:
            loss = mg.checkpoint_sequential(self.layers, schedule, self.x).sum()
            loss.backward()
        return tracer, [weight.grad.numpy() for weight in self.weights]

    def counted_time(self, tracer):
        """The times of the layers that replays have run; a layer of two ops counts with its first one."""
        replayed = [(int(event.layer), event.op) for event in tracer.events if event.kind == "replayed"]
        counted = [layer for layer, op in replayed if op == FIRST_OP[self.layers[layer].kind]]
        return sum(self.times) + sum(self.times[layer] for layer in counted)


def columns(rows):
    """A list of dicts as a dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def unequal_chains(*kinds):
    """Chains of one to twelve layers: of each its width, its kind and its time."""
    layer = st.tuples(st.integers(1, 30), st.sampled_from(kinds), st.integers(1, 9))
    return st.builds(chain_of, st.integers(1, 30), st.lists(layer, min_size=1, max_size=12))


def chain_of(width, layers):
    """The first layer is a product; a layer without a weight is as wide as the one before."""
    widths, kinds, times = [width], [], []
    for width, kind, time_taken in layers:
        kinds.append(kind if kinds else PRODUCT)
        widths.append(widths[-1] if kinds[-1] in (TANH, SHIFT) else width)
        times.append(time_taken)
    return UnequalChain(widths, kinds, times)


@settings(max_examples=40)
@given(unequal_chains(PRODUCT), st.floats(0, 1), st.sampled_from([3, 17, 500]))
def test_products_of_unequal_widths_hold_and_take_what_was_predicted(net, share, slots):
    least = hetero(net.costs, "1 GB").least_budget
    schedule = hetero(net.costs, least + int(share * (net.costs.store_all_bytes - least)), slots)
    tracer, _ = net.run(schedule)
    assert tracer.peak_activation_bytes == schedule.predicted_bytes <= schedule.budget
    assert net.counted_time(tracer) == schedule.predicted_time


@settings(max_examples=80)
@given(unequal_chains(*FIRST_OP), st.floats(0, 1))
def test_layers_of_several_ops_stay_within_the_budget(net, share):
    _, plain = net.run(s.store_all())
    least = hetero(net.costs, "1 GB").least_budget
    schedule = hetero(net.costs, least + int(share * (net.costs.store_all_bytes - least)))
    tracer, gradients = net.run(schedule)
    assert tracer.peak_activation_bytes <= schedule.predicted_bytes <= schedule.budget
    assert net.counted_time(tracer) <= schedule.predicted_time
    if not net.is_vague:
        assert net.counted_time(tracer) == schedule.predicted_time
    assert tracer.live_activations == 0
    assert [a.tobytes() for a in gradients] == [b.tobytes() for b in plain]


# ---- Long chains and coarse tables ---------------------------------------------------------------------


def long_chain(layers, seed=0):
    """Sizes over four orders of magnitude."""
    rng = np.random.default_rng(seed)
    output, inner = (10 ** rng.uniform(3, 7, layers)).astype(int), (10 ** rng.uniform(3, 7, layers)).astype(int)
    return LayerCosts(10**6, output.tolist(), (output + inner).tolist(), rng.random(layers).tolist(), 1.0)


def test_two_hundred_layers_in_five_hundred_steps():
    costs = long_chain(200)
    schedule = hetero(costs, costs.store_all_bytes // 4)
    assert 0.95 * schedule.budget < schedule.predicted_bytes <= schedule.budget
    assert 1 < schedule.predicted_time / costs.store_all_time < 1.2


@pytest.mark.parametrize("slots", [1, 5, 50, 500])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_coarse_table_costs_time_but_never_the_budget(slots, seed):
    costs = long_chain(40, seed)
    least = hetero(costs, "1 TB").least_budget
    fine = {budget: hetero(costs, budget, 2000).predicted_time for budget in (least, 2 * least, 4 * least)}
    for budget, time_in_a_fine_table in fine.items():
        schedule = hetero(costs, budget, slots)
        assert schedule.predicted_bytes <= budget
        assert schedule.predicted_time >= 0.99 * time_in_a_fine_table
        if slots >= 50:
            assert schedule.predicted_time <= 1.05 * time_in_a_fine_table


def test_a_tight_budget_in_a_coarse_table_costs_little():
    rng, excess = np.random.default_rng(4), []
    for _ in range(4):
        output, inner = rng.integers(10**5, 10**7, 50), rng.integers(0, 2 * 10**7, 50)
        costs = LayerCosts(10**6, output.tolist(), (output + inner).tolist(), rng.random(50).tolist(), 1.0)
        least = hetero(costs, "10 GB").least_budget
        for budget in (least, int(1.05 * least)):
            coarse, fine = (hetero(costs, budget, slots).predicted_time for slots in (20, 500))
            excess.append(coarse / fine - 1)
    assert np.mean(excess) < 0.05


def scaled(costs, factor):
    """The same chain with all sizes times a factor."""
    sizes = {name: tuple(size * factor for size in getattr(costs, name)) for name in SIZES}
    return dataclasses.replace(costs, input_bytes=costs.input_bytes * factor, **sizes)


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 20])
def test_no_rounding_breaks_a_budget(slots):
    rng = np.random.default_rng(3)
    for _ in range(25):
        costs = scaled(random_costs(rng, 12), 1000)
        costs = dataclasses.replace(costs, kept_bytes=[size + int(rng.integers(1000)) for size in costs.kept_bytes])
        least = hetero(costs, "1 GB").least_budget
        for budget in (least, int(1.1 * least), int(1.5 * least)):
            assert hetero(costs, budget, slots).predicted_bytes <= budget


@pytest.mark.parametrize("factor", [1000, 1_000_003])
def test_sizes_with_a_common_divisor_are_not_rounded(factor):
    for costs, values in PUBLISHED:
        for budget, (persistent, _) in values.items():
            schedule = hetero(scaled(costs, factor), (budget + 1) * factor - 1, slots=30, count_first_run=True)
            assert schedule.predicted_time == persistent
            assert schedule.predicted_bytes <= budget * factor


@pytest.mark.parametrize("slots", [20, 100])
def test_unfolding_with_exact_bytes_is_never_slower_than_the_rounded_table(slots):
    faster = 0
    for seed in range(5):
        costs = long_chain(30, seed)
        for share in (0.3, 0.5, 0.8):
            budget = int(share * costs.store_all_bytes)
            budget = max(budget, hetero(costs, "1 TB").least_budget)
            rounded = Table(Needs(costs, False), budget, slots).whole[0][-1][-1]
            exact = hetero(costs, budget, slots).predicted_time
            assert exact <= rounded * (1 + 1e-9)
            faster += exact < rounded * (1 - 1e-9)
    assert faster > 5


def test_with_enough_memory_everything_is_taped():
    costs = long_chain(60)
    for budget in (costs.store_all_bytes, costs.store_all_bytes + 1, "1 TB"):
        schedule = hetero(costs, budget)
        assert schedule.split(60) == [(60, None)]
        assert schedule.predicted_time == pytest.approx(costs.store_all_time)
        assert schedule.predicted_bytes == costs.store_all_bytes
    assert hetero(costs, costs.store_all_bytes - 1).split(60) != [(60, None)]


# ---- What one can ask, and mistakes --------------------------------------------------------------------


def test_a_budget_may_be_text_and_errors_are_readable():
    costs = long_chain(20)
    least = hetero(costs, "1 GB").least_budget
    assert hetero(costs, "0.04 GB").budget == 40_000_000
    message = rf"these 20 layers .* in 3\.0 MB \(3,000,000 bytes\); the least possible is .* \({least:,} bytes\)"
    with pytest.raises(mg.BudgetError, match=message):
        hetero(costs, "3 MB")
    with pytest.raises(mg.MinigradError, match="number of bytes"):
        hetero(costs, "much")
    with pytest.raises(mg.BudgetError, match="number of slots"):
        hetero(costs, "1 GB", slots=0)
    with pytest.raises(mg.MinigradError, match="LayerCosts"):
        hetero([1, 2, 3], "1 GB")


def test_the_stretches_of_a_schedule_know_their_own_cost():
    schedule = hetero(LayerCosts.unit(10), 4)
    (length, inner), *_ = schedule.split(10)
    assert (inner.start, inner.stop, inner.budget) == (0, length, 4)
    assert inner.predicted_bytes <= 4 and inner.predicted_time < schedule.predicted_time
    assert inner == schedule.split(10)[0][1] and hash(inner) == hash(schedule.split(10)[0][1])
    assert repr(inner) == f"hetero(layers 0-{length} in 4 B)"


def test_a_schedule_for_one_chain_does_not_split_another():
    schedule = hetero(LayerCosts.unit(10), 4)
    with pytest.raises(mg.MinigradError, match="for the 10 layers that it was made for, and cannot split 9"):
        schedule.plan(9)


def test_a_profile_is_taken_by_its_costs():
    class Measured:
        costs = LayerCosts.unit(5)

    assert hetero(Measured(), 3).predicted_time == 17
    assert exhaustive_optimum(Measured(), 3).time == 17


def test_the_search_for_the_optimum_is_for_tiny_chains():
    with pytest.raises(mg.MinigradError, match="at most 7 layers, not 8"):
        exhaustive_optimum(LayerCosts.unit(8), 8)
    with pytest.raises(mg.MinigradError, match="needs a LayerCosts, not 3"):
        exhaustive_optimum(3, 8)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"kept_bytes": (1, 2, 3)}, "output_bytes speaks of 2 layers, and kept_bytes of 3"),
        ({"output_bytes": (1.5, 2)}, r"output_bytes\[0\] must be a whole number of bytes, not 1.5"),
        ({"output_bytes": (1, -2)}, r"output_bytes\[1\] must be a whole number"),
        ({"input_bytes": "64MB"}, "input_bytes must be a whole number"),
        ({"forward": (1, math.nan)}, r"forward\[1\] must be a time"),
        ({"backward": -1}, r"backward\[0\] must be a time"),
        ({"backward": None}, "needs backward"),
        ({"output_bytes": 1, "kept_bytes": 1}, "as a sequence"),
        ({"output_bytes": (), "kept_bytes": ()}, "at least one layer"),
    ],
)
def test_costs_that_cannot_be(fields, message):
    good = {"input_bytes": 1, "output_bytes": (1, 2), "kept_bytes": (1, 2), "forward": 1, "backward": 1}
    LayerCosts(**good)
    with pytest.raises(mg.MinigradError, match=message):
        LayerCosts(**{**good, **fields})


def test_what_is_not_given_is_as_elsewhere():
    costs = LayerCosts(1, (4e6, 2), (5, 2), forward=(1.5, 2), backward=3, forward_extra=7)
    assert costs.output_bytes == (4_000_000, 2) and costs.backward == (3, 3)
    assert costs.taped_extra == costs.last_extra == (7, 7) and costs.last_kept_bytes == (5, 2)
    assert costs.last_forward == (1.5, 2) and costs.gradient_bytes == costs.backward_extra == (0, 0)
    for count in (0, 2.5, True):
        with pytest.raises(mg.MinigradError, match="whole number of layers"):
            LayerCosts.unit(count)
