"""Curves: what they show is what the tracer counted."""

import subprocess
import sys
import xml.dom.minidom

import numpy as np
import pytest

import minigrad as mg
from minigrad.view import plot_run, plot_runs

pytest.importorskip("matplotlib", reason="curves need matplotlib, which the pictures extra installs")


@pytest.fixture
def runs(chain):
    many = chain(16, size=8)
    schedules = {
        "store-all": mg.schedules.store_all(),
        "√L": mg.schedules.sqrt(),
        "triangular": mg.schedules.triangular(),
    }
    return {name: many.run(schedule)[0] for name, schedule in schedules.items()}


def texts(figure):
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def areas(figure):
    """The stacked areas of plot_run, from the bottom: (x of the steps, bottom, top) of each."""
    from matplotlib.collections import PolyCollection

    found = []
    for area in figure.findobj(PolyCollection):
        corners = area.get_paths()[0].vertices
        found.append((corners[:, 0].min(), corners[:, 0].max(), corners[:, 1].min(), corners[:, 1].max()))
    return found


def test_each_run_is_a_line_whose_peak_is_the_tracers(runs, tmp_path):
    figure = plot_runs(runs, tmp_path / "runs.png")
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    assert [max(line.get_ydata()) for line in lines] == [tracer.peak_activations for tracer in runs.values()]
    assert all(line.get_ydata()[-1] == 0 for line in lines)
    written = texts(figure)
    for name, tracer in runs.items():
        assert f"{name}: {tracer.peak_activations}" in written
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")


def test_the_title_says_the_finding(runs):
    low, high = runs["triangular"].peak_activations, runs["store-all"].peak_activations
    title = f"triangular peaks at {low} live activations, store-all at {high}: {high / low:.1f} times fewer"
    written = texts(plot_runs(runs))
    assert title in written
    assert any(f"√L {runs['√L'].replayed_ops}" in text for text in written)
    assert "one peaks at 16 live activations" in texts(plot_runs({"one": runs["store-all"]}))


def test_bytes_are_all_live_bytes(runs):
    figure = plot_runs(runs, what="bytes")
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    for line, tracer in zip(lines, runs.values(), strict=True):
        np.testing.assert_allclose(max(line.get_ydata()) * 1000, tracer.peak_bytes)
    assert "live bytes (kB)" in texts(figure)


@pytest.mark.parametrize("schedule", [mg.schedules.store_all(), mg.schedules.sqrt()], ids=str)
def test_the_events_of_a_role_add_up_to_its_live_bytes(chain, schedule):
    many = chain(9, size=8)
    with mg.Tracer() as tracer:
        loss = mg.checkpoint_sequential(many.layers, schedule, many.x).sum()
        for step in mg.steps(loss):
            live = {}
            for event in tracer.events:
                live[event.role] = live.get(event.role, 0) + event.nbytes
            assert live == {role: tracer.live(role) for role in live}, step
            assert sum(live.values()) == tracer.live_bytes


def test_the_stack_reaches_the_peak_and_names_phases_and_roles(runs, tmp_path):
    tracer = runs["√L"]
    figure = plot_run(tracer, tmp_path / "run.svg")
    np.testing.assert_allclose(max(top for *_, top in areas(figure)) * 1000, tracer.peak_bytes)
    assert min(bottom for *_, bottom, _ in areas(figure)) == 0
    written = " ".join(texts(figure))
    for word in ("forward", "replay", "backward", "kept for checkpoints", "replayed", "gradients", "At most"):
        assert word in written, word
    assert f"{tracer.peak_activations} live activations" in written
    svg = (tmp_path / "run.svg").read_text("utf-8")
    assert "kept for checkpoints" in svg and xml.dom.minidom.parseString(svg)


def test_a_role_can_be_hidden(runs):
    whole, part = plot_run(runs["store-all"]), plot_run(runs["store-all"], hide=("parameter",))
    assert len(areas(part)) == len(areas(whole)) - 1
    assert any("without parameters" in text for text in texts(part))
    assert "parameters" not in texts(part)


def test_the_strip_shows_which_phase_ran_when(runs):
    from matplotlib.patches import Rectangle

    def strip(name):
        return [
            p for p in plot_run(runs[name]).axes[0].patches if isinstance(p, Rectangle) and p.get_y() > 0.9
        ]

    assert len(strip("store-all")) == 2
    replays = len(mg.schedules.sqrt().plan(16).segments) - 1
    assert len(strip("√L")) == 2 + 2 * replays


def test_the_same_run_gives_the_same_file(runs, tmp_path):
    for name in ("a.svg", "b.svg"):
        plot_run(runs["√L"], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_tracer_plot_is_plot_run(runs, tmp_path):
    runs["√L"].plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "call",
    [
        lambda: plot_run(mg.Tracer()),
        lambda: plot_run(3),
        lambda: plot_runs({}),
        lambda: plot_runs({"a": mg.Tracer()}, what="seconds"),
    ],
)
def test_nothing_to_plot_is_an_error(call):
    with pytest.raises(mg.ArgumentError):
        call()


def test_no_pyplot_and_no_matplotlib_before_the_first_curve(runs):
    program = (
        "import sys, minigrad.view as view; assert 'matplotlib' not in sys.modules\n"
        "import minigrad as mg\n"
        "with mg.Tracer() as tracer: mg.ones(2) + 1\n"
        "view.plot_run(tracer)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "sys.modules['matplotlib.figure'] = None\n"
        "try: view.plot_run(tracer)\n"
        "except mg.MinigradError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "minigrad[pictures]" in done.stdout
