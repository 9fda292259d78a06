"""The tape as a reader sees it: tables, source lines, layers, and what each node keeps."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.modes import local
from minigrad.engine.op import Op
from minigrad.table import table


def here():
    """The line number of the caller."""
    return inspect.currentframe().f_back.f_lineno


def test_every_node_knows_the_users_own_line():
    x, w = mg.tensor(np.ones((2, 2)), requires_grad=True), mg.tensor(np.ones((2, 2)), requires_grad=True)
    h = x @ w; line = here()  # noqa: E702
    assert h.node.line == f"test_tape.py:{line}"

    def model(t):
        return mg.tanh(t) * 2.0

    inner = here() - 2
    y = mg.checkpoint(model, h); outer = here()  # noqa: E702
    assert y.node.line == f"test_tape.py:{outer}"
    assert [n.line for n in y.node.body.lines] == [f"test_tape.py:{inner}"] * 2
    z = (
        mg.tanh(y)
        +
        w
    ); last = here()  # noqa: E702
    assert z.node.inputs[0].line == f"test_tape.py:{last - 3}"


def test_a_node_keeps_no_frame_alive():
    def program():
        big = np.ones(1000)
        return mg.tanh(mg.tensor(np.ones(3), requires_grad=True)), big.copy

    y, _ = program()
    code, offset = y.node.where
    assert code is program.__code__ and isinstance(offset, int)


def test_nodes_carry_the_running_layer():
    x = mg.tensor(np.ones(3), requires_grad=True)
    layers = [mg.tanh, lambda t: mg.checkpoint(lambda s: mg.tanh(s) * s, t)]
    y = mg.checkpoint_sequential(layers, mg.schedules.store_all(), x)
    assert y.node.layer == "1" and y.node.inputs[0].layer == "0" and local.context.layer == ""
    assert [line.layer for line in y.node.body.lines] == ["1", "1"]


def test_a_tape_writes_down_what_runs():
    x, c = mg.tensor(np.ones(3), requires_grad=True, name="x"), mg.tensor(np.ones(3))
    with mg.Tape() as tape:
        h = mg.tanh(x * 2.0)
        with mg.Tape() as inner:
            c * c
        y = mg.checkpoint(lambda t: mg.tanh(t) * t, h)
    mg.tanh(y)
    assert [node.op.name for node in tape] == ["mul", "tanh", "checkpoint"]
    assert [node.op.name for node in inner] == ["mul"] and not inner[0].requires_grad
    tape.check()
    assert len(tape[1:]) == 2 and tape[-1] is y.node


def test_the_tape_of_a_loss_is_what_it_depends_on_in_order():
    x, w = (mg.tensor(np.ones(3), requires_grad=True, name=name) for name in "xw")
    mg.tanh(x)
    loss = (mg.tanh(x * w) * w).sum()
    tape = mg.tape(loss)
    tape.check()
    assert [node.op.name if node.op else node.name for node in tape] == ["x", "w", "mul", "tanh", "mul", "sum"]


def long_program():
    x = mg.tensor(np.ones((20, 30)), requires_grad=True, name="a_rather_long_name_for_an_input" * 3)
    h = mg.checkpoint(lambda t: mg.tanh(t) * t, x * 2.0, name="a checkpoint with a long name, longer than a column")
    return (mg.tanh(h) * x).sum()


@pytest.mark.parametrize("look", [mg.tape, mg.saved])
def test_tables_fit_a_hundred_columns(look):
    text = str(look(long_program()))
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "float64[20, 30]" in text and "test_tape.py:" in text


def test_saved_lists_buffers_bytes_and_readers():
    x, w = mg.tensor(np.ones((2, 3))), mg.tensor(np.ones((3, 4)), requires_grad=True, name="w")
    h = x @ w
    t = mg.tanh(h)
    loss = (t * t).sum()
    saved = mg.saved(loss)
    assert [(row.node, row.nbytes) for row in saved] == [(x.node, 48), (t.node, 64)]
    assert [node.op.name for node in saved.rows[1].readers] == ["tanh", "mul"]
    assert (saved.nbytes, saved.parameter_bytes) == (48 + 64, 0)  # w would be read for x's gradient only
    assert "2 buffers, 112 B" in str(saved)
    loss.backward()
    assert len(mg.saved(loss)) == 0 and mg.saved(loss).nbytes == 0
    with pytest.raises(mg.NoGradientError, match="does not require grad"):
        mg.saved(x)


def test_tables_shorten_what_is_too_long_and_say_so():
    text = table(("a", "b"), [("x" * 200, 1), ("y", 22)], right=(1,), note="n")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100 and "…" in lines[2] and lines[3].endswith(" 22") and lines[-1] == "n"


def test_the_signature_of_a_vjp_is_its_memory_contract():
    kept = {}
    for name in ("out", "a", "b", "nothing"):

        @mg.op
        def product(a, b):
            return a * b

        if name == "out":

            @product.vjp("a")
            def wrt_a(g, out):
                return g
        elif name == "a":

            @product.vjp("a")
            def wrt_a(g, a):
                return g
        elif name == "b":

            @product.vjp("a")
            def wrt_a(g, b):
                return g
        else:

            @product.vjp("a")
            def wrt_a(g, b_shape):
                return g

        x = mg.tensor(np.ones(3), requires_grad=True)
        a, b = x * 1.0, mg.tensor(np.ones(3))
        y = product(a, b)
        kept[name] = [row.node for row in mg.saved(y)]
        assert kept[name] == {"out": [y.node], "a": [a.node], "b": [b.node], "nothing": []}[name]


def test_only_needed_vjps_count():
    x, w = mg.tensor(np.ones(3), requires_grad=True), mg.tensor(np.ones(3))
    h = x * 1.0
    assert [row.node for row in mg.saved(h * w)] == [w.node]
    with mg.no_grad():
        assert not (h * w).requires_grad


def test_a_vjp_that_names_something_unknown_is_refused():
    @mg.op
    def double(a, scale=2.0):
        return a * scale

    @double.vjp("a")
    def double_wrt_a(g, scale, b):
        return g * scale

    with pytest.raises(mg.ArgumentError, match="double_wrt_a names 'b', which is neither"):
        double(mg.tensor(np.ones(3), requires_grad=True))
    with pytest.raises(mg.ArgumentError, match="no input 'q'"):
        double.vjp("q")


def test_calls_bind_as_python_would():
    @mg.op
    def affine(a, b=None, scale=2.0):
        return a * scale if b is None else a * scale + b

    @affine.vjp("a")
    def affine_wrt_a(g, scale):
        return g * scale

    @affine.vjp("b")
    def affine_wrt_b(g):
        return g

    a, b = mg.tensor(np.ones(2), requires_grad=True), mg.tensor(np.ones(2), requires_grad=True)
    for call in (lambda: affine(a, b, 3.0), lambda: affine(a, scale=3.0, b=b), lambda: affine(b=b, a=a, scale=3.0)):
        assert call().tolist() == [4, 4]
    assert affine(a).tolist() == [2, 2] and affine(np.ones(2), scale=5.0).tolist() == [5, 5]
    affine(a, None, 7.0).sum().backward()
    assert a.grad.tolist() == [7, 7] and b.grad is None
    for wrong, words in (
        (lambda: affine(), "needs 'a'"),
        (lambda: affine(a, b, 1.0, 2.0), "4 arguments"),
        (lambda: affine(a, a=a), "twice"),
        (lambda: affine(a, size=3), "does not have"),
        (lambda: affine(a, "text"), "expected a tensor, an array or a number, not str"),
    ):
        with pytest.raises(TypeError, match=words) as told:
            wrong()
        assert isinstance(told.value, mg.MinigradError)


def test_an_op_that_fails_says_which_where_and_on_what():
    a, b = mg.tensor(np.ones((2, 3)), requires_grad=True), mg.tensor(np.ones((4, 5)))
    expected = r"matmul at test_tape.py:\d+ cannot work on float64\[2, 3\], float64\[4, 5\]"
    with pytest.raises(ValueError, match=expected) as told:
        a @ b
    assert isinstance(told.value, mg.ShapeError)
    with pytest.raises(mg.ShapeError, match="in layer 0"):
        mg.checkpoint_sequential([lambda t: t @ b], 1, a)
    assert local.context.layer == ""


def test_reprs_teach():
    x = mg.tensor(np.ones((64, 64), np.float32), requires_grad=True, name="x")
    h = mg.tanh(x)
    assert repr(h) == f"Tensor(shape=(64, 64), float32, tanh #{h.node.number}, live)"
    assert repr(x) == "Tensor(shape=(64, 64), float32, 'x', requires_grad)"
    assert repr(mg.tensor([1.0, 2.5])) == "Tensor([1. , 2.5], float32)"
    assert "tanh" in repr(h.node) and "live" in repr(h.node) and "test_tape.py" in repr(h.node)
    h.sum().backward()
    assert repr(h).endswith("dropped)")


def test_what_an_op_needs_is_found_once_for_each_choice_of_inputs(parameter, monkeypatch):
    x, asked = parameter(3), []
    mg.tanh(x)
    before = Op.needs
    monkeypatch.setattr(Op, "needs", lambda self, *given: asked.append(given) or before(self, *given))
    mg.tanh(x)
    assert asked == []


def test_the_node_of_a_plain_number_is_on_no_device(parameter):
    y = parameter(3) * 2.0
    assert [source.device for source in y.node.inputs] == ["cpu", None]


def test_the_decorator_of_a_vjp_returns_the_function():
    @mg.op
    def twice(x):
        return x * 2

    def twice_wrt_x(g):
        return g * 2

    assert twice.vjp("x")(twice_wrt_x) is twice_wrt_x
