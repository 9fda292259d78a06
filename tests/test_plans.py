"""Plans that people can read: printed, compared on the command line, as JSON and back, as PyTorch and JAX programs."""

import functools
import json
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s
from minigrad.commands import plan as plans
from minigrad.schedules import from_json
from minigrad.schedules.report import Part, levels_below, whole
from minigrad.schedules.translate import Lists

FAMILY = [
    s.store_all(), s.from_input(), s.uniform(4), s.uniform(4, keep_last=False), s.uniform(4, early_stop=False),
    s.every(7), s.torch_compatible(5), s.sqrt(), s.triangular(), s.nested(2), s.nested(4), s.bisection(),
    s.bisection(early_stop=False), s.binomial(4), s.binomial(9), s.optimal(5), s.mixed(4), s.online(5),
    s.offloaded(s.sqrt()), s.offloaded(s.nested(4), window=2), s.multistage(3, 3), s.h_revolve(3, 3),
]  # fmt: skip
LENGTHS = [1, 2, 3, 16, 64, 257, 1000]
PAIRS = [(schedule, n) for schedule in FAMILY for n in LENGTHS if getattr(schedule, "segments", 1) <= n]
NUMBERS = ("layers", "peak", "peak_between_ops", "extra_forwards", "total_forwards", "time_factor")
NUMBERS += ("slow_peak", "writes", "reads")


class RandomTree(s.Schedule):
    """A schedule that splits as a seed says; some checkpoints have their input in slow memory."""

    def __init__(self, seed, offload=None, early_stop=True):
        self.seed, self.offload, self.early_stop, self.label = seed, offload, early_stop, f"tree({seed})"

    def split(self, n):
        rng = np.random.default_rng([self.seed, n])
        parts, left = [], n
        while left:
            length = int(rng.integers(1, min(left, max(1, n - 1)) + 1))
            inner = RandomTree(self.seed + 1, [None, None, 1, 2][rng.integers(4)], self.early_stop)
            parts.append((length, inner if length > 1 and rng.random() < 0.7 else None))
            left -= length
        return parts


def random_plan(seed, n=40):
    """Of an even seed a plan whose replays stop early; of an odd one a plan whose replays do not."""
    return RandomTree(100 * seed, early_stop=seed % 2 == 0).plan(n)


def numbers(plan):
    return [getattr(plan, name) for name in NUMBERS]


def lists(schedule, n):
    """The tree as nested lists: neighbouring taped layers as one number, a checkpoint as a list. By recursion."""
    found = []
    for length, inner in schedule.parts(n):
        if inner is not None:
            found.append(lists(inner, length))
        elif found and isinstance(found[-1], int):
            found[-1] += length
        else:
            found.append(length)
    return found


# ---- print(plan) -------------------------------------------------------------------------------------

NESTED = """\
nested(4) on 64 layers: peak 10 activations, 81 layers replayed

  memory  10 activations at the peak, 10 between ops; storing all keeps 64
  time    145 forwards; 1.42 times the time of storing all, if a backward takes two forwards

layers       length  kept as
-----------  ------  -----------------------------------
├─ 1-48      3 x 16  3 checkpoints, each like the first:
│  ├─ 1-12    3 x 4  3 checkpoints
│  └─ 13-16       4  taped in full
├─ 49-60      3 x 4  3 checkpoints
└─ 61-64          4  taped in full
"""


def test_a_plan_prints_its_tree_with_equal_neighbours_as_one_row():
    assert str(s.nested(4).plan(64)).startswith(NESTED)


def test_what_a_plan_costs_comes_first():
    lines = str(s.multistage(5, 5, early_stop=False).plan(100)).splitlines()
    assert lines[0] == "multistage(5, 5, early_stop=False) on 100 layers: peak 7 activations, 222 layers replayed"
    assert lines[2:5] == [
        "  memory  7 activations at the peak, 6 between ops; storing all keeps 100",
        "  time    322 forwards; 1.74 times the time of storing all, if a backward takes two forwards",
        "  slow    5 activations in slow memory at the peak; 15 written to it, 34 read back",
    ]
    assert "slow" not in str(s.sqrt().plan(100))


@pytest.mark.parametrize("schedule, layers", PAIRS, ids=str)
def test_every_plan_fits_a_screen(schedule, layers):
    lines = str(schedule.plan(layers)).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100


def test_a_tree_as_deep_as_its_chain_is_long_is_cut_and_says_so():
    text = str(s.from_input().plan(10_000))
    assert "checkpoint … 9,992 deeper levels" in text and len(text.splitlines()) <= 30


def test_a_line_is_never_too_short_for_the_levels_that_are_drawn():
    tree = s.from_input().plan(10_000).tree(max_depth=10_000, max_rows=10_000)
    assert "├─ 1-9985 " in tree and "  9985  checkpoint … 9,983 deeper levels" in tree
    assert max(map(len, tree.splitlines())) <= 100


def test_a_split_into_many_parts_is_cut_in_the_middle():
    tree = s.triangular().plan(10_000).tree()
    assert len(tree.splitlines()) == 26 and "… 114 more rows" in tree
    assert tree.splitlines()[-1].startswith("└─ 9996-10000")


ROW = re.compile(
    r"(?P<lines>[│├└─ ]*)(?P<first>\d+)(-(?P<last>\d+))? +((?P<count>\d+) x )?(?P<length>\d+)  (?P<kept>.*)"
)


def rows_of(tree):
    """(level, first, last, count, length, words) of each row of a drawing."""
    found = [ROW.fullmatch(line) for line in tree.splitlines()[2:]]
    return [
        (len(row["lines"]) // 3, int(row["first"]), int(row["last"] or row["first"]), int(row["count"] or 1),
         int(row["length"]), row["kept"])
        for row in found
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_what_the_schedule_splits(seed):
    """Without limits a drawing has all of the tree: read back, its rows give the nested lists of the schedule."""
    plan = random_plan(seed)
    stack = [[]]
    for level, first, last, count, length, words in rows_of(plan.tree(max_depth=1000, max_rows=1000)):
        assert count * length == last - first + 1
        del stack[level:]
        if "taped" in words:
            stack[-1].append(length)
        else:
            inner = []
            stack[-1].extend([inner] * count)
            stack.append(inner)
        assert "deeper" not in words
    assert stack[0] == without_leaves(lists(plan.schedule, plan.layers))


def without_leaves(nested):
    """Nested lists as they are drawn: a checkpoint that holds no others has nothing below it."""
    return [part if isinstance(part, int) else without_leaves(part) if lists_in(part) else [] for part in nested]


def lists_in(nested):
    return [part for part in nested if isinstance(part, list)]


@pytest.mark.parametrize("seed", range(12))
def test_hidden_levels_are_counted(seed):
    def depth(nested):
        return max([1 + depth(part) for part in lists_in(nested)], default=0)

    plan = random_plan(seed)
    assert levels_below(whole(plan), {}) == depth(lists(plan.schedule, plan.layers))
    for level, first, _, count, _, words in rows_of(plan.tree(max_depth=1, max_rows=1000)):
        assert level == 1
        if count == 1 and "checkpoint" in words:
            index = [part.first for part in whole(plan).parts()].index(first)
            hidden = levels_below(whole(plan).parts()[index], {})
            assert (f"… {hidden} deeper level" in words) == (hidden > 0)


# ---- JSON --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule, layers", [pair for pair in PAIRS if pair[1] < 300], ids=str)
def test_a_plan_in_json_comes_back_with_the_same_numbers(schedule, layers):
    plan = schedule.plan(layers)
    text = plan.to_json()
    again = from_json(text).plan(layers)
    assert numbers(again) == numbers(plan) and again.segments == plan.segments
    written = json.loads(text)
    assert [written[name] for name in NUMBERS] == numbers(plan) and written["schedule"] == str(schedule)


@pytest.mark.parametrize("seed", range(12))
def test_any_tree_comes_back(seed):
    plan = random_plan(seed)
    again = from_json(plan.to_json()).plan(40)
    assert numbers(again) == numbers(plan)
    assert lists(again.schedule, 40) == lists(plan.schedule, 40)
    assert again.to_json().partition('"layers"')[2] == plan.to_json().partition('"layers"')[2]


def test_a_tree_in_json_has_parts_in_parts():
    tree = json.loads(s.offloaded(s.nested(2), window=3).plan(8).to_json())["tree"]
    assert tree[0] == {
        "layers": [1, 4], "kept": "checkpoint", "offload": 3,
        "parts": [
            {"layers": [1, 2], "kept": "checkpoint", "parts": [{"layers": [1, 2], "kept": "taped"}]},
            {"layers": [3, 4], "kept": "taped"},
        ],
    }  # fmt: skip
    assert tree[-1] == {"layers": [7, 8], "kept": "taped"}
    assert json.loads(s.mixed(2).plan(8).to_json())["tree"][0]["early_stop"] is False


@pytest.mark.parametrize("schedule", [s.binomial(4), s.uniform(5), s.offloaded(s.nested(3))], ids=str)
def test_a_model_runs_under_a_schedule_from_json(chain, same_bits, schedule):
    net = chain(30)
    _, plain = net.run(s.store_all())
    plan = schedule.plan(30)
    tracer, gradients = net.run(from_json(plan.to_json()))
    assert tracer.replayed_ops == plan.extra_forwards and tracer.live_activations == 0
    assert plan.writes or tracer.peak_activations == plan.peak
    same_bits(gradients, plain)


def test_a_depth_limit_leaves_parts_out_and_the_rest_is_no_schedule():
    text = s.from_input().plan(10_000).to_json(max_depth=2)
    tree = json.loads(text)["tree"]
    assert tree[0]["parts"][0] == {"layers": [1, 9998], "kept": "checkpoint", "parts": None}
    with pytest.raises(mg.ArgumentError, match=r"tree\[0\].parts\[0\] is a checkpoint of layers 1-9998 without"):
        from_json(text)


def test_a_tree_that_is_too_deep_for_json_is_an_error_that_says_so():
    plan = s.from_input().plan(1000)
    with pytest.raises(mg.ArgumentError, match="998 levels.*at most 300.*max_depth"):
        plan.to_json()
    with pytest.raises(mg.ArgumentError, match="998 levels.*binomial"):
        plan.torch_code()
    assert len(from_json(s.from_input().plan(302).to_json()).plan(302).to_json()) > 0
    with pytest.raises(mg.ArgumentError, match="nested deeper"):
        from_json('{"tree": ' + "[" * 100_000)


def test_a_schedule_from_json_is_for_its_own_number_of_layers():
    with pytest.raises(mg.ArgumentError, match="cannot split 11 layers"):
        from_json(s.uniform(2).plan(10).to_json()).plan(11)


@pytest.mark.parametrize(
    "tree, match",
    [
        ("not json", "not"),
        ('{"layers": 3}', '"tree"'),
        ('{"tree": []}', '"tree"'),
        ('{"tree": [5]}', r"tree\[0\] is 5"),
        ('{"tree": [{"layers": [1, 2.0], "kept": "taped"}]}', "first, last"),
        ('{"tree": [{"layers": [true, 2], "kept": "taped"}]}', "first, last"),
        ('{"tree": [{"layers": [2, 1], "kept": "taped"}]}', "first, last"),
        ('{"tree": [{"layers": [1, 2], "kept": "lost"}]}', "'lost'"),
        ('{"tree": [{"layers": [1, 2], "kept": "taped"}, {"layers": [4, 5], "kept": "taped"}]}', "starts at layer 4"),
        ('{"tree": [{"layers": [1, 2], "kept": "checkpoint"}]}', "without a list"),
        ('{"tree": [{"layers": [1, 2], "kept": "checkpoint", "parts": []}]}', "without a list"),
        ('{"tree": [{"layers": [1, 3], "kept": "checkpoint", "parts": [{"layers": [1, 2], "kept": "taped"}]}]}',
         r"tree\[0\].parts end at layer 2, not at 3"),
        ('{"tree": [{"layers": [1, 2], "kept": "checkpoint", "offload": 0, "parts": [{"layers": [1, 2], "kept": '
         '"taped"}]}]}', '"offload": 0'),
        ('{"layers": 9, "tree": [{"layers": [1, 2], "kept": "taped"}]}', '"layers" is 9'),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_told_where(tree, match):
    with pytest.raises(mg.ArgumentError, match=match):
        from_json(tree)


def test_a_plan_made_elsewhere_needs_a_tree_only():
    parts = [{"layers": [1, 4], "kept": "checkpoint", "parts": [{"layers": [1, 4], "kept": "taped"}]}]
    schedule = from_json(json.dumps({"tree": [*parts, {"layers": [5, 6], "kept": "taped"}]}))
    assert lists(schedule, 6) == [[4], 2] and str(schedule) == "from_json(a tree on 6 layers)"


def test_a_name_from_elsewhere_cannot_write_on_the_terminal():
    schedule = from_json('{"schedule": "\\u001b[2J\\nall is well", "tree": [{"layers": [1, 1], "kept": "taped"}]}')
    assert str(schedule) == "from_json([2Jall is well on 1 layers)" and "\x1b" not in str(schedule.plan(1))


# ---- Programs for PyTorch and JAX --------------------------------------------------------------------


def definitions(code):
    """What PLAN is in a program: its assignments are evaluated, and nothing else of it."""
    start, end = re.search(r"^(# |C\d+|PLAN)", code, re.M).start(), code.index("\n\n\ndef ")
    names = {}
    exec(code[start:end], {}, names)
    return names["PLAN"]


@pytest.mark.parametrize("schedule, layers", [pair for pair in PAIRS if pair[1] < 300], ids=str)
def test_a_program_has_the_tree_of_its_plan(schedule, layers):
    plan, expected = schedule.plan(layers), lists(schedule, layers)
    for code in (plan.torch_code(), plan.jax_code()):
        compile(code, "program", "exec")
        assert max(map(len, code.splitlines())) <= 100
        found = definitions(code)
        if isinstance(found[0], tuple):
            found = [[length] if is_checkpoint else length for length, is_checkpoint in found]
        assert without_words(found) == expected


def without_words(nested):
    return [without_words(part) if isinstance(part, list) else part for part in nested if not isinstance(part, str)]


@pytest.mark.parametrize("seed", range(12))
def test_a_program_has_any_tree(seed):
    plan = random_plan(seed)
    found = definitions(plan.torch_code())
    found = [([p[0]] if p[1] else p[0]) if isinstance(p, tuple) else p for p in found]
    assert without_words(found) == lists(plan.schedule, plan.layers)


def test_equal_checkpoints_are_written_once():
    assert "PLAN = 9 * [(10, True)] + [(10, False)]" in s.uniform(10).plan(100).torch_code()
    assert len(s.binomial(8).plan(1000).torch_code().splitlines()) < 70
    assert len(Lists(s.nested(10).plan(10_000)).all) == 4


def test_words_in_a_program_are_explained():
    code = s.multistage(2, 2).plan(40).torch_code()
    assert '["host"] + ' in code and '# A list that starts with "host" keeps its input in host memory.' in code
    assert "Checkpoints in others keep their input on the device" in code
    assert "early_stop=False" in s.mixed(3).plan(9).torch_code()
    assert "JAX leaves out what nobody reads" in s.mixed(3).plan(9).jax_code()
    assert "here they stay on the device" in s.offloaded(4).plan(9).jax_code()


MIXED = from_json("""{"tree": [
 {"layers": [1, 6], "kept": "checkpoint", "early_stop": false, "parts": [
  {"layers": [1, 3], "kept": "checkpoint", "parts": [
   {"layers": [1, 3], "kept": "taped"}]},
  {"layers": [4, 6], "kept": "taped"}]},
 {"layers": [7, 9], "kept": "taped"}]}""")


def test_one_checkpoint_may_run_to_its_end_and_another_not():
    code = MIXED.plan(9).torch_code()
    assert definitions(code) == [["whole", [3], 3], 3]
    assert 'early_stop="whole" not in part' in code and '# A list that starts with "whole" runs all' in code


def test_a_program_is_not_written_by_the_name_of_its_schedule():
    """A name that ends the docstring would put what follows among the statements."""
    schedule = from_json('{"schedule": "\\"\\"\\"\\nimport os", "tree": [{"layers": [1, 1], "kept": "taped"}]}')
    assert "import os" not in schedule.plan(1).torch_code().splitlines()
    compile(schedule.plan(1).torch_code(), "program", "exec")


def stand_in(monkeypatch):
    """PyTorch's and JAX's checkpoint, played by minigrad's."""
    torch, jax = types.ModuleType("torch"), types.ModuleType("jax")
    utility = types.ModuleType("torch.utils.checkpoint")

    def torch_checkpoint(function, *arguments, use_reentrant):
        return mg.checkpoint(function, *arguments)

    def jax_checkpoint(function):
        return functools.partial(mg.checkpoint, function)

    utility.checkpoint, jax.checkpoint = torch_checkpoint, jax_checkpoint
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.utils", types.ModuleType("torch.utils"))
    monkeypatch.setitem(sys.modules, "torch.utils.checkpoint", utility)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", types.ModuleType("jax.numpy"))


@pytest.mark.parametrize("schedule", [one for one in FAMILY if one.early_stop and "early" not in str(one)], ids=str)
def test_a_program_costs_what_the_plan_says_with_minigrads_checkpoint_in_it(chain, monkeypatch, schedule):
    """`mg.checkpoint` nests like torch's and JAX's, so their programs can be measured here."""
    stand_in(monkeypatch)
    net, plan = chain(50), schedule.plan(50)
    codes = [plan.jax_code()] if plan.writes else [plan.torch_code(), plan.jax_code()]
    for code in codes:
        program = {"__name__": "program"}
        exec(code, program)
        with mg.Tracer() as tracer:
            program["run"](net.layers, net.x).sum().backward()
        assert tracer.replayed_ops == plan.extra_forwards
        assert plan.writes or tracer.peak_activations == plan.peak
        with pytest.raises(AssertionError):
            program["run"](net.layers[1:], net.x)


@pytest.mark.oracle
def test_pytorch_runs_as_many_layers_as_planned_and_has_as_many_activations_alive(monkeypatch):
    pytest.importorskip("torch")
    from tests.oracle import schedules as in_torch

    for row in in_torch.rows(list):
        assert row.problems == []
    assert in_torch.missing() == set()


@pytest.mark.oracle
def test_pytorch_moves_the_inputs_of_offloaded_checkpoints_to_the_host():
    torch = pytest.importorskip("torch")
    plan, moved = s.offloaded(s.sqrt()).plan(64), []
    program = {"__name__": "program"}
    exec(plan.torch_code(), program)

    def pack(tensor):
        moved.append(tensor.shape)
        return tensor

    def counting(pin_memory):
        return torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)

    program["save_on_cpu"] = counting
    layers = [torch.nn.Linear(4, 4) for _ in range(64)]
    program["run"](layers, torch.ones(2, 4)).sum().backward()
    assert moved == [(2, 4)] * plan.writes


@pytest.mark.oracle
def test_a_program_runs_its_own_example(capsys):
    pytest.importorskip("torch")
    for plan in (s.triangular().plan(20), s.nested(3).plan(30), s.mixed(3).plan(12), MIXED.plan(9)):
        exec(compile(plan.torch_code(), "program", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out == "same gradients as without checkpoints: True\n"


@pytest.mark.oracle
@pytest.mark.parametrize("schedule", [s.uniform(5), s.nested(3), s.binomial(4), s.from_input()], ids=str)
def test_jax_multiplies_as_often_as_planned(capsys, schedule):
    jax = pytest.importorskip("jax")
    plan, program = schedule.plan(20), {"__name__": "program"}
    exec(plan.jax_code(), program)
    weights, x = [jax.numpy.eye(3)] * 20, jax.numpy.ones((2, 3))
    without = [(20, False)] if isinstance(program["PLAN"][0], tuple) else [20]

    def products(jaxpr):
        found = sum(equation.primitive.name == "dot_general" for equation in jaxpr.eqns)
        inner = [getattr(p, "jaxpr", p) for equation in jaxpr.eqns for p in equation.params.values()]
        return found + sum(products(one) for one in inner if hasattr(one, "eqns"))

    def count(tree):
        return products(jax.make_jaxpr(jax.grad(program["loss"]), static_argnums=2)(weights, x, Tree(tree)).jaxpr)

    class Tree(list):
        __hash__ = object.__hash__

    assert count(program["PLAN"]) - count(without) == plan.extra_forwards
    exec(plan.jax_code(), {"__name__": "__main__"})
    assert capsys.readouterr().out == "same gradients as without checkpoints: True\n"


# ---- The command -------------------------------------------------------------------------------------


def printed(capsys, *arguments):
    assert plans.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_command_prints_a_plan(capsys):
    assert printed(capsys) == str(s.sqrt().plan(100)) + "\n"
    assert printed(capsys, "--layers", "64", "--schedule", "nested(4)") == str(s.nested(4).plan(64)) + "\n"
    deep = printed(capsys, "--schedule", "binomial(3)", "--depth", "9")
    assert deep.count("\n") > 100 and "deeper" in deep


def test_the_command_prints_json_and_programs(capsys):
    plan, chosen = s.binomial(5).plan(30), ("--layers", "30", "--schedule", "binomial(5)")
    assert printed(capsys, *chosen, "--json") == plan.to_json() + "\n"
    assert printed(capsys, *chosen, "--json", "--depth", "1") == plan.to_json(max_depth=1) + "\n"
    assert printed(capsys, *chosen, "--torch") == plan.torch_code() + "\n"
    assert printed(capsys, *chosen, "--jax") == plan.jax_code() + "\n"


@pytest.mark.parametrize(
    "text, schedule",
    [
        ("uniform(10)", s.uniform(10)),
        (" triangular ", s.triangular()),
        ("nested(k=4, early_stop=False)", s.nested(4, early_stop=False)),
        ("offloaded(every(1), window=2)", s.offloaded(s.every(1), window=2)),
        ("offloaded(sqrt)", s.offloaded(s.sqrt())),
        ("h_revolve(3, 3, write_cost=0.5)", s.h_revolve(3, 3, write_cost=0.5)),
        ("12", s.uniform(12)),
    ],
)
def test_schedules_are_read_from_text(text, schedule):
    assert plans.parse_schedule(text) == schedule


def test_every_schedule_reads_back_what_it_is_called():
    for schedule in FAMILY:
        assert plans.parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    "text, match",
    [
        ("triangula", "did you mean triangular"),
        ("nested", r"write nested\(k, early_stop=True\)"),
        ("uniform(1, 2, 3, 4)", "too many positional arguments"),
        ("uniform(segments=1, **{})", "'\\*\\*'"),
        ("uniform(0)", "whole number"),
        ("__import__('os').system('touch broken')", "no place"),
        ("__import__('os')", "no schedule '__import__'"),
        ("eval('1')", "no schedule 'eval'"),
        ("Plan(1, 2, 3, 4)", "no schedule 'Plan'"),
        ("hetero(1, 2)", "no schedule 'hetero'"),
        ("store_all().plan", "no place"),
        ("uniform(2 + 2)", "no place"),
        ("uniform({[]: 1})", "no place"),
        ("uniform(lambda: 1)", "no place"),
        ("uniform([x for x in ()])", "no place"),
        ("(", "cannot read"),
        ("", "cannot read"),
        ("\0", "cannot read"),
        ("-" * 10_000 + "1", "cannot read|no place"),
        ("a" + ".a" * 10_000, "cannot read|no place"),
        ("offloaded(" * 10_000, "cannot read"),
        (f"uniform({'1' * 1000})", "cannot read"),
        ("'uniform(10)'", "a schedule is"),
        ("2.5", "a schedule is"),
    ],
)
def test_text_is_never_evaluated(text, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mg.MinigradError, match=match):
        plans.parse_schedule(text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--layers", "0"], "at least one layer"),
        (["--layers", "1000000"], "at most 100,000"),
        (["--schedule", "uniform(101)"], "at most 100"),
        (["--schedule", "binomial(1)"], "the least possible is 2"),
        (["--compare", "--schedule", "uniform(101)"], "at most 100"),
        (["--budget", "5"], "add --compare"),
        (["--compare", "--budget", "0"], "at least 1"),
        (["--compare", "--torch"], "leave out"),
        (["--depth", "0"], "at least 1"),
        (["--depth", "2", "--torch"], "leave out --depth"),
        (["--layers", "1000", "--schedule", "from_input", "--json"], "--depth"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(capsys, arguments, words):
    assert plans.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err and err.startswith("python -m minigrad plan: ")


def compared(capsys, *arguments):
    """schedule -> the cells of its row: M, between, R, forwards, time, and what follows."""
    text = printed(capsys, "--compare", *arguments)
    assert max(map(len, text.splitlines())) <= 100
    rows = [re.split("  +", line) for line in text.splitlines() if re.match(r"\w+\(.*\)  +\d", line)]
    return {name: cells for name, *cells in rows}


@pytest.mark.parametrize("layers", [1, 2, 3, 8, 100, 1000])
def test_a_comparison_has_the_numbers_of_the_plans(capsys, layers):
    rows = compared(capsys, "--layers", str(layers))
    for name, (peak, between, replayed, forwards, time, *_) in rows.items():
        plan = plans.parse_schedule(name).plan(layers)
        assert [plan.peak, plan.peak_between_ops, plan.extra_forwards, plan.total_forwards] == [
            int(cell.replace(",", "")) for cell in (peak, between, replayed, forwards)
        ]
        assert time == f"{plan.time_factor:.2f}"
    assert {name.partition("(")[0] for name in rows} >= {"store_all", "uniform", "triangular", "offloaded"}


def test_a_comparison_of_a_hundred_layers_has_every_family(capsys):
    rows = compared(capsys)
    assert {name.partition("(")[0] for name in rows} == set(plans.functions())
    assert rows["triangular()"] == ["14", "14", "86", "186", "1.29", "86", "*"]
    assert rows["nested(4)"] == ["11", "11", "152", "252", "1.51", "123"]
    assert rows["uniform(10)"][-1] == rows["optimal(14)"][-1] == "*"
    assert rows["offloaded(sqrt())"] == ["10", "10", "81", "181", "1.27", "9", "9", "9"]
    assert [int(row[0]) for row in rows.values()][:19] == sorted([int(row[0]) for row in rows.values()][:19])[::-1]


def test_no_schedule_replays_less_than_what_is_called_the_fewest():
    for layers in (5, 10, 16, 30, 64):
        for plan in [plans.parse_schedule(text).plan(layers) for text in plans.to_compare(layers)]:
            assert plan.writes or plan.extra_forwards >= plans.fewest_replays(layers, plan.peak)


def test_a_budget_leaves_what_fits(capsys):
    text = printed(capsys, "--compare", "--budget", "14")
    rows = compared(capsys, "--budget", "14")
    assert max(int(row[0]) for row in rows.values()) == 14 and "triangular()" in rows and "sqrt()" not in rows
    assert "Fewest replays with at most 14 activations: 86, by binomial(14), optimal(14), triangular()" in text
    text = printed(capsys, "--compare", "--budget", "2")
    assert "Without slow memory, none of these needs less than 3: " in text and "optimal(2) is left out" in text


def test_a_schedule_of_ones_own_is_compared_with_the_others(capsys):
    assert "nested(3)" in compared(capsys, "--schedule", "nested(3)") and "nested(3)" not in compared(capsys)


def test_a_comparison_in_json(capsys):
    rows = json.loads(printed(capsys, "--compare", "--json"))
    by_name = {row["schedule"]: row for row in rows}
    assert by_name["nested(4)"]["extra_forwards"] == 152 and by_name["nested(4)"]["fewest"] == 123
    assert by_name["offloaded(every(1))"]["slow_peak"] == 99 and len(by_name) == len(rows)


def test_ten_thousand_layers_are_compared(capsys):
    assert compared(capsys, "--layers", "10000")["from_input()"][2] == "49,985,001"


def run_as_a_program(arguments, **settings):
    command = [sys.executable, "-W", "error", "-m", "minigrad", "plan", *arguments]
    return subprocess.run(command, capture_output=True, **settings)


def test_the_command_as_a_program():
    child = run_as_a_program(["--layers", "9", "--schedule", "uniform(5)"], encoding="utf-8",
                             env={**os.environ, "PYTHONIOENCODING": "utf-8"})  # fmt: skip
    assert (child.returncode, child.stdout, child.stderr) == (0, str(s.uniform(5).plan(9)) + "\n", "")
    child = run_as_a_program(["--schedule", "sqr"], encoding="utf-8")
    assert child.returncode == 2 and "did you mean sqrt?" in child.stderr and "Traceback" not in child.stderr


def test_a_terminal_without_line_drawing_gets_signs_that_look_like_it():
    child = run_as_a_program(["--schedule", "binomial(3)"], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    text = child.stdout.decode("ascii")
    assert child.returncode == 0 and "|- 1-87" in text and "~ 8 deeper levels" in text and "?" not in text


@pytest.mark.skipif(os.name != "posix", reason="pipes of a shell")
def test_a_reader_may_stop_early():
    command = f"{sys.executable} -m minigrad plan --layers 10000 --schedule 'nested(2)' --json | head -1"
    child = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert child.stdout == '{"schedule": "nested(2)",\n' and child.stderr == ""


def test_a_part_says_what_it_holds():
    part = Part(1, 6, s.uniform(2))
    assert part.length == 6 and part.parts() == [Part(1, 3, s.store_all()), Part(4, 6, None)]
    assert Part(1, 6, None).parts() == []
