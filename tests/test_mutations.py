"""Break the engine on purpose: each break must turn a test red.

A mutation replaces one function of the engine; its witnesses are tests of this suite, run here as plain
functions. A witness must pass on the engine as it is and fail on the mutant.
"""

import heapq
import sys  # noqa: E402, I001

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine import checkpoint as _  # noqa: F401  (the function; the modules are taken from sys.modules)
from minigrad.engine.op import Op, registry
from minigrad.engine.replay import Work
from minigrad.engine.walk import Sweep
from minigrad.retention.verify import Digests
from tests import conftest, test_checkpoint, test_reference_chain, test_sweep, test_tracer

checkpoint_module, replay_module = sys.modules["minigrad.engine.checkpoint"], sys.modules["minigrad.engine.replay"]
walk_module, op_module = sys.modules["minigrad.engine.walk"], sys.modules["minigrad.engine.op"]
Region = checkpoint_module.Region

pytestmark = pytest.mark.mutation


def wrong_tanh(monkeypatch):
    monkeypatch.setitem(registry["tanh"].vjps, "x", lambda g, out: g * (1 + out * out))
    monkeypatch.setattr(registry["tanh"], "_needs", {})


def body_keeps_its_buffers(monkeypatch):
    add = Region.add

    def keeping(self, line, arrays, out=None):
        add(self, line, arrays, out)
        if out is not None:
            line.out = out

    def end(self):
        self.open, self.lines, self.outside, self.loose, self.known, self.outer = False, [], {}, [], {}, None

    monkeypatch.setattr(Region, "add", keeping)
    monkeypatch.setattr(Region, "end", end)


def boundary_is_never_let_go(monkeypatch):
    release = Sweep.release

    def leaky(self, node):
        return 0 if node.body is not None else release(self, node)

    monkeypatch.setattr(Sweep, "release", leaky)


def sweep_never_releases(monkeypatch):
    monkeypatch.setattr(Sweep, "release", lambda self, node: 0)


def replay_runs_everything(monkeypatch):
    init = Work.__init__

    def eager(self, body, sweep=(), values=(), live=()):
        everything = [node for line in body.lines for node in replay_module.results(line)]
        init(self, body, sweep, everything if sweep else values, ())

    monkeypatch.setattr(Work, "__init__", eager)


def replay_never_drops(monkeypatch):
    init = Work.__init__

    def hoarding(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.drops = dict.fromkeys(self.drops, ())

    monkeypatch.setattr(Work, "__init__", hoarding)


def replay_ignores_live_outputs(monkeypatch):
    init = Work.__init__
    monkeypatch.setattr(Work, "__init__", lambda self, *a, live=(), **k: init(self, *a, **k))


def sweep_goes_oldest_first(monkeypatch):
    class Upside:
        heappop = heapq.heappop

        @staticmethod
        def heappush(heap, entry):
            heapq.heappush(heap, (-entry[0], entry[1]))

    monkeypatch.setattr(walk_module, "heapq", Upside)


def gradients_are_not_owned(monkeypatch):
    monkeypatch.setattr(sys.modules["minigrad.engine.gradients"], "own", lambda array: array)


def overwriting_goes_unnoticed(monkeypatch):
    monkeypatch.setattr(mg.Tensor, "_replace", lambda self, array: (setattr(self.node, "out", array), self)[1])


def everything_is_retained(monkeypatch):
    needs = Op.needs

    def greedy(self, mask, count):
        found = needs(self, mask, count)
        found.inputs, found.out = tuple(range(count)), True
        return found

    monkeypatch.setattr(Op, "needs", greedy)
    for op in registry.values():
        monkeypatch.setattr(op, "_needs", {})


def broadcasting_is_not_undone(monkeypatch):
    def careless(result, source, node, vjp):
        return np.resize(result, source.shape)

    monkeypatch.setattr(walk_module, "fit", careless)


def smuggling_goes_unnoticed(monkeypatch):
    monkeypatch.setattr(op_module, "refuse_smuggled", lambda tensor: None)


def verify_looks_away(monkeypatch):
    monkeypatch.setattr(Digests, "compare", lambda self, line, out: None)


def gradient_of(function):
    return lambda: mg.gradcheck(function, [conftest.parameter(3, 2)])


def hundred(schedule, peak, replayed):
    return lambda: test_reference_chain.test_a_hundred_layers(conftest.Chain, schedule, peak, replayed)


def of(test, *args):
    return lambda: test(*args)


ten = hundred(10, 19, 81)
store_all = hundred(mg.schedules.store_all(), 100, 0)
parameter, bits = conftest.parameter, conftest.same_bits

MUTATIONS = [
    (wrong_tanh, gradient_of(mg.tanh)),
    (body_keeps_its_buffers, of(test_checkpoint.test_only_the_boundary_is_kept, parameter)),
    (boundary_is_never_let_go, ten),
    (sweep_never_releases, store_all),
    (sweep_never_releases, of(test_sweep.test_buffers_go_as_the_sweep_passes, parameter)),
    (replay_runs_everything, ten),
    (replay_runs_everything, of(test_checkpoint.test_replay_runs_nothing_that_is_not_read, parameter)),
    (replay_never_drops, of(test_checkpoint.test_intermediates_are_dropped_as_the_replay_moves_on, parameter)),
    (replay_ignores_live_outputs, of(test_checkpoint.test_replay_does_not_run_what_is_still_held, parameter)),
    (sweep_goes_oldest_first, of(test_sweep.test_a_gradient_is_complete_before_it_goes_on, parameter)),
    (gradients_are_not_owned, of(test_sweep.test_two_leaves_never_share_a_gradient, parameter)),
    (overwriting_goes_unnoticed, test_sweep.test_an_overwritten_parameter_is_caught_when_it_is_read),
    (overwriting_goes_unnoticed, of(test_checkpoint.test_an_overwritten_parameter_is_caught_at_the_replay, parameter)),
    (everything_is_retained, of(test_sweep.test_constants_that_nobody_reads_are_not_kept, parameter)),
    (everything_is_retained, test_tracer.test_roles_of_a_small_run),
    (broadcasting_is_not_undone, lambda: mg.gradcheck(mg.mul, [parameter(3, 1), parameter(1, 2, seed=1)])),
    (smuggling_goes_unnoticed, of(test_checkpoint.test_a_smuggled_tensor_is_an_error_wherever_it_is_used, parameter)),
    (verify_looks_away, of(test_checkpoint.test_verify_names_the_first_op_whose_replay_differs, parameter, False)),
]


@pytest.mark.parametrize("mutation, witness", MUTATIONS, ids=lambda value: getattr(value, "__name__", "witness"))
def test_a_broken_engine_turns_the_suite_red(monkeypatch, mutation, witness):
    witness()
    mutation(monkeypatch)
    with pytest.raises((AssertionError, mg.MinigradError, pytest.fail.Exception)):
        witness()
