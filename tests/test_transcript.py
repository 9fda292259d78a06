"""The transcript: what ran, in words, with each event of the tracer named for the value that it is about."""

import collections
import inspect
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, schedules


def run(function, *args):
    """The tracer of one forward and backward."""
    with mg.Tracer() as tracer:
        function(*args).sum().backward()
    return tracer


def values(tracer, op):
    return [value for value in tracer.transcript.values if value.op == op]


def named(tracer, kind):
    """The values that the events of a kind are about."""
    return [event.value for event in tracer.events if event.kind == kind]


def assert_held_are_live(tracer):
    """At every event, as many values are held as there are live activations."""
    held, before = collections.Counter(), 0
    for event in tracer.events:
        change = event.live_activations - before  # a buffer may also end while it is held
        before = event.live_activations
        if change:
            assert event.value >= 0 and event.kind in ("hold", "drop", "gone")
            held[event.value] += change
            assert min(held.values()) >= 0 and sum(held.values()) == event.live_activations
    assert not any(held.values())


def test_a_value_says_what_ran_where_on_what_and_which_vjps_come_back(parameter):
    w = parameter(3, 4, name="w")
    tracer = run(lambda: mg.tanh(w * 2.0))
    line = inspect.getsourcelines(test_a_value_says_what_ran_where_on_what_and_which_vjps_come_back)[1] + 2
    leaf, mul, tanh, total = tracer.transcript.values
    assert (leaf.op, leaf.role, leaf.name, leaf.shape) == ("", "parameter", "w", (3, 4))
    assert (mul.op, mul.inputs, mul.nbytes) == ("mul", (0, -1), 96)
    assert (tanh.op, tanh.inputs, total.inputs) == ("tanh", (1,), (2,))
    assert tanh.place == (__file__, line) and tanh.forward.name == "tanh"
    assert [(position, function.name) for position, function in tanh.vjps] == [(0, "tanh_wrt_x")]
    assert tanh.vjps[0][1].file.endswith("elementwise.py")


def test_what_ran_what_was_replayed_and_what_was_swept_are_the_same_values(chain):
    tracer, _ = chain(12).run(3)
    ran, replayed, swept = named(tracer, "op"), named(tracer, "replayed"), named(tracer, "vjp")
    assert len(ran) == 13 and swept == ran[::-1]
    assert sorted(replayed) == sorted(set(replayed)) and set(replayed) < set(ran)
    assert len(replayed) == tracer.replayed_ops


@pytest.mark.parametrize(
    "schedule",
    [schedules.store_all(), schedules.every(4), schedules.triangular(), schedules.nested(2), schedules.from_input()],
    ids=str,
)
def test_held_values_are_the_live_activations(chain, schedule):
    assert_held_are_live(chain(20).run(schedule)[0])


def test_held_values_are_the_live_activations_of_a_transformer_with_dropout():
    blocks = [nn.TransformerBlock(16, 2, dropout=0.1) for _ in range(3)]
    x = mg.randn(2, 5, 16)

    def forward():
        h = x
        for block in blocks:
            h = mg.checkpoint(block, h)
        return h

    tracer = run(forward)
    assert_held_are_live(tracer)
    assert tracer.replayed_ops == len(named(tracer, "replayed")) > 0
    assert set(named(tracer, "vjp")) <= set(named(tracer, "op"))


def test_checkpoints_in_checkpoints_know_the_one_around_them(parameter):
    x = parameter(3)

    def inner(t):
        return mg.exp(mg.tanh(t))

    def outer(t):
        return mg.sin(mg.checkpoint(inner, mg.cos(t), name="inner"))

    tracer = run(lambda: mg.checkpoint(outer, x, name="outer"))
    first, second = tracer.transcript.checkpoints
    assert (first.name, first.parent, second.name, second.parent) == ("outer", -1, "inner", 0)
    inside = {value.op: value.checkpoint for value in tracer.transcript.values if value.op}
    assert inside == {"cos": 0, "tanh": 1, "exp": 1, "sin": 0, "sum": -1}
    ran = named(tracer, "op")
    assert sorted(named(tracer, "vjp")) == ran and set(named(tracer, "replayed")) <= set(ran)
    assert_held_are_live(tracer)


@pytest.mark.parametrize("living", [0, 1])
def test_a_dead_end_is_not_taken_for_its_living_twin(parameter, living):
    """In a checkpoint, two ops of one kind stand on one line, and nothing comes of one of them."""
    x = parameter(3)

    def stretch(t):
        twins = [mg.tanh(t * factor) for factor in (2.0, 3.0)]
        return mg.exp(twins[living])

    tracer = run(lambda: mg.checkpoint(stretch, x))
    products = [index for index, value in enumerate(tracer.transcript.values) if value.op == "mul"]
    assert [bool(value.vjps) for value in values(tracer, "tanh")] == [living == 0, living == 1]
    assert [product in named(tracer, "replayed") for product in products] == [living == 0, living == 1]


def test_what_leaves_a_checkpoint_unread_is_found_too(parameter):
    """Nothing reads the loss; its node appears when the checkpoint closes, and is known by its place."""
    x = parameter(3)
    with mg.Tracer() as tracer:
        loss = mg.checkpoint(lambda t: mg.tanh(t).sum(), x)
        loss.backward()
    assert [value.op for value in tracer.transcript.values] == ["", "tanh", "sum"]
    assert named(tracer, "vjp") == [2, 1]


def test_constants_and_plain_arrays_that_are_held_have_values(parameter):
    x = parameter(3)
    tracer = run(lambda: x * np.arange(3.0) * mg.tensor([1.0, 2.0, 3.0], dtype="float64"))
    assert_held_are_live(tracer)
    assert [value.role for value in tracer.transcript.values if not value.op] == ["parameter", "input", "input"]


def test_a_tracer_that_comes_late_writes_down_what_it_meets(chain):
    some = chain(9)
    loss = mg.checkpoint_sequential(some.layers, 3, some.x).sum()
    with mg.Tracer() as tracer:
        loss.backward()
    assert min(named(tracer, "vjp") + named(tracer, "replayed")) >= 0
    assert {value.op for value in tracer.transcript.values if value.op} == {"matmul", "sum"}
    assert tracer.transcript.values[named(tracer, "vjp")[-1]].vjps


def test_second_derivatives_and_policies_are_named(parameter):
    x = parameter(4)
    with mg.Tracer() as tracer:
        y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t) * t), x, policy=mg.policies.save_ops("exp")).sum()
        (dx,) = mg.grad(y, x, create_graph=True)
        dx.sum().backward()
    assert all(event.value >= 0 for event in tracer.events if event.kind in ("op", "replayed", "vjp", "hold", "drop"))


def test_the_transcript_keeps_no_array_and_no_node_alive(parameter):
    x = parameter(8)
    with mg.Tracer() as tracer:
        h = mg.checkpoint(lambda t: mg.tanh(mg.exp(t)), x)
        gone = [weakref.ref(h.node), weakref.ref(h.data), weakref.ref(h.node.body)]
        h.sum().backward()
        del h
        assert [reference() for reference in gone] == [None] * 3
    assert len(tracer.transcript.values) == 4
