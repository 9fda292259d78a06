"""The tracer's ledger: roles, phases, holders, and agreement with tracemalloc."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules


def total(tracer):
    roles = ("parameter", "input", "value", "activation", "boundary", "replayed", "gradient")
    return sum(tracer.live(role) for role in roles)


def test_roles_of_a_small_run():
    x, w = mg.tensor(np.ones((2, 4))), mg.tensor(np.ones((4, 4)), requires_grad=True)
    with mg.Tracer() as tracer:
        h = mg.tanh(x @ w)
        assert tracer.live("parameter") == 128 and tracer.live("input") == 64
        assert tracer.live("activation") == 64 and tracer.live_activations == 2  # tanh's output, and x for w
        loss = h.sum()
        assert tracer.live("value") == 8
        loss.backward()
        assert tracer.live("gradient") == 128 and tracer.live("activation") == 0
        assert tracer.live_activations == 0 and tracer.live("value") == 64 + 8  # h and loss are still yours
        del h
        assert tracer.live("value") == 8
        assert tracer.live_bytes == total(tracer)
    assert tracer.peak_activations == 2


def test_views_and_shared_buffers_count_once():
    x = mg.tensor(np.ones((4, 4)), requires_grad=True)
    with mg.Tracer() as tracer:
        h = x * 2.0
        before = tracer.live_buffers
        views = [h.reshape(16), h.reshape(2, 8), h.T]
        assert tracer.live_buffers == before
        y = (h * h).sum()
        assert tracer.live_activations == 1
        del views, h
        assert tracer.live("activation") == 128
        del y
        assert tracer.live_activations == 0 and tracer.live("activation") == 0


def test_a_graph_that_is_dropped_without_backward_holds_nothing():
    x = mg.tensor(np.ones(8), requires_grad=True)
    with mg.Tracer() as tracer:
        h = mg.tanh(x)
        kept = h
        y = (h * h).sum()
        assert tracer.live_activations == 1
        del y, h
        assert tracer.live_activations == 1  # tanh's node holds its own output while `kept` lives
        del kept
        assert tracer.live_activations == 0 and tracer.live_buffers == 1


def test_summing_losses_shows_as_a_leak():
    w = mg.ones(100, requires_grad=True)

    def live(use_item, n):
        with mg.Tracer() as tracer:
            total = 0.0
            for _ in range(n):
                loss = mg.tanh(w * 0.1).sum()
                total = total + (loss.item() if use_item else loss)
            return tracer.live_activations

    assert live(True, 50) == live(True, 5) == 1
    assert [live(False, n) for n in (5, 25, 50)] == [5, 25, 50]


def test_phases_and_roles_of_a_checkpointed_run(chain):
    tracer, _ = chain(12).run(3)
    phases = [event.phase for event in tracer.events]
    assert phases[0] == "forward" and set(phases) == {"forward", "backward", "replay"}
    assert phases.index("forward") < phases.index("backward") < phases.index("replay")
    assert {event.role for event in tracer.events if event.phase == "replay" and event.kind == "new"} == {"replayed"}
    boundary = 3 * 4 * 4
    assert tracer.peak("boundary") == 3 * boundary  # x_0, x_4 and x_8
    assert tracer.live("boundary") == tracer.live("replayed") == tracer.live("activation") == 0


def test_events_tell_the_whole_story(chain):
    """The running figures on the events are the sums of the events' own changes."""
    tracer, _ = chain(20).run(schedules.triangular())
    live = activations = 0
    for event in tracer.events:
        live += event.nbytes if event.kind != "role" else 0
        activations += {"hold": 1, "drop": -1}.get(event.kind, 0)
        assert event.live_bytes == live
        if event.kind != "gone":
            assert event.live_activations == activations
        else:
            activations = event.live_activations
    assert tracer.peak_bytes == max(event.live_bytes for event in tracer.events)
    for role in ("activation", "boundary", "replayed", "gradient", "value"):
        changes = [event.nbytes for event in tracer.events if event.role == role]
        assert sum(changes) == tracer.live(role) and max(np.cumsum(changes), default=0) == tracer.peak(role)
    assert tracer.peak_activations == max(event.live_activations for event in tracer.events)
    assert sum(event.kind == "replayed" for event in tracer.events) == tracer.replayed_ops


def test_tracers_nest():
    x = mg.tensor(np.ones(8), requires_grad=True)
    with mg.Tracer() as outer:
        a = mg.tanh(x)
        with mg.Tracer() as inner:
            b = mg.tanh(a)
        c = mg.tanh(b)
    assert (outer.live_activations, inner.live_activations) == (3, 1)
    del a, b, c
    assert (outer.live_activations, inner.live_activations) == (0, 0)


def test_ignored_tensors_are_not_counted():
    x, labels = mg.tensor(np.ones(4), requires_grad=True), mg.tensor(np.full(4, 2.0))
    counts = []
    for ignore in ((), (labels,)):
        with mg.Tracer(ignore=ignore) as tracer:
            y = mg.tanh(x) * labels
        counts.append((tracer.live_activations, tracer.live_bytes))
        del y
    assert counts == [(2, 4 * 32), (1, 3 * 32)]


def test_an_error_inside_leaves_nothing_alive():
    def step():
        h = mg.ones(1000, requires_grad=True) * 2
        raise MemoryError("simulated", h.shape)

    with mg.Tracer() as tracer:
        before = tracer.live_bytes
        try:
            step()
        except MemoryError:
            pass
        assert tracer.live_bytes == before == 0


def test_the_tracer_keeps_nothing_alive_and_is_in_no_cycle():
    x = mg.tensor(np.ones(8), requires_grad=True)
    with mg.Tracer() as tracer:
        y = mg.tanh(x).sum()
    gone = weakref.ref(tracer), weakref.ref(y.node)
    del tracer
    assert gone[0]() is None
    del y
    assert gone[1]() is None


def test_the_report_fits_a_terminal(chain):
    tracer, _ = chain(12).run(3)
    text = tracer.report()
    assert "boundary" in text and f"{tracer.peak_activations} at the peak" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def numpy_bytes():
    """Bytes that tracemalloc knows of in NumPy's own domain."""
    only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only]).traces)


@pytest.mark.parametrize("schedule", [schedules.store_all(), schedules.uniform(4), schedules.triangular()], ids=str)
def test_live_bytes_are_tracemallocs_bytes_at_every_step(schedule):
    """After each step of backward the ledger and NumPy's own memory agree to the byte."""
    gc.collect()
    tracemalloc.start()
    try:
        weights = [mg.tensor(np.ones((64, 64)) / 64, requires_grad=True) for _ in range(16)]
        x = mg.tensor(np.ones((32, 64)))
        layers = [lambda h, w=w: mg.tanh(h @ w) for w in weights]
        with mg.Tracer() as tracer:
            loss = mg.checkpoint_sequential(layers, schedule, x).sum()
            differences = [tracer.live_bytes - numpy_bytes()]
            for step in mg.steps(loss):
                del step
                differences.append(tracer.live_bytes - numpy_bytes())
    finally:
        tracemalloc.stop()
    assert set(differences) == {0}


@pytest.mark.parametrize("schedule", [schedules.store_all(), schedules.uniform(4)], ids=str)
def test_the_peak_with_named_workspace_is_tracemallocs_peak(schedule):
    """Within a step an op has temporaries of its own; once they are measured, the peaks agree too."""

    def run(trace):
        weights = [mg.tensor(np.ones((128, 128)) / 128, requires_grad=True) for _ in range(16)]
        x = mg.tensor(np.ones((256, 128)))
        layers = [lambda h, w=w: mg.tanh(h @ w) for w in weights]
        gc.collect()
        tracemalloc.start()
        try:
            with trace:
                loss = mg.checkpoint_sequential(layers, schedule, x).sum()
                loss.backward()
            return tracemalloc.get_traced_memory()[1], sum(w.nbytes for w in weights) + x.nbytes
        finally:
            tracemalloc.stop()

    peak, outside = run(mg.enable_grad())  # no tracer at all
    tracer = mg.Tracer(workspace=True)
    run(tracer)
    assert tracer.peak("workspace") > 0
    assert abs(tracer.peak_bytes - outside - peak) < 0.02 * peak


def test_a_parameter_that_an_op_has_made_is_a_parameter():
    with mg.Tracer() as tracer:
        weight = (mg.ones((3, 3)) * 2).detach().requires_grad_()
        (mg.ones((2, 3)) @ weight).sum().backward()
    assert tracer.peak_activations == 1 and tracer.live("parameter") == weight.nbytes


def test_the_numbers_of_a_report_end_under_their_heading(parameter):
    with mg.Tracer() as tracer:
        mg.tanh(parameter(1000) * 2).sum().backward()
    lines = tracer.report().splitlines()
    head, *rows = [line for line in lines if line.startswith(("role", "gradient", "parameter", "all"))]
    end = head.index("at the peak") + len("at the peak")
    assert rows and all(row[end - 1].isdigit() and row[end : end + 1] == " " for row in rows), tracer.report()


def test_a_report_leaves_out_roles_that_never_occurred(parameter):
    with mg.Tracer() as tracer:
        mg.tanh(parameter(10)).sum().backward()
    assert "parameter" in tracer.report() and "offloaded" not in tracer.report()
