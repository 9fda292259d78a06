"""The programs that `Plan.torch_code()` writes, run by PyTorch, and the same chain in minigrad under the same schedule.

What counts are the gradients of all weights. It must also be as planned how many layers are executed, and how many
activations are alive at the peak: both are seen below autograd, where torch dispatches its operations.
"""

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import minigrad as mg
from minigrad import schedules as s
from minigrad.commands import plan as plans
from tests.oracle.compare import Row, largest, relative

WHOLE_AROUND_OTHERS = """{"tree": [
 {"layers": [1, 6], "kept": "checkpoint", "early_stop": false, "parts": [
  {"layers": [1, 3], "kept": "checkpoint", "parts": [{"layers": [1, 3], "kept": "taped"}]},
  {"layers": [4, 6], "kept": "taped"}]},
 {"layers": [7, 9], "kept": "taped"}]}"""
SCHEDULES = {
    "store_all": (s.store_all(), 20),
    "from_input": (s.from_input(), 40),
    "uniform": (s.uniform(10), 100),
    "uniform, all checkpoints": (s.uniform(10, keep_last=False), 100),
    "uniform, whole replays": (s.uniform(10, early_stop=False), 100),
    "every": (s.every(7), 50),
    "torch_compatible": (s.torch_compatible(10), 103),
    "sqrt": (s.sqrt(), 64),
    "triangular": (s.triangular(), 100),
    "nested": (s.nested(4), 64),
    "bisection": (s.bisection(), 64),
    "bisection, whole replays": (s.bisection(early_stop=False), 64),
    "binomial": (s.binomial(5), 60),
    "optimal": (s.optimal(5), 60),
    "mixed": (s.mixed(5), 50),
    "online": (s.online(6), 40),
    "offloaded": (s.offloaded(s.sqrt()), 64),
    "multistage": (s.multistage(3, 3), 50),
    "h_revolve": (s.h_revolve(3, 3), 50),
    "a whole replay around others": (s.from_json(WHOLE_AROUND_OTHERS), 9),
}


class Layer(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(weight))

    def forward(self, h):
        return h @ self.weight


class Watch(TorchDispatchMode):
    """Counts the layers that are executed, and how many activations are alive at the peak, the chain's input included.

    The chain's output is left out, as nothing reads it.
    """

    def __init__(self, layers):
        super().__init__()
        self.weights = {layer.weight.data_ptr() for layer in layers}
        self.layers, self.executed, self.live, self.peak = len(layers), 0, [], 1

    def __torch_dispatch__(self, function, types, arguments=(), settings=None):
        out = function(*arguments, **(settings or {}))
        if function is torch.ops.aten.mm.default and self.is_weight(arguments[1]):
            self.executed += 1
            if self.executed != self.layers:
                self.live.append(StorageWeakRef(out.untyped_storage()))
        self.live = [activation for activation in self.live if not activation.expired()]
        self.peak = max(self.peak, len(self.live) + 1)
        return out

    def is_weight(self, tensor):
        """Whether a layer multiplies by this; backward multiplies by the same numbers, transposed."""
        return tensor.data_ptr() in self.weights and tensor.is_contiguous()


def run_in_torch(plan, weights, x):
    """(value, gradients, watch) of the plan's program on the chain with these weights."""
    program = {"__name__": "program"}
    exec(compile(plan.torch_code(), "program", "exec"), program)
    layers = [Layer(weight) for weight in weights]
    with Watch(layers) as watch:
        loss = program["run"](layers, torch.tensor(x)).sum()
        loss.backward()
    return loss.item(), [layer.weight.grad.numpy() for layer in layers], watch


def run_in_minigrad(schedule, weights, x):
    """(value, gradients) of the same chain."""
    weights = [mg.tensor(weight, requires_grad=True) for weight in weights]
    layers = [lambda h, weight=weight: h @ weight for weight in weights]
    loss = mg.checkpoint_sequential(layers, schedule, mg.tensor(x)).sum()
    loss.backward()
    return loss.item(), [weight.grad.numpy() for weight in weights]


def compare_runs(schedule, layers, dtype):
    """The largest differences of the value and of the gradients; AssertionError if torch does not do as planned."""
    rng = np.random.default_rng(3)
    weights = [np.linalg.qr(rng.standard_normal((6, 6)))[0].astype(dtype) for _ in range(layers)]
    x = rng.standard_normal((3, 6)).astype(dtype)
    plan = schedule.plan(layers)
    value, gradients, watch = run_in_torch(plan, weights, x)
    our_value, our_gradients = run_in_minigrad(schedule, weights, x)
    assert watch.executed == plan.total_forwards, f"{watch.executed} layers executed, {plan.total_forwards} planned"
    if not plan.writes:  # where all memory is the host's, what is moved there is still alive
        assert watch.peak == plan.peak, f"{watch.peak} activations at the peak, {plan.peak} planned"
    return relative(np.array(our_value), np.array(value)), largest(zip(our_gradients, gradients, strict=True))


def rows(only):
    for name in only(SCHEDULES):
        schedule, layers = SCHEDULES[name]
        row = Row(name, f"{layers} layers")
        row.run(schedule, lambda dtype: compare_runs(schedule, layers, dtype))  # noqa: B023
        yield row


def missing() -> set:
    return set(plans.functions()) - {name.split(",")[0] for name in SCHEDULES}
