"""Checkpoint nodes: what they keep, what a replay runs, and the programs that break other checkpoints."""

import warnings
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minigrad as mg

Pair = namedtuple("Pair", "left right")


def plain(fn, *args, **kwargs):
    return fn(*args, **kwargs)


def both_ways(program):
    """Run `program(checkpoint)` with mg.checkpoint and without; return both results."""
    return program(mg.checkpoint), program(plain)


# ---- Gradients ---------------------------------------------------------------------------------------


def test_gradients_are_the_same_bits_for_arguments_and_for_what_is_closed_over(parameter, same_bits):
    def program(checkpoint):
        x, w, c = parameter(4), parameter(4, seed=1), mg.tensor(np.arange(4.0))
        (checkpoint(lambda t: mg.tanh(t * w) * t + c, x) * w).sum().backward()
        return [x.grad, w.grad]

    same_bits(*both_ways(program))


def test_checkpoints_in_checkpoints(parameter, same_bits):
    def program(checkpoint):
        x, w = parameter(4), parameter(4, seed=1)

        def inner(t):
            return mg.tanh(t * w) * t

        def outer(t):
            return checkpoint(inner, mg.tanh(checkpoint(inner, t)) * w) * t

        checkpoint(lambda t: checkpoint(outer, t) + t, x).sum().backward()
        return [x.grad, w.grad]

    same_bits(*both_ways(program))


def test_second_and_third_derivatives_through_nested_checkpoints(parameter, same_bits):
    def program(checkpoint):
        x, a = parameter(3), parameter(3, seed=1)
        y = checkpoint(lambda t: checkpoint(lambda s: mg.tanh(s * a) * s, t) * t, x).sum()
        (g,) = mg.grad(y, x, create_graph=True)
        h, ha = mg.grad((g * g).sum(), [x, a], create_graph=True)
        (k,) = mg.grad((h * ha).sum(), x)
        return [g, h, ha, k]

    ours, reference = both_ways(program)
    same_bits(ours[:1], reference[:1])
    for a, b in zip(ours, reference, strict=True):  # replayed nodes are younger: sums of more than two terms
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)  # may come in another order


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_grad_called_inside_a_region(parameter, create_graph, nested):
    def program(checkpoint):
        x, a = parameter(3), parameter(3, seed=1)
        inner = checkpoint if nested else plain

        def fn(t):
            u = inner(lambda s: mg.tanh(s * a) * s, t)
            (g,) = mg.grad((u * u).sum(), t, create_graph=create_graph, retain_graph=True)
            return (u * g).sum()

        checkpoint(fn, x).backward()
        return [x.grad.numpy(), a.grad.numpy()]

    ours, reference = both_ways(program)
    np.testing.assert_allclose(ours, reference, rtol=1e-12)


def test_backward_called_inside_a_region(parameter):
    x, w = parameter(3), parameter(3, seed=1)

    def fn(t):
        u = mg.tanh(t * w)
        u.sum().backward(retain_graph=True)
        return u * w

    y = mg.checkpoint(fn, x)
    inside = w.grad.numpy().copy()
    y.sum().backward()
    t = np.tanh(x.numpy() * w.numpy())
    np.testing.assert_allclose(inside, (1 - t * t) * x.numpy())
    np.testing.assert_allclose(w.grad.numpy(), inside + t + w.numpy() * (1 - t * t) * x.numpy())


def test_retain_graph_replays_each_time_and_keeps_nothing_between(parameter):
    x, runs = parameter(3), []

    @mg.op
    def counted(t):
        runs.append(1)
        return np.tanh(t)

    @counted.vjp("t")
    def counted_wrt_t(g, out):
        return g * (1 - out * out)

    y = mg.checkpoint(lambda t: counted(t) * t, x).sum()
    kept = len(mg.saved(y))
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    assert (len(runs), len(mg.saved(y))) == (2, kept)
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once)
    assert (len(runs), len(mg.saved(y))) == (3, 0)
    with pytest.raises(mg.GraphFreedError):
        y.backward()


# ---- The function runs once --------------------------------------------------------------------------


def test_the_function_runs_once_ever(parameter):
    calls = {"outer": 0, "inner": 0}

    def inner(t):
        calls["inner"] += 1
        return mg.tanh(t)

    def outer(t):
        calls["outer"] += 1
        return mg.checkpoint(inner, t * 2.0) * t

    x = parameter(3)
    y = mg.checkpoint(outer, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert calls == {"outer": 1, "inner": 1}


def test_what_changes_after_the_first_run_changes_nothing(parameter, same_bits):
    """A cache that grows, a flag that flips, a loop variable that is bound late."""

    def program(checkpoint):
        x, cache, state = parameter(3), [], {"scale": 2.0}

        def cached(t):
            cache.append(t)
            total = cache[0]
            for earlier in cache[1:]:
                total = total + earlier
            return mg.tanh(total) * total

        h = checkpoint(cached, x)
        h = checkpoint(lambda t: mg.tanh(t * state["scale"]) * t, h)
        state["scale"] = 50.0
        cache.append(x)
        i, functions = 1.0, [lambda t: t * i * t for _ in range(3)]  # noqa: B023
        for function in functions:
            h = checkpoint(function, h)
        cache.append(functions)
        h.sum().backward()
        return [x.grad, np.array(len(cache))]

    same_bits(*both_ways(program))


def test_data_made_outside_the_tape_is_a_constant_of_the_region(parameter):
    x, rng = parameter(5), np.random.default_rng(0)
    y = mg.checkpoint(lambda t: t * mg.tensor(rng.standard_normal(5)), x)
    state = rng.bit_generator.state
    y.backward(mg.ones(5, dtype=np.float64))
    np.testing.assert_array_equal(x.grad.numpy() * x.numpy(), y.numpy())
    assert rng.bit_generator.state == state


def test_the_node_keeps_neither_the_function_nor_what_it_captured(parameter):
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)

    def fn(t, _captured=big):
        return mg.tanh(t) * t

    y = mg.checkpoint(fn, parameter(3)).sum()
    del fn, big
    assert gone() is None
    y.backward()


# ---- What is kept, what is run -----------------------------------------------------------------------


def test_only_the_boundary_is_kept(parameter):
    x, w = parameter(4), parameter(4, seed=1)
    h = mg.tanh(x)

    def fn(t):
        for _ in range(10):
            t = mg.tanh(t * w)
        return t

    y = mg.checkpoint(fn, h)
    kept = [row.node for row in mg.saved(y.sum())]
    assert kept == [h.node]
    assert all(line.out is None for line in y.node.body.lines)


def test_a_boundary_that_no_replay_reads_is_not_kept(parameter):
    x = parameter(4)
    h = mg.tanh(x) * 2.0
    constant = mg.tensor(np.ones(4))
    gone = weakref.ref(constant.data), weakref.ref(h.data)
    y = mg.checkpoint(lambda t: t + constant + t, h)  # noqa: F821
    del constant, h
    assert gone[0]() is None and gone[1]() is None
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * (1 - np.tanh(x.numpy()) ** 2))


def replays(loss):
    """The ops that the replays of a backward run, by name."""
    with mg.Tracer() as tracer:
        loss.backward()
    assert tracer.live_activations == 0
    return [event.op for event in tracer.events if event.kind == "replayed"]


def test_replay_runs_nothing_that_is_not_read(parameter):
    x, w = parameter(4, 4), parameter(4, 4, seed=1)

    def fn(t):
        h = mg.tanh(t @ w)
        unused = (h @ w) @ w  # noqa: F841  a dead end
        return (h @ w) + h

    assert replays(mg.checkpoint(fn, x).sum()) == ["matmul", "tanh"]


def test_replay_does_not_run_what_is_still_held(parameter):
    x = parameter(4)
    y = mg.checkpoint(lambda t: mg.tanh(mg.tanh(t)), x)
    assert replays((y * y).sum()) == ["tanh"]  # the second tanh's output is held for the product


def test_of_several_outputs_only_the_used_ones_are_replayed(parameter):
    x, wu, wv = parameter(4), parameter(4, seed=1), parameter(4, seed=2)
    u, v = mg.checkpoint(lambda t: (mg.tanh(t * wu) * t, mg.tanh(t * wv) * t), x)
    assert replays(u.sum()) == ["mul", "tanh"]
    assert wv.grad is None and wu.grad is not None
    assert replays(v.sum()) == ["mul", "tanh"]  # the other output's own replay is still to be had
    assert wv.grad is not None


def test_several_outputs_are_replayed_together(parameter, same_bits):
    def program(checkpoint):
        x, w = parameter(4), parameter(4, seed=1)

        def fn(t):
            h = mg.tanh(t * w)
            return h * t, mg.tanh(h), {"sum": h.sum()}

        a, b, c = checkpoint(fn, x)
        (a * b * c["sum"]).sum().backward()
        return [x.grad, w.grad]

    same_bits(*both_ways(program))
    x, w = parameter(4), parameter(4, seed=1)
    a, b = mg.checkpoint(lambda t: (lambda h: (h * t, mg.tanh(h)))(mg.tanh(t * w)), x)
    assert replays((a + b).sum()) == ["mul", "tanh", "tanh"]


def test_intermediates_are_dropped_as_the_replay_moves_on(parameter):
    """A long stretch of ops that keep nothing: the replay holds two values at a time, not all."""
    x = parameter(100)

    def fn(t):
        for _ in range(20):
            t = t + 1.0
        return mg.tanh(t) * 3.0

    with mg.Tracer() as tracer:
        mg.checkpoint(fn, mg.tanh(x)).sum().backward()
    replay = [event.live_activations for event in tracer.events if event.phase == "replay"]
    assert max(replay) <= 3


def test_a_million_layers_deep_would_be_nothing_a_long_region_is_replayed_without_recursion(parameter):
    x = parameter(2)

    def fn(t):
        for _ in range(20_000):
            t = t * 1.0
        return mg.tanh(t) * t

    y = mg.checkpoint(fn, x).sum()
    y.backward()
    gone = weakref.ref(y.node)
    del y
    assert gone() is None


# ---- Nestings ----------------------------------------------------------------------------------------


def test_any_nesting_comes_out_as_it_was(parameter):
    x = parameter(3)

    def fn(t, scale, *, more):
        ordered = OrderedDict(a=t * scale, b=None)
        return Pair({"list": [t * 2.0, 5, "text"], "given": more}, (ordered, t))

    out = mg.checkpoint(fn, x, 3.0, more=[None, 7])
    assert isinstance(out, Pair) and isinstance(out.right[0], OrderedDict) and out.left["given"] == [None, 7]
    assert out.left["list"][1:] == [5, "text"] and out.right[0]["b"] is None
    assert out.right[1] is x
    (out.left["list"][0] * out.right[0]["a"]).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 12 * x.numpy())


def test_tensors_go_in_through_any_nesting(parameter):
    x, w = parameter(3), parameter(3, seed=1)
    y = mg.checkpoint(lambda d: mg.tanh(d["a"][0] * d["a"][1].right) * 2.0, {"a": (x, Pair(None, w))})
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * w.numpy() * (1 - np.tanh(x.numpy() * w.numpy()) ** 2))


def test_functions_that_give_back_what_they_got(parameter):
    x, c = parameter(3), mg.ones(3)
    assert mg.checkpoint(lambda t: t, x) is x
    assert mg.checkpoint(lambda t: c, x) is c
    assert mg.checkpoint(lambda: 7) == 7 and mg.checkpoint(lambda: None) is None
    same = mg.checkpoint(lambda t: (lambda h: (h, h))(mg.tanh(t) * t), x)
    assert same[0] is same[1] and same[0].requires_grad


def test_where_nothing_requires_grad_nothing_is_recorded(parameter):
    frozen = mg.tensor([2.0, 2.0])
    h = mg.checkpoint(lambda t: mg.tanh(t * frozen), mg.tensor([3.0, 4.0]))
    assert not h.requires_grad and h.is_leaf
    with mg.no_grad():
        assert not mg.checkpoint(lambda t: mg.tanh(t), parameter(3)).requires_grad
    x = parameter(2)
    part, whole = mg.checkpoint(lambda t: (mg.tanh(t.detach()), mg.tanh(t) * t), x)
    assert not part.requires_grad and whole.requires_grad
    (part * whole).sum().backward()
    t = np.tanh(x.numpy())
    np.testing.assert_allclose(x.grad.numpy(), t * (t + x.numpy() * (1 - t * t)))


def test_values_computed_without_grad_inside_are_replayed_not_kept(parameter, same_bits):
    def program(checkpoint):
        x = parameter(5)

        def fn(t):
            with mg.no_grad():
                scale = mg.tanh(t) * 2.0
            return mg.tanh(t * scale) * t.detach()

        h = mg.tanh(x)
        y = checkpoint(fn, h)
        kept = len(mg.saved(y))
        y.sum().backward()
        return [x.grad], kept

    (ours, kept), (reference, _) = both_ways(program)
    same_bits(ours, reference)
    assert kept == 1


def test_in_place_changes_inside_and_outside(parameter):
    p, x = mg.tensor(1.0, requires_grad=True), mg.full((5,), 2.0).requires_grad_()

    def fn(t):
        v = (t * p).reshape(-1)
        v *= 3
        v[0] = v[0] * 1.0
        return v

    mg.checkpoint(fn, x).sum().backward()
    assert p.grad.item() == 30 and x.grad.tolist() == [3] * 5
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    h = x * 1
    y = mg.checkpoint(lambda t: mg.tanh(t) * t, h)
    h += 10
    h[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        y.node.inputs[0].out[...] = 99.0
    y.sum().backward()
    t = np.tanh(1.0)
    np.testing.assert_allclose(x.grad.numpy(), [0, t + 1 - t * t], rtol=1e-6)


# ---- Hooks, names, modes -----------------------------------------------------------------------------


def test_hooks_and_retained_gradients_inside_a_region_come_once(parameter):
    x, seen, inner = parameter(3), [], {}

    def fn(t):
        h = inner["h"] = mg.tanh(t)
        h.register_hook(lambda g: seen.append(g.numpy().copy()))
        h.retain_grad()
        return h * t

    y = mg.checkpoint(fn, mg.tanh(x))
    y.register_hook(lambda g: seen.append("out"))
    y.sum().backward()
    assert seen[0] == "out" and len(seen) == 2
    np.testing.assert_array_equal(inner["h"].grad.numpy(), seen[1])


def test_a_hook_on_a_parameter_of_two_regions_sees_the_sum_once():
    w, x, seen = mg.tensor(3.0, requires_grad=True), mg.tensor(2.0, requires_grad=True), []
    w.register_hook(lambda g: seen.append(g.item()))
    mg.checkpoint(lambda t: t * w, mg.checkpoint(lambda t: t * w, x)).backward()
    assert seen == [12.0] and x.grad.item() == 9.0


def test_an_error_inside_leaves_the_state_as_it_was(parameter):
    x = parameter(3)
    h = mg.tanh(x) * 2.0
    gone = weakref.ref(h.data)

    def fn(t):
        mg.checkpoint(lambda s: mg.tanh(s), t)
        raise KeyError("boom")

    with pytest.raises(KeyError):
        mg.checkpoint(fn, h)
    y = mg.tanh(x)
    assert y.node.region is None and y.requires_grad
    del h
    assert gone() is None


def test_the_layer_and_line_of_replayed_nodes_are_those_of_the_first_run(parameter):
    y = mg.checkpoint(lambda t: mg.tanh(t) * t, parameter(3), name="block")
    lines = [(line.op.name, line.line) for line in y.node.body.lines]
    swept = [step.node for step in mg.steps(y.sum()) if step.kind == "op"]
    replayed = [(node.op.name, node.line) for node in swept if node.op.name != "sum"]
    assert replayed == lines[::-1]
    assert y.name == "block"


# ---- Mistakes ----------------------------------------------------------------------------------------


def test_a_smuggled_tensor_is_an_error_wherever_it_is_used(parameter):
    x, kept = parameter(3), []

    def fn(t):
        kept.append(mg.tanh(t * 2.0))
        return kept[0] * t

    y = mg.checkpoint(fn, x, name="smuggler")
    for use in (
        lambda: kept[0] * 2.0,
        lambda: kept[0].sum(),
        lambda: kept[0].backward(mg.ones(3)),
        lambda: mg.grad(y.sum(), kept[0]),
        lambda: mg.checkpoint(lambda t: t * kept[0], x),
    ):
        with pytest.raises(mg.CheckpointError, match=r"tanh.*test_checkpoint.py:\d+.*'smuggler'.*return it from"):
            use()
    y.sum().backward()
    assert x.grad is not None


def test_a_smuggled_constant_is_just_a_value(parameter):
    x, statistics = parameter(3), []

    def fn(t):
        h = mg.tanh(t)
        statistics.append(h.detach())
        return h * t

    y = mg.checkpoint(fn, x)
    (y * statistics[0]).sum().backward()
    t = np.tanh(x.numpy())
    np.testing.assert_allclose(x.grad.numpy(), t * (t + x.numpy() * (1 - t * t)))


def test_an_overwritten_parameter_is_caught_at_the_replay(parameter):
    x, w = parameter(3), parameter(3, seed=1, name="w")
    y = mg.checkpoint(lambda t: mg.tanh(t * w) * w, x).sum()
    w.assign_(np.ones(3))
    with pytest.raises(mg.OverwrittenError, match=r"parameter w was overwritten after the mul at test_checkpoint.py"):
        y.backward()
    assert w.grad is None and x.grad is None


def impure_op():
    runs = []

    @mg.op
    def impure(t):
        runs.append(1)
        return t * len(runs)

    @impure.vjp("t")
    def impure_wrt_t(g, out):
        return g * out

    return impure


@pytest.mark.parametrize("nested", [False, True])
def test_verify_names_the_first_op_whose_replay_differs(parameter, nested):
    impure, x = impure_op(), parameter(3)

    def fn(t):
        return mg.tanh(impure(mg.tanh(t))) * t

    program = (lambda t: mg.checkpoint(fn, t) * t) if nested else fn
    y = mg.checkpoint(program, x, verify=True).sum()
    with pytest.raises(mg.CheckpointError, match=r"replay of impure at test_checkpoint.py:\d+"):
        y.backward()
    assert x.grad is None
    mg.checkpoint(program, x).sum().backward()  # without verify nobody looks


def test_verify_passes_what_is_pure(parameter, same_bits):
    def program(checkpoint):
        x = parameter(3)
        y = checkpoint(lambda t: mg.tanh(mg.tanh(t) * 2.0) * t, x)
        y.sum().backward()
        return [x.grad]

    same_bits(program(plain), program(lambda fn, x: mg.checkpoint(fn, x, verify=True)))


# ---- Checkpoints that save nothing -------------------------------------------------------------------


def warned(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(w.message) for w in caught if issubclass(w.category, mg.CheckpointWarning)]


def test_a_checkpoint_of_one_op_warns_with_the_predicted_peak(parameter):
    x, w = parameter(3, 3), parameter(3, 3, seed=1)
    assert warned(lambda: mg.checkpoint(lambda t: mg.tanh(t) @ w, mg.tanh(x))) == []
    (told,) = warned(lambda: mg.checkpoint(lambda t: t @ w, mg.tanh(x)))
    assert "saves nothing: it keeps 1 buffer, where the tape without it would keep 1" in told
    assert "test_checkpoint.py" in told


def test_a_checkpoint_of_the_whole_net_warns_in_backward(parameter):
    x = mg.tensor(np.ones((2, 2)))
    weights = [parameter(2, 2, seed=i) for i in range(6)]

    def net(h):
        for w in weights:
            h = mg.tanh(h @ w)
        return h

    (told,) = warned(lambda: mg.checkpoint(net, x).sum().backward())
    assert "stands for the whole network" in told and "would have held 7" in told
    halves = [lambda h: net(h), lambda h: net(h)]
    assert warned(lambda: mg.checkpoint_sequential(halves, 2, x).sum().backward()) == []
    assert warned(lambda: mg.checkpoint(net, mg.checkpoint(net, x)).sum().backward()) == []


def test_checkpoint_sequential_runs_every_layer_once_for_any_number_of_segments(same_bits):
    calls = [0] * 4

    def layer(i, k):
        def run(t):
            calls[i] += 1
            return mg.tanh(t * k)

        return run

    layers, results = [layer(i, k) for i, k in enumerate([2.0, 3.0, 5.0, 7.0])], []
    for segments in (1, 2, 3, 4):
        x = mg.tensor(0.3, requires_grad=True)
        mg.checkpoint_sequential(layers, segments, x).backward()
        results.append(x.grad)
    for result in results[1:]:
        same_bits([result], results[:1])
    assert calls == [4, 4, 4, 4]
    with pytest.raises(mg.ArgumentError, match="at least one layer"):
        mg.checkpoint_sequential([], 1, x)


def test_a_boundary_through_which_no_gradient_flows_is_let_go_too(parameter):
    """The sweep never passes it, so it is the checkpoint's own to hold."""
    x, w = parameter(3), parameter(3, seed=1)
    gate = mg.tanh(x) * 2
    with mg.Tracer() as tracer:
        loss = mg.checkpoint(lambda t, g: mg.tanh(t * mg.sign(g).detach()) * t, w, gate).sum()
        loss.backward()
    assert tracer.live_activations == 0


def gradients_of(loss, *leaves):
    """The gradients of a loss, as arrays; the leaves are as before."""
    loss.backward()
    found = [leaf.grad.numpy() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found


def test_a_nested_checkpoint_reads_a_detached_value_of_the_outer_one(parameter, same_bits):
    x = parameter(5)

    def outer(t, checkpoint):
        u = mg.tanh(t)
        return u * checkpoint(lambda a, b: mg.tanh(mg.exp(b.detach()) * a), t, u)

    ours = gradients_of(mg.checkpoint(outer, x, mg.checkpoint).sum(), x)
    same_bits(ours, gradients_of(outer(x, lambda fn, *given: fn(*given)).sum(), x))


def test_an_output_of_a_nested_checkpoint_without_gradient_is_a_constant_of_the_replay(parameter, same_bits):
    x = parameter(5)

    def outer(t, checkpoint):
        a, b = checkpoint(lambda p: (mg.tanh(mg.sin(p)), mg.exp(mg.cos(p))), t)
        return a * b.detach()

    ours = gradients_of(mg.checkpoint(outer, x, mg.checkpoint).sum(), x)
    same_bits(ours, gradients_of(outer(x, lambda fn, t: fn(t)).sum(), x))


def test_a_nested_checkpoint_whose_value_the_tape_holds_does_not_run_again_for_it(parameter):
    def outer(t):
        u = mg.checkpoint(lambda a: mg.tanh(mg.sin(a)), t)
        return u, mg.exp(mg.tanh(u))

    u, v = mg.checkpoint(outer, parameter(5))
    loss = (u * u + v).sum()
    with mg.Tracer() as tracer:
        loss.backward()
    assert sorted(event.op for event in tracer.events if event.kind == "replayed") == ["exp", "sin", "tanh", "tanh"]
