"""The terminal stepper: what each command shows, that looking changes nothing, and that quitting leaves nothing."""

import io
import os
import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as s
from minigrad.engine.device import memory_owner
from minigrad.engine.sweep import start
from minigrad.engine.tape import reachable
from minigrad.trace.saved import read_in_backward
from minigrad.view.journey import Journey
from minigrad.view.rehearsal import ledger_of, peak_ahead

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def debug(monkeypatch, capsys):
    """Give commands to mg.debug(loss) from a pipe; returns what it printed, cut at the prompts."""

    def session(loss, *commands, **how):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(command + "\n" for command in commands)))
        capsys.readouterr()
        mg.debug(loss, **how)
        return answers(capsys.readouterr().out)

    return session


def answers(output):
    """What was printed before the first prompt, and after each command."""
    first, *rest = output.split("(step) ")
    return [first, *(text.partition("\n")[2] for text in rest)]


def journey(loss, **how):
    modes = {"retain_graph": False, "create_graph": False, **how}
    return Journey(start(loss, None, watched=True, **modes), [loss.node])


def to_the_end(walk):
    """(kind, moment) of all steps that are left."""
    moments = []
    try:
        while True:
            walk.step(closely=True)
            moments.append(walk.moment)
    except StopIteration:
        return moments


class Layer:
    """tanh(h @ w): two ops, and a name."""

    def __init__(self, name, size=4):
        rng = np.random.default_rng(len(name) + ord(name[-1]))
        self.w = mg.tensor(rng.standard_normal((size, size)) / 2, requires_grad=True, name=name)

    def __call__(self, h):
        return mg.tanh(h @ self.w)


def network(length, schedule):
    layers = [Layer(f"w{i}") for i in range(length)]
    x = mg.tensor(np.linspace(-1, 1, 12).reshape(3, 4), name="x")
    return [layer.w for layer in layers], mg.checkpoint_sequential(layers, schedule, x).sum()


# ---- Going on ----------------------------------------------------------------------------------------


def test_each_stop_is_one_line_with_step_op_line_layer_live_and_freed(debug, chain):
    many = chain(3)
    loss = mg.checkpoint_sequential(many.layers, 1, many.x).sum()
    a, b, c = (node.number for node in mg.tape(loss) if node.op is not None and node.op.name == "matmul")
    first, one, two, again, end = debug(loss, "next", "next", "", "continue")
    line = r"conftest.py:\d+"
    assert re.match(rf"   0  start at sum #{c + 1}  test_stepper.py:\d+ +live 3 \(144 B\)\nType help", first)
    assert re.fullmatch(rf"   1  sum #{c + 1}  test_stepper.py:\d+ +live 3 \(144 B\) +freed 0 B\n", one)
    assert re.fullmatch(rf"   2  matmul #{c}  {line}  in 2 +live 3 \(144 B\) +freed 0 B\n", two)
    assert re.fullmatch(rf"   3  matmul #{b}  {line}  in 1 +live 2 \(96 B\) +freed 48 B\n", again)
    assert end == "The end, after step 7: the leaves have their .grad. Live now: 0.\n"


def test_the_hundred_layer_chain_is_stepped_to_a_replay_and_to_a_layer(debug, chain):
    many = chain(100)
    loss = mg.checkpoint_sequential(many.layers, s.uniform(10), many.x).sum()
    first, layer, replay, inner, until, *_ = debug(loss, "layer", "replay", "layer", "until 85", "quit")
    assert "live 19 (912 B)" in first  # ten boundaries, and nine inside the last segment, which is taped
    assert re.match(r" +2  matmul #\d+ .* in 99 +live 19 \(912 B\)", layer)
    assert re.match(r" +12  replay of checkpoint #\d+ ", replay) and "live 18 (864 B)" in replay
    assert re.search(r"\n +9 ops ran again; fresh on the tape: 10 matmul \(#\d+-#\d+\)\n", replay)
    assert re.match(r" +13  matmul #\d+ .* in 89 ", inner) and re.match(r" +17  matmul #\d+ .* in 85 ", until)


def test_until_takes_ops_layers_names_numbers_and_lines(debug):
    weights, loss = network(6, s.uniform(3))
    tape = mg.tape(loss)
    tanh = next(node for node in reversed(tape.nodes) if node.op and node.op.name == "tanh")
    told = debug(loss, "until tanh", "until matmul", "until w3", "until 1", "until x", "quit")
    assert [re.match(r" +\d+  (.*?) #", text)[1] for text in told[1:5]] == ["tanh", "matmul", "matmul", "tanh"]
    assert f"tanh #{tanh.number} " in told[1] and " in 3 " in told[3] and " in 1 " in told[4]
    assert "Nothing in the rest of this walk is called 'x'." in told[5]  # a constant: no gradient comes to it
    weights, loss = network(2, s.store_all())
    node = loss.node.inputs[0].inputs[0]
    told = debug(loss, f"until #{node.number}", "until mattmul", f"until {node.line}", "quit")
    assert f"matmul #{node.number} " in told[1] and "Is it matmul?" in told[2] and " tanh " in told[3]


def test_a_goal_that_is_not_met_stops_before_leaves_get_anything(debug):
    for command in ("next 1000", "layer", "until 0", "until w0"):
        weights, loss = network(1, s.store_all())
        told = debug(loss, "next", command, *[command] * (command.startswith("until 0")), "quit")
        assert "in 0 " in told[2] and weights[0].grad is None, command
    weights, loss = network(2, s.store_all())
    told = debug(loss, "replay", "next 9", "layer", "peak", "next", "next", "next")
    assert told[1] == "There is no checkpoint in the rest of this walk.\n"
    assert told[2].endswith("That was the last node. next gives the leaves their .grad.\n")
    assert told[3] == told[4] == "No node is left, only leaves: next or continue.\n"
    assert re.match(r" +6  leaf w1 #\d+ has its gradient, float64\[4, 4\]", told[5])
    assert told[7].startswith("The end, after step 7") and weights[0].grad is not None


def test_layer_goes_to_another_layer_and_passes_what_is_in_none(debug):
    _, loss = network(4, s.uniform(2))
    told = debug(loss, "layer", "layer", "layer", "layer", "quit")
    assert [re.search(r"  in (\d) ", text)[1] for text in told[1:5]] == ["3", "2", "1", "0"]


def test_what_continue_leaves_is_what_backward_leaves(debug, same_bits):
    def gradients(run):
        weights, loss = network(9, s.triangular())
        run(loss)
        return [w.grad.numpy() for w in weights]

    plain = gradients(lambda loss: loss.backward())
    same_bits(gradients(lambda loss: debug(loss, "continue")), plain)
    same_bits(gradients(lambda loss: debug(loss, *["next"] * 60, "c")), plain)
    looking = "peak", "values", "saved", "tape", "replay", "peak", "grad", "c"
    same_bits(gradients(lambda loss: debug(loss, *looking)), plain)


def test_a_gradient_may_be_given_and_the_graph_retained(debug):
    x = mg.tensor([1.0, 2.0], requires_grad=True, name="x")
    y = x * x
    told = debug(y, "values", "continue", gradient=np.array([1.0, 10.0]), retain_graph=True)
    assert "gradient in  float32[2]  [ 1., 10.]" in told[1] and x.grad.tolist() == [2, 40]
    debug(y, "continue", gradient=mg.ones(2))
    assert x.grad.tolist() == [4, 44]
    with pytest.raises(mg.GraphFreedError):
        mg.debug(y, mg.ones(2))
    with pytest.raises(mg.NoGradientError):
        mg.debug(mg.tensor(1.0))


# ---- Giving up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [["quit"], []])
def test_quitting_anywhere_leaves_no_gradient(debug, end):
    steps = 0
    while True:
        weights, loss = network(4, s.uniform(2))
        told = debug(loss, *([f"next {steps}"] if steps else []), *end)
        if "That was the last node" in told[1]:
            break
        assert all(w.grad is None for w in weights) and mg.is_grad_enabled()
        assert "no .grad has been touched" in told[-1] or "nothing has happened" in told[-1]
        steps += 1
    assert all(w.grad is None for w in weights) and steps == 10  # 0 to 9; the tenth is the last: sum, 8 ops, 1 replay


def test_after_quitting_the_forward_can_be_run_again_or_the_tape_is_whole(debug):
    weights, loss = network(4, s.uniform(2))
    told = debug(loss, "quit")
    assert told[1] == "Left before the first step: nothing has happened.\n"
    told = debug(loss, "next 3", "quit", retain_graph=True)
    assert told[-1] == "Left after step 3: no .grad has been touched, and the tape is as it was.\n"
    told = debug(loss, "next 3", "quit")
    assert "run the forward again before another backward" in told[-1]
    with pytest.raises(mg.GraphFreedError):
        loss.backward()
    again, loss = network(4, s.uniform(2))
    loss.backward()
    assert all(w.grad is None for w in weights) and all(w.grad is not None for w in again)


def test_quitting_among_the_leaves_says_that_it_is_done(debug):
    weights, loss = network(2, s.store_all())
    told = debug(loss, "next 9", "next", "quit")
    assert told[-1] == "Left after step 6: the walk was done, and all leaves have their .grad.\n"
    assert all(w.grad is not None for w in weights)


def test_a_stepper_keeps_nothing_alive(debug):
    weights, loss = network(4, s.uniform(2))
    gone = [weakref.ref(node) for node in mg.tape(loss) if node.op is not None]
    debug(loss, "next 5", "values", "tape", "peak", "replay", "next", "quit")
    del loss
    assert [reference() for reference in gone] == [None] * len(gone)


def test_a_buffer_dies_in_the_step_that_lets_go_of_it():
    _, loss = network(4, s.store_all())
    walk = journey(loss)
    alive = [weakref.ref(node.out) for node in mg.tape(loss) if node.op is not None and node.out is not None]
    counts = []
    for _ in range(9):
        walk.step(closely=True)
        counts.append(sum(reference() is not None for reference in alive))
    assert counts == [4, 3, 3, 2, 2, 1, 1, 0, 0]


# ---- Counting ----------------------------------------------------------------------------------------


def held_now(walk):
    """The buffers that the tape holds, counted without a tracer: id of the owning array -> bytes."""
    found = {}
    for node in reachable(walk.roots()):
        if node.op is None or node.freed:
            continue
        arrays = [n.out for n in [node, *read_in_backward(node)] if n.op is not None or n.role != "parameter"]
        kept = () if node.body is None else node.needs.kept.values()
        for array in [*arrays, *(getattr(array, "fast", array) for array in kept)]:
            if array is not None and hasattr(array, "nbytes"):
                found[id(memory_owner(array))] = memory_owner(array).nbytes
    return found


def diamond():
    x = mg.tensor(np.linspace(0, 1, 20), requires_grad=True)
    h = mg.tanh(x)
    for _ in range(6):
        h = mg.sin(h * 2.0) + mg.checkpoint(lambda t: mg.exp(mg.tanh(t) * mg.cos(t)) * 0.1, h)
    return h.sum()


def nested():
    weights, loss = network(27, s.nested(3))
    return loss


def dropped_out():
    x = mg.tensor(np.ones((4, 6)), requires_grad=True)

    def block(h):
        return mg.dropout(mg.tanh(h @ mg.ones(6, 6, dtype=np.float64)), 0.5).reshape(6, 4).T * 2.0

    return mg.checkpoint(block, mg.checkpoint(block, mg.checkpoint(block, x)).reshape(4, 6).exp().tanh()).sum()


def policied():
    w = mg.tensor(np.eye(5) / 2, requires_grad=True)

    def block(h):
        return mg.tanh(mg.tanh(h @ w) @ w) * h

    h = mg.tensor(np.ones((2, 5)))
    for _ in range(3):
        h = mg.checkpoint(block, h, policy=mg.policies.save_ops("matmul"))
    return h.sum()


def offloaded():
    weights, h = [Layer(f"w{i}") for i in range(8)], mg.tensor(np.ones((3, 4)))
    for i in range(0, 8, 2):
        h = mg.checkpoint(run, weights[i : i + 2], h, offload=2)
    return h.sum()


def not_kept():
    weights, h = [Layer(f"w{i}") for i in range(4)], mg.tensor(np.ones((3, 4)))
    for layer in weights:
        h = layer(mg.checkpoint(lambda t: mg.tanh(mg.exp(t * 0.1)), h, keep_output=False))
    return h.sum()


PROGRAMS = {
    "a plain tape": lambda: network(12, s.store_all())[1],
    "segments": lambda: network(12, s.uniform(4))[1],
    "triangular": lambda: network(12, s.triangular())[1],
    "one checkpoint": lambda: network(7, s.every(7))[1],
    "nested": nested,
    "diamonds": diamond,
    "dropout and views": dropped_out,
    "a policy": policied,
    "offload": offloaded,
    "outputs not kept": not_kept,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_live_is_what_the_tape_really_holds_at_every_stop(program):
    loss = program()
    walk = journey(loss)
    while True:
        held = held_now(walk)
        assert (walk.moment.live, walk.moment.live_bytes) == (len(held), sum(held.values())), walk.moment.line()
        assert ledger_of(walk.roots()).live_activations == len(held)  # one that begins here counts the same
        if walk.ahead() is None:
            break
        walk.step(closely=False)
    to_the_end(walk)
    assert walk.moment.live == 0 and walk.ledger.events == []


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_peak_is_where_the_walk_will_have_the_most_live(program):
    unrehearsed = [moment.highest for moment in to_the_end(journey(program()))]
    for first in (0, 1, 5, 9):
        walk = journey(program())
        for _ in range(first):
            walk.step(closely=False)
        live, held = walk.moment.live, held_now(walk)
        predicted = peak_ahead(walk.sweep, walk.roots())
        assert held_now(walk) == held
        highest = [moment.highest for moment in to_the_end(walk)]
        assert highest == unrehearsed[first:]
        best = max([live, *highest])
        assert predicted == ((0, live) if live == best else (highest.index(best) + 1, best))


def test_the_peak_of_the_reference_chain_is_the_tracers(chain):
    tracer, _ = chain(30).run(s.uniform(5))
    many = chain(30)
    walk = journey(mg.checkpoint_sequential(many.layers, s.uniform(5), many.x).sum())
    ahead, highest = peak_ahead(walk.sweep, walk.roots())
    assert highest == tracer.peak_activations == max(walk.moment.live, *(m.highest for m in to_the_end(walk)))


def test_a_rehearsal_changes_nothing(same_bits):
    def run(rehearse):
        mg.manual_seed(1)
        loss, calls = dropped_out(), []
        loss.node.inputs[0].origin.hooks = [lambda g: calls.append(g.shape)]
        walk = journey(loss)
        for _ in range(4 if rehearse else 0):
            peak_ahead(walk.sweep, walk.roots())
            walk.step(closely=False)
        if rehearse:
            peak_ahead(walk.sweep, walk.roots())
        leaves = [moment for moment in to_the_end(walk) if moment.kind == "leaf"]
        return [leaf.grad for leaf in leaves], calls, walk.moment.number, walk.moment.live

    plain, rehearsed = run(False), run(True)
    same_bits(rehearsed[0], plain[0])
    assert rehearsed[1:] == plain[1:] and len(plain[1]) == 1


def test_a_rehearsal_is_seen_by_no_tracer_and_calls_no_hook_in_a_checkpoint():
    calls = []

    def region(t):
        h = mg.tanh(t)
        h.register_hook(lambda g: calls.append("inside"))
        return h * t

    x = mg.tensor(np.ones(3), requires_grad=True)
    x.register_hook(lambda g: calls.append("leaf"))
    loss = mg.checkpoint(region, x).sum()
    walk = journey(loss)
    with mg.Tracer() as tracer:
        peak_ahead(walk.sweep, walk.roots())
        assert calls == [] and tracer.events == [] and x.grad is None
        mg.tanh(x)
    assert [event.op for event in tracer.events if event.kind == "op"] == ["tanh"]
    to_the_end(walk)
    assert calls == ["inside", "leaf"] and x.grad is not None


def test_peak_goes_there_or_says_that_it_is_here(debug):
    first, second = [Layer(f"a{i}") for i in range(3)], [Layer(f"b{i}") for i in range(6)]
    x = mg.tensor(np.ones((3, 4)), name="x")
    h = mg.checkpoint(lambda t: run(second, t), mg.checkpoint(lambda t: run(first, t), x))
    told = debug(h.sum(), "peak", "peak", "replay", "peak", "quit")
    assert "live 2 " in told[0]
    assert re.match(r" +2  replay of checkpoint", told[1]) and "12 ops ran again with at most 9 live" in told[1]
    assert re.fullmatch(r"It is here: 8 are live, and never more in the rest of this walk.\n", told[2])
    assert re.fullmatch(r"It is here: \d are live, and never more in the rest of this walk.\n", told[4])


def run(layers, t):
    for layer in layers:
        t = layer(t)
    return t


def test_under_a_memory_budget_all_but_peak_is_as_ever(debug, same_bits):
    weights, loss = network(12, s.store_all())
    loss.backward()
    plain = [w.grad.numpy() for w in weights]
    with mg.memory_budget(800):
        weights, loss = network(12, s.store_all())
        told = debug(loss, "peak", "next 4", "values", "saved", "peak", "continue", retain_graph=True)
        same_bits([w.grad.numpy() for w in weights], plain)
    assert re.search(r"live (\d+) ", told[2])[1] == re.search(r"\n(\d+) buffers", told[4])[1]
    assert told[1] == told[5] and told[1].startswith("Under a memory budget") and "  to x, matmul #" in told[3]
    assert debug(loss, "peak", "quit")[1] == told[1]


# ---- Looking -----------------------------------------------------------------------------------------


def test_values_shows_what_came_in_what_was_read_and_what_went_out(debug):
    x = mg.tensor([0.0, 1.0], requires_grad=True, name="x")
    y = mg.tensor([3.0, 4.0], name="y")
    loss = (mg.tanh(x) * y).sum()
    number = x.node.number
    told = debug(loss, "values", "next 2", "values", "next", "values", "grad", "grad x", "next", "values", "next")
    start_at = f"start at sum #{loss.node.number}  {loss.node.line}"
    assert told[1] == f"{start_at}\n  gradient in  float32[]  1. (so far; the sweep has yet to come here)\n"
    product, slope = (dict(re.findall(r"^  (.*?)  +(\S.*)$", text, re.MULTILINE)) for text in (told[3], told[5]))
    assert list(product) == ["gradient in", "read b", f"to a, tanh #{number + 2}"]  # none to b, a constant
    assert list(product.values()) == ["float32[2]  [1., 1.]", "float32[2]  [3., 4.]", "float32[2]  [3., 4.]"]
    assert list(slope) == ["gradient in", "read out", f"to x, x #{number}"]
    assert list(slope.values())[1:] == ["float32[2]  [0. , 0.7616]", "float32[2]  [3. , 1.6799]"]
    assert told[6].endswith(": float32[2]  [3., 4.]\n")
    assert told[7] == f"x #{number}: float32[2]  [3. , 1.6799] (so far; added to .grad at the end)\n"
    assert told[9] == f"leaf x #{number} has its gradient, float32[2]\n  gradient in  float32[2]  [3. , 1.6799]\n"


def test_values_names_settings_variadic_inputs_and_optional_ones(debug):
    a, b = (mg.tensor(np.ones((2, n)), requires_grad=True, name=name) for n, name in ((1, "a"), (2, "b")))
    told = debug(mg.cat([a, b], axis=1).sum(axis=0).sum(), "until cat", "values", "quit")
    assert "to xs[0], a #" in told[2] or re.search(r"to \w+\[0\], a #", told[2])
    told = debug(mg.layer_norm(b, 2).sum(), "until layer_norm", "values", "where", "quit")
    assert "float64[2, 2]" in told[2] and "layer_norm_wrt_x" in told[3]


def test_a_replay_hands_on_to_fresh_nodes_which_know_their_checkpoint(debug):
    x = mg.tensor(np.ones(3), requires_grad=True)

    def outer(t):
        return mg.checkpoint(lambda u: mg.tanh(u) * u, mg.tanh(t), name="inner") * 2.0

    loss = mg.checkpoint(outer, x, name="outer").sum()
    told = debug(loss, "replay", "values", "replay", "where", "next", "where", "tape", "grad", "quit")
    assert re.search(r"  handed on to  mul #\d+\n", told[2])
    inner = re.match(r" +\d+  replay of checkpoint (#\d+) inner", told[3])[1]
    assert "replayed for the checkpoint 'outer' #" in told[4]
    assert f"replayed for the checkpoint 'inner' {inner} at test_stepper.py" in told[6]
    assert ", itself replayed for checkpoint 'outer' #" in " ".join(told[6].split())
    assert re.search(r"^-> +#\d+ +mul ", told[7], re.MULTILINE) and re.search(r"#\d+ +tanh .* waits ", told[7])


def test_where_shows_the_users_lines_with_an_arrow_and_the_vjp(debug):
    x = mg.tensor(np.ones(3), requires_grad=True)
    h = mg.tanh(x)  # the line that is looked for
    told = debug(h.sum(), "next 2", "where", "next", "where", "quit")
    assert re.search(r"^-> +\d+  +h = mg.tanh\(x\)  # the line that is looked for$", told[2], re.MULTILINE)
    assert re.search(r"gradient to x: tanh_wrt_x at elementwise.py:\d+\n.*\n +def tanh_wrt_x\(g, out\):\n", told[2])
    assert "no op made it" in told[4]


def test_where_says_when_there_is_no_source(debug):
    space = {"mg": mg, "np": np}
    exec(compile("loss = mg.tanh(mg.tensor(np.ones(3), requires_grad=True)).sum()", "<typed>", "exec"), space)
    told = debug(space["loss"], "next", "where", "quit")
    assert "there is no source of <typed> to show" in told[2]


def test_grad_knows_waiting_passed_and_untouched_gradients(debug):
    x = mg.tensor(np.linspace(0, 1, 9), requires_grad=True, name="x")
    constant = mg.tensor(np.ones(9), name="c")
    h = mg.tanh(x)
    y = h * constant
    loss = y.sum()
    numbers = [node.number for node in (loss.node, y.node, h.node)]
    commands = [f"grad #{n}" for n in numbers] + ["grad x", "grad c", "grad nothing", "grad 0"]
    told = debug(loss, "next", *commands, "next", *commands, "quit")
    assert told[2].endswith("float64[]  1.\n") and "(so far; the sweep has yet to come here)" in told[3]
    assert "all 1, norm 3" in told[3]
    assert told[4].endswith("none has come to it yet\n") and told[5].endswith("none has come to it yet\n")
    assert told[6].endswith("a constant; no gradient flows to it\n")
    assert told[7].startswith("There is no node 'nothing'") and told[8].startswith("There is no node '0'")
    assert "(the sweep has passed it)" in told[10]


def test_tape_and_saved_show_what_is_near_and_all_if_asked(debug):
    _, loss = network(30, s.store_all())
    told = debug(loss, "next 5", "tape", "tape all", "saved", "saved all", "quit")
    lines = told[2].splitlines()
    assert sum(line.startswith(("  ", "->")) and "#" in line for line in lines) == 15 and "tape all shows" in lines[-1]
    assert re.search(r"^->  #\d+ +matmul", told[2], re.MULTILINE) and len(told[3].splitlines()) > 90
    assert "(14 older ones: saved all)" in told[4] and len(told[5].splitlines()) == 2 + 29 + 2
    assert told[4].splitlines()[-1] == told[5].splitlines()[-1]


def test_graph_draws_the_moment(debug, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, loss = network(4, s.uniform(2))
    told = debug(loss, "replay", "graph now.dot", "graph nothing/now.dot", "graph now.what", "quit")
    assert told[2] == "wrote now.dot\n" and "tanh" in (tmp_path / "now.dot").read_text("utf-8")
    assert told[3].startswith("No picture: ") and told[4].startswith("No picture: ")


def test_no_line_is_longer_than_a_hundred_columns(debug):
    name = "a_rather_long_name_for_a_parameter_that_goes_on_and_on"
    x = mg.tensor(np.linspace(0, 1, 12).reshape(3, 4), requires_grad=True, name=name)

    def block(t):
        h = mg.tanh(t * x)
        return mg.softmax(mg.exp(mg.sin(mg.cos(h)) + mg.sigmoid(h)) * mg.relu(h) - mg.silu(h) / 2.0, axis=1)

    loss = mg.checkpoint(block, mg.checkpoint(block, x, name=name), name=name).sum()
    look = "values", "where", "tape", "saved", "grad", f"grad {name}"
    told = debug(loss, "replay", *look, "next", *look, "next 99", *look, "next", *look, "help", "q")
    assert max(len(line) for text in told for line in text.splitlines()) <= 100
    assert "…" in told[1]


def test_large_and_odd_arrays_are_shown_on_one_line(debug):
    from minigrad.view.glance import glance

    assert glance(np.arange(100, dtype=np.int64)) == "int64[100]  0 to 99"
    assert glance(np.zeros((0, 3))) == "float64[0, 3]  []"
    assert glance(np.full((2, 5), 2.0, np.float32)) == "float32[2, 5]  all 2, norm 6.32"
    bad = np.ones((3, 4))
    bad[1, 2] = np.nan
    assert glance(bad) == "float64[3, 4]  1 of 12 are nan, the first at [1, 2]"
    assert glance(mg.tensor(np.arange(10) % 2 == 0)) == "bool[10]  False to True"
    assert glance(np.array([np.inf] + [1.0] * 9)).startswith("float64[10]  1 to inf")
    assert glance(2.5) == "2.5" and glance(None) == "None" and glance(np.float32(2)) == "float32[]  2."


def test_create_graph_walks_can_be_looked_at_too():
    x = mg.tensor(np.linspace(0, 1, 8), requires_grad=True)
    walk = journey((mg.tanh(x) ** 3).sum(), create_graph=True)
    moments = to_the_end(walk)
    assert isinstance(moments[1].grad, mg.Tensor) and ("out" in dict(moments[2].reads)) and x.grad.requires_grad


# ---- Help, and how commands are read -------------------------------------------------------------------


def test_help_names_every_command_and_explains_each(debug):
    _, loss = network(1, s.store_all())
    told = debug(loss, "help", "help next", "help w", "? peak", "help nothing", "quit")
    wanted = "next layer until replay peak continue quit where values grad saved tape graph help".split()
    assert re.findall(r"^  ([a-z]+)\b", told[1], re.MULTILINE) == wanted
    assert "live: activations" in told[1] and told[2] == "  next [N]  take one step, or N\n"
    assert "your line" in told[3] and "rehearsed" in told[4] and told[5].startswith("There is no command 'nothing'")


def test_beginnings_of_commands_will_do_if_they_are_unambiguous(debug):
    _, loss = network(2, s.store_all())
    told = debug(loss, "", "n", "  n 2  ", "gra", "jump", "next many", "until", "!ls", "c")
    assert told[1] == "" and told[2].startswith("   1") and told[3].startswith("   3")
    assert told[4] == "gra may be grad or graph.\n" and told[5] == "There is no command 'jump'; help lists them.\n"
    assert told[6] == "next takes a number of steps, not 'many'\n" and told[7].startswith("until what?")
    assert told[8].startswith("There is no command '!ls'") and told[9].startswith("The end")


def test_completion_knows_commands_and_the_words_of_this_tape():
    from minigrad.view.stepper import Stepper

    weights, loss = network(3, s.uniform(3))
    stepper = Stepper(start(loss, None, False, False, watched=True), [loss.node])
    assert stepper.completenames("gr") == ["grad", "graph"] and "EOF" not in stepper.completenames("")
    words = stepper.complete_until("", "", 0, 0)
    assert {"tanh", "matmul", "checkpoint", "sum", "0", "2", "w0", "w2", f"#{loss.node.number}"} <= set(words)
    assert all(word.startswith("w") for word in stepper.complete_until("w", "", 0, 0))
    inside = next(node for node in mg.tape(loss) if node.body is not None).body.lines[0]
    assert f"#{inside.number}" not in words  # its copy on the tape will have another
    assert stepper.complete_grad("w", "", 0, 0) == ["w0", "w1", "w2"]
    assert stepper.complete_help("n") == ["next"]


def test_long_tapes_are_no_deeper_than_short_ones(debug):
    y = mg.tensor(1.0, requires_grad=True, name="x")
    for _ in range(5000):
        y = mg.sin(y)
    last = next(node for node in mg.tape(y) if node.op is not None)
    told = debug(y, "until cos", "next", f"until #{last.number}", "tape", "saved", "grad x", "continue")
    assert "called 'cos'" in told[1] and re.match(r"5000  sin #", told[3]) and "tape all shows" in told[4]
    assert told[-1].startswith("The end, after step 5001")


# ---- Errors on the way -------------------------------------------------------------------------------


@mg.op
def brittle(x):
    return x * 1.0


@brittle.vjp("x")
def brittle_wrt_x(g, out):
    raise ValueError("no slope here")


def test_an_error_in_a_vjp_is_shown_with_the_users_line_and_leaves_the_prompt(debug, capsys):
    x = mg.tensor([1.0, 2.0], requires_grad=True, name="x")
    h = mg.tanh(x)
    loss = (brittle(h) * h * 2.0).sum()
    with pytest.raises(mg.MinigradError, match="brittle_wrt_x.*no slope here"):
        debug(loss, "c", "values", "where", "next", "peak", "layer", "replay", "until tanh", "tape", "grad", "quit")
    told = answers(capsys.readouterr().out)
    assert re.match(r"   4  failed in brittle #\d+  test_stepper.py:\d+ ", told[1])
    assert re.search(r"^-> +\d+  +loss = \(brittle\(h\) \* h \* 2.0\).sum\(\)$", told[1], re.MULTILINE)
    assert re.search(r"raised in brittle_wrt_x, test_stepper.py:\d+: raise ValueError", told[1])
    assert "The walk is over, and no .grad has been touched." in told[1]
    assert (
        "gradient in  float32[2]  [1.5232, 1.9281]" in told[2]
        and "read out     float32[2]  [0.7616, 0.964 ]" in told[2]
    )
    assert "brittle_wrt_x(g, out)" in told[3]
    assert {told[i] for i in (4, 5, 6, 8)} == {"The walk is over: its last step failed. quit raises the error.\n"}
    assert re.search(r"^->  #\d+ +brittle", told[9], re.MULTILINE) and x.grad is None


def test_an_error_in_a_hook_names_the_hooks_line(debug, capsys):
    x = mg.tensor([1.0, 2.0], requires_grad=True, name="x")
    h, gone = mg.tanh(x), []

    def hook(gradient):
        gone.append(weakref.ref(gradient))
        return {}["nothing"]

    h.register_hook(hook)
    with pytest.raises(KeyError):
        debug((h * 2.0).sum(), "continue", "quit")
    told = answers(capsys.readouterr().out)
    assert re.search(r"KeyError: 'nothing'\n  raised in hook, test_stepper.py:\d+: return {}\[", told[1])
    assert x.grad is None and gone[0]() is None
    y = (x * 2.0).sum()
    x.register_hook(hook)
    with pytest.raises(KeyError):
        debug(y, "continue", "quit")  # in the hook of a leaf, at the very end
    assert "failed in" not in (out := capsys.readouterr().out) and "raised in hook" in out and x.grad is None


def test_the_peak_of_a_walk_that_will_fail_is_not_known(debug):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    told = debug(brittle(mg.tanh(x)).sum(), "peak", "quit")
    assert told[1].startswith("The rest of this walk fails, so its peak is not known. MinigradError: brittle_wrt_x")
    assert x.grad is None


# ---- A program as a whole ------------------------------------------------------------------------------

PROGRAM = """\
import sys
import minigrad as mg

x = mg.tensor([1.0, 2.0], requires_grad=True, name="x")
for _ in range(2):
    mg.tanh(x).sum().backward()
(g,) = mg.grad((x * x).sum(), x)
for step in mg.steps((x * x).sum()):
    print("loop:", step.kind)
print("done", __name__, sys.argv[1:], x.grad.tolist()[0] > 0, g.tolist())
"""


def step(folder, *arguments, commands=(), program=PROGRAM):
    """`python -m minigrad step` on a program, with commands from a pipe."""
    (folder / "program.py").write_text(program, "utf-8")
    return python(folder, "-m", "minigrad", "step", *arguments, typed="".join(c + "\n" for c in commands))


def python(folder, *arguments, typed=""):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, input=typed, capture_output=True, text=True)


def test_a_script_stops_at_its_first_backward_and_goes_on_afterwards(tmp_path):
    done = step(tmp_path, "program.py", "--fast", "3", commands=["next", "continue"])
    told = answers(done.stdout)
    assert done.returncode == 0 and done.stderr == "" and len(told) == 3
    assert told[0].startswith("   0  start at sum #3  program.py:6 ")
    assert told[1].startswith("   1  sum #3  program.py:6 ")
    end, *rest = told[2].splitlines()
    assert end.startswith("The end") and rest[:3] == ["loop: op", "loop: op", "loop: leaf"]
    assert rest[3] == "done __main__ ['--fast', '3'] True [2.0, 4.0]"


def test_a_script_may_stop_at_every_backward(tmp_path):
    done = step(tmp_path, "--all", "program.py", commands=["c", "c", "n 9", "n", "n", "n", "c"])
    told = answers(done.stdout)
    assert done.returncode == 0 and len(told) == 8
    assert "next ends the walk" in told[3] and "mg.grad has its gradients" in told[4]
    assert told[5].startswith("   1  sum #") and told[5].endswith("freed 0 B\n")
    assert told[6].startswith("loop: op\n   2  mul")
    assert told[7].splitlines()[-1].startswith("done")


def test_quitting_ends_the_script(tmp_path):
    for commands in (["next", "quit"], ["next"]):
        done = step(tmp_path, "program.py", commands=commands)
        assert done.returncode == 0 and "done" not in done.stdout and "no .grad has been touched" in done.stdout
        assert done.stderr == ""


def test_quitting_in_a_loop_over_steps_does_not_run_the_loop_once_more(tmp_path):
    program = PROGRAM.replace("    mg.tanh(x).sum().backward()", "    pass").replace(
        "(g,) = mg.grad((x * x).sum(), x)", ""
    )
    done = step(tmp_path, "program.py", commands=["next", "next", "quit"], program=program)
    assert done.returncode == 0 and done.stdout.count("loop: op") == 1


def test_the_errors_of_a_script_are_its_own(tmp_path):
    program = PROGRAM.replace("mg.tanh(x).sum()", "mg.tanh(x).summ()")
    done = step(tmp_path, "program.py", program=program)
    plain = python(tmp_path, "program.py")
    assert done.returncode == 1 and done.stderr == plain.stderr and "line 6, in <module>" in done.stderr
    done = step(tmp_path, "program.py", program="x = = 1\n")
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "exec" not in done.stderr
    failing = "x = mg.tensor([1.0], requires_grad=True)\nx.register_hook(lambda g: 1 / 0)\nx.backward()\n"
    done = step(tmp_path, "program.py", commands=["c", "q"], program="import minigrad as mg\n" + failing)
    files = re.findall(r'File ".*?(\w+)\.py"', done.stderr)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "quit raises the error" in done.stdout
    assert files[0] == files[-1] == "program" and not {"step", "stepper", "journey"} & set(files)


def test_a_script_without_a_backward_and_one_that_is_not_there(tmp_path):
    done = step(tmp_path, "program.py", program="print('hello')\n")
    assert done.returncode == 0 and "hello\nprogram.py has ended, and there was no backward" in done.stdout
    done = step(tmp_path, "nowhere.py")
    assert done.returncode == 2 and "cannot read the script" in done.stderr and "nowhere.py" in done.stderr
    done = step(tmp_path, "program.py", program="raise SystemExit(7)\n")
    assert done.returncode == 7 and done.stderr == ""


def test_running_a_script_leaves_this_process_as_it_was(tmp_path, monkeypatch, capsys):
    from minigrad.commands import step as command
    from minigrad.engine import sweep, walk

    (tmp_path / "program.py").write_text(PROGRAM.replace("backward()", "sum()"), "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n"))
    before = sys.modules["__main__"], sys.argv, list(sys.path)
    assert command.main([str(tmp_path / "program.py")]) == 0
    assert (sys.modules["__main__"], sys.argv, sys.path) == before and sweep.Sweep is walk.Sweep
    assert "start at sum" in capsys.readouterr().out


# ---- A real terminal ---------------------------------------------------------------------------------


def hear_ctrl_c():
    """Where the tests run in the background, the shell has told them, and so their children, to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def terminal(tmp_path):
    """The stepper on PROGRAM in a real terminal; call it with keys, get what the screen shows until the next prompt."""
    pexpect = pytest.importorskip("pexpect", reason="needs pexpect, which the dev extra installs")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    child = pexpect.spawn(
        sys.executable, ["-m", "minigrad", "step", "program.py"], cwd=str(tmp_path), encoding="utf-8", timeout=60,
        env={**os.environ, "TERM": "dumb", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}, dimensions=(40, 100),
        preexec_fn=hear_ctrl_c,
    )  # fmt: skip

    def press(keys, until=r"\(step\) "):
        child.send(keys)
        child.expect(until)
        return child.before

    child.expect(r"\(step\) ")
    press.child, press.EOF = child, pexpect.EOF
    yield press
    child.close(force=True)


def test_a_terminal_has_history_and_completion(terminal):
    pytest.importorskip("readline")
    assert "   1  sum #3" in terminal("next\r")
    assert "   2  tanh #2" in terminal("un\t ta\t\r")  # the tab key completes until and tanh
    terminal("\x10\x10\r", r"   3  leaf x #1 .*\(step\) ")  # up, up: next
    assert "There is no command 'x'" in terminal("x\r")


def test_ctrl_c_stays_at_the_prompt_and_ctrl_d_quits(terminal):
    assert "quit gives the walk up" in terminal("nex\x03")
    assert "   1  sum #3" in terminal("next\r")
    assert "Left after step 1: no .grad has been touched." in terminal("\x04", terminal.EOF)
    terminal.child.close()
    assert terminal.child.exitstatus == 0
