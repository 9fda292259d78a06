"""What a checkpoint keeps inside its region, and that its replay starts from there: counted, and to the last bit."""

import itertools
import random
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.replay import Call, results
from minigrad.ops.cost import flops
from minigrad.retention import knapsack
from minigrad.retention import policies as p
from minigrad.retention.knapsack import Problem, least_recomputation
from minigrad.retention.recompute import flattened, problem_of, recompute_cost

WIDTH = 6


@mg.op
def cube(x):
    return x * x * x


@cube.vjp("x")
def cube_wrt_x(g, x):
    return g * 3 * x * x


# ---- Regions to try policies on ----------------------------------------------------------------------


class Region:
    """A function of one tensor, and the parameters that it closes over."""

    def __init__(self, kind, seed=0):
        rng = np.random.default_rng(seed)
        self.function = getattr(self, kind)
        self.x = mg.tensor(rng.standard_normal((4, WIDTH)).astype(np.float32), requires_grad=True)
        self.weights = [self.matrix(rng) for _ in range(4)]
        self.layer = mg.nn.TransformerBlock(WIDTH, 2, dropout=0.25)

    def matrix(self, rng):
        return mg.tensor(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2, requires_grad=True)

    def chain(self, h):
        for w in self.weights:
            h = mg.tanh(mg.exp(h @ w * 0.1) + 1)
        return h

    def skips(self, h):
        """A small U-net: what the way down leaves behind is read again on the way up."""
        a = mg.gelu(h @ self.weights[0])
        b = mg.softmax(a @ self.weights[1])
        c = mg.dropout(cube(b @ self.weights[2]), 0.5)
        return mg.cat([mg.sigmoid(c + b) * a, h], axis=-1).sum(axis=0)

    def block(self, h):
        return self.layer(h.unsqueeze(0)).squeeze(0)

    def nested(self, h):
        inner = mg.checkpoint(self.chain, h, policy=p.save_ops("exp"))
        u, v = mg.checkpoint(self.pair, inner * 2)
        return mg.softmax(u @ self.weights[0]) * v.mean()

    def gradient(self, h):
        """A gradient that is computed in here: the replay of a checkpoint in a checkpoint is part of the region."""
        y = mg.checkpoint(self.twice, h)
        (slope,) = mg.grad(y.sum(), [h], create_graph=True)
        return mg.tanh(slope) * y

    def twice(self, h):
        return mg.exp(mg.checkpoint(self.pair, h * 0.5)[0])

    def pair(self, h):
        u = mg.tanh(h)
        return u, mg.exp(u)

    def value_only(self, h):
        """No gradient passes from the second output to the first, which has one of its own."""
        u = mg.exp(h * 0.1)
        return u * mg.tanh(u.detach() @ self.weights[0]).sum()

    @property
    def leaves(self):
        return [self.x, *self.weights, *self.layer.parameters()]

    def run(self, policy=None, plain=False):
        """(output, tracer, gradients) of the function in a checkpoint, or by itself. The output stays alive."""
        mg.manual_seed(3)
        with mg.Tracer() as tracer:
            y = self.function(self.x) if plain else mg.checkpoint(self.function, self.x, policy=policy)
            self.kept = dict(y.node.needs.kept) if y.node.body is not None else {}
            self.body = y.node.body
            self.saved = [(row.node, row.nbytes) for row in mg.saved(y)]
            cotangent = mg.tensor(np.random.default_rng(1).standard_normal(y.shape).astype(np.float32))
            grads = mg.grad(y, self.leaves, cotangent, allow_unused=True)
        return y, tracer, [g.numpy() for g in grads if g is not None]


KINDS = ["chain", "skips", "block", "nested", "value_only", "gradient"]
POLICIES = [
    p.save_nothing(),
    p.save_everything(),
    p.save_ops("matmul", "linear"),
    p.save_ops(cube),
    p.recompute_ops("matmul", "linear", "exp"),
    p.save_named("*linear1", "self_attn"),
    p.every_nth("tanh", 2),
    p.every_other_matmul(),
    p.by_cost(2),
    p.within("200B"),
    p.within("400B"),
    p.within("1KB"),
    p.attention_core(),
    p.save_ops("exp") | p.within("200B"),
    p.save_everything() & ~p.within("200B"),
    p.save_everything() & ~p.save_ops("matmul"),
]


def one(line):
    return 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_gradients_are_the_same_bits_and_nothing_lives_on(kind, policy, same_bits):
    region = Region(kind)
    _, _, plain = region.run(plain=True)
    y, tracer, gradients = region.run(policy)
    same_bits(gradients, plain)
    assert tracer.live_activations == 0 and len(mg.saved(y)) == 0


@pytest.mark.parametrize("kind", ["chain", "skips", "block", "value_only"])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_replay_runs_as_many_ops_as_were_counted(kind, policy):
    region = Region(kind)
    _, tracer, _ = region.run(policy)
    assert tracer.replayed_ops == recompute_cost(region.body.lines, region.kept, region.body.outputs, one)


@pytest.mark.parametrize("kind", ["chain", "skips", "block", "value_only"])
def test_a_checkpoint_that_keeps_everything_keeps_what_plain_taping_keeps_and_replays_nothing(kind):
    region = Region(kind)
    region.run(plain=True)
    bytes_of_plain = sum(nbytes for _, nbytes in region.saved)
    _, tracer, _ = region.run(p.save_everything())
    assert tracer.replayed_ops == 0
    assert sum(nbytes for _, nbytes in region.saved) == bytes_of_plain


# ---- What each policy keeps ----------------------------------------------------------------------------


def kept_ops(region, policy):
    """The ops whose outputs are kept inside, in the order of the tape."""
    region.run(policy)
    return [line.op.name for line in sorted(region.kept, key=lambda line: line.number)]


@pytest.mark.parametrize(
    "policy, kept",
    [
        (None, []),
        (p.save_nothing(), []),
        (p.save_everything(), ["exp", "tanh"] * 4),
        (p.save_ops("exp"), ["exp"] * 4),
        (p.save_ops("matmul"), ["matmul"] * 4),
        (p.save_ops(mg.matmul, mg.tanh), ["matmul", "tanh"] * 4),
        (p.save_ops("add"), ["add"] * 4),
        (p.recompute_ops("tanh"), ["exp", "add"] * 4),
        (p.every_nth("exp", 2), ["exp", "exp"]),
        (p.every_nth("exp", 3), ["exp", "exp"]),
        (p.every_nth("exp", 4), ["exp"]),
        (p.every_other_matmul(), ["matmul", "matmul"]),
        (p.save_ops("exp") & p.every_nth("exp", 4), ["exp"]),
        (p.save_ops("exp") | p.every_nth("tanh", 4), ["exp", "tanh", "exp", "exp", "exp"]),
        (~p.save_ops("exp", "matmul", "mul", "add"), ["tanh"] * 4),
        (p.by_cost(1.5), ["matmul", "exp", "tanh"] * 4),
    ],
    ids=str,
)
def test_the_buffers_kept_are_those_of_the_policy(policy, kept):
    names = kept_ops(Region("chain"), policy)
    if policy is not None and "by_cost" in repr(policy):
        kept = ["exp", "tanh"] * 4  # no replay needs the matmul when what was made of it is there
    assert names == kept


def test_what_a_replay_would_not_read_is_not_kept():
    """Kept are exp and matmul; but only the last matmul would be read, had its exp not been kept as well."""
    assert kept_ops(Region("chain"), p.save_ops("matmul", "exp")) == ["exp"] * 4


def test_every_region_counts_by_itself():
    region = Region("chain")
    for _ in range(2):
        assert kept_ops(region, p.every_nth("exp", 4)) == ["exp"]


def test_a_replay_starts_from_what_is_kept():
    """Without: 4 matmuls, muls, exps, adds and tanhs. With all matmuls kept: not these."""
    region = Region("chain")
    assert region.run()[1].replayed_ops == 20
    assert region.run(p.save_ops("matmul"))[1].replayed_ops == 16
    assert region.run(p.every_other_matmul())[1].replayed_ops == 18
    assert region.run(p.save_ops("exp"))[1].replayed_ops == 8


def test_layers_are_named_by_their_paths_with_all_that_is_inside_them():
    net = mg.nn.Sequential(*[mg.nn.TransformerBlock(WIDTH, 2) for _ in range(3)])
    x = mg.ones((1, 4, WIDTH), requires_grad=True)

    def layers(*patterns):
        y = mg.checkpoint(net, x, policy=p.save_named(*patterns))
        return {line.layer for line in y.node.needs.kept}

    attention = {f"{i}.self_attn{part}" for i in range(3) for part in ("", ".out_proj")}
    assert layers("*.self_attn") == attention
    assert layers("1.self_attn") == {"1.self_attn", "1.self_attn.out_proj"}
    assert layers("[02].linear?") == {"0.linear1", "2.linear1", "0.linear2"}  # a replay does not read the last layer
    assert {layer.split(".")[0] for layer in layers("1")} == {"1"}
    assert layers("self_attn") == layers("blocks.*") == layers("1.linear") == set()


def test_a_function_of_a_line_is_a_policy():
    seen = []

    def small(line):
        seen.append((line.op.name, line.shape, line.dtype, line.nbytes, line.line))
        return line.op.name == "exp"

    region = Region("chain")
    assert kept_ops(region, small) == ["exp"] * 4
    assert len(seen) == 20  # each op once, when it ran; none in the replay
    assert seen[0][:4] == ("matmul", (4, WIDTH), np.float32, 4 * WIDTH * 4)
    assert seen[0][4].startswith("test_policies.py:")
    assert kept_ops(region, small | p.save_ops("tanh")) == kept_ops(region, p.save_ops("tanh") | small)


def test_a_policy_of_ones_own_sees_the_count():
    class FirstOfEach(p.Policy):
        def keeps(self, line, count):
            return count == 0

    assert kept_ops(Region("chain"), FirstOfEach()) == ["exp", "tanh"]
    assert repr(FirstOfEach()) == "FirstOfEach()"


@pytest.mark.parametrize("never", [p.within(0), p.save_nothing()], ids=str)
def test_policies_combine_the_same_way_when_one_of_them_decides_at_the_end(never):
    region, exps, fourth = Region("chain"), p.save_ops("exp"), p.every_nth("exp", 3)
    assert kept_ops(region, fourth | never) == ["exp", "exp"]
    assert kept_ops(region, exps & ~never) == ["exp"] * 4
    assert kept_ops(region, exps & never) == kept_ops(region, never & exps) == []
    assert kept_ops(region, ~(~fourth | never)) == ["exp", "exp"]
    assert kept_ops(region, ~~fourth & ~never) == ["exp", "exp"]


def test_costs_may_be_seconds_that_one_has_measured():
    seconds = {"matmul": 1e-3, "exp": 5e-3, "tanh": 1e-6, "mul": 1e-6, "add": 1e-6}

    def measured(line):
        return seconds[line.op.name]

    assert kept_ops(Region("chain"), p.by_cost(1e-5, measured)) == ["exp"] * 4
    assert kept_ops(Region("chain"), p.within(96 * 4, measured)) == ["exp"] * 4


@pytest.mark.parametrize(
    "policy, alive", [(p.save_nothing(), False), (p.save_ops("exp"), True), (p.within(0), True)], ids=str
)
def test_a_policy_that_decides_at_the_end_holds_the_region_until_then(policy, alive):
    def region(t):
        u = mg.exp(t * 2)
        self_and_buffer = weakref.ref(u.data)
        u = mg.tanh(u)
        assert (self_and_buffer() is not None) is alive
        references.append(self_and_buffer)
        return u

    references = []
    y = mg.checkpoint(region, mg.ones(3, requires_grad=True), policy=policy)
    assert (references[0]() is not None) is (policy.at_end is False and alive)
    assert y.requires_grad


def test_policies_say_what_they_are():
    assert [repr(policy) for policy in (POLICIES[2], POLICIES[4], POLICIES[6], POLICIES[8])] == [
        "save_ops('matmul', 'linear')",
        "recompute_ops('matmul', 'linear', 'exp')",
        "every_nth('tanh', 2)",
        "by_cost(2)",
    ]
    assert repr(p.within("64KB") | ~p.save_named("a")) == "any_of(within('64.0 kB'), ~save_named('a'))"
    assert repr(p.as_policy(one)) == "one"


# ---- Mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: p.save_ops("mathmul"), "no op is called 'mathmul'; did you mean 'matmul'"),
        (lambda: p.recompute_ops("softmaxx"), "did you mean 'softmax'"),
        (lambda: p.every_nth("mm", 2), "no op is called 'mm'"),
        (lambda: p.save_ops("cube"), "An op of your own goes in as itself"),
        (lambda: p.save_ops(3), "no op is called 3"),
        (lambda: p.save_ops(mg.flatten), "no op is called 'flatten'"),
        (lambda: p.save_ops(), "at least one op"),
        (lambda: p.every_nth("matmul", 0), "whole number n from 1 on, not 0"),
        (lambda: p.every_nth("matmul", True), "whole number"),
        (lambda: p.save_named(), "names of layers"),
        (lambda: p.save_named(3), "names of layers"),
        (lambda: p.by_cost("dear"), "operations per byte"),
        (lambda: p.by_cost(float("nan")), "operations per byte"),
        (lambda: p.within("64 apples"), "64 apples"),
        (lambda: p.within(-1), "from 0 on"),
        (lambda: p.any_of(), "at least one policy"),
        (lambda: p.all_of("matmul"), "a policy is one of mg.policies"),
        (lambda: p.as_policy("matmul"), "a policy is one of mg.policies"),
        (lambda: p.as_policy(mg.matmul), "a policy is one of mg.policies"),
        (lambda: p.as_policy(p.save_nothing), r"call it: mg.policies.save_nothing\("),
        (lambda: p.as_policy(p.Policy), "call it"),
        (lambda: mg.checkpoint(mg.tanh, mg.ones(2, requires_grad=True), policy=3), "a policy is one of mg.policies"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(make, words):
    with pytest.raises(mg.ArgumentError, match=words):
        make()


@pytest.mark.parametrize(
    "text, nbytes",
    [("64KB", 64_000), ("64 kib", 65_536), ("1.5MB", 1_500_000), ("2GiB", 2**31), (".5 tb", 500 * 10**9), ("7", 7)]
    + [("2.01KB", 2010), ("0B", 0), (np.int64(12), 12), (" 1 MiB ", 2**20)],
)
def test_a_budget_is_a_number_of_bytes_or_text(text, nbytes):
    budget = p.within(text).budget
    assert budget == nbytes and type(budget) is int


@pytest.mark.parametrize(
    "text", ["", "MB", "-1KB", "1e3", "1,5MB", "64 K B", "64 bits", "nan", "inf", "٣KB", 1.5, None, True]
)
def test_what_is_no_number_of_bytes_is_an_error_that_shows_what_is(text):
    with pytest.raises(mg.ArgumentError, match='text such as "64MB"'):
        p.within(text)


def test_functions_around_ops_and_trailing_underscores_are_understood():
    assert p.save_ops(mg.conv2d, mg.layer_norm, mg.sum).ops == p.save_ops("conv2d", "layer_norm", "sum").ops


def test_policies_are_imported_when_they_are_asked_for():
    assert mg.policies is p


# ---- The knapsack ------------------------------------------------------------------------------------


def random_problem(rng, length, needed=0.6, sizes=(None, 0, 1, 2, 4, 8, 8)):
    return Problem(
        costs=tuple(rng.choice([0, 1, 2, 5, 10, 50]) for _ in range(length)),
        sizes=tuple(rng.choice(sizes) for _ in range(length)),
        reads=tuple(tuple(sorted(rng.sample(range(i), min(i, rng.choice([0, 1, 1, 2, 3]))))) for i in range(length)),
        needed=frozenset(i for i in range(length) if rng.random() < needed),
    )


def subsets(things):
    return itertools.chain.from_iterable(itertools.combinations(things, n) for n in range(len(things) + 1))


def least_by_trying_all(problem, budget):
    can_be_kept = [line for line, size in enumerate(problem.sizes) if size is not None]
    return min(problem.cost(kept) for kept in subsets(can_be_kept) if problem.nbytes(kept) <= budget)


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_within_the_budget_costs_less(seed):
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(1, 10), rng.choice([0.2, 0.6, 1]))
    for budget in (0, 3, rng.randint(1, 40)):
        kept = least_recomputation(problem, budget)
        assert problem.nbytes(kept) <= budget
        assert problem.cost(kept) == least_by_trying_all(problem, budget)


@pytest.mark.parametrize("seed", range(3))
def test_no_choice_of_twelve_ops_costs_less(seed):
    problem = random_problem(random.Random(seed), 12, sizes=(1, 2, 3, 5))
    budget = sum(problem.sizes) // 3
    assert problem.cost(least_recomputation(problem, budget)) == least_by_trying_all(problem, budget)


def test_greedy_alone_would_not_do():
    """Else the search would be for nothing, and the tests above could not tell whether it is right."""
    worse = 0
    for seed in range(60):
        rng = random.Random(seed)
        problem = random_problem(rng, 9)
        budget = rng.randint(1, 30)
        worse += problem.cost(knapsack.greedy(problem, budget)) > problem.cost(least_recomputation(problem, budget))
    assert worse > 0


def test_keeping_two_readers_saves_what_both_read():
    """Neither of two readers of a dear value saves it alone; a choice by single worths would keep the last line."""
    problem = Problem((100, 1, 1, 40), (None, 2, 2, 4), ((), (0,), (0,), ()), frozenset({1, 2, 3}))
    assert least_recomputation(problem, 4) == {1, 2}


@pytest.mark.parametrize("seed", range(5))
def test_merging_lines_changes_no_cost(seed):
    """What is left to choose from costs the same in both, if it is kept; and nothing that was merged is needed."""
    rng = random.Random(seed)
    problem = random_problem(rng, 12, 0.4)
    merged = knapsack.merged(problem)
    left = [line for line in merged.runs(()) if merged.sizes[line] is not None]
    assert len(left) <= len(problem.runs(()))
    for kept in subsets(left[:8]):
        assert merged.cost(kept) == problem.cost(kept)


def test_a_search_that_is_cut_short_still_fits_and_is_no_worse_than_greedy(monkeypatch):
    problem = random_problem(random.Random(1), 200)
    budget = sum(filter(None, problem.sizes)) // 3
    found = least_recomputation(problem, budget)
    monkeypatch.setattr(knapsack, "WORK", 0)
    short = least_recomputation.__wrapped__(problem, budget)
    assert problem.nbytes(found) <= budget and problem.nbytes(short) <= budget
    assert problem.cost(found) <= problem.cost(short) < problem.cost(())
    assert short == knapsack.greedy(knapsack.merged(problem), budget)


def test_any_fifteen_lines_are_searched_to_the_end():
    """As many states as there are nodes in a binary tree of that depth, and one look at each line in each."""
    assert (2**16 - 1) * 15 <= knapsack.WORK < (2**17 - 1) * 16


def test_equal_lines_need_no_search_of_all_their_combinations(monkeypatch):
    """60 lines of equal size and cost: what greedy finds is seen to be the best at once, also with room to spare."""
    bounds, at_least = [], knapsack.at_least

    def counted(*arguments):
        bounds.append(at_least(*arguments))
        return bounds[-1]

    monkeypatch.setattr(knapsack, "at_least", counted)
    problem = Problem((7,) * 60, (8,) * 60, ((), *[(i,) for i in range(59)]), frozenset(range(60)))
    assert problem.cost(least_recomputation.__wrapped__(problem, 8 * 25 + 5)) == 7 * 35
    assert len(bounds) == 1


# ---- within, on real regions ---------------------------------------------------------------------------


def region_of_few_ops(seed):
    """A random region of at most 12 ops, with values that are read more than once, and of different sizes."""
    rng = random.Random(seed)
    w = mg.tensor(np.random.default_rng(seed).standard_normal((4, 4)) / 3, requires_grad=True)

    def function(t):
        values = [t]
        for _ in range(rng.randint(3, 11)):
            a, b = rng.choice(values[-3:]), rng.choice(values)
            kind = rng.randrange(6)
            if kind == 0:
                values.append(a @ w)
            elif kind == 1:
                values.append(mg.tanh(a))
            elif kind == 2:
                values.append(a * b)
            elif kind == 3:
                values.append(a + b)
            elif kind == 4:
                values.append(mg.exp(a).mean(axis=0, keepdims=True))
            else:
                values.append(mg.softmax(a))
        return values[-1]

    return mg.checkpoint(function, mg.ones((3, 4), requires_grad=True))


@pytest.mark.parametrize("seed", range(12))
def test_within_a_budget_no_choice_of_values_would_save_more(seed):
    """By trying all sets of values, with what the engine itself says that its replay would run."""
    body = region_of_few_ops(seed).node.body
    lines, outputs = body.lines, body.outputs
    assert len(lines) <= 12
    costs = {}
    for kept in subsets(lines):
        nbytes = sum(line.nbytes for line in kept)
        cost = recompute_cost(lines, kept, outputs)
        costs[nbytes] = min(cost, costs.get(nbytes, cost))
    for budget in (0, 100, 200, 300):
        chosen = p.within(budget).choose(lines, outputs)
        assert sum(line.nbytes for line in chosen) <= budget
        best = min(cost for nbytes, cost in costs.items() if nbytes <= budget)
        assert recompute_cost(lines, chosen, outputs) == best


def test_a_body_that_is_there_twice_reads_what_each_of_its_calls_reads():
    region = Region("gradient")
    region.run()
    flat, position = flattened(region.body.lines)
    outer, replayed = [line for line in region.body.lines if isinstance(line, Call)]
    assert replayed.body in [line.body for line in outer.body.lines if isinstance(line, Call)]
    first, second = [op for op in flat if op.line is replayed.body.lines[0]]
    assert (first.depth, second.depth) == (2, 1)
    assert flat[first.reads[0]].line in outer.body.lines
    assert second.reads == (position[replayed.inputs[0]],)


def test_within_a_budget_nested_checkpoints_count_with_what_it_takes_to_run_them():
    region = Region("nested")
    region.run()
    lines, outputs = region.body.lines, region.body.outputs
    ops = [line for line in lines if not isinstance(line, Call)]
    for budget in (4, 100, 200):
        chosen = p.within(budget).choose(lines, outputs)
        assert chosen <= set(ops) and sum(line.nbytes for line in chosen) <= budget
        assert recompute_cost(lines, chosen, outputs) == min(
            recompute_cost(lines, kept, outputs) for kept in subsets(ops) if sum(line.nbytes for line in kept) <= budget
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_has_the_costs_of_the_region_whatever_is_kept(kind):
    region = Region(kind)
    region.run()
    lines, outputs = region.body.lines, region.body.outputs
    problem, ops = problem_of(lines, outputs, flops)
    rng = random.Random(0)
    for _ in range(40):
        kept = [i for i, size in enumerate(problem.sizes) if size is not None and rng.random() < 0.4]
        assert problem.cost(kept) == recompute_cost(lines, {ops[i] for i in kept}, outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_is_never_exceeded_and_a_larger_one_costs_no_more(kind):
    region, before = Region(kind), float("inf")
    for budget in (0, 96, 200, 500, 1000, 2000, 10**6):
        region.run(p.within(budget))
        cost = recompute_cost(region.body.lines, region.kept, region.body.outputs)
        assert sum(array.nbytes for array in region.kept.values()) <= budget and cost <= before
        before = cost
    lines = region.body.lines
    dear = [line for line in lines if isinstance(line, Call)]  # the only thing that a large budget cannot keep
    assert before == 0 or dear


def test_a_nested_checkpoint_is_run_for_its_outputs_unless_what_was_made_of_them_is_kept():
    region = Region("nested")
    region.run()
    lines, outputs = region.body.lines, region.body.outputs
    calls = [line for line in lines if isinstance(line, Call)]
    assert len(calls) == 2
    whole = recompute_cost(lines, (), outputs, one)
    after_first = next(line for line in lines if calls[0].outputs[0] in getattr(line, "inputs", ()))
    assert whole - recompute_cost(lines, {after_first}, outputs, one) == 20 + 1
    assert all(node in calls[0].outputs + calls[1].outputs for call in calls for node in results(call))


def test_the_tape_of_a_deep_region_is_chosen_from_without_recursion():
    def deep(t):
        for _ in range(1500):
            t = mg.tanh(t)
        return t

    x = mg.ones(4, requires_grad=True)
    y = mg.checkpoint(deep, x, policy=p.within(16 * 500))
    assert len(y.node.needs.kept) == 500
    with mg.Tracer() as tracer:
        y.sum().backward()
    assert tracer.replayed_ops == 1000


# ---- Attention ---------------------------------------------------------------------------------------


class PlainBlock:
    """A pre-norm transformer layer of plain ops, as the paper draws it: s rows, b sequences, h features, a heads."""

    def __init__(self, hidden, heads):
        self.hidden, self.heads = hidden, heads
        shapes = dict(
            qkv=(3 * hidden, hidden), out=(hidden, hidden), up=(4 * hidden, hidden), down=(hidden, 4 * hidden)
        )
        rng = np.random.default_rng(0)
        self.weights = {
            name: mg.tensor(rng.standard_normal(shape).astype(np.float32) / 8, requires_grad=True)
            for name, shape in shapes.items()
        }

    def split(self, x):
        return x.reshape(*x.shape[:-1], self.heads, -1).swapaxes(-2, -3)

    def attention(self, x):
        q, k, v = [self.split(part) for part in mg.split(mg.linear(x, self.weights["qkv"]), self.hidden, axis=-1)]
        scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5)
        weights = mg.dropout(mg.softmax(scores), 0.1)
        return mg.linear((weights @ v).swapaxes(-2, -3).reshape(x.shape), self.weights["out"])

    def mlp(self, x):
        return mg.linear(mg.gelu(mg.linear(x, self.weights["up"])), self.weights["down"])

    def __call__(self, x):
        x = x + mg.dropout(self.attention(mg.layer_norm(x, self.hidden)), 0.1)
        return x + mg.dropout(self.mlp(mg.layer_norm(x, self.hidden)), 0.1)


@pytest.mark.parametrize("s, b, h, a", [(24, 2, 16, 4), (8, 3, 32, 2), (64, 1, 16, 8)])
def test_without_the_attention_core_a_layer_keeps_no_bytes_that_grow_with_the_square_of_the_length(s, b, h, a):
    """The paper's s b h (34 + 5 a s / h) and 34 s b h. In float32, and with no masks kept, ours are 64 and 8.

    64 is 4 bytes of 16 rows of h: the inputs of two norms and of qkv, q, k and v, the input of the projection, and in
    the MLP 1 + 4 + 4. And 8 a s / h is 4 bytes of what softmax and its dropout give: s for each row and head.
    """
    block = PlainBlock(h, a)
    x = mg.tensor(np.random.default_rng(1).standard_normal((b, s, h)).astype(np.float32), requires_grad=True) * 1
    assert mg.saved(block(x)).nbytes == s * b * (64 * h + 8 * a * s)
    assert mg.saved(mg.checkpoint(block, x, policy=p.attention_core())).nbytes == s * b * 64 * h
    assert mg.saved(mg.checkpoint(block, x)).nbytes == s * b * 4 * h  # the paper's 2 s b h


def test_the_attention_core_is_all_that_is_replayed_and_gradients_are_the_same_bits(same_bits):
    block = PlainBlock(16, 4)
    x = mg.tensor(np.random.default_rng(1).standard_normal((2, 6, 16)).astype(np.float32), requires_grad=True)
    gradients = []
    for policy in (None, p.attention_core()):
        mg.manual_seed(5)
        with mg.Tracer() as tracer:
            y = block(x) if policy is None else mg.checkpoint(block, x, policy=policy)
            gradients.append([g.numpy() for g in mg.grad(y, [x, *block.weights.values()], mg.ones(y.shape))])
    same_bits(*gradients)
    assert tracer.replayed_ops == 4  # the scores, their scale, softmax, dropout


def core_ops(function, *inputs):
    body = mg.checkpoint(function, *inputs).node.body
    core = p.attention_lines(body.lines)
    assert p.attention_core().choose(body.lines, body.outputs) == set(body.lines) - core
    return [line.op.name for line in body.lines if line in core]


def heads(*shape):
    return [mg.ones(shape, requires_grad=True) for _ in range(3)]


def test_a_mask_belongs_to_the_core_and_two_attentions_are_two_cores():
    def masked(q, k, v):
        scores = mg.where(mg.tril(mg.ones((5, 5), dtype=bool)), q @ k.swapaxes(-1, -2), -1e9)
        return mg.softmax(scores + 1.0) @ v

    def twice(q, k, v):
        return masked(masked(q, k, v), k, v)

    once = ["tril", "matmul", "where", "add", "softmax"]
    assert sorted(core_ops(masked, *heads(2, 5, 3))) == sorted(once) or core_ops(masked, *heads(2, 5, 3)) == once[1:]
    assert core_ops(twice, *heads(2, 5, 3)) == core_ops(masked, *heads(2, 5, 3)) * 2


def test_what_scores_are_scaled_with_is_no_part_of_the_core():
    temperature = mg.tensor(0.5, requires_grad=True)

    def attention(q, k, v):
        return mg.softmax((q @ k.swapaxes(-1, -2)) * mg.exp(mg.exp(temperature))) @ v

    assert core_ops(attention, *heads(2, 5, 3)) == ["matmul", "mul", "softmax"]


def test_a_core_may_be_spelled_with_einsum():
    def attention(q, k, v):
        weights = mg.softmax(mg.einsum("bqd,bkd->bqk", q, k) * 0.5)
        return mg.einsum("bqk,bkd->bqd", weights, v)

    assert core_ops(attention, *heads(2, 5, 3)) == ["einsum", "mul", "softmax"]


def test_the_layer_of_nn_has_its_core_found():
    layer = mg.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    names = core_ops(lambda x: layer(x)[0], mg.ones((2, 5, 8), requires_grad=True))
    assert names[0] == "matmul" and names[-1] == "dropout" and "softmax" in names and names.count("matmul") == 1
    assert "linear" not in names


def test_what_is_no_attention_has_no_core():
    def classify(x, w, v):
        return mg.softmax(x @ w)

    def gates(x, w, v):
        return mg.softmax(mg.linear(x, w)) @ v

    def products(x, w, v):
        return mg.tanh(x @ w) @ v

    def gates_of_products(x, w, v):
        return mg.softmax(mg.linear(x @ w, w)) @ v

    for function in (classify, gates, gates_of_products, products):
        assert core_ops(function, *heads(5, 5)) == []
    q, k, v = heads(2, 5, 3)
    assert core_ops(mg.scaled_dot_product_attention, q, k, v) == []


def test_a_value_that_a_policy_kept_dies_after_its_last_use_in_the_replay(parameter):
    def fn(t):
        a = mg.matmul(t, t)
        for _ in range(6):
            a = mg.tanh(a)
        return a

    loss = mg.checkpoint(fn, parameter(64, 64), policy=mg.policies.save_ops("matmul")).sum()
    with mg.Tracer() as tracer:
        loss.backward()
    replays = [index for index, event in enumerate(tracer.events) if event.kind == "replayed"]
    gone = [index for index, event in enumerate(tracer.events) if event.kind == "gone"]
    assert len(replays) == 6 and gone[0] < replays[-1]


def test_what_a_policy_kept_is_not_sought_in_slow_memory(parameter):
    x, w, gradients = parameter(5, 6), parameter(6, 6, seed=1), []
    for offload in (False, 2):
        h, x.grad = x * 2, None
        for _ in range(3):
            h = mg.checkpoint(
                lambda t: mg.tanh(mg.tanh(t @ w) @ w), h, offload=offload, policy=mg.policies.save_ops("matmul")
            )
        h.sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(*gradients)


def test_the_ops_of_a_policy_are_a_tuple():
    assert isinstance(mg.policies.save_ops("matmul", "tanh").ops, tuple)


def test_the_greedy_choice_takes_what_saves_most_for_its_bytes():
    assert knapsack.greedy(Problem((10, 1), (8, 8), ((), ()), frozenset({0, 1})), 8) == {0}
