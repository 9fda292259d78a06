"""Programs at the borders of checkpoints, that once went wrong: each is compared with the plain program."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s


def plain(fn, *args):
    return fn(*args)


BOTH = pytest.mark.parametrize("checkpoint", [mg.checkpoint, plain])


@BOTH
@pytest.mark.parametrize(
    "overwrite",
    [lambda w: w.assign_([10.0]), lambda w: mg.optim.SGD([w], lr=1.0).step(), lambda w: setattr(w, "data", [5.0])],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_leaf_overwritten_while_the_function_runs(checkpoint, overwrite, nested):
    x, w = mg.tensor([3.0], requires_grad=True), mg.tensor([2.0], requires_grad=True, name="w")
    w.grad = [1.0]

    def fn(t):
        t = mg.tanh(t * w)
        overwrite(w)
        return mg.tanh(t * w)

    program = (lambda t: checkpoint(fn, t) * t) if nested else fn
    y = checkpoint(program, x).sum()
    with pytest.raises(mg.OverwrittenError, match="parameter w was overwritten after the mul"):
        y.backward()


@BOTH
def test_a_leaf_overwritten_before_it_is_read_is_just_another_value(checkpoint):
    x, w = mg.tensor([3.0], requires_grad=True), mg.tensor([2.0], requires_grad=True)

    def fn(t):
        w.assign_([0.5])
        return mg.tanh(t * w) * w

    checkpoint(fn, x).sum().backward()
    t = np.tanh(1.5)
    np.testing.assert_allclose(w.grad.numpy(), [t + 0.5 * 3 * (1 - t * t)], rtol=1e-6)


@BOTH
def test_an_output_that_the_function_reads_on_has_its_whole_gradient(checkpoint):
    def fn(t):
        u = mg.tanh(t)
        return u, mg.tanh(u * u)

    x = mg.tensor(np.array([0.5]), requires_grad=True)
    u, v = checkpoint(fn, x)
    (whole,) = mg.grad((u * 3.0 + v).sum(), u, retain_graph=True)
    (through,) = mg.grad(v.sum(), u, retain_graph=True)
    t = np.tanh(0.5)
    slope = (1 - np.tanh(t * t) ** 2) * 2 * t
    np.testing.assert_allclose([whole.item(), through.item()], [3 + slope, slope])
    seen = []
    u.register_hook(lambda g: seen.append(g.item()))
    u.retain_grad()
    (u * 3.0 + v).sum().backward()
    (told,) = seen
    np.testing.assert_allclose([told, u.grad.item(), x.grad.item()], np.array([1, 1, 1 - t * t]) * (3 + slope))


@BOTH
def test_a_hook_on_such_an_output_may_replace_the_gradient(checkpoint):
    x = mg.tensor([0.5], requires_grad=True)
    u, v = checkpoint(lambda t: (lambda u: (u, mg.tanh(u * u)))(mg.tanh(t)), x)
    u.register_hook(lambda g: g * 0)
    (u + v).sum().backward()
    assert x.grad.tolist() == [0]


def test_a_gradient_with_respect_to_an_output_needs_no_replay():
    x = mg.tensor([0.5], requires_grad=True)
    y = mg.checkpoint(lambda t: mg.tanh(mg.tanh(t) * t), x)
    with mg.Tracer() as tracer:
        mg.grad((y * y).sum(), y)
    assert tracer.replayed_ops == 0
    y.sum().backward()


def test_turning_requires_grad_off_and_on_loses_no_gradient():
    w = mg.tensor([1.0], requires_grad=True)
    a = w * 2
    w.requires_grad_(False)
    w.requires_grad_(True)
    (a + w * 3).sum().backward()
    assert w.grad.tolist() == [5]
    t = mg.tensor([1.0], requires_grad=True) * 1
    t.retain_grad()
    t *= 3
    t.retain_grad()
    (t * 5).sum().backward()
    assert t.grad.tolist() == [5]


class Fixed(s.Schedule):
    """A schedule with given parts, right or wrong."""

    def __init__(self, *parts):
        self.given, self.label = parts, "fixed"

    def split(self, n):
        return list(self.given)


@pytest.mark.parametrize(
    "parts",
    [(), ((1, None),), ((-1, None), (4, None)), ((3, "x"),), ((5, None),), ((0, None), (3, None)), (3,), ((3.5, 0),)],
)
def test_a_split_that_does_not_fit_is_an_error_before_anything_runs(chain, parts):
    with pytest.raises(mg.ArgumentError, match="fixed splits 3 layers into"):
        chain(3).run(Fixed(*parts))
    with pytest.raises(mg.ArgumentError, match="fixed splits 3 layers into"):
        Fixed(*parts).plan(3)
    with pytest.raises(mg.ArgumentError, match="fixed splits 2 layers into"):
        chain(3).run(Fixed((2, Fixed(*parts)), (1, None)))


def test_a_split_into_itself_would_never_end():
    endless = Fixed()
    endless.given = [(3, endless)]
    with pytest.raises(mg.ArgumentError, match="never end"):
        endless.plan(3)


def test_layers_that_leave_no_lines(same_bits):
    """An identity, and a layer whose result nobody uses, under a schedule that makes checkpoints of them."""
    w = mg.tensor(np.eye(2), requires_grad=True)
    x = mg.tensor(np.ones((1, 2)))
    layers = [lambda h: h, lambda h: mg.tanh(h @ w), lambda h: (h @ w) and h if False else h, lambda h: mg.tanh(h @ w)]
    inner = Fixed((1, s.store_all()), (1, s.store_all()), (1, s.store_all()), (1, None))
    results = []
    for schedule in (s.store_all(), Fixed((4, inner))):
        w.grad = None
        mg.checkpoint_sequential(layers, schedule, x).sum().backward()
        results.append(w.grad)
    same_bits(*[[r] for r in results])


def test_a_sequential_within_a_sequential_keeps_its_own_layers(same_bits):
    def make():
        rng = np.random.default_rng(0)
        linear = [mg.nn.Linear(3, 3) for _ in range(3)]
        for layer in linear:
            layer.weight.assign_(rng.standard_normal((3, 3)))
            layer.bias.assign_(rng.standard_normal(3))
        return mg.nn.Sequential(mg.nn.Tanh(), mg.nn.Sequential(*linear, checkpoint=s.store_all()), mg.nn.Tanh())

    x, results = mg.tensor(np.ones((2, 3), np.float32)), []
    for schedule in (s.store_all(), Fixed((3, Fixed((1, s.store_all()), (1, s.store_all()), (1, None))))):
        model = make()
        mg.checkpoint_sequential(list(model), schedule, x).sum().backward()
        results.append([p.grad for p in model.parameters()])
    same_bits(*results)


@BOTH
def test_grad_inside_of_what_was_made_outside(checkpoint):
    x = mg.tensor(np.array([0.3]), requires_grad=True)
    h = x + 1.0
    y = checkpoint(lambda t: mg.grad((t * t).sum(), t, retain_graph=True)[0] * t, h)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2 * 1.3])


@BOTH
def test_grad_inside_over_a_checkpoint_made_outside(checkpoint):
    c = mg.tensor(np.array([0.7]))
    x = mg.tensor(np.array([0.3]), requires_grad=True)
    y = checkpoint(lambda t: mg.tanh(t) * t + c, x)
    z = checkpoint(lambda t: mg.grad(y.sum(), x, create_graph=True)[0] * mg.tanh(t), x)
    z.sum().backward()
    t = np.tanh(0.3)
    d = 1 - t * t
    np.testing.assert_allclose(x.grad.numpy(), [(2 * d - 2 * t * d * 0.3) * t + (t + 0.3 * d) * d], rtol=1e-12)


def test_statistics_that_leave_a_region_become_plain_data():
    x = mg.tensor(np.ones(4), requires_grad=True)
    running = {"mean": mg.tensor(np.zeros(4))}

    def fn(t):
        running["mean"] = running["mean"] * 0.9 + t.detach() * 0.1
        return mg.tanh(t * 2.0) * t

    y = mg.checkpoint(fn, x).sum()
    assert running["mean"].is_leaf
    running["mean"].assign_(np.ones(4))
    running["mean"].requires_grad_()
    y.backward()
    assert x.grad is not None


def test_a_condition_that_is_read_but_not_differentiated_is_let_go():
    t = mg.tensor([1.0, 0.0], requires_grad=True)
    with mg.Tracer() as tracer:
        y = mg.where(t * 2, t * 3, 0.0).sum()
        y.backward()
        assert tracer.live_activations == 0
    assert t.grad.tolist() == [3, 0]


def test_activations_are_never_fewer_than_none():
    x, v = mg.tensor([0.5], requires_grad=True), mg.tensor([2.0], requires_grad=True)
    with mg.Tracer() as tracer:
        (g,) = mg.grad(mg.sin(x * 1.0).sum(), x)
        a = v * g
        b = mg.checkpoint(lambda g: mg.tanh(mg.tanh(v * g) * g), g)
        (a + b).sum().backward()
        assert tracer.live_activations == 0
    assert min(event.live_activations for event in tracer.events) >= 0


def test_constants_of_a_boundary_count_while_their_replay_runs(chain):
    store = s.store_all()
    tail = (1, Fixed((1, None)))
    schedule = Fixed((3, Fixed((2, store), (1, Fixed((1, None))))), tail)
    tracer, _ = chain(4).run(schedule)
    assert tracer.peak_activations == schedule.plan(4).peak


def test_one_tracer_entered_twice_counts_once_and_any_order_of_exits_will_do():
    x = mg.tensor(np.ones(3), requires_grad=True)
    with mg.Tracer() as tracer, tracer:
        mg.tanh(x)
    assert tracer.step == 1
    a, b = mg.Tracer(), mg.Tracer()
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    mg.tanh(x)
    b.__exit__(None, None, None)
    mg.tanh(x)
    assert (a.step, b.step) == (0, 1)


def test_deep_nesting_takes_time_that_grows_with_the_depth():
    def nest(depth, t):
        return mg.tanh(t) * t if depth == 0 else mg.checkpoint(lambda s: nest(depth - 1, s) * s, t)

    from minigrad.engine.replay import Work

    made, init = [], Work.__init__
    try:
        Work.__init__ = lambda self, *a, **k: (made.append(1), init(self, *a, **k))[1]
        counts = []
        for depth in (10, 20, 40):
            made.clear()
            nest(depth, mg.tensor([0.5], requires_grad=True)).sum().backward()
            counts.append(len(made))
    finally:
        Work.__init__ = init
    assert counts[2] < 3 * counts[1] < 9 * counts[0]


@pytest.mark.parametrize("answer", [0.5, "text"])
def test_a_vjp_that_gives_no_array_is_named(answer):
    @mg.op
    def odd(t):
        return t * 2

    @odd.vjp("t")
    def odd_wrt_t(g):
        return answer

    with pytest.raises(mg.MinigradError, match=r"odd_wrt_t, the gradient of odd at test_borders.py:\d+, failed"):
        odd(mg.tensor([1.0, 2.0], requires_grad=True)).sum().backward()


def test_messages_name_the_op_and_the_line():
    x = mg.tensor([1.0], requires_grad=True)
    for act in (lambda: x * None, lambda: x + "a", lambda: mg.tanh(object()) if False else mg.add(x, object())):
        with pytest.raises(TypeError, match=r"(mul|add) at test_borders.py:\d+: expected a tensor"):
            act()
    y = x * 1
    y.register_hook(lambda g: "text")
    with pytest.raises(mg.ArgumentError, match="hook on <mul"):
        y.backward()
    with pytest.raises(mg.ArgumentError, match="gradient given to backward"):
        (x * 1).backward("text")

    @mg.op
    def nothing(t):
        t.sum()

    with pytest.raises(mg.MinigradError, match="nothing returned None"):
        nothing(x)

    @mg.op
    def writer(t):
        t += 1
        return t

    with pytest.raises(mg.MinigradError, match="must not write into its inputs"):
        writer(x)
    for call in (mg.tape, mg.saved):
        with pytest.raises(mg.ArgumentError, match="5"):
            call(5)
    with pytest.raises(mg.ArgumentError, match="needs a function"):
        mg.checkpoint(5, x)
    with pytest.raises(mg.BudgetError, match="2.5"):
        s.sqrt().plan(2.5)


@pytest.mark.parametrize("traced", [False, True])
def test_hooks_run_in_the_mode_of_the_backward(traced):
    x, seen = mg.tensor([1.0], requires_grad=True), []
    x.register_hook(lambda g: seen.append(mg.is_grad_enabled()))
    with mg.Tracer() if traced else mg.enable_grad():
        (x * 2).sum().backward()
        (x * 2).sum().backward(create_graph=True)
    assert seen == [False, True]


def test_a_tape_with_a_constant_and_its_twin_checks():
    x, c = mg.tensor([1.0], requires_grad=True), mg.tensor([2.0])
    tape = mg.tape(((x * c) + c).sum())
    tape.check()
    assert len(tape) == 5


def test_detect_anomaly_names_the_op_its_line_and_the_checkpoints_line():
    def program(checkpoint):
        x = mg.tensor(0.0, requires_grad=True)
        checkpoint(lambda t: mg.sqrt(t) * 0.0, x).backward()
        return x.grad

    for checkpoint, more in ((plain, ""), (mg.checkpoint, r".*inside the checkpoint at test_borders.py:\d+")):
        with mg.detect_anomaly(), pytest.raises(mg.MinigradError, match=rf"sqrt at test_borders.py:\d+{more}.*nan"):
            program(checkpoint)
        assert np.isnan(program(checkpoint).item())  # outside the mode nobody looks
    with mg.detect_anomaly():
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        (mg.sqrt(x) * x).sum().backward(create_graph=True)
        assert x.grad is not None


def test_mg_tensor_with_a_capital_letter_is_refused():
    with pytest.raises(mg.ArgumentError, match=r"mg.tensor\(data\)"):
        mg.Tensor([1.0, 2.0])


def test_a_tracer_that_opens_late_knows_parameters(chain):
    net = mg.nn.Sequential(*[m for _ in range(4) for m in (mg.nn.Linear(8, 8), mg.nn.Tanh())])
    x, peaks = mg.tensor(np.ones((2, 8), np.float32)), []
    for around_all in (True, False):
        tracer = mg.Tracer()
        with tracer if around_all else mg.enable_grad():
            loss = mg.checkpoint_sequential(list(net), 2, x).sum()
        with tracer:
            loss.backward()
        peaks.append(tracer.peak_activations)
        assert tracer.live("boundary") == 0 and tracer.live("parameter") > 0
    assert peaks[1] <= peaks[0]


def test_the_warning_for_a_whole_network_states_what_the_tracer_measures():
    """8 layers, a dropout and a readout in one checkpoint, then a loss: both figures are measured here."""
    layers = [m for _ in range(8) for m in (mg.nn.Linear(8, 8), mg.nn.Tanh())]
    net = mg.nn.Sequential(*layers, mg.nn.Dropout(0.1), mg.nn.Linear(8, 3))
    x, labels = mg.tensor(np.ones((4, 8), np.float32)), mg.tensor([0, 1, 2, 0])
    with mg.Tracer() as plain_tracer:
        mg.cross_entropy(net(x), labels).backward()
    with pytest.warns(mg.CheckpointWarning) as told, mg.Tracer() as tracer:
        mg.cross_entropy(mg.checkpoint(net, x), labels).backward()
    (text,) = [str(w.message) for w in told]
    assert f"its replay holds {tracer.peak_activations} buffers" in text
    assert f"would have held {plain_tracer.peak_activations}" in text


def test_a_checkpoint_that_returns_no_tensor_warns():
    x = mg.tensor([1.0], requires_grad=True)
    for nothing in (lambda t: None if mg.tanh(t) is None else None, lambda t: {mg.tanh(t)}):
        with pytest.warns(mg.CheckpointWarning, match="no tensor in it that requires grad"):
            mg.checkpoint(nothing, x)


def test_keyword_only_parameters_of_a_forward_are_settings():
    @mg.op
    def scaled(x, *, by):
        return x * by

    @scaled.vjp("x")
    def scaled_wrt_x(g, by):
        return g * by

    x = mg.tensor([1.0, 2.0], requires_grad=True)
    scaled(x, by=3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(mg.ArgumentError, match="one by one"):

        @mg.op
        def open_ended(x, **settings):
            return x


def test_a_schedule_of_ones_own_needs_only_split():
    class Halves(mg.Schedule):
        def split(self, n):
            return [(n - n // 2, s.store_all()), (n // 2, None)] if n > 1 else [(1, None)]

    assert repr(Halves().plan(10)) == "Plan(Halves(), 10 layers: peak 6 activations, 4 layers replayed)"


@pytest.mark.parametrize("schedule", ["sqrt", s.sqrt, None, 2.5])
def test_what_is_no_schedule_is_told_what_one_is(chain, schedule):
    with pytest.raises(mg.ArgumentError, match=r"mg.schedules.sqrt\(\), or a number of segments"):
        chain(3).run(schedule)
    assert chain(4).run(np.int64(2))[0].peak_activations == 3


def test_errors_of_an_ops_own_are_given_a_place():
    @mg.op
    def picky(x):
        raise mg.ShapeError("not like this")

    with pytest.raises(mg.ShapeError, match=r"picky at test_borders.py:\d+: not like this"):
        picky(mg.tensor([1.0]))
    with pytest.raises(mg.ShapeError, match="neither true nor false"):
        bool(mg.tensor([1.0, 2.0]))
    with pytest.raises(mg.NoGradientError, match="an op without a vjp"):
        (mg.tensor([1.0], requires_grad=True) > 0).sum().backward()
