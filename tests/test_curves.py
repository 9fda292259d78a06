"""Curves: what they show is what the tracer counted and what the plans say, and every word can be read."""

import itertools
import subprocess
import sys
import warnings
import xml.dom.minidom
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules as make
from minigrad.engine.tracer import ROLES
from minigrad.view import bars, canvas, chain_pictures, curves, palette, placing, plot_run, plot_runs, sweeps, tradeoff
from minigrad.view.columns import activation_changes, columns, folded, forward_steps, highest, stretches

pytest.importorskip("matplotlib", reason="curves need matplotlib, which the pictures extra installs")

ALL_SCHEDULES = [
    make.store_all(), make.from_input(), make.uniform(4), make.every(5), make.torch_compatible(3), make.sqrt(),
    make.triangular(), make.nested(3), make.bisection(), make.binomial(4), make.optimal(4), make.mixed(4),
    make.online(4), make.offloaded(make.every(1)), make.offloaded(make.sqrt(), window=2), make.multistage(3, 3),
    make.h_revolve(3, 3),
]  # fmt: skip


@pytest.fixture
def runs(chain):
    many = chain(16, size=8)
    schedules = {"store-all": make.store_all(), "√L": make.sqrt(), "triangular": make.triangular()}
    return {name: many.run(schedule)[0] for name, schedule in schedules.items()}


@pytest.fixture
def no_matplotlib(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)


def texts(figure):
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def artist(figure, gid):
    """The one artist of this name."""
    found = figure.findobj(lambda one: one.get_gid() == gid)
    assert len(found) == 1, (gid, found)
    return found[0]


def points(figure, gid):
    """The points of a line."""
    return [tuple(float(number) for number in point) for point in artist(figure, gid).get_xydata()]


def extent(figure, gid):
    """(lowest x, lowest y, highest x, highest y) of the corners of areas."""
    corners = np.concatenate([path.vertices for path in artist(figure, gid).get_paths()])
    return (*corners.min(axis=0), *corners.max(axis=0))


def written_boxes(figure):
    """(text, its box in pixels) of all that a figure writes when it is drawn."""
    from matplotlib.text import Text

    drawn, draw = [], Text.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", lambda self, renderer: (drawn.append(self), draw(self, renderer)))
        figure.draw_without_rendering()
    seen = {id(text): text for text in drawn if text.get_text().strip() and text.get_visible()}
    return [(text.get_text(), canvas.box_of(text, figure)) for text in seen.values()]


def assert_readable(figure):
    """No word lies on another, none on the mark of a peak, and none reaches out of the picture."""
    boxes = written_boxes(figure)
    assert len(boxes) > 8
    for words, (left, bottom, right, top) in boxes:
        assert left >= 0 and bottom >= 0 and right <= figure.bbox.width and top <= figure.bbox.height, words
    for (words, one), (others, other) in itertools.combinations(boxes, 2):
        assert not overlap(one, other), (words, others)
    for mark in figure.findobj(lambda one: one.get_gid() in ("peak", "best", "named")):
        (x, y), *_ = canvas.pixels(mark.axes, mark.get_xydata())
        for words, box in boxes:
            assert not overlap(box, (x - 2, y - 2, x + 2, y + 2)), words

    for leader in figure.findobj(lambda one: one.get_gid() == "leader"):
        start, end = canvas.pixels(leader.axes, leader.get_xydata())
        for x, y in np.linspace(start, end, 40)[:-1]:
            assert not any(overlap(box, (x, y, x, y)) for _, box in boxes)


def overlap(one, other):
    return one[0] < other[2] - 1 and other[0] < one[2] - 1 and one[1] < other[3] - 1 and other[1] < one[3] - 1


# ---- From events to columns --------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ALL_SCHEDULES, ids=str)
def test_the_highest_column_is_the_tracers_peak_and_roles_add_up(chain, schedule):
    tracer, _ = chain(16, size=8).run(schedule)
    for what, peak in (("bytes", tracer.peak_bytes), ("activations", tracer.peak_activations)):
        found = columns(tracer, what)
        assert highest(found).total == peak
        assert all(sum(column.parts.values()) == column.total for column in found)
        assert all(amount > 0 for column in found for amount in column.parts.values())
        assert [column.step for column in found] == sorted({event.step for event in tracer.events})


@pytest.mark.parametrize("schedule", ALL_SCHEDULES, ids=str)
def test_every_activation_comes_and_goes_in_its_role(chain, schedule):
    tracer, _ = chain(16, size=8).run(schedule)
    live = {}
    for event, changes in activation_changes(tracer.events):
        for role, change in changes:
            live[role] = live.get(role, 0) + change
        assert min(live.values(), default=0) >= 0
        assert sum(live.values()) == event.live_activations
    assert not any(live.values())


def test_roles_of_activations_tell_what_a_checkpoint_keeps(chain):
    many = chain(100)
    stored = columns(many.run(make.store_all())[0], "activations")
    segments = columns(many.run(make.uniform(10))[0], "activations")
    assert highest(stored).parts == {"input": 1, "activation": 99}
    assert highest(segments).parts == {"boundary": 10, "activation": 9}
    assert max(column.parts.get("replayed", 0) for column in segments) == 9


@pytest.mark.parametrize("policy", [mg.policies.save_everything(), mg.policies.save_ops("matmul")], ids=str)
def test_roles_are_told_in_checkpoints_with_policies_and_under_a_second_derivative(policy, parameter):
    x = parameter(4, 4)
    with mg.Tracer() as tracer:
        y = mg.checkpoint(lambda h: mg.tanh(mg.exp(h @ x) * h), mg.tanh(x), policy=policy)
        (gradient,) = mg.grad((y * y).sum(), [x], create_graph=True)
        gradient.sum().backward()
        del y, gradient
    counts = columns(tracer, "activations")
    assert highest(counts).total == tracer.peak_activations
    assert all(amount > 0 for column in counts for amount in column.parts.values())


@pytest.mark.parametrize("schedule", [make.store_all(), make.sqrt()], ids=str)
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


def test_folded_columns_keep_the_peak_and_the_order(runs):
    found = columns(runs["√L"])
    for most in (1, 2, 7, len(found), 10_000):
        few = folded(found, most)
        assert len(few) == min(most, len(found))
        assert highest(few) == highest(found)
        assert few == sorted(few, key=lambda column: column.step)


def test_stretches_cover_the_run_without_gaps(runs):
    spans = sorted(span for spans in stretches(columns(runs["√L"])).values() for span in spans)
    for (start, length), (following, _) in zip(spans, spans[1:], strict=False):
        assert start + length == following
    assert len(stretches(columns(runs["√L"]))["replay"]) == 3


def test_the_forward_ends_where_backward_begins(runs):
    assert {forward_steps(tracer) for tracer in runs.values()} == {17}
    phases = ["forward", "replay", "forward", "replay", "backward", "forward"]  # replays of a memory budget, and then
    evicting = SimpleNamespace(events=[SimpleNamespace(step=i, phase=phase) for i, phase in enumerate(phases, 1)])
    assert forward_steps(evicting) == 3


# ---- One run -----------------------------------------------------------------------------------------


def test_the_stack_reaches_the_peak_and_names_phases_and_roles(runs, tmp_path):
    tracer = runs["√L"]
    figure = plot_run(tracer, tmp_path / "run.svg")
    ((step, height),) = points(figure, "peak")
    found = columns(tracer)
    np.testing.assert_allclose(height * 1000, tracer.peak_bytes)
    assert step == highest(found).step
    outline = [y * 1000 for _, y in points(figure, "total")][1:-1]
    np.testing.assert_allclose(outline, [column.total for column in found])
    written = " ".join(texts(figure))
    for word in ("forward", "replay", "backward", "kept for checkpoints", "replayed", "gradients", "At most"):
        assert word in written, word
    assert f"{tracer.peak_activations} live activations" in written
    assert f"peak {tracer.peak_bytes / 1000:.1f} kB" in texts(figure)
    svg = (tmp_path / "run.svg").read_text("utf-8")
    assert "kept for checkpoints" in svg and xml.dom.minidom.parseString(svg)


def test_each_role_is_an_area_as_high_as_its_bytes(runs):
    tracer = runs["store-all"]
    figure, found = plot_run(tracer), columns(tracer)
    below = np.zeros(len(found))
    for role in canvas.ROLE_COLOURS:
        if tracer.peak(role):
            above = below + [column.parts.get(role, 0) for column in found]
            there = above > below
            _, bottom, _, top = extent(figure, f"role-{role}")
            np.testing.assert_allclose(top * 1000, above[there].max(), rtol=0.2)
            assert bottom * 1000 <= below[there].min() + 1e-6
            below = above
    np.testing.assert_allclose(below, [column.total for column in found])


def test_activations_are_stacked_too(runs):
    figure = plot_run(runs["√L"], what="activations")
    assert points(figure, "peak")[0][1] == runs["√L"].peak_activations == 7
    assert "At most 7 activations were live at once, in the forward phase" in texts(figure)
    assert "live activations" in texts(figure)
    assert_readable(figure)


def test_memory_that_is_slow_is_in_the_stack(chain):
    tracer, _ = chain(16, size=8).run(make.offloaded(make.sqrt()))
    figure = plot_run(tracer)
    assert artist(figure, "role-offloaded") and "in slow memory" in texts(figure)
    np.testing.assert_allclose(points(figure, "peak")[0][1] * 1000, tracer.peak_bytes)


@pytest.mark.parametrize("hide", ["parameter", ("parameter",)])
def test_a_role_can_be_hidden(runs, hide):
    figure = plot_run(runs["store-all"], hide=hide)
    assert not figure.findobj(lambda one: one.get_gid() == "role-parameter")
    assert any("without parameters" in text for text in texts(figure))
    assert "parameters" not in texts(figure)
    found = columns(runs["store-all"], hide=("parameter",))
    assert all(sum(column.parts.values()) == column.total for column in found)
    most = highest(found).total
    np.testing.assert_allclose(points(figure, "peak")[0][1] * 1000, most)


def test_workspace_that_is_measured_is_told(parameter):
    x = parameter(64, 64)
    with mg.Tracer(workspace=True) as tracer:
        mg.softmax(x).sum().backward()
    assert any("not drawn: up to" in text for text in texts(plot_run(tracer)))


def test_the_strip_shows_which_phase_ran_when(runs):
    def strip(name, phase):
        return artist(plot_run(runs[name]), f"phase-{phase}").get_paths()

    assert len(strip("store-all", "forward")) == len(strip("store-all", "backward")) == 1
    replays = len(make.sqrt().plan(16).segments) - 1
    assert len(strip("√L", "replay")) == replays
    assert len(strip("√L", "backward")) == 1 + replays
    left, _, right, _ = extent(plot_run(runs["√L"]), "phase-forward")
    assert (left, right) == (0.5, 17.5)


def test_a_long_run_is_folded_and_keeps_its_peak(chain):
    tracer, _ = chain(700, size=2).run(make.bisection())
    figure = plot_run(tracer, what="activations")
    assert len({event.step for event in tracer.events}) > 1500
    assert len(points(figure, "total")) == 1502
    assert points(figure, "peak")[0][1] == tracer.peak_activations


def test_a_run_of_one_step_can_be_drawn():
    with mg.Tracer() as tracer:
        mg.ones(2) + 1
    for what in ("bytes", "activations"):
        assert_readable(plot_run(tracer, what=what))
        assert bars.run(tracer, what)


# ---- Several runs ------------------------------------------------------------------------------------


def test_each_run_is_a_line_whose_peak_is_the_tracers(runs, tmp_path):
    figure = plot_runs(runs, tmp_path / "runs.png")
    for name, tracer in runs.items():
        heights = [y for _, y in points(figure, name)]
        assert max(heights) == tracer.peak_activations and heights[-1] == 0
        assert f"{name}: {tracer.peak_activations}" in texts(figure)
    marks = figure.findobj(lambda one: one.get_gid() == "peak")
    assert sorted(mark.get_ydata()[0] for mark in marks) == sorted(t.peak_activations for t in runs.values())
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
    for name, tracer in runs.items():
        np.testing.assert_allclose(max(y for _, y in points(figure, name)) * 1000, tracer.peak_bytes)
    assert "live bytes (kB)" in texts(figure)


def test_on_a_relative_axis_all_runs_end_together(runs):
    figure = plot_runs(runs, relative=True)
    assert {points(figure, name)[-1][0] for name in runs} == {1}
    assert max(y for _, y in points(figure, "√L")) == runs["√L"].peak_activations
    assert "share of the run" in texts(figure)
    assert_readable(figure)


def test_a_strip_for_each_run_shows_its_replays(runs):
    figure = plot_runs(runs)
    for row, (name, tracer) in enumerate(runs.items()):
        spans = stretches(columns(tracer))
        for phase in ("forward", "backward"):
            assert len(artist(figure, f"phase-{phase}-{row}").get_paths()) == len(spans[phase]), name
    assert len(artist(figure, "phase-replay-1").get_paths()) == 3
    assert not figure.findobj(lambda one: one.get_gid() == "phase-replay-0")


def test_names_are_text_and_never_markup(runs):
    names = ["$\\frac{$", "<b>&amp;", "$x$ costs $5", "_hidden", "a" * 40]
    figure = plot_runs({name: runs["√L"] for name in names}, what="bytes")
    assert all(any(text.startswith(f"{name}: ") for text in texts(figure)) for name in names)
    assert xml.dom.minidom.parseString(canvas.picture_of(figure, "svg"))


def test_labels_of_equal_and_of_close_peaks_do_not_overlap(chain):
    many = chain(30)
    close = {f"{k} segments of thirty layers": many.run(make.uniform(k))[0] for k in (4, 5, 6, 7)}
    assert_readable(plot_runs(close))
    assert_readable(plot_runs({f"run {i}": close["5 segments of thirty layers"] for i in range(6)}))


# ---- How many segments -------------------------------------------------------------------------------


def test_the_sweep_shows_every_plan_and_marks_the_least(tmp_path):
    figure = curves.sweep(100, tmp_path / "sweep.svg")
    panels = [axes for axes in figure.axes if axes.lines]
    plans = {k: make.uniform(k).plan(100) for k in range(1, 101)}
    for axes, figures in zip(panels, ("peak", "extra_forwards"), strict=True):
        (line,) = [line for line in axes.lines if line.get_gid() == "planned"]
        assert dict(zip(*line.get_data(), strict=True)) == {k: getattr(plan, figures) for k, plan in plans.items()}
        (best,) = [line for line in axes.lines if line.get_gid() == "best"]
        assert best.get_xydata().tolist() == [[10, getattr(plans[10], figures)]]
    assert "10 segments need the least: 19 live activations instead of 100" in texts(figure)
    assert "19 at k = 10" in texts(figure) and "81 layers" in texts(figure)
    assert any("27% more time; 8 to 13 segments peak at 19 too" in text for text in texts(figure))
    assert "19 at k = 10" in (tmp_path / "sweep.svg").read_text("utf-8")


@pytest.mark.parametrize("layers", [1, 2, 3, 9, 64, 99, 400])
def test_no_number_of_segments_peaks_lower_than_the_best(layers):
    plans = sweeps.plans_of_segments(layers)
    least = min(make.uniform(k).plan(layers).peak for k in range(1, layers + 1))
    assert plans[sweeps.best_segments(plans)].peak == least
    assert {1, layers} <= set(plans)


def test_below_the_peak_are_boundaries_and_one_segment():
    figure = curves.sweep(100)
    assert extent(figure, "role-boundary")[3] == 100
    corners = artist(figure, "role-replayed").get_paths()[0].vertices
    at_ten = sorted(y for x, y in corners if x == 10)
    assert (at_ten[0], at_ten[-1]) == (10, 19)


def test_measured_points_are_rings_and_compared_with_the_plan(chain):
    many = chain(12)
    measured = {k: many.run(make.uniform(k))[0] for k in (1, 2, 3, 4, 6, 12)}
    figure = curves.sweep(12, measured=measured)
    rings = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "measured"]
    assert dict(zip(*rings[0].get_data(), strict=True)) == {k: k + 12 // k - 1 for k in measured}
    assert dict(zip(*rings[1].get_data(), strict=True)) == {k: (k - 1) * (12 // k - 1) for k in measured}
    assert any("rings: 6 measured, all as planned" in text for text in texts(figure))
    otherwise = curves.sweep(12, measured={3: (6, 6), 4: (7, 6)})
    assert any("rings: 2 measured, 1 as planned" in text for text in texts(otherwise))


# ---- All schedules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [10, 100])
def test_every_point_of_the_pareto_picture_is_a_plan(layers):
    figure = curves.pareto(layers)
    plans = {name: schedule.plan(layers) for name, schedule in tradeoff.usual_schedules(layers).items()}
    named = {tuple(mark.get_xydata()[0]) for mark in figure.findobj(lambda one: one.get_gid() == "named")}
    assert named == {(plan.peak, plan.extra_forwards) for plan in plans.values()}
    written = " ".join(texts(figure))
    assert all(name in written for name in plans)
    uniform = [make.uniform(k).plan(layers) for k in sweeps.spread(2, layers, 60)]
    assert points(figure, "uniform(k)") == [(plan.peak, plan.extra_forwards) for plan in uniform]
    for name in ("nested(k)", "mixed(s)", "online(s)"):
        assert len(points(figure, name)) > 1 and name in texts(figure)


def test_the_thick_line_is_the_fewest_replays_known():
    line = dict(points(curves.pareto(100), "fewest"))
    assert [line[peak] for peak in (3, 4, 5, 6, 8, 14, 19, 100)] == [2401, 516, 305, 224, 157, 86, 81, 0]
    assert list(line.values()) == sorted(line.values(), reverse=True)
    assert line[12] == make.binomial(12).plan(100).extra_forwards == 110  # one less than optimal(12)


@pytest.mark.parametrize("layers", [10, 100, 1000])
def test_nothing_is_below_the_line_but_with_slow_memory(layers):
    peaks, replays = zip(*tradeoff.fewest_replays(layers), strict=True)
    known = tradeoff.planned(tradeoff.usual_schedules(layers), layers)
    places = [(plan.peak, plan.extra_forwards) for plan in known.values() if not plan.writes]
    places += [place for family in tradeoff.families(layers).values() for place in family]
    for peak, count in places:
        assert count >= min(r for p, r in zip(peaks, replays, strict=True) if p <= peak)


def test_no_replay_has_its_place_and_time_its_axis():
    figure = curves.pareto(100)
    axes, times = figure.axes
    assert axes.get_ylim()[0] <= 0 and axes.get_ylim() == times.get_ylim()
    ticks = dict(zip([label.get_text() for label in times.get_yticklabels()], times.get_yticks(), strict=True))
    assert ticks["1x"] == 0 and round(ticks["1.5x"]) == 150 and round(ticks["2x"]) == 300
    plan = make.triangular().plan(100)
    assert 1 + plan.extra_forwards / 300 == plan.time_factor


def test_schedules_of_ones_own_and_measured_points_can_be_compared(chain):
    tracer, _ = chain(16).run(make.uniform(4))
    mine = {"four": make.uniform(4), "too many": make.uniform(40)}
    figure = curves.pareto(16, mine, measured={"four": tracer, "by hand": (9, 3)})
    assert points(figure, "measured") == [(7, 9), (9, 3)]
    assert "four" in texts(figure) and "too many" not in texts(figure)
    assert any("rings: 2 measured, 1 as planned" in text for text in texts(figure))


# ---- Growth ------------------------------------------------------------------------------------------


def test_growth_fits_the_slope_of_each_line():
    schedules = {"all": make.store_all(), "sqrt": make.sqrt(), "input": make.from_input()}
    figure = curves.growth([16, 64, 256, 1024], schedules)
    assert points(figure, "all") == [(16, 16), (64, 64), (256, 256), (1024, 1024)]
    assert [y for _, y in points(figure, "sqrt")] == [7, 15, 31, 63]
    written = texts(figure)
    assert "all: slope 1.00" in written and "input: slope 0.00" in written
    assert f"sqrt: slope {np.polyfit(np.log([16, 64, 256, 1024]), np.log([7, 15, 31, 63]), 1)[0]:.2f}" in written
    assert "64 times the layers: input needs no more memory, all 64 times as much" in written


def test_growth_leaves_out_lengths_that_a_schedule_cannot_have():
    figure = curves.growth([5, 20, 40], {"ten": make.uniform(10), "all": make.store_all()})
    assert [x for x, _ in points(figure, "ten")] == [20, 40]


def test_growth_takes_measured_points_and_lines(chain):
    tracers = {n: chain(n).run(make.sqrt())[0] for n in (16, 9)}
    figure = curves.growth([4, 64], {"sqrt": make.sqrt()}, measured={"sqrt": tracers, "torch": {10: 5, 1000: 50}})
    assert points(figure, "measured sqrt") == [(9, 5), (16, 7)]
    assert [x for x, _ in points(figure, "sqrt")] == [4, 9, 10, 16, 64, 1000]
    assert "torch: slope 0.50" in texts(figure)
    assert any("rings: 4 measured, 2 as planned" in text for text in texts(figure))


# ---- Every word can be read --------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [10, 37, 100, 1000])
def test_no_words_overlap_in_pictures_of_plans(layers):
    assert_readable(curves.sweep(layers))
    assert_readable(curves.pareto(layers))
    assert_readable(curves.growth([layers // 10 or 1, layers, 3 * layers]))


def test_no_words_overlap_where_lines_and_ticks_are_close():
    assert_readable(curves.growth([10, 100], {name: make.sqrt() for name in ("one", "two", "three of them")}))
    axes = curves.pareto(10).axes[0]
    assert tradeoff.far_apart(axes, [0, 0.01, 1, 1.01, 20]) == [0, 1, 20]


def test_a_label_keeps_clear_of_marks():
    figure, (axes,) = canvas.page("title", "facts")
    axes.set(xlim=(0, 10), ylim=(0, 10))
    marks = [(5 + 0.2 * i, 5 + 0.2 * j) for i in (-2, -1, 1, 2) for j in (-1, 0, 1)]
    placing.place_labels(axes, [placing.Label([(5, 5)], "words", canvas.INK)], marks=marks)
    (box,) = [box for words, box in written_boxes(figure) if words == "words"]
    assert not any(overlap(box, (x - 2, y - 2, x + 2, y + 2)) for x, y in canvas.pixels(axes, marks))
    assert figure.findobj(lambda one: one.get_gid() == "leader")


def test_two_full_legends_do_not_overlap():
    assert_readable(plot_run(chain_pictures.run(make.offloaded(make.sqrt()), 100, batch=500)))


@pytest.mark.parametrize("schedule", ALL_SCHEDULES[::3], ids=str)
def test_no_words_overlap_in_a_run(chain, schedule):
    tracer, _ = chain(20, size=32).run(schedule)
    assert_readable(plot_run(tracer))


def test_no_words_overlap_in_a_transformer_block():
    block, x = mg.nn.TransformerBlock(16, 2), mg.randn(2, 5, 16)
    runs = {}
    for name in ("plain", "checkpointed"):
        with mg.Tracer() as runs[name]:
            out = mg.checkpoint(block, x) if name == "checkpointed" else block(x)
            out.sum().backward()
    assert_readable(plot_run(runs["checkpointed"]))
    assert_readable(plot_runs(runs, what="bytes"))


def test_words_on_an_area_stay_inside_it(runs):
    figure = plot_run(runs["store-all"])
    (text,) = [text for text in figure.axes[0].texts if text.get_text() == "parameters"]
    left, bottom, right, top = canvas.box_of(text, figure)
    (low, high) = canvas.pixels(figure.axes[0], [(0, 0), (0, runs["store-all"].peak("parameter") / 1000)])
    assert low[1] < bottom and top < high[1]


def test_colours_are_those_of_the_other_pictures():
    assert (canvas.INK, canvas.GREY) == (palette.INK, palette.PAGE["grey"][0])
    assert palette.ROLE_COLOURS is canvas.ROLE_COLOURS and palette.PHASE_COLOURS is canvas.PHASE_COLOURS
    assert canvas.ROLE_COLOURS["offloaded"] == palette.OFFLOADED
    assert set(canvas.ROLE_COLOURS) == set(canvas.ROLE_WORDS) == {*ROLES} - {"workspace"}


# ---- Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, beginning", [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_run_gives_the_same_file(runs, tmp_path, kind, beginning):
    for name in ("a", "b"):
        plot_run(runs["√L"], tmp_path / f"{name}.{kind}")
    first, second = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("a", "b"))
    assert first.startswith(beginning) and first == second
    assert b"Date>" not in first and b"CreationDate" not in first


@pytest.mark.parametrize("name", ["run", "run.xyz", "run.txt"])
def test_a_suffix_that_is_no_picture_is_an_error_and_no_file(runs, tmp_path, name):
    with pytest.raises(mg.ArgumentError, match="the suffix of the path says which format"):
        plot_run(runs["√L"], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_pictures_of_the_chain_measure_all_that_they_show(tmp_path):
    paths = chain_pictures.write(tmp_path / "new", 20)
    assert [path.name for path in paths] == [
        "memory-run.svg", "memory-runs.svg", "sweep.svg", "pareto.svg", "growth.svg",
    ]  # fmt: skip
    for path, count in zip(paths[2:], (6, 11, 20), strict=True):
        assert f"rings: {count} measured, all as planned" in path.read_text("utf-8"), path
    again = chain_pictures.write(tmp_path / "again", 20)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


# ---- Tracer.plot -------------------------------------------------------------------------------------


def test_tracer_plot_is_plot_run(runs, tmp_path):
    path = runs["√L"].plot(tmp_path / "run.png")
    assert path == tmp_path / "run.png" and path.stat().st_size > 10_000
    assert points(runs["√L"].plot(what="activations"), "peak")[0][1] == 7
    assert runs["√L"].plot(str(tmp_path / "run.svg")).read_bytes().startswith(b"<?xml")


def test_a_notebook_shows_the_figure(runs):
    assert runs["√L"].plot()._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib_the_curve_is_printed_and_the_message_says_how_to_get_it(runs, no_matplotlib, capsys):
    chart = runs["√L"].plot()
    printed = capsys.readouterr().out
    assert printed == chart + "\n"
    assert 'pip install "minigrad[pictures]"' in chart and "At most" in chart and "█" in chart
    assert "mostly" in chart and max(map(len, chart.splitlines())) <= 100


def test_without_matplotlib_a_file_is_an_error_after_the_chart(runs, no_matplotlib, capsys, tmp_path):
    with pytest.raises(mg.MinigradError, match=r"pip install \"minigrad\[pictures\]\"") as caught:
        runs["√L"].plot(tmp_path / "run.svg")
    assert not list(tmp_path.iterdir())
    assert "█" in capsys.readouterr().out and "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [curves.sweep, curves.pareto, curves.growth], ids=["sweep", "pareto", "growth"])
def test_without_matplotlib_pictures_of_plans_are_one_clear_error(no_matplotlib, call):
    with pytest.raises(mg.MinigradError, match="curves are drawn by matplotlib, which is not installed"):
        call()


def test_no_pyplot_and_no_matplotlib_before_the_first_curve():
    program = (
        "import sys, minigrad.view as view; from minigrad.view import bars, chain_pictures\n"
        "import minigrad as mg\n"
        "with mg.Tracer() as tracer: mg.ones(2) + 1\n"
        "print(bars.run(tracer), bars.sweep(9))\n"
        "assert 'matplotlib' not in sys.modules\n"
        "view.plot_run(tracer)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "try: view.plot_run(tracer)\n"
        "except mg.MinigradError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "minigrad[pictures]" in done.stdout


# ---- Charts in text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["bytes", "activations"])
@pytest.mark.parametrize("width", [40, 73, 100])
def test_the_curve_in_text_is_as_high_as_the_run(chain, what, width):
    tracer, _ = chain(50).run(make.sqrt())
    lines = bars.run(tracer, what, width=width, height=8).splitlines()
    assert max(map(len, lines)) <= width
    curve = [line.split("┃")[1] for line in lines if "┃" in line]
    assert len(curve) == 8
    drawn = [sum(bars.STANDING.find(row.ljust(width)[i]) for row in curve) for i in range(max(map(len, curve)))]
    shown = folded(columns(tracer, what), len(drawn))
    peak = highest(shown).total
    assert drawn == [round(8 * 8 * column.total / peak) for column in shown]
    phases = next(line for line in lines if set(line.strip()) == set("frb"))
    assert phases.strip() == "".join(column.phase[0] for column in shown)


def test_few_steps_are_drawn_wide(chain):
    tracer, _ = chain(3).run(make.store_all())
    (phases,) = [line.strip() for line in bars.run(tracer).splitlines() if set(line.strip()) == set("fb")]
    steps = columns(tracer)
    assert len(phases) == 4 * len(steps)


def test_ascii_charts_have_no_other_signs(runs):
    named = {"√L": runs["√L"], "all": runs["store-all"]}
    for chart in (bars.run(runs["√L"], ascii=True), bars.runs(named, ascii=True), bars.sweep(100, ascii=True)):
        assert chart.isascii() and "#" in chart


def test_bars_are_as_long_as_their_values():
    chart = bars.chart([("a", 8, "8"), ("b", 4, "4"), ("c", 1, "1"), ("d", 0, "0")], width=40)
    bar_of = [line.split("┃")[1].split()[0] if "█" in line else "" for line in chart.splitlines()]
    eighths = [8 * bar.count("█") + sum(map(bars.LYING.index, bar.strip("█"))) for bar in bar_of]
    assert eighths == [280, 140, 35, 0]
    assert bars.bar(1, 8, 2) == "▎" and bars.bar(8, 8, 2) == "██" and bars.bar(0, 0, 5) == ""


def test_the_sweep_in_text_shows_plans_or_what_was_measured():
    text = bars.sweep(100)
    assert "10 segments need the least: 19 live activations instead of 100" in text
    (least,) = [line for line in text.splitlines() if "least" in line and "k = " in line]
    assert least.startswith("k = 10 ") and "19, 81 replayed" in least
    shown = [int(line.split()[2]) for line in text.splitlines() if line.startswith("k = ")]
    assert len(shown) <= 24 and shown[0] == 1 and shown[-1] == 100 and shown == sorted(shown)
    for line in text.splitlines():
        if line.startswith("k = "):
            plan = make.uniform(int(line.split()[2])).plan(100)
            assert f"{plan.peak}, {plan.extra_forwards} replayed" in line
    measured = bars.sweep(12, {3: (6, 6), 4: (7, 5)})
    assert "7, 5 replayed" in measured and "2 measured, 1 as planned" in measured and "k = 12" not in measured


def test_several_runs_in_text_are_bars_of_their_peaks(runs):
    text = bars.runs(runs)
    assert "16, 0 replayed" in text and "7, 9 replayed" in text
    assert "triangular peaks at 6 live activations, store-all at 16: 2.7 times fewer" in text
    assert repr(text) == f"<chart of {len(text.splitlines())} lines; print() shows it>"


def test_long_labels_give_way_to_the_bars():
    rows = [("a name that is much longer than there is room for it", 3, "three"), ("b", 1, "one " * 30)]
    assert max(map(len, bars.chart(rows, "t " * 90, "n " * 90, width=50).splitlines())) <= 50


def test_a_terminal_without_blocks_gets_ascii(runs, no_matplotlib, monkeypatch):
    class Latin:
        encoding = "latin-1"

        def __init__(self):
            self.text = ""

        def write(self, text):
            text.encode(self.encoding)
            self.text += text

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Latin())
    assert runs["√L"].plot().isascii()
    assert "#" in sys.stdout.text


# ---- Mistakes ----------------------------------------------------------------------------------------


def traced():
    with mg.Tracer() as tracer:
        mg.ones(2) + 1
    return tracer


@pytest.mark.parametrize(
    "call",
    [
        lambda: plot_run(mg.Tracer()),
        lambda: plot_run(3),
        lambda: plot_run(traced(), hide=("weights",)),
        lambda: plot_runs({}),
        lambda: plot_runs([mg.Tracer()]),
        lambda: plot_runs({"a": mg.Tracer()}, what="seconds"),
        lambda: mg.Tracer().plot(),
        lambda: bars.chart([]),
        lambda: bars.sweep(10, width=39),
        lambda: bars.runs({}),
        lambda: curves.growth([10]),
        lambda: curves.growth([5, 20], {"ten": make.uniform(10)}),
        lambda: curves.sweep(10, measured={2: 7}),
    ],
)
def test_what_cannot_be_shown_is_an_argument_error(call):
    with pytest.raises(mg.ArgumentError):
        call()


@pytest.mark.parametrize("layers", [0, -1, True, 2.5, "ten"])
def test_a_number_of_layers_is_a_whole_number(layers):
    for picture in (curves.sweep, curves.pareto, bars.sweep):
        with pytest.raises(mg.BudgetError, match="the number of layers must be a whole number"):
            picture(layers)


def test_no_picture_warns(chain):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_run(chain(5).run(make.sqrt())[0])
        for layers in (2, 3, 5):
            curves.pareto(layers)
            curves.sweep(layers)
        curves.sweep(1)
