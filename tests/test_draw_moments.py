"""Pictures of what is live, of walks that are under way, of errors, and of the order of backward."""

import gc
import pickle
import re
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s
from minigrad.commands import demo
from minigrad.engine.walk import here
from minigrad.view import dot, gallery
from minigrad.view.boxes import Unfolded
from minigrad.view.looks import LOOKS, STRIPS
from minigrad.view.moment import Moment
from minigrad.view.order import number_steps
from tests.test_draw import Read, leaf, needs_dot


def fill(state):
    return LOOKS[state][0]["fillcolor"]


def states(graph):
    """The first word in a box -> how it is filled."""
    return {graph.words(key).split()[0]: node["fillcolor"] for key, node in graph.nodes.items()}


def strips_of(graph, kind):
    """What stands on the strips of one kind: key -> words."""
    cell = f'<td bgcolor="{STRIPS[kind][0]}" cellpadding="1">(.*?)</td>'
    found = {key: re.findall(cell, node["label"]) for key, node in graph.nodes.items()}
    return {key: re.sub("<[^>]*>", "", words[0]) for key, words in found.items() if words}


# ---- Programs ----------------------------------------------------------------------------------------


def plain():
    x, w = mg.tensor(np.ones((3, 4)), name="x"), leaf(4, 4, name="w")
    h = mg.tanh(x.astype(np.float32) @ w)
    return (h * h + mg.sin(h)).sum()


def nested():
    w, v = leaf(3, name="w"), leaf(3, name="v")

    def inner(t):
        return mg.sin(mg.exp(t) * v) * t

    def outer(t):
        a = mg.exp(t * 0.5)
        b = mg.checkpoint(inner, a, name="inner")
        return mg.tanh(b + a) * w

    return mg.checkpoint(outer, mg.sin(w * w), name="outer").sum()


def several_outputs():
    w = leaf(3, name="w")
    u, v = mg.checkpoint(lambda t: (mg.tanh(t), mg.exp(t) * t), mg.sin(w))
    a, _ = mg.checkpoint(lambda t: (mg.tanh(t) * u, mg.cos(t)), v)
    return (a * u).sum()


def entangled():
    w = leaf(3, name="w")

    def body(t):
        u = mg.tanh(t)
        return u, mg.exp(u) * w

    u, v = mg.checkpoint(body, mg.sin(w))
    return (u * v).sum()


class Layer:
    def __init__(self, size=4):
        self.weight = leaf(size, size)

    def __call__(self, h):
        return mg.tanh(h @ self.weight)


def chain(schedule, length=11):
    return mg.checkpoint_sequential([Layer() for _ in range(length)], schedule, leaf(2, 4, name="x")).sum()


SCHEDULES = [s.uniform(3), s.nested(2), s.bisection(), s.binomial(3), s.from_input(), s.optimal(4), s.triangular()]
PROGRAMS = [plain, nested, several_outputs, entangled, *SCHEDULES]


def made(program):
    return program() if callable(program) else chain(program)


every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: getattr(p, "__name__", repr(p)))


# ---- The order of backward ---------------------------------------------------------------------------


@every_program
def test_steps_are_numbered_as_they_will_be_made(program):
    loss = made(program)
    unfolded = Unfolded([loss.node])
    number_steps(unfolded)
    found = {box.step: (box.node.op and box.node.op.name, box.node.shape, box.node.line) for box in unfolded.boxes}
    steps = list(mg.steps(loss))
    for number, step in enumerate(steps, 1):
        if step.kind != "replay":
            node = step.node
            assert found[number] == (node.op and node.op.name, node.shape, node.line), number
    last = max(number for number in found if number)
    replays = sum(step.kind == "replay" for step in steps)
    assert last == len(steps) and len([number for number in found if number]) == len(steps) - replays


def test_the_steps_of_replays_stand_in_the_frames():
    loss = nested()
    graph = Read(mg.draw(loss, order=True))
    steps = [i for i, step in enumerate(mg.steps(loss), 1) if step.kind == "replay"]
    assert [int(n) for n in re.findall(r"replayed in step (\d+)", graph.source)] == steps
    assert strips_of(graph, "backward")[graph.find("sum")] == "step 1"
    assert "in which step of backward" in graph.source


def test_a_constant_has_no_step_and_after_backward_nothing_has():
    x, w = mg.tensor([1.0], name="x"), leaf(1, name="w")
    loss = (x * w).sum()
    graph = Read(mg.draw(loss, order=True))
    numbered = {graph.words(key).split()[0] for key in strips_of(graph, "backward")}
    assert numbered == {"w", "mul", "sum"}
    loss.backward()
    assert "step" not in mg.draw(loss, order=True).source


def test_a_layer_has_the_steps_of_its_ops():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    loss = model(mg.ones(2, 4)).sum()
    graph = Read(mg.draw(loss, level="layer", order=True))
    assert strips_of(graph, "backward")[graph.find("layer 0 ")] == "step 4"


def test_gradients_have_the_shapes_of_the_values():
    x, w = leaf(2, 3, name="x"), leaf(3, name="w")
    graph = Read(mg.draw((x * w).sum(axis=0), gradients=True))
    shown = {graph.words(key).split()[0]: words for key, words in strips_of(graph, "backward").items()}
    assert shown == {"x": "gradient [2, 3]", "w": "gradient [3]", "mul": "gradient [2, 3]", "sum": "gradient [3]"}
    assert "backward" not in states(Read(mg.draw(x * w))) and not strips_of(Read(mg.draw(x * w)), "backward")


# ---- What is live ------------------------------------------------------------------------------------


def live(loss):
    boxes = Unfolded([loss.node], Moment([loss.node])).boxes
    return sum(box.held and box.role != "parameter" for box in boxes)


@every_program
@pytest.mark.parametrize("retain_graph", [False, True])
def test_as_many_boxes_are_filled_as_the_tracer_counts_at_every_step(program, retain_graph):
    with mg.Tracer() as tracer:
        loss = made(program)
        assert live(loss) == tracer.live_activations
        for step in mg.steps(loss, retain_graph=retain_graph):
            assert live(loss) == tracer.live_activations, step


def test_what_a_policy_keeps_inside_a_checkpoint_is_filled():
    w = leaf(3, 3, name="w")
    loss = mg.checkpoint(lambda t: mg.tanh(mg.exp(t @ w)), mg.sin(w), policy=mg.policies.save_ops("exp")).sum()
    graph = Read(mg.draw(loss))
    shown = states(graph)
    assert shown["exp"] == fill("boundary") and shown["matmul"] == shown["tanh"] == fill("dropped")
    assert shown["sin"] == fill("boundary") and "36 B and 36 B inside" in graph.source


def test_a_boundary_in_slow_memory_looks_like_that_until_it_is_back():
    w = leaf(3, name="w")
    x = mg.tensor(np.ones(3, np.float32), name="x")
    loss = mg.checkpoint(lambda t, u: mg.tanh(mg.exp(t * u)), mg.sin(w), x, offload=True).sum()
    graph = Read(mg.draw(loss))
    assert states(graph)["sin"] == states(graph)["x"] == fill("offloaded")
    assert "24 B in slow memory" in graph.source and "until a replay is near" in graph.source
    walk = mg.steps(loss)
    next(walk), next(walk)
    assert fill("offloaded") not in states(Read(mg.draw(loss))).values()


def test_a_discarded_output_is_hollow_and_filled_when_it_has_been_restored():
    w = leaf(3, name="w")
    y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t)), mg.sin(w), keep_output=False)
    loss = (y * y).sum()
    assert states(Read(mg.draw(loss)))["tanh"] == fill("dropped")
    walk = mg.steps(loss)
    for _ in range(2):
        step = next(walk)
    assert step.node.op.name == "mul"
    shown = states(Read(mg.draw(loss)))
    assert shown["tanh"] == shown["exp"] == fill("boundary") and shown["mul"] == fill("passed")


def test_live_states_are_told_apart_without_colours_too():
    looks = [LOOKS[state][0] for state in ("activation", "boundary", "replayed")]
    assert len({(look["style"], look["penwidth"], look["fontcolor"]) for look in looks}) == 3


# ---- A moment of a walk ------------------------------------------------------------------------------


def test_fresh_nodes_of_a_replay_stand_in_the_frame_of_their_checkpoint():
    loss = nested()
    walk = mg.steps(loss)
    replay = [next(walk), next(walk)][-1]
    graph = Read(mg.draw(loss, at=replay))
    own = f"n{replay.node.number}"
    assert replay.kind == "replay" and graph.inside[own] == ["cluster_0"]
    assert strips_of(graph, "hand") == {own: "in hand: replays"}
    inner = [key for key, clusters in graph.inside.items() if clusters == ["cluster_0", "cluster_1"]]
    assert sorted(graph.words(key).split()[0] for key in inner) == ["exp", "mul", "mul", "sin"]
    fresh = [key for key, clusters in graph.inside.items() if clusters == ["cluster_0"] and key != own]
    assert sorted(graph.words(key).split("(")[0].split()[0] for key in fresh) == ["add", "exp", "mul", "mul", "tanh"]
    assert fill("replayed") in states(graph).values()
    (top,) = graph.reads(own)  # the last op of the body, by way of which the walk goes on
    assert strips_of(graph, "waits") == {top: "gradient waits"} and graph.words(top).startswith("mul")
    assert "replayed, and being swept" in graph.source and "being" not in mg.draw(nested()).source


def test_a_replay_in_a_replay_stands_in_its_frame():
    loss = nested()
    for step in mg.steps(loss):
        graph = Read(mg.draw(loss, at=step))
        if step.kind == "replay" and step.node.name == "inner":
            assert graph.inside[f"n{step.node.number}"] == ["cluster_0", "cluster_1"]
            assert graph.source.count("replayed, and being swept") == 2
            break
    else:
        pytest.fail("no inner replay")


@every_program
@pytest.mark.parametrize("level", ["op", "layer"])
@pytest.mark.parametrize("retain_graph", [False, True])
def test_every_moment_can_be_drawn_and_shows_the_node_in_hand_once(program, level, retain_graph):
    loss = made(program)
    for number, step in enumerate(mg.steps(loss, retain_graph=retain_graph)):
        graph = Read(mg.draw(loss, level, at=step, order=number % 2 == 0))
        assert len(strips_of(graph, "hand")) == 1
        assert len(set(graph.nodes)) == len(graph.nodes)


def test_with_retain_graph_a_fresh_node_fills_the_box_of_its_line():
    loss = nested()
    before = set(Read(mg.draw(loss)).nodes)
    for step in mg.steps(loss, retain_graph=True):
        assert set(Read(mg.draw(loss, at=step)).nodes) == before


def test_what_backward_has_passed_is_grey_and_the_order_counts_from_here():
    loss = plain()
    walk = mg.steps(loss)
    next(walk)
    graph = Read(mg.draw(loss, order=True))
    assert graph.nodes[graph.find("sum")]["fontcolor"] == LOOKS["passed"][0]["fontcolor"]
    assert strips_of(graph, "waits") == {graph.find("add"): "step 1, gradient waits"}


def test_when_leaves_get_their_gradients_none_waits():
    loss = plain()
    for step in mg.steps(loss):
        waits = strips_of(Read(mg.draw(loss, at=step)), "waits")
    assert step.kind == "leaf" and waits == {}


def test_a_walk_remembers_only_the_replays_that_it_is_in():
    loss = chain(s.uniform(4), length=12)
    for _ in mg.steps(loss):
        (walk,) = here.walks
        assert len(walk.came_from) <= 1
        del walk
    assert list(here.walks) == []


def test_a_moment_of_the_stepper_will_do_before_the_first_step_and_after_an_error_too():
    loss = plain()
    node = loss.node
    start = Read(mg.draw(loss, at=SimpleNamespace(kind="start", node=node)))
    assert strips_of(start, "hand") == {f"n{node.number}": "the next in hand"}
    failed = Read(mg.draw(loss, at=SimpleNamespace(kind="error", node=node)))
    assert strips_of(failed, "error") == {f"n{node.number}": f"error at {node.line}"}


def test_a_moment_of_another_walk_is_refused():
    loss = plain()
    step = next(mg.steps(plain()))
    with pytest.raises(mg.ArgumentError, match="draw what mg.steps was given"):
        mg.draw(loss, at=step)
    with pytest.raises(mg.ArgumentError, match="takes a Step"):
        mg.draw(loss, at=3)


def test_a_picture_of_a_moment_keeps_nothing_alive_and_changes_nothing():
    with mg.Tracer() as tracer:
        loss = nested()
        walk = mg.steps(loss)
        step = [next(walk), next(walk)][-1]
        before = tracer.step, tracer.live_buffers, tracer.live_activations
        graph = mg.draw(loss, at=step, order=True, gradients=True)
        assert (tracer.step, tracer.live_buffers, tracer.live_activations) == before
    gone = weakref.ref(loss.node)
    del loss, walk, step
    assert not gc.isenabled() and gone() is None and graph.source


# ---- Errors ------------------------------------------------------------------------------------------


@mg.op
def slippery(x):
    return x * 1


@slippery.vjp("x")
def slippery_wrt_x(g, x):
    if x.shape == (3,):
        raise ZeroDivisionError("slipped")
    return g * np.nan


def failing(size, checkpoint, **how):
    """(loss, error): an error in a vjp for three elements, a nan for any other number."""
    w = leaf(size, name="w")

    def body(t):
        return mg.tanh(slippery(mg.exp(t))) * w

    y = mg.checkpoint(body, mg.sin(w), name="block") if checkpoint else body(mg.sin(w))
    loss = y.sum()
    try:
        with mg.detect_anomaly():
            loss.backward(**how)
    except mg.MinigradError as error:
        return loss, error
    return pytest.fail("no error")


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_error_knows_its_node_and_the_node_is_red_with_its_line(size, checkpoint):
    loss, error = failing(size, checkpoint)
    assert error.node.op == "slippery" and error.node.shape == (size,) and error.node.line in str(error)
    graph = Read(mg.draw(loss, highlight=error))
    key = graph.find("slippery")
    assert strips_of(graph, "error") == {key: f"error at {error.node.line}"}
    assert graph.nodes[key]["color"] == STRIPS["error"][0] and "where the error came up" in graph.source
    assert graph.inside[key] == (["cluster_0"] if checkpoint else [])
    layers = Read(mg.draw(loss, level="layer", highlight=error))
    assert list(strips_of(layers, "error").values()) == [f"slippery: error at {error.node.line}"]


def test_when_a_replay_is_gone_its_checkpoint_is_red_and_says_which_op_it_was():
    loss, error = failing(2, True)
    error.__traceback__ = None
    assert error.node.node is None
    graph = Read(mg.draw(loss, highlight=error))
    assert strips_of(graph, "error") == {graph.find("checkpoint"): f"error in slippery at {error.node.line}"}


def test_with_retain_graph_the_line_in_the_body_is_found_again():
    loss, error = failing(2, True, retain_graph=True)
    error.__traceback__ = None
    graph = Read(mg.draw(loss, highlight=error))
    assert strips_of(graph, "error") == {graph.find("slippery"): f"error at {error.node.line}"}


def test_what_an_error_knows_of_its_node_keeps_nothing_alive_and_travels():
    loss, error = failing(2, False)
    error.__traceback__ = None
    gone = weakref.ref(loss.node)
    del loss
    assert not gc.isenabled() and gone() is None and error.node.node is None
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.node.op, copy.node.line, copy.node.numbers) == ("slippery", error.node.line, error.node.numbers)
    assert copy.node.node is None and repr(copy.node) == repr(error.node)


def test_other_errors_of_a_walk_know_their_node_too():
    x = leaf(3, name="x")
    h = mg.sin(x)
    (h * h).sum().backward()
    loss = mg.exp(h).sum()
    with pytest.raises(mg.GraphFreedError) as caught:
        loss.backward()
    graph = Read(mg.draw(loss, highlight=caught.value))
    assert list(strips_of(graph, "error")) == [f"n{h.node.number}"]
    y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t)), x, verify=True).sum()
    x.data.flags.writeable = True
    x.data[0] = 9
    with pytest.raises(mg.CheckpointError) as caught:
        y.backward()
    assert caught.value.node.op == "exp"
    assert "error in exp at" in mg.draw(y, highlight=caught.value).source


def test_whatever_is_asked_for_is_red_and_never_left_out():
    w = leaf(1, name="w")
    y, nodes = w, []
    for _ in range(300):
        y = mg.sin(y)
        nodes.append(y.node)
    graph = Read(mg.draw(y, max_nodes=10, highlight=[nodes[20], w]))
    assert set(strips_of(graph, "highlight")) == {f"n{nodes[20].number}", f"n{w.node.number}"}
    assert strips_of(graph, "highlight")[f"n{nodes[20].number}"] == nodes[20].line
    for wrong in (leaf(1), ValueError("no node"), 3):
        with pytest.raises(mg.ArgumentError, match="highlight"):
            mg.draw(y, highlight=wrong)


def test_what_is_marked_is_not_folded_away():
    loss = nn.Sequential(*[nn.Tanh() for _ in range(9)])(leaf(2, name="x")).sum()
    assert Read(mg.draw(loss, level="layer", folded=True)).find("layers 0–8 ")
    seventh = loss.node.inputs[0].inputs[0].inputs[0]
    graph = Read(mg.draw(loss, level="layer", folded=True, highlight=seventh))
    assert list(strips_of(graph, "highlight")) == [graph.find("layer 6 ")]
    assert graph.find("layers 0–5 ") and graph.find("layers 7–8 ")


# ---- Notebooks and large graphs ----------------------------------------------------------------------


@needs_dot
def test_a_notebook_shows_it_with_whatever_dot_there_is(monkeypatch):
    if dot.embedded_dot() is None:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("PATH", "")
    graph = mg.draw(plain())
    bundle = graph._repr_mimebundle_()
    assert list(bundle) == ["image/svg+xml"] and bundle["image/svg+xml"] == graph._repr_svg_()
    assert "<svg" in bundle["image/svg+xml"] and "tanh" in bundle["image/svg+xml"]
    assert graph._repr_mimebundle_(include=["image/png"])["image/png"].startswith(b"\x89PNG")
    assert graph._repr_mimebundle_(exclude=["image/svg+xml"]) == {}


def test_a_notebook_without_any_dot_shows_how_to_get_one_and_the_text(monkeypatch):
    monkeypatch.setattr(dot.shutil, "which", lambda name: None)
    monkeypatch.setattr(dot, "embedded_dot", lambda: None)
    graph = mg.draw(plain())
    text = graph._repr_mimebundle_()["text/plain"]
    assert "minigrad[pictures]" in text and graph.source in text


@pytest.mark.parametrize("ops", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_nodes_are_drawn(ops):
    y = leaf(1, name="start")
    for _ in range(ops):
        y = mg.sin(y)
    for how in (dict(order=True), dict(level="layer")):
        source = mg.draw(y, **how).source
        assert len(source) < 200_000
        assert f"{ops - 199:,} more" in source or f"sin × {ops}" in source


# ---- The pictures of the README ----------------------------------------------------------------------

README = 900 * 0.75  # points: what a README is wide


def width_of(svg):
    return float(re.search(r'width="([\d.]+)pt"', svg)[1])


@needs_dot
@pytest.mark.parametrize(
    "how",
    [dict(level="layer", folded=True), dict(level="layer", order=True), dict(max_nodes=40)],
    ids=str,
)
def test_the_hundred_layers_can_be_read_in_a_readme(tmp_path, how):
    network = demo.make_network()
    images, labels = mg.tensor(np.zeros((500, 64), np.float32), name="digits"), mg.tensor(np.zeros(500, int), name="y")
    loss = demo.loss_of(network, images, labels, s.uniform(10))
    svg = mg.render(loss, tmp_path / "network.svg", **how).read_text("utf-8")
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    assert min(sizes) * min(1, README / width_of(svg)) > 8.2  # points: 11 pixels


@needs_dot
def test_the_pictures_of_the_gallery_are_the_same_to_the_byte_each_time(tmp_path):
    first, again = gallery.write(tmp_path / "first"), gallery.write(tmp_path / "again")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    block, layers, replay = (path.read_text("utf-8") for path in first)
    assert "scaled_dot_product_attention" in block and "checkpoint attention" in block
    assert "blocks.0–23" in layers and "checkpoint × 24" in layers
    assert "in hand: replays" in replay and "gradient [8, 32, 64] waits" in replay
    assert all(width_of(svg) < 1.1 * README for svg in (block, layers, replay))
