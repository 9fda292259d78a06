"""Some random programs against their plain twins, and faults thrown into one; `make fuzz` runs many more."""

import ast
import warnings
from pathlib import Path

import pytest

import minigrad as mg

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, seed, settings  # noqa: E402

from tests.fuzz import faults, programs  # noqa: E402
from tests.mutants.mutate import changes, choose  # noqa: E402

SEED, PROGRAMS = 20, 150


def test_random_programs_are_to_the_bit_what_their_plain_twins_are():
    print("seed", SEED)
    with_checkpoints = []

    @seed(SEED)
    @settings(max_examples=PROGRAMS, database=None, derandomize=False, suppress_health_check=list(HealthCheck))
    @given(programs.programs())
    def check(drawn):
        steps, form, budget = drawn
        text = programs.write(steps)
        wrong = programs.differences(text, form, budget)
        assert wrong is None, f"{text}form {form}, budget {budget}, seed {SEED}\n{wrong}"
        with_checkpoints.append("checkpoint(f" in text)

    check()
    assert sum(with_checkpoints) > PROGRAMS / 4


NESTED = f'''{programs.HEAD}
    def f(a, t):
        u = mg.tanh(a * t)
        def g(p):
            return mg.sin(p) * u,
        v, = checkpoint(g, u)
        return mg.tanh(v @ w), v * 2.0
    p, q = checkpoint(f, x, b * 2.0, policy=mg.policies.save_ops('matmul'), offload=2)
    hear(p)
    return [p, sequential([lambda h: mg.tanh(h @ w)] * 3, mg.schedules.sqrt(), q)]
'''


def test_a_wrong_gradient_of_a_checkpoint_is_seen(monkeypatch):
    monkeypatch.setattr(mg, "checkpoint", lambda fn, *given, **_: [t * 1.5 for t in fn(*given)])
    assert "gradients" in programs.differences(NESTED, "once", None)


def test_what_stays_alive_is_seen(monkeypatch):
    held, before = [], mg.checkpoint

    def leaking(fn, *given, **keywords):
        held.append(mg.tanh(given[0]))
        return before(fn, *given, **keywords)

    monkeypatch.setattr(mg, "checkpoint", leaking)
    assert "alive" in programs.differences(NESTED, "once", None)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("form", ["twice", "create_graph"])
def test_a_fault_at_any_engine_call_leaves_nothing_behind(form, error):
    calls, places = faults.calls_of(NESTED, form, None), set()
    for k in range(1, calls, calls // 9):
        thrower = faults.Thrower(k, error)
        assert faults.thrown(NESTED, form, None, thrower) is None, (k, thrower.place)
        places.add(thrower.place)
    assert len(places - {None}) > 3


def test_a_mode_that_a_fault_leaves_behind_is_seen(monkeypatch):
    text = f"{programs.HEAD}\n    return [without(x) * x]\n"
    calls, before = faults.calls_of(text, "once", None), faults.modes()
    monkeypatch.setattr(type(mg.no_grad()), "__exit__", lambda self, *error: None)
    wrong = faults.thrown(text, "once", None, faults.Thrower(calls))
    assert wrong is not None and "grad is False" in wrong
    faults.restore(before)


def test_every_kind_of_mutant_is_made_and_is_python():
    kinds = {kind for kind, _, _ in changes(ast.parse("def f(a):\n    b = list(a) - 1\n    return b if a < 2 else b"))}
    assert kinds == {"comparison", "constant", "statement", "condition", "copy", "operands"}
    root = Path(mg.__file__).parents[1]
    chosen = choose(root, 12, seed=1)
    assert len({Path(mutant.path).parent for mutant in chosen}) >= 8
    for mutant in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse((root / mutant.path).read_text()))
