"""Profiles and forecasts: what a schedule will hold on real layers, counted before it runs, is what it holds."""

import tracemalloc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s
from minigrad.chain.profiling import Listener
from tests.test_all_schedules import InSlowMemory, RandomTiers

WIDTH, ROWS = 6, 5


def weight_of(rng):
    return mg.tensor(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) * 0.5, requires_grad=True)


def random_layer(rng, shared):
    """One of many kinds: fused, of several ops, views, random, with statistics, with a checkpoint of its own."""
    weight, kind = weight_of(rng), rng.integers(12)
    return [
        lambda h: h @ weight,
        lambda h: mg.tanh(h @ weight),
        lambda h: mg.dropout(h, 0.5),
        lambda h: h + mg.relu(h @ weight),
        nn.Linear(WIDTH, WIDTH),
        nn.LayerNorm(WIDTH),
        nn.BatchNorm1d(WIDTH),
        lambda h: h.reshape(WIDTH, ROWS).T.reshape(ROWS, WIDTH),
        lambda h: h * shared + shared,
        nn.GELU(),
        lambda h: mg.checkpoint(lambda t: mg.tanh(mg.tanh(t @ weight) @ weight), h),
        lambda h: mg.sum(h, axis=0, keepdims=True) + h,
    ][kind]


def random_chain(seed, longest=12):
    """(layers, x) of a random chain, the first of whose layers has a weight."""
    rng = np.random.default_rng(seed)
    mg.manual_seed(seed)
    shared = mg.tensor(rng.standard_normal((1, WIDTH)).astype(np.float32))
    layers = [nn.Linear(WIDTH, WIDTH)] + [random_layer(rng, shared) for _ in range(rng.integers(longest))]
    x = mg.tensor(rng.standard_normal((ROWS, WIDTH)).astype(np.float32), requires_grad=bool(rng.integers(2)))
    return layers, x


def run(layers, schedule, x):
    """(tracer, gradients of all modules' parameters) of one forward and backward, the same dropout every time."""
    modules = [layer for layer in layers if isinstance(layer, nn.Module)]
    for module in modules:
        module.zero_grad()
    mg.manual_seed(1)
    with mg.Tracer() as tracer:
        y = mg.checkpoint_sequential(layers, schedule, x)
        y.backward(mg.tensor(np.cos(np.arange(y.size)).reshape(y.shape).astype(np.float32)))
    return tracer, [p.grad.numpy() for module in modules for p in module.parameters()]


def figures(of):
    return of.peak_activations, of.peak_activation_bytes, of.replayed_ops, of.writes, of.reads


def schedules_for(n, seed):
    yield from (s.store_all(), s.sqrt(), s.triangular(), s.from_input(), s.bisection(), s.binomial(max(3, n // 2)))
    yield from (s.uniform(1, keep_last=False), s.uniform(min(n, 3), keep_last=False, early_stop=False))
    yield from (RandomTiers(seed * 7), RandomTiers(seed * 7 + 1), InSlowMemory(s.every(2)))


@pytest.mark.parametrize("seed", range(30))
def test_a_forecast_is_what_the_tracer_measures_on_layers_of_any_kind(seed, same_bits):
    layers, x = random_chain(seed)
    measured = mg.profile(layers, x, repeats=1)
    _, plain = run(layers, s.store_all(), x)
    for schedule in schedules_for(len(layers), seed):
        tracer, gradients = run(layers, schedule, x)
        assert figures(tracer) == figures(measured.forecast(schedule)), schedule
        assert tracer.live_activations == 0
        same_bits(gradients, plain)


def test_a_forecast_of_the_reference_chain_is_its_plan(chain):
    net = chain(20)
    measured = mg.profile(net.layers, net.x, repeats=1)
    for schedule in schedules_for(20, seed=3):
        forecast, plan = measured.forecast(schedule), schedule.plan(20)
        assert (forecast.peak_activations, forecast.replayed_ops) == (plan.peak, plan.extra_forwards)
        assert forecast.peak_activation_bytes == plan.peak * net.x.nbytes


def down(h):
    """A layer of a chain whose state is (value, skips): one more skip."""
    value, skips = h
    return mg.tanh(value * 2), (*skips, value)


def up(h):
    value, skips = h
    return mg.tanh(value + skips[-1]), skips[:-1]


@pytest.mark.parametrize("segments", [1, 2, 3, 6])
def test_skips_across_segments_are_right_and_counted(parameter, same_bits, segments):
    x, weight = parameter(4, 4, dtype=np.float32), parameter(4, 4, seed=1, dtype=np.float32)
    layers = [lambda h: (h[0] @ weight, h[1])] + [down] * 3 + [lambda h: (h[0] @ weight, h[1])] + [up] * 3

    def loss(schedule):
        return (mg.checkpoint_sequential(layers, schedule, (x, ()))[0]).sum()

    loss(s.store_all()).backward()
    plain, x.grad, weight.grad = [x.grad.numpy(), weight.grad.numpy()], None, None
    with mg.Tracer() as tracer:
        loss(segments).backward()
    same_bits([x.grad.numpy(), weight.grad.numpy()], plain)
    forecast = mg.profile(layers, (x, ()), repeats=1).forecast(segments)
    assert figures(tracer) == figures(forecast)


def test_each_layers_own_code_runs_once_and_the_tracer_sees_nothing():
    calls = []

    def layer(h):
        calls.append(1)
        return mg.tanh(h @ weight)

    weight = mg.eye(4, requires_grad=True)
    with mg.Tracer() as tracer:
        mg.profile([layer] * 3, mg.ones((2, 4)))
    assert len(calls) == 3 and tracer.events == []
    assert weight.grad is None


def test_a_profile_holds_little_more_than_a_layer_at_a_time():
    weight = mg.eye(64, requires_grad=True)
    layers, x = [lambda h: mg.tanh(h @ weight)] * 40, mg.ones((500, 64))
    mg.profile(layers[:2], x, repeats=1)
    tracemalloc.start()
    mg.profile(layers, x, repeats=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * x.nbytes  # the tape of all of them holds 41; here 7, with gradients, and some kB of lines each


def test_sizes_of_a_layer_are_those_of_mg_saved():
    mg.manual_seed(0)
    layers = [nn.Linear(8, 8), nn.TransformerBlock(8, 2), nn.LayerNorm(8)]
    x = mg.randn((3, 5, 8), requires_grad=True)
    measured = mg.profile(layers, x, repeats=1)
    h = x
    for layer, found in zip(layers, measured.layers, strict=True):
        h = mg.tensor(h.numpy(), requires_grad=True)  # a leaf, which the tape does not count
        out = layer(h)
        kept = {row.node for row in mg.saved(out)} | {out.node}
        assert found.kept_bytes == sum(node.nbytes for node in kept)
        assert found.output_bytes == out.nbytes
        h = out


def test_workspace_is_what_an_op_allocates_beside_its_result():
    @mg.op
    def wasteful(x):
        return (np.ones((100, *x.shape)) * x).sum(axis=0)

    @wasteful.vjp("x")
    def wasteful_wrt_x(g):
        return g * 100

    (layer,) = mg.profile([wasteful], mg.tensor(np.ones(1000), requires_grad=True)).layers
    assert 200 * 8000 <= layer.workspace_bytes < 210 * 8000


def test_a_profile_prints_its_layers():
    weight = mg.eye(4, requires_grad=True)
    text = str(mg.profile([lambda h: h @ weight] * 3, mg.ones((2, 4))))
    assert "keeps" in text and "3 layers" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_what_a_profile_cannot_measure_is_an_error_that_leaves_no_trace(parameter):
    with pytest.raises(mg.ArgumentError, match="at least one layer"):
        mg.profile([], parameter(2))
    with pytest.raises(mg.NoGradientError, match="requires grad"):
        mg.profile([mg.tanh], mg.ones(3))
    with pytest.raises(mg.ArgumentError, match="inside a checkpoint"):
        mg.checkpoint(lambda t: mg.profile([mg.tanh], t), parameter(2))
    (parameter(2) * 2).sum().backward()  # no region has stayed open


@pytest.mark.parametrize("policy", [mg.policies.save_ops("matmul"), mg.policies.save_everything()], ids=str)
@pytest.mark.parametrize("schedule", [s.store_all(), s.uniform(3), s.bisection(), s.from_input()], ids=str)
def test_a_layers_own_checkpoint_with_a_policy_is_forecast(parameter, same_bits, policy, schedule):
    weight, x = parameter(4, 4, dtype=np.float32), parameter(3, 4, seed=1, dtype=np.float32)

    def layer(h):
        return mg.checkpoint(lambda t: mg.tanh(mg.exp(mg.tanh(t @ weight)) @ weight), h, policy=policy)

    layers = [layer] * 6
    tracer, _ = run(layers, schedule, x)
    assert figures(tracer) == figures(mg.profile(layers, x, repeats=1).forecast(schedule))


def test_the_ops_of_each_layer_are_counted():
    w = mg.eye(4, requires_grad=True)
    profile = mg.profile([lambda h: mg.tanh(h @ w)] * 3, mg.ones((2, 4)), repeats=1)
    assert [layer.ops for layer in profile.layers] == [2, 2, 2]


def test_the_seconds_of_lines_are_scaled_to_those_of_their_layer():
    listener = Listener(1)
    listener.line_seconds, listener.lines_heard = {"a": 1.0, "b": 3.0}, ["a", "b"]
    listener.scale_to(8.0)
    assert listener.line_seconds == {"a": 2.0, "b": 6.0}


class Slow(s.Schedule):
    """Parts as they are given, with boundaries in slow memory and a window."""

    early_stop, label = True, "slow"

    def __init__(self, offload, parts=None):
        self.offload, self.given = offload, parts

    def split(self, n):
        return self.given or [(n, None)]


@pytest.mark.parametrize(
    "parts",
    [
        [(2, Slow(2)), (2, Slow(2)), (2, None), (2, Slow(2))],
        [(2, Slow(1)), (2, Slow(1)), (4, Slow(1, [(2, Slow(3)), (2, Slow(3))]))],
    ],
    ids=["taped layers between", "a wide window in a narrow one"],
)
def test_windows_that_are_mixed_cost_what_plan_and_forecast_say(chain, parts):
    net, schedule = chain(8), Slow(None, parts)
    tracer, _ = net.run(schedule)
    forecast = mg.profile(net.layers, net.x, repeats=1).forecast(schedule)
    plan = schedule.plan(8)
    measured = tracer.peak_activations, tracer.reads, tracer.replayed_ops
    assert measured == (forecast.peak_activations, forecast.reads, forecast.replayed_ops)
    assert measured == (plan.peak, plan.reads, plan.extra_forwards)
