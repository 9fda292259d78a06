"""Every schedule, on chains of every length: the gradients of storing everything, planned = measured, nothing left."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s

LENGTHS = [1, 2, 3, 7, 16, 64, 100, 257]
MAKERS = {
    "store_all": lambda n: s.store_all(),
    "from_input": lambda n: s.from_input(),
    "uniform": lambda n: s.uniform(min(n, 10)),
    "uniform, all checkpoints": lambda n: s.uniform(min(n, 10), keep_last=False),
    "uniform, whole replays": lambda n: s.uniform(min(n, 10), keep_last=False, early_stop=False),
    "every": lambda n: s.every(10),
    "torch_compatible": lambda n: s.torch_compatible(min(n, 5)),
    "sqrt": lambda n: s.sqrt(),
    "triangular": lambda n: s.triangular(),
    "nested": lambda n: s.nested(4),
    "bisection": lambda n: s.bisection(),
    "bisection, whole replays": lambda n: s.bisection(early_stop=False),
    "binomial": lambda n: s.binomial(8),
    "binomial, few": lambda n: s.binomial(3),
    "binomial, classic": lambda n: s.binomial(6, early_stop=False),
    "optimal": lambda n: s.optimal(8),
    "mixed": lambda n: s.mixed(6),
    "online": lambda n: s.online(5),
    "online, classic": lambda n: s.online(5, early_stop=False),
    "offloaded": lambda n: s.offloaded(s.sqrt()),
    "offloaded, window": lambda n: s.offloaded(s.every(1), window=3),
    "multistage": lambda n: s.multistage(3, 3),
    "h_revolve": lambda n: s.h_revolve(3, 3),
    "hetero": lambda n: s.hetero(s.LayerCosts.unit(n), budget=min(n, 8)),
}


def test_no_schedule_is_forgotten():
    """Whatever mg.schedules makes is in the list above."""
    makers = {name for name in s.__all__ if name[0].islower()} - {"as_schedule", "from_json", "exhaustive_optimum"}
    assert makers == {name.split(",")[0] for name in MAKERS}


@pytest.fixture(scope="module")
def plain():
    """The gradients of storing everything, for each length once."""
    return {}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", MAKERS)
def test_on_the_reference_chain(chain, same_bits, plain, name, length):
    net, schedule = chain(length), MAKERS[name](length)
    if length not in plain:
        plain[length] = net.run(s.store_all())[1]
    tracer, gradients = net.run(schedule)
    plan = schedule.plan(length)
    same_bits(gradients, plain[length])
    assert tracer.peak_activations == plan.peak
    assert tracer.replayed_ops == plan.extra_forwards
    assert (tracer.writes, tracer.reads) == (plan.writes, plan.reads)
    assert tracer.live_activations == 0 and tracer.live("offloaded") == 0


def deep_layers(length, width=6):
    """Layers of several ops: dropout, batch norm, residuals, an op that keeps its output, one that keeps its input."""
    mg.manual_seed(0)
    kinds = [
        lambda: nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Dropout(0.3)),
        lambda: Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 9), nn.GELU(), nn.Linear(9, width))),
        lambda: nn.Linear(width, width),
    ]
    return [kinds[i % 3]() for i in range(length)]


class Residual(nn.Module):
    def __init__(self, inner):
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def run(layers, schedule, x):
    """(tracer, gradients, running statistics): the same dropout every time, from the same statistics."""
    net = nn.Sequential(*layers)
    state = {name: np.array(value) for name, value in net.state_dict().items()}
    net.zero_grad()
    mg.manual_seed(1)
    with mg.Tracer() as tracer:
        loss = (mg.checkpoint_sequential(layers, schedule, x) ** 2).sum()
        loss.backward()
    after = [np.array(value) for name, value in net.state_dict().items() if "running" in name]
    net.load_state_dict(state)
    return tracer, [p.grad.numpy() for p in net.parameters()], after


@pytest.mark.parametrize("name", MAKERS)
def test_on_layers_of_several_ops(same_bits, name):
    layers, x = deep_layers(13), mg.tensor(np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32))
    _, gradients, statistics = run(layers, s.store_all(), x)
    schedule = MAKERS[name](13)
    tracer, others, after = run(layers, schedule, x)
    same_bits(others, gradients)
    same_bits(after, statistics)  # a batch norm's statistics move once, however often its op is replayed
    assert tracer.live_activations == 0 and tracer.live("offloaded") == 0
    forecast = mg.profile(layers, x, repeats=1).forecast(schedule)
    squared = x.nbytes  # what the square under the sum keeps, which is no layer's
    assert tracer.replayed_ops == forecast.replayed_ops
    assert forecast.peak_activation_bytes <= tracer.peak_activation_bytes <= forecast.peak_activation_bytes + squared


def test_layers_of_several_ops_hold_what_was_forecast_when_nothing_stands_on_top(same_bits):
    layers, x = deep_layers(13), mg.tensor(np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32))
    measured = mg.profile(layers, x, repeats=1)
    for make in MAKERS.values():
        forecast = measured.forecast(make(13))
        mg.manual_seed(1)
        with mg.Tracer() as tracer:
            y = mg.checkpoint_sequential(layers, make(13), x)
            y.backward(mg.ones(y.shape))
        figures = tracer.peak_activations, tracer.peak_activation_bytes, tracer.writes, tracer.reads
        assert figures == (
            forecast.peak_activations, forecast.peak_activation_bytes, forecast.writes, forecast.reads
        ), make(13)  # fmt: skip
