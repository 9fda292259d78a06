"""Backward: its order, its errors, what it deposits and what it lets go."""

import sys
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg


def test_a_gradient_is_complete_before_it_goes_on(parameter):
    """A diamond in which one branch feeds the other: depth-first backward gets this wrong."""
    a, b = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)
    p = a * b
    q = p + a
    (p * q + q * q).backward()
    assert (a.grad.item(), b.grad.item()) == (112.0, 60.0)


def test_each_node_is_swept_once_youngest_first(parameter):
    x = parameter(3)
    y = x * 1e-3
    for _ in range(40):
        y = y + y * 1e-3 * y  # 3 ** 40 ways down
    numbers = [step.node.number for step in mg.steps(y.sum()) if step.kind == "op"]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == len(set(numbers)) == 122


def test_steps_say_what_happened(parameter):
    x, w = parameter(2, 3), parameter(3, 3, seed=1)
    loss = mg.tanh(x @ w).sum()
    told = [(step.kind, step.node.op.name if step.node.op else "leaf", step.freed) for step in mg.steps(loss)]
    assert told == [("op", "sum", 0), ("op", "tanh", 48), ("op", "matmul", 0), ("leaf", "leaf", 0), ("leaf", "leaf", 0)]


def test_leaves_get_their_gradients_all_together_at_the_end(parameter):
    x, w = parameter(3), parameter(3, seed=1)
    walk = mg.steps((mg.tanh(x) * w).sum())
    while next(walk).kind != "leaf":
        assert x.grad is None and w.grad is None
    assert x.grad is not None and w.grad is not None


def test_an_abandoned_walk_leaves_nothing_behind():
    x = mg.tensor(2.0, requires_grad=True)
    y = x * x * x
    walk = mg.steps(y, retain_graph=True)
    next(walk), next(walk)
    walk.close()
    assert x.grad is None and mg.is_grad_enabled()
    y.backward()
    assert x.grad.item() == 12.0


def test_gradients_add_up_over_backwards_and_own_their_memory(parameter):
    x = parameter(3)
    seed = mg.ones(3, dtype=np.float64)
    (x + 0.0).backward(seed)
    first = x.grad
    (x + 0.0).backward(seed)
    assert x.grad.tolist() == [2, 2, 2] and first.tolist() == [1, 1, 1] and seed.tolist() == [1, 1, 1]
    x.grad.data[...] = 7
    assert seed.tolist() == [1, 1, 1]


def test_two_leaves_never_share_a_gradient(parameter):
    a, b = parameter(3), parameter(3, seed=1)
    (a + b).backward(mg.ones(3, dtype=np.float64))
    assert a.grad.data is not b.grad.data and not np.shares_memory(a.grad.data, b.grad.data)
    a.grad.data[...] = 5
    assert b.grad.tolist() == [1, 1, 1]


def test_a_second_backward_says_that_the_buffers_are_gone(parameter):
    y = mg.tanh(parameter(3)).sum()
    y.backward()
    with pytest.raises(mg.GraphFreedError, match=r"sum at test_sweep.py:\d+.*retain_graph=True"):
        y.backward()


def test_a_freed_stretch_below_a_new_loss_is_named(parameter):
    h = mg.tanh(parameter(3))
    h.sum().backward()
    with pytest.raises(mg.GraphFreedError, match="tanh"):
        (h * h).sum().backward()


def test_retain_graph_keeps_what_a_second_backward_needs(parameter):
    x = parameter(3)
    y = mg.tanh(x * 2.0).sum()
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once)
    with pytest.raises(mg.GraphFreedError):
        y.backward()


def test_backward_of_what_has_no_graph_says_so():
    x = mg.tensor([1.0, 2.0])
    with pytest.raises(mg.NoGradientError, match="does not require grad"):
        (x * 2).sum().backward()
    with mg.no_grad():
        z = (mg.tensor([1.0], requires_grad=True) * 2).sum()
    with pytest.raises(mg.NoGradientError, match="does not require grad"):
        z.backward()


def test_a_gradient_of_another_shape_is_refused_and_nothing_is_lost():
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    y = x * 3
    with pytest.raises(mg.ShapeError, match=r"\(1, 2\)"):
        y.backward()
    for wrong in (mg.ones(2, 2), mg.ones(2), np.ones(()), 1.0):
        with pytest.raises(mg.ShapeError):
            y.backward(wrong)
    assert x.grad is None
    y.backward(np.ones((1, 2)))  # the graph is still there, and an array of another dtype will do
    assert x.grad.tolist() == [[3, 3]] and x.grad.dtype == np.float32


def test_an_overwritten_parameter_is_caught_when_it_is_read():
    w, x = mg.tensor([2.0], requires_grad=True, name="w"), mg.tensor([3.0], requires_grad=True)
    y = (x * w).sum()
    w.assign_(np.array([0.5]))
    with pytest.raises(mg.OverwrittenError, match=r"parameter w was overwritten after the mul at test_sweep.py:\d+"):
        y.backward()
    assert x.grad is None and w.grad is None


def test_an_overwritten_parameter_that_nobody_reads_is_no_error():
    w, x = mg.tensor([2.0], requires_grad=True), mg.tensor([3.0], requires_grad=True)
    y = (x + w).sum()
    w.assign_(np.array([0.5]))
    y.backward()
    assert w.grad.tolist() == [1]


def test_grad_of_any_tensors_deposits_nothing(parameter):
    x, w = parameter(3), parameter(3, seed=1)
    h = mg.tanh(x * w)
    loss = (h * h).sum()
    gh, gx = mg.grad(loss, [h, x], retain_graph=True)
    np.testing.assert_allclose(gh.numpy(), 2 * h.numpy())
    np.testing.assert_allclose(gx.numpy(), 2 * h.numpy() * (1 - h.numpy() ** 2) * w.numpy())
    assert x.grad is None and w.grad is None and not gx.requires_grad
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), gx.numpy())


def test_grad_frees_only_what_it_passed(parameter):
    x = parameter(3)
    h = mg.tanh(x)
    loss = (h * h).sum()
    mg.grad(loss, [h])
    with pytest.raises(mg.GraphFreedError):
        loss.backward()
    h.sum().backward()  # what lies below h was not touched
    assert x.grad is not None


def test_corner_cases_of_grad():
    x = mg.tensor([3.0], requires_grad=True)
    y = x * 2
    assert mg.grad(y, [y], grad_outputs=[mg.tensor([5.0])])[0].tolist() == [5]
    assert [g.tolist() for g in mg.grad((x * x).sum(), [x, x])] == [[6], [6]]
    a, b = (x * 2).sum(), (x * x).sum()
    assert mg.grad([a, b], x, retain_graph=True)[0].tolist() == [8]
    assert mg.grad([a * 1, b * 1], x, grad_outputs=[mg.tensor(1.0), mg.tensor(10.0)])[0].tolist() == [62]


def test_errors_of_grad(parameter):
    x, z, c = parameter(1), parameter(1, seed=1), mg.ones(1)
    with pytest.raises(mg.NoGradientError, match="input 0.*does not require grad"):
        mg.grad((x * c).sum(), [c])
    with pytest.raises(mg.NoGradientError, match="depends on input 1"):
        mg.grad((x * 2.0).sum(), [x, z])
    assert mg.grad((x * 2.0).sum(), [z], allow_unused=True) == (None,)
    with pytest.raises(mg.ArgumentError, match="each of the 2 outputs"):
        mg.grad([x * 1.0, x * 2.0], x, grad_outputs=[mg.ones(1)])
    with pytest.raises(mg.ArgumentError, match="outputs of grad must be a Tensor"):
        mg.grad(3.0, [x])
    with pytest.raises(mg.ArgumentError, match="inputs of grad must be a Tensor"):
        mg.grad(x * 1.0, ["x"])


def test_second_and_third_derivatives():
    x = mg.tensor(np.array(0.7), requires_grad=True)
    y = mg.tanh(x)
    (g,) = mg.grad(y, x, create_graph=True)
    (h,) = mg.grad(g, x, create_graph=True)
    (k,) = mg.grad(h, x)
    t = np.tanh(0.7)
    s = 1 - t * t
    np.testing.assert_allclose([g.item(), h.item(), k.item()], [s, -2 * t * s, -2 * s * s + 4 * t * t * s], rtol=1e-12)
    assert h.requires_grad and not k.requires_grad


def test_backward_with_create_graph_leaves_gradients_that_can_be_differentiated():
    x = mg.tensor(np.array(3.0), requires_grad=True)
    (x * x * x).backward(create_graph=True)
    (second,) = mg.grad(x.grad, x)
    assert x.grad.item() == 27.0 and second.item() == 18.0


def test_create_graph_makes_no_reference_cycle():
    x = mg.tensor(np.array(3.0), requires_grad=True)
    (x * x).backward(create_graph=True)
    gone = weakref.ref(x.grad.node), weakref.ref(x.node)
    del x
    assert gone[0]() is None and gone[1]() is None


def test_gradients_carry_no_history(parameter):
    x = parameter(2)
    for _ in range(3):
        (x * x).sum().backward()
    assert not x.grad.requires_grad
    (k,) = mg.grad((x * x).sum(), [x], create_graph=True)
    assert k.requires_grad


def test_hooks_see_the_whole_gradient_once_and_may_replace_it():
    w, x, seen = mg.tensor(3.0, requires_grad=True), mg.tensor(2.0, requires_grad=True), []
    handle = w.register_hook(lambda g: seen.append(g.item()))
    h = x * w
    h.register_hook(lambda g: g * 10.0)
    (h * w).backward()
    assert seen == [66.0] and x.grad.item() == 90.0
    handle.remove()
    (x * w).backward()
    assert seen == [66.0]


def test_a_hook_that_answers_nonsense_is_an_error(parameter):
    x = parameter(3)
    h = x * 2.0
    h.register_hook(lambda g: mg.ones(2))
    with pytest.raises(mg.ShapeError, match="hook"):
        h.sum().backward()
    assert x.grad is None


def test_an_error_in_a_hook_leaves_no_trace():
    x = mg.tensor(2.0, requires_grad=True)
    h = x * 3

    def bad(g):
        raise ZeroDivisionError("hook")

    h.register_hook(bad)
    with pytest.raises(ZeroDivisionError):
        (h * h).backward()
    assert x.grad is None and mg.is_grad_enabled()
    (x * x).backward()
    assert x.grad.item() == 4.0


def test_retain_grad_keeps_the_gradient_of_an_inner_tensor(parameter):
    x = parameter(3)
    h = mg.tanh(x)
    h.retain_grad()
    (h * h).sum().backward()
    np.testing.assert_allclose(h.grad.numpy(), 2 * h.numpy())
    assert not np.shares_memory(h.grad.data, x.grad.data)


def test_buffers_go_as_the_sweep_passes(parameter):
    x = parameter(1000)
    h = x
    for _ in range(10):
        h = mg.tanh(h)
    loss, sizes = h.sum(), []
    h = None
    for _step in mg.steps(loss):
        sizes.append(len(mg.saved(loss)))
    assert sizes == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]


def test_constants_are_dropped_with_the_nodes_that_read_them(parameter):
    x = parameter(3)
    constant = mg.tensor(np.ones(3))
    gone = weakref.ref(constant.data)
    y = (x * constant).sum()
    del constant
    assert gone() is not None
    y.backward()
    assert gone() is None


def test_constants_that_nobody_reads_are_not_kept(parameter):
    x = parameter(3)
    constant = mg.tensor(np.ones(3))
    gone = weakref.ref(constant.data)
    y = (x + constant).sum()
    del constant
    assert gone() is None and y.requires_grad


def test_a_graph_without_backward_dies_by_reference_count(parameter):
    x = parameter(1000)
    h = mg.tanh(x)
    y = (h * h).sum()
    gone = [weakref.ref(thing) for thing in (h, y, h.data, h.node, y.node)]
    del h, y
    assert [r() for r in gone] == [None] * 5


def test_a_failed_backward_keeps_nothing_alive(parameter):
    x = parameter(1000)

    @mg.op
    def broken(t):
        return t * 2

    @broken.vjp("t")
    def broken_wrt_t(g):
        raise KeyError("no such thing")

    h = mg.tanh(x)
    gone = weakref.ref(h.data)
    y = (broken(h) * h).sum()
    del h
    with pytest.raises(mg.MinigradError, match=r"broken_wrt_t.*broken at test_sweep.py:\d+.*KeyError"):
        y.backward()
    del y
    assert gone() is None and x.grad is None


def test_a_vjp_of_the_wrong_shape_is_named(parameter):
    @mg.op
    def lopsided(t):
        return t * 2

    @lopsided.vjp("t")
    def lopsided_wrt_t(g):
        return g[:2]

    with pytest.raises(mg.ShapeError, match=r"lopsided_wrt_t of lopsided.*\(2,\).*\(3,\)"):
        lopsided(parameter(3)).sum().backward()


@pytest.mark.parametrize("ops", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_very_many_ops_record_sweep_and_die(ops):
    """At the default recursion limit, without the cycle collector, and without leaving anything behind."""
    x = mg.tensor(np.ones(1), requires_grad=True)
    (x * 1.0).sum().backward()
    x.grad = None
    before = sys.getallocatedblocks()
    y = x
    for _ in range(ops):
        y = y * 1.0
    y.sum().backward()
    first, last = weakref.ref(y.node.inputs[0]), weakref.ref(y.node)
    del y
    assert first() is None and last() is None
    assert x.grad.tolist() == [1.0]
    y = x
    for _ in range(ops):  # and once more without a backward
        y = y * 1.0
    del y
    assert sys.getallocatedblocks() < before + ops // 20


def test_gradient_modes_belong_to_their_thread():
    out, go, done = {}, threading.Event(), threading.Event()

    def worker():
        go.wait(5)
        x = mg.tensor(3.0, requires_grad=True)
        (x * x).backward()
        out["grad"] = x.grad.item()
        done.set()

    thread = threading.Thread(target=worker)
    thread.start()
    with mg.no_grad(), mg.Tracer() as tracer:
        go.set()
        done.wait(5)
    thread.join()
    assert out == {"grad": 6.0} and tracer.events == []


def test_modes_nest_and_come_back_after_errors():
    @mg.enable_grad()
    def recursive(depth):
        return recursive(depth - 1) if depth else mg.is_grad_enabled()

    off = mg.no_grad()
    with off:
        assert recursive(3) and not mg.is_grad_enabled()
        with off:
            pass
        assert not mg.is_grad_enabled()
    with pytest.raises(ValueError), off:
        raise ValueError
    assert mg.is_grad_enabled()


def test_a_decorated_generator_is_in_its_mode_only_while_it_runs():
    @mg.no_grad
    def numbers():
        while True:
            yield mg.is_grad_enabled()

    walk = numbers()
    assert [next(walk), mg.is_grad_enabled(), next(walk), mg.is_grad_enabled()] == [False, True, False, True]
    walk.close()


def test_what_hooks_and_steps_have_seen_is_not_the_memory_of_a_gradient(parameter):
    x, seen = parameter(3), []
    x.register_hook(seen.append)
    (x * 2.0).sum().backward()
    x.grad.data[...] = 7
    assert seen[0].tolist() == [2, 2, 2]
    y = parameter(3)
    steps = list(mg.steps((y * 2.0).sum()))
    y.grad.data[...] = 7
    assert steps[-1].grad.tolist() == steps[-2].grads[0].tolist() == [2, 2, 2]


def test_a_vjp_may_answer_none_for_no_gradient(parameter):
    @mg.op
    def added(x, y):
        return x + y

    @added.vjp("x")
    def added_wrt_x(g):
        return None

    @added.vjp("y")
    def added_wrt_y(g):
        return g * 1

    x = parameter(3)
    (added(x, x) + x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 2.0))


def test_retained_gradients_and_those_of_leaves_share_no_memory(parameter):
    x, w = parameter(3), parameter(3, seed=1)
    y = x * 2
    z = y + w
    y.retain_grad()
    z.retain_grad()
    (z * z).sum().backward()
    assert not np.shares_memory(y.grad.data, z.grad.data)
    assert not np.shares_memory(w.grad.data, z.grad.data)
