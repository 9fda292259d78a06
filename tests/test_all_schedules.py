"""Every schedule, on chains of every length: the gradients of storing everything, planned = measured, nothing left.

TABLE is the one place for this promise: a schedule of any kind that it shall hold for is a row of it.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s
from minigrad.schedules.segments import StoreAll

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


# ---- Schedules that split as a seed says, or put boundaries into slow memory --------------------------


class RandomTree(s.Schedule):
    """A schedule that splits as a seed says: taped stretches, checkpoints, checkpoints in checkpoints."""

    def __init__(self, seed):
        self.seed, self.label = seed, f"tree({seed})"

    def split(self, n):
        rng = np.random.default_rng([self.seed, n])
        parts, left = [], n
        while left:
            length = int(rng.integers(1, left + 1))
            inner = [None, s.store_all(), RandomTree(self.seed + 1)][rng.integers(3)]
            if length == n and isinstance(inner, RandomTree):
                inner = s.store_all()
            parts.append((length, inner))
            left -= length
        return parts


class InSlowMemory(s.Schedule):
    """The outermost checkpoints of a schedule, with their boundaries in slow memory."""

    def __init__(self, schedule, window=1):
        self.schedule, self.window = schedule, window
        self.label = f"{schedule}, window {window}"

    def split(self, n):
        parts = self.schedule.split(n)
        return [(length, None if inner is None else Slow(inner, self.window)) for length, inner in parts]


class Slow(s.Schedule):
    def __init__(self, schedule, window):
        self.schedule, self.offload, self.early_stop = schedule, window, schedule.early_stop

    def split(self, n):
        return self.schedule.split(n)


class RandomTiers(s.Schedule):
    """A random tree in which any checkpoint may be in slow memory, and any replay whole."""

    def __init__(self, seed, early_stop=False):
        rng = np.random.default_rng(seed)
        self.seed, self.label = seed, f"tiers({seed})"
        self.early_stop, self.offload = early_stop or bool(rng.integers(2)), [None, 1][rng.integers(2)]

    def split(self, n):
        rng = np.random.default_rng([self.seed, n])
        parts, left = [], n
        while left:
            length = int(rng.integers(1, left + 1))
            deeper = RandomTiers(self.seed + 1 + int(rng.integers(50)), self.early_stop)
            inner = [None, s.store_all(), StoreAll(self.early_stop), deeper][rng.integers(4)]
            if length == n and isinstance(inner, RandomTiers):
                inner = s.store_all()
            parts.append((length, inner))
            left -= length
        return parts


# ---- The table ---------------------------------------------------------------------------------------

LENGTHS = [1, 2, 3, 7, 16, 64, 100]
SEGMENTS = [s.store_all(), s.sqrt(), s.triangular(), s.every(1), s.every(7), s.every(10)]
SEGMENTS += [s.uniform(k) for k in (1, 2, 3, 5, 10, 50, 100)]
EARLY = [s.from_input(), s.torch_compatible(1), s.torch_compatible(3), s.torch_compatible(7), s.bisection()]
EARLY += [s.nested(k) for k in (2, 3, 10)] + [s.binomial(m) for m in (2, 3, 4, 6, 14, 300)]
EARLY += [s.optimal(m) for m in (3, 4, 5, 7, 14, 300)] + [s.uniform(k, keep_last=False) for k in (1, 3, 7)]
WHOLE = [s.uniform(k, early_stop=False) for k in (1, 3, 7)] + [s.uniform(k, False, False) for k in (1, 3, 7)]
WHOLE += [s.torch_compatible(3, early_stop=False), s.bisection(False), s.nested(3, False), s.nested(10, False)]
WHOLE += [s.binomial(m, early_stop=False) for m in (2, 3, 6, 14, 300)] + [s.mixed(m) for m in (1, 2, 3, 5, 13, 300)]
DEEP = [s.from_input(), s.bisection(), s.bisection(False), s.nested(4), s.binomial(6), s.optimal(6), s.mixed(6)]
MOVED = [s.every(1), s.every(3), s.sqrt(), s.triangular(), s.uniform(1, keep_last=False)]


def pairs(schedules, lengths):
    return [(schedule, n) for schedule in schedules for n in lengths if getattr(schedule, "segments", 1) <= n]


def table():
    """Words -> (schedule, length): each pair once, in an order that is the same in every process."""
    rows = pairs(SEGMENTS, [*LENGTHS, 9, 36, 103, 257]) + pairs(EARLY + WHOLE, LENGTHS) + pairs(DEEP, [257])
    rows += [(make(n), n) for name, make in MAKERS.items() for n in [*LENGTHS, 257] if name != "hetero"]
    rows += pairs([s.online(slots) for slots in (1, 2, 3, 4, 7)], range(1, 24))
    rows += pairs([InSlowMemory(schedule, window) for schedule in MOVED for window in (1, 2, 3)], [*LENGTHS[:5], 100])
    rows += pairs([RandomTree(100 * seed) for seed in range(25)], [30])
    rows += pairs([RandomTiers(100 * seed) for seed in range(60)], [14])
    return {f"{schedule!r}-{n}": (schedule, n) for schedule, n in rows}


TABLE = table()


@pytest.fixture(scope="module")
def plain():
    """The gradients of storing everything, for each length once."""
    return {}


def run_as_planned(net, schedule, same_bits, plain=None):
    """Run it; measured must be planned, and the gradients those of storing everything. (tracer, plan)"""
    length, plain = len(net.layers), {} if plain is None else plain
    if length not in plain:
        plain[length] = net.run(s.store_all())[1]
    tracer, gradients = net.run(schedule)
    plan = schedule.plan(length)
    same_bits(gradients, plain[length])
    assert tracer.peak_activations == plan.peak
    assert tracer.replayed_ops == plan.extra_forwards
    assert (tracer.writes, tracer.reads) == (plan.writes, plan.reads)
    assert tracer.live_activations == 0 and tracer.live("offloaded") == 0
    return tracer, plan


@pytest.mark.parametrize("row", TABLE)
def test_measured_is_planned_and_gradients_are_the_same_bits(chain, same_bits, plain, row):
    schedule, length = TABLE[row]
    run_as_planned(chain(length), schedule, same_bits, plain)


@pytest.mark.parametrize("length", [*LENGTHS, pytest.param(257, marks=pytest.mark.slow)])
def test_hetero_too_which_takes_long_to_make(chain, same_bits, plain, length):
    run_as_planned(chain(length), MAKERS["hetero"](length), same_bits, plain)


# ---- Layers of several ops ---------------------------------------------------------------------------


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
