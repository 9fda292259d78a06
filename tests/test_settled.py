"""What has been recorded is settled: nobody changes it afterwards, by settings, by gradients, or by an interrupt."""

import gc
import signal
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.modes import local


@mg.op
def scaled(x, *, table=None):
    return np.tanh(x * np.asarray(table))


@scaled.vjp("x")
def scaled_wrt_x(g, out, table):
    return g * (1 - out * out) * np.asarray(table)


@mg.op
def doubled(x):
    return x * 2


@doubled.vjp("x")
def doubled_wrt_x(g):
    g *= 2
    return g


def leaf(*values):
    return mg.tensor(np.array(values), requires_grad=True)


# ---- Settings ----------------------------------------------------------------------------------------


def as_list(values):
    return list(values)


def as_nested(values):
    return [[value] for value in values]


@pytest.mark.parametrize("kind", [as_list, as_nested, np.array, mg.tensor])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_setting_that_is_changed_later_changes_nothing(kind, checkpointed):
    def run(change):
        x, table = leaf(0.1, 0.2, 0.3), kind([1.0, 2.0, 3.0])
        if kind is as_nested:
            x = leaf([0.1], [0.2], [0.3])

        def f(t):
            return mg.tanh(scaled(mg.sin(t), table=table)) * t

        y = mg.checkpoint(f, x).sum() if checkpointed else f(x).sum()
        if change and kind is mg.tensor:
            table.assign_([9.0, 9.0, 9.0])
        elif change:
            table[0] = [9.0] if kind is as_nested else 9.0
        y.backward()
        return x.grad.tolist()

    assert run(True) == run(False)


def test_a_tensor_that_requires_a_gradient_is_no_setting():
    with pytest.raises(mg.ArgumentError, match="scaled at .*'table' as a setting"):
        scaled(leaf(0.1), table=leaf(1.0))


def test_a_tensor_without_a_gradient_is_the_number_in_it():
    x = mg.tensor([0.1], requires_grad=True)
    scaled(x, table=mg.tensor(2.0)).sum().backward()
    assert x.grad.dtype == np.float32


def test_an_op_without_inputs_gives_a_tensor():
    @mg.op
    def three(*, times=1):
        return np.full(2, 3.0 * times)

    assert three().tolist() == [3.0, 3.0] and three(times=2).tolist() == [6.0, 6.0]
    assert isinstance(three(), mg.Tensor)


# ---- Gradients ---------------------------------------------------------------------------------------


def test_a_vjp_cannot_write_into_its_gradient():
    x, z = leaf(0.3, -0.4), leaf(1.0, 2.0)
    with pytest.raises(mg.MinigradError, match="doubled_wrt_x.*read-only"):
        ((mg.sin(z) + doubled(x)) * 1.0).sum().backward()
    assert z.grad is None and x.grad is None


@pytest.mark.parametrize("where", ["leaf", "inner", "checkpoint"])
def test_a_hook_cannot_write_into_what_it_is_shown(where):
    x, z = leaf(0.3, -0.4), leaf(1.0, 2.0)
    h = mg.checkpoint(lambda t: mg.sin(t) * t, x) if where == "checkpoint" else mg.sin(x)

    def scribble(g):
        g.data[...] = 100.0

    (x if where == "leaf" else h).register_hook(scribble)
    with pytest.raises(ValueError, match="read-only"):
        ((h + z) * 1.0).sum().backward()
    assert x.grad is None and z.grad is None


def test_what_a_step_shows_cannot_be_written_to():
    x = leaf(0.3, -0.4)
    for step in mg.steps((mg.sin(x) + x).sum()):
        for array in (step.grad, *step.grads):
            if step.kind == "op":
                assert not array.flags.writeable or step.grad is array
    assert np.allclose(x.grad.data, np.cos(x.data) + 1)


# ---- Discarded outputs -------------------------------------------------------------------------------


def transposed(t):
    return t.T


def doubled_plainly(t):
    return t * 2


def dropped(t):
    return mg.dropout(t, 0.5)


def nested(t):
    return mg.checkpoint(doubled_plainly, t, keep_output=False) * 3


def constant_added(t):
    return mg.tanh(t) + 1.0


ORDINARY = [transposed, doubled_plainly, dropped, nested, constant_added]


@pytest.mark.parametrize("function", ORDINARY)
@pytest.mark.parametrize("options", [{}, {"policy": mg.policies.save_everything()}, {"offload": True}, {"offload": 2},
                                     {"verify": True}])  # fmt: skip
def test_an_output_that_is_not_kept_can_be_made_again(function, options):
    def run(checkpointed):
        mg.manual_seed(3)
        x = mg.tensor(np.arange(4.0).reshape(2, 2), requires_grad=True)
        h = mg.sin(x)
        y = mg.checkpoint(function, h, keep_output=False, **options) if checkpointed else function(h)
        z = y * y
        del h, y
        z.sum().backward()
        return x.grad.tolist()

    assert run(True) == run(False)


def test_nothing_of_a_discarded_output_lives_on():
    x = leaf(0.3, -0.4)
    with mg.Tracer() as tracer:
        y = mg.checkpoint(doubled_plainly, mg.sin(x), keep_output=False)
        (y * y).sum().backward()
    assert tracer.live_activations == 0


# ---- Nothing is held too long ------------------------------------------------------------------------


@pytest.fixture
def without_collector():
    gc.disable()
    yield
    gc.enable()


def test_a_verified_checkpoint_makes_no_cycle(without_collector):
    def abandon():
        h = mg.tanh(mg.tensor(np.ones((5, 5))) @ leaf(*np.eye(5)))
        mg.checkpoint(lambda t: mg.tanh(mg.exp(t)), h, verify=True)
        return weakref.ref(h.data)

    assert abandon()() is None


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_constant_that_nobody_will_read_is_not_kept(depth, without_collector):
    c = mg.tensor(np.arange(5.0))
    held, function = weakref.ref(c.data), lambda p, c=c: mg.tanh(mg.sin(p)) + c
    for _ in range(depth - 1):
        function = (lambda f: lambda p: mg.checkpoint(f, p))(function)
    y = mg.checkpoint(function, leaf(*np.ones(5)))
    del c, function
    assert held() is None
    y.sum().backward()


def test_grad_with_a_graph_inside_a_checkpoint_through_an_earlier_one_with_a_policy():
    def run(how):
        x = mg.tensor(np.linspace(-1, 1, 12).reshape(3, 4), requires_grad=True)
        s = how(lambda t: mg.softmax(t * 2) * 3, mg.sin(x), policy=mg.policies.save_ops("softmax"))

        def penalty(u):
            (g,) = mg.grad((s * s).sum(), [x], create_graph=True, retain_graph=True)
            return (g * g).sum() * u.mean()

        (how(penalty, mg.cos(x)) + s.sum()).backward()
        return x.grad.data

    plain = run(lambda f, *args, **options: f(*args))
    np.testing.assert_allclose(run(mg.checkpoint), plain, rtol=1e-12)


# ---- Interrupts and exhaustion -----------------------------------------------------------------------


def test_running_out_of_memory_is_a_memory_error_that_names_the_op():
    x = mg.ones(1, requires_grad=True)
    with pytest.raises(MemoryError, match="mul at") as caught:
        mg.broadcast_to(x, (10**8, 10**7)) * 2
    assert isinstance(caught.value, mg.MinigradError)


def test_a_heuristic_that_raises_leaves_the_outer_budget_in_force():
    def bad(storage):
        raise ValueError("heuristic")

    x = leaf(*np.ones(100))

    def net():
        h = x
        for _ in range(10):
            h = mg.sin(h)
        return h.sum()

    with mg.memory_budget("1MB") as outer:
        loss = net()
        with pytest.raises(ValueError, match="heuristic"):
            with mg.memory_budget(3000, evict=bad):
                pass
        assert local.context.budget.limit == 10**6
        net().backward()
    assert x.grad is not None and outer.evictions == 0 and loss is not None


MODES = ("grad", "anomaly", "region", "open_region", "tape", "tracer", "tracers", "budget", "layer", "phase")


def state():
    return tuple([getattr(local.context, mode) for mode in MODES])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a signal that comes by itself")
def test_ctrl_c_at_any_moment_leaves_the_modes_as_they_were():
    """Real signals, at random moments of a program; what Python does between two calls is done as a whole."""
    x = leaf(*np.linspace(-1, 1, 6))

    def program():
        with mg.Tracer(), mg.enable_grad():
            y = mg.checkpoint(lambda t: mg.checkpoint(lambda u: mg.tanh(u) * u, t) + mg.sin(t), x)
            (y * y).sum().backward()

    def interrupt(*_):
        raise KeyboardInterrupt

    program()
    expected, before, hit = x.grad.tolist(), state(), 0
    outer_handler = signal.signal(signal.SIGALRM, interrupt)
    pause = np.random.default_rng(0)
    left = []
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, pause.uniform(2e-5, 1e-3))
                program()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hit += 1
            if state() != before:
                left.append(state())
                for name, value in zip(MODES, before, strict=True):
                    setattr(local.context, name, value)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer_handler)
    assert hit > 50 and len(left) <= hit // 50, (hit, left[:3])  # only the very first instruction of an exit is open
    x.grad = None
    program()
    assert x.grad.tolist() == expected


@pytest.mark.parametrize("count", [500, 4000])
def test_the_advice_about_a_long_body_looks_at_each_line_a_few_times(count, monkeypatch):
    """Counted in looks, not in seconds: eight times the ops, eight times the looks."""
    from minigrad.retention import advice

    looks = 0
    original = advice.is_parameter

    def counted(node):
        nonlocal looks
        looks += 1
        return original(node)

    monkeypatch.setattr(advice, "is_parameter", counted)
    x = mg.tensor(np.ones(4, "float32"), requires_grad=True)

    def f(h):
        for _ in range(count):
            h = mg.tanh(h)
        return h

    with pytest.warns(mg.CheckpointWarning):
        mg.checkpoint(f, x).sum().backward()
    assert looks <= 10 * count
