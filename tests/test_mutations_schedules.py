"""Break offload, policies, whole replays, online loops and forecasts on purpose: each break must turn a test red."""

import sys

import pytest

import minigrad as mg
from minigrad.budget import eviction
from minigrad.chain.forecast import Ledger
from minigrad.engine.checkpoint import Region
from minigrad.engine.replay import Manner
from minigrad.engine.tape import Node
from minigrad.engine.walk import Sweep
from tests import conftest, test_all_schedules, test_budget, test_discard, test_offload, test_online_loop, test_profile
from tests.test_mutations import test_a_broken_engine_turns_the_suite_red as turns_red

offload_module = sys.modules["minigrad.retention.offload"]

pytestmark = pytest.mark.mutation


def nothing_is_offloaded(monkeypatch):
    monkeypatch.setattr(offload_module.Offload, "wants", lambda self, node, given: False)


def a_copy_is_the_array_itself(monkeypatch):
    monkeypatch.setattr(offload_module, "transfer", lambda array, device: array)


def copies_are_never_let_go(monkeypatch):
    release = Sweep.release

    def leaky(self, node):
        kept = getattr(node.needs, "kept", None)
        freed = release(self, node)
        if kept is not None:
            node.needs.kept = kept
        return freed

    monkeypatch.setattr(Sweep, "release", leaky)


def nothing_is_fetched_ahead(monkeypatch):
    monkeypatch.setattr(offload_module.Offload, "fetch_ahead", lambda self, node: None)


def every_checkpoint_copies_again(monkeypatch):
    monkeypatch.setattr(offload_module.SlowCopy, "stands_for", lambda self, node: None)


def whole_replays_stop_early(monkeypatch):
    under = Manner.under
    monkeypatch.setattr(Manner, "under", lambda self, schedule: under(self, schedule)._replace(whole=False))


def a_policy_keeps_everything(monkeypatch):
    monkeypatch.setattr(Region, "_chosen", lambda self, lines, swept: frozenset(self.kept))
    monkeypatch.setattr(mg.policies.Policy, "at_end", True)


def outputs_are_kept(monkeypatch):
    monkeypatch.setattr(sys.modules["minigrad.retention.checkpoint"], "Discarding", Node)


def a_loop_forgets_no_state(monkeypatch):
    monkeypatch.setattr(Region, "forget_state", lambda self, step: None)


def a_forecast_lets_nothing_go(monkeypatch):
    monkeypatch.setattr(Ledger, "let_go", lambda self, memory, holder: None)


def eviction_forgets_the_neighbourhood(monkeypatch):
    monkeypatch.setitem(eviction.HEURISTICS, "dtr", eviction.local_dtr)


def of(test, *args):
    return lambda: test(*args)


def kept_matmuls():
    """Of norm, matmul, tanh, matmul the policy keeps the first matmul's output, and no more."""
    weight = conftest.parameter(4, 4)
    loss = mg.checkpoint(
        lambda h: mg.tanh(mg.tanh(h) @ weight) @ weight, conftest.parameter(3, 4), policy=mg.policies.save_ops("matmul")
    ).sum()
    assert [row.node.op.name for row in mg.saved(loss)] == ["matmul"]


def chain_of(name, length):
    net = conftest.Chain(length)
    return of(test_all_schedules.run_as_planned, net, test_all_schedules.MAKERS[name](length), bits)


chain, bits, parameter = conftest.Chain, conftest.same_bits, conftest.parameter


def discarding(test, *args):
    return lambda: test((parameter(4, 8), parameter(8, seed=1), [parameter(8, 8, seed=2 + i) for i in range(5)]), *args)


MUTATIONS = [
    (nothing_is_offloaded, chain_of("offloaded", 16)),
    (a_copy_is_the_array_itself, of(test_offload.test_fast_memory_lets_go_of_what_has_been_offloaded, parameter)),
    (copies_are_never_let_go, chain_of("offloaded", 16)),
    (nothing_is_fetched_ahead, chain_of("offloaded, window", 16)),
    (every_checkpoint_copies_again, chain_of("multistage", 100)),
    (whole_replays_stop_early, chain_of("uniform, whole replays", 100)),
    (whole_replays_stop_early, chain_of("bisection, whole replays", 64)),
    (a_policy_keeps_everything, kept_matmuls),
    (outputs_are_kept, discarding(test_discard.test_one_boundary_less_for_each_checkpoint, bits)),
    (a_loop_forgets_no_state, of(test_online_loop.test_while_it_runs_it_holds_no_more_states_than_slots, chain)),
    (eviction_forgets_the_neighbourhood, of(test_budget.test_a_hundred_layers_and_the_neighbourhood, chain, bits, 20)),
    (a_forecast_lets_nothing_go, of(test_profile.test_a_forecast_of_the_reference_chain_is_its_plan, chain)),
]  # fmt: skip


@pytest.mark.parametrize("mutation, witness", MUTATIONS, ids=lambda value: getattr(value, "__name__", "witness"))
def test_a_broken_schedule_turns_the_suite_red(monkeypatch, mutation, witness):
    turns_red(monkeypatch, mutation, witness)
