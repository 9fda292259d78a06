"""Space-time pictures: a plan and a run of it are the same picture, and what is drawn is what was counted."""

import dataclasses
import itertools
import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad import schedules as s
from minigrad.view import palette
from minigrad.view.spacetime import compare, draw, from_plan, from_run, write_pictures
from minigrad.view.spacetime.panel import ticks
from tests.browser import Browser, find_chromium
from tests.test_all_schedules import MAKERS, RandomTree, deep_layers, run

LETTERS = {"boundary": "B", "activation": "k", "replayed": "r", "offloaded": "s"}
LENGTHS = [1, 2, 3, 7, 16, 64, 100]


def of_run(chain, schedule, length):
    return from_run(chain(length).run(schedule)[0])


def sketch(spacetime):
    """One line of text for each row: what happens, what is live, and how much of it."""
    lines = []
    for number, (hand, layer) in enumerate(spacetime.rows):
        live = spacetime.live(number)
        cells = "".join(LETTERS.get(live.get(column), ".") for column in range(spacetime.layers + 1))
        lines.append(f"{hand[:1] or '-'}{'' if layer is None else layer} {cells} {spacetime.counts[number]}")
    return lines


# ---- A plan and a run are the same -------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_a_plan_and_a_run_of_it_are_equal_row_by_row(chain, name):
    for length in LENGTHS:
        schedule = MAKERS[name](length)
        planned, measured = from_plan(schedule.plan(length)), of_run(chain, schedule, length)
        assert planned == measured, f"{sketch(planned)} is not {sketch(measured)}"


@pytest.mark.parametrize("seed", range(20))
def test_so_they_are_for_any_tree_of_stretches(chain, seed):
    schedule = RandomTree(seed * 100)
    assert from_plan(schedule.plan(30)) == of_run(chain, schedule, 30)


class Tree(s.Schedule):
    """A random tree in which any checkpoint's boundary may wait in slow memory."""

    def __init__(self, seed, early_stop, offload=None):
        self.seed, self.early_stop, self.offload = seed, early_stop, offload

    def split(self, n):
        rng, parts, left = np.random.default_rng([self.seed, n]), [], n
        while left:
            length, kind = int(rng.integers(1, left + 1)), rng.integers(3)
            offload = [None, None, 1][rng.integers(3)]
            inner = Tree(self.seed + 1, self.early_stop, offload) if kind == 2 and length < n else Taped(self, offload)
            parts.append((length, inner if kind else None))
            left -= length
        return parts


class Taped(s.Schedule):
    """A checkpoint whose replay tapes all of it."""

    def __init__(self, around, offload):
        self.early_stop, self.offload = around.early_stop, offload

    def split(self, n):
        return [(n, None)]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_so_they_are_with_boundaries_in_slow_memory_at_any_depth(chain, seed, early_stop):
    schedule = Tree(seed * 100, early_stop)
    assert from_plan(schedule.plan(17)) == of_run(chain, schedule, 17)


@pytest.mark.parametrize("name", MAKERS)
def test_the_counts_are_the_cells(chain, name):
    """What a tracer counts in a row is what is drawn in it, slow memory aside."""
    for picture in (of_run(chain, MAKERS[name](30), 30), from_plan(MAKERS[name](30).plan(30))):
        cells = [sum(state != "offloaded" for state in picture.live(row).values()) for row in range(len(picture.rows))]
        assert cells == picture.counts


def test_the_same_drawing_comes_from_both(chain):
    plan = s.triangular().plan(20)
    measured = dataclasses.replace(of_run(chain, plan.schedule, 20), name="triangular()")
    assert plan.draw() == draw(measured)


def test_an_unfolding_that_does_not_cost_what_the_plan_says_is_noticed():
    plan = s.sqrt().plan(16)
    plan.peak += 1
    with pytest.raises(AssertionError, match="not what was unfolded"):
        from_plan(plan)


# ---- What is live when -------------------------------------------------------------------------------


def test_checkpoints_hold_their_boundaries_and_replays_what_they_compute():
    assert sketch(from_plan(s.uniform(3).plan(6))) == [
        "f0 B...... 1",
        "f1 B...... 1",
        "f2 B.B.... 2",
        "f3 B.B.... 2",
        "f4 B.B.B.. 3",
        "f5 B.B.Bk. 4",
        "- B.B.Bk. 4",  # the loss
        "b5 B.B.Bk. 4",
        "b4 B.B.Bk. 4",
        "r2 B.Br... 3",
        "b3 B.Br... 3",
        "b2 B.Br... 3",
        "r0 Br..... 2",
        "b1 Br..... 2",
        "b0 Br..... 2",
    ]


def test_a_whole_replay_runs_the_last_layer_too_whose_output_has_a_column_of_its_own():
    rows = sketch(from_plan(s.uniform(2, keep_last=False, early_stop=False).plan(4)))
    assert rows[5:7] == ["r2 B.Br. 3", "r3 B.Brr 4"] and rows[7] == "b3 B.Br. 3"


def test_boundaries_go_to_slow_memory_and_the_next_older_one_is_fetched_ahead():
    assert sketch(from_plan(s.offloaded(s.every(2), window=2).plan(6)))[2:10] == [
        "f2 s.B.... 1",
        "f3 s.B.... 1",
        "f4 s.s.B.. 1",
        "f5 s.s.Bk. 2",
        "- s.s.Bk. 2",
        "b5 s.s.Bk. 2",
        "b4 s.s.Bk. 2",
        "r2 B.Br... 3",
    ]


def test_a_loop_of_unknown_length_drops_states_that_it_had_kept():
    forward = sketch(from_plan(s.online(2).plan(6)))[:6]
    assert forward == ["f0 B...... 1", "f1 BB..... 2", "f2 BB..... 2", "f3 B..B... 2", "f4 B..B... 2", "f5 B....B. 2"]


def test_a_run_that_stores_all_fills_a_triangle(chain):
    rows = sketch(of_run(chain, s.store_all(), 4))
    assert rows == [
        "f0 k.... 1", "f1 kk... 2", "f2 kkk.. 3", "f3 kkkk. 4", "- kkkk. 4", "b3 kkkk. 4", "b2 kkkk. 4", "b1 kkk.. 3",
        "b0 kk... 2",
    ]  # fmt: skip


# ---- Runs of other chains ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_layers_of_several_ops_are_one_row_each_and_the_peak_is_the_tracers(name):
    layers, x = deep_layers(13), mg.tensor(np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32))
    tracer, _, _ = run(layers, MAKERS[name](13), x)
    picture = from_run(tracer)
    assert picture.peak == tracer.peak_activations
    assert picture.rows[:14] == [*(("forward", layer) for layer in range(13)), ("", None)]
    assert [row.layer for row in picture.rows if row.hand == "backward"] == list(range(13))[::-1]
    assert picture.replays <= tracer.replayed_ops and picture.counts[-1] <= picture.peak


def test_a_chain_inside_a_model_is_found_and_what_is_around_it_is_one_row():
    blocks = nn.Sequential(*[nn.Linear(6, 6) for _ in range(5)], checkpoint=s.every(2))
    model = Around(nn.Linear(3, 6), blocks, nn.Linear(6, 2))
    with mg.Tracer() as tracer:
        for _ in range(2):
            model(mg.ones(4, 3)).sum().backward()
    picture = from_run(tracer)
    one = ["", *["forward"] * 5, "", *["backward"] * 1, "replay", *["backward"] * 2, "replay", *["backward"] * 2]
    assert picture.layers == 5 and [row.hand for row in picture.rows] == [*one, *one, ""]
    assert picture.peak == tracer.peak_activations


class Around(nn.Module):
    def __init__(self, before, blocks, after):
        self.before, self.blocks, self.after = before, blocks, after

    def forward(self, x):
        return self.after(self.blocks(self.before(x)))


def test_what_two_layers_read_stands_in_the_column_of_the_first(chain):
    """A skip from x_1 over two layers, to an op that keeps both factors: x_1 stays, in its own column."""
    weights = chain(4).weights
    layers = [
        lambda t: (t[0] @ weights[0],),
        lambda t: (t[0] @ weights[1], t[0]),
        lambda t: (t[0] @ weights[2], t[1]),
        lambda t: t[0] * t[1],
    ]
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(layers, s.store_all(), (mg.ones(2, 4),)).sum().backward()
    picture = from_run(tracer)
    assert sketch(picture)[3] == "f3 kkkk. 4" and picture.live(5) == dict.fromkeys(range(4), "activation")


def test_evictions_show_in_a_run_under_a_budget(chain):
    net = chain(40)
    with mg.Tracer() as tracer, mg.memory_budget(f"{10 * net.x.nbytes} B"):
        mg.checkpoint_sequential(net.layers, s.store_all(), net.x).sum().backward()
    picture = from_run(tracer)
    assert picture.peak == tracer.peak_activations == 10 and picture.replays == tracer.replayed_ops > 0
    assert {span.state for span in picture.spans} == {"activation", "replayed"}


def test_second_walks_and_second_derivatives_are_counted_too(chain):
    net = chain(10)
    with mg.Tracer() as tracer:
        loss = (mg.checkpoint_sequential(net.layers, 3, net.x) ** 2).sum()
        loss.backward(retain_graph=True)
        gradients = mg.grad(loss, net.weights, create_graph=True)
        sum([(gradient * gradient).sum() for gradient in gradients]).backward()
    assert from_run(tracer).peak == tracer.peak_activations


def test_a_second_pass_looks_like_the_first(chain):
    net = chain(10)
    with mg.Tracer() as tracer:
        for _ in range(2):
            mg.checkpoint_sequential(net.layers, s.triangular(), net.x).sum().backward()
    rows = sketch(from_run(tracer))
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :] == sketch(from_plan(s.triangular().plan(10)))
    assert texts(draw(from_run(tracer))).count("forward") == 2


def test_what_waits_in_slow_memory_shows_before_it_is_used(chain):
    net = chain(6)
    with mg.Tracer() as tracer:
        y = mg.checkpoint_sequential(net.layers, s.offloaded(s.every(2)), net.x)
    assert sketch(from_run(tracer))[-1] == "f5 s.s.Bk. 2" and y.shape == (3, 4)


def test_a_forward_alone_has_a_picture(chain):
    net = chain(10)
    with mg.Tracer() as tracer:
        y = mg.checkpoint_sequential(net.layers, 3, net.x)
    picture = from_run(tracer)
    assert picture.peak == tracer.peak_activations and len(picture.rows) == 10
    assert "is differentiated" not in draw(picture) and y.shape == (3, 4)


# ---- What is drawn -----------------------------------------------------------------------------------


def elements(svg, name, kind=""):
    """The elements of an SVG text with this name and class."""
    found = xml.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{name}")
    return [element for element in found if kind in element.get("class", "").split() or not kind]


def texts(svg):
    return [element.text for element in elements(svg, "text")]


def boxes(element):
    """(x, y, width, height) of the rectangles in a group, or in a path."""
    if element.tag.endswith("path"):
        numbers = re.findall(r"M(\S+) (\S+?)h(\S+?)v(\S+?)H\S+?z", element.get("d"))
    else:
        numbers = [[rect.get(name) for name in ("x", "y", "width", "height")] for rect in element]
    return [tuple(map(float, four)) for four in numbers]


@pytest.mark.parametrize("schedule", [s.uniform(10), s.offloaded(s.triangular()), s.nested(4)], ids=str)
def test_every_span_is_a_rectangle_at_its_place(schedule):
    picture = from_plan(schedule.plan(100))
    svg = draw(picture)
    left, top, _, height = boxes(elements(svg, "g", "st-step")[0])[0]
    drawn = []
    for state in LETTERS:
        for group in elements(svg, "g", f"st-{state}"):
            for (x, y, width, tall), rect in zip(boxes(group), group, strict=True):
                first = round((y - top) / height)
                drawn.append((round((x - left) / width), state, first, first + round(tall / height) - 1))
                assert rect[0].text.startswith(f"x_{drawn[-1][0]}, which layer {drawn[-1][0] + 1} reads; ")
                assert rect[0].text.endswith(f"; steps {first + 1} to {drawn[-1][3] + 1}")
    assert sorted(drawn) == sorted(picture.spans)


def test_every_step_has_its_mark_and_its_words():
    picture = from_plan(s.triangular().plan(100))
    svg = draw(picture)
    strips = elements(svg, "g", "st-step")[0]
    left, top, _, height = boxes(strips)[0]
    for hand, verb in (("forward", "runs"), ("replay", "replays"), ("backward", "is differentiated")):
        (path,) = elements(svg, "path", f"st-{hand}")
        width = boxes(path)[0][2]
        marks = {round((y - top) / height): round((x - left) / width) for x, y, _, _ in boxes(path)}
        assert marks == {number: row.layer for number, row in enumerate(picture.rows) if row.hand == hand}
        for number, layer in marks.items():
            words = f"step {number + 1}: layer {layer + 1} {verb}; {picture.counts[number]} live"
            assert strips[number][0].text == words


def test_the_title_says_the_finding_and_the_curve_its_peak():
    svg = s.uniform(10).plan(100).draw()
    assert texts(svg)[0] == "uniform(10) on 100 layers: at most 19 activations live, 81 layers run again"
    assert "19" in texts(svg) and {"forward", "backward, with replays", "live activations"} < set(texts(svg))
    root = xml.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label").endswith(texts(svg)[0])
    (dot,) = elements(svg, "circle")
    left, top, _, height = boxes(elements(svg, "g", "st-step")[0])[0]
    assert (float(dot.get("cy")) - top) / height - 0.5 == from_plan(s.uniform(10).plan(100)).counts.index(19)
    one = texts(s.store_all().plan(1).draw())
    assert one[0] == "store_all() on 1 layer: at most 1 activation live, no layer run again"


def test_the_legend_explains_what_occurs_in_the_words_of_the_other_pictures():
    words = {palette.STATES[state] for state in ("activation", "boundary", "replayed", "dropped")}
    assert words < set(texts(s.uniform(10).plan(100).draw()))
    assert not words & set(texts(s.store_all().plan(100).draw())) - {palette.STATES["activation"]}
    assert palette.role_words()["offloaded"] in texts(s.offloaded(10).plan(100).draw())


def test_colours_are_the_palettes_on_light_pages_and_on_dark_ones():
    light, dark = s.uniform(2).plan(4).draw().split("@media (prefers-color-scheme: dark)")
    for state in ("activation", "boundary", "replayed", "offloaded"):
        assert f".st-{state} {{ fill: {palette.ROLE_COLOURS[state]} }}" in light
        assert f".st-{state} {{ fill: {palette.DARK_ROLES.get(state, palette.ROLE_COLOURS[state])} }}" in dark
    for name, key in (("ground", "page"), ("text", "ink"), ("grey", "grey")):
        assert [f".st-{name} {{ fill: {colour} }}" for colour in palette.PAGE[key]] == [
            re.search(rf"\.st-{name} {{ fill.*?}}", half)[0] for half in (light, dark)
        ]


def test_a_hundred_layers_are_a_small_file():
    for schedule in (s.uniform(10), s.triangular(), s.store_all()):
        svg = schedule.plan(100).draw()
        assert len(svg) < 80_000 and "Folded" not in svg
    assert len(s.binomial(5).plan(100).draw()) < 150_000


@pytest.mark.parametrize(
    "schedule, layers, row, column",
    [
        (s.from_input(), 100, "8 steps", "a layer with the activation that it reads"),
        (s.sqrt(), 1000, "5 steps", "4 layers with what each reads"),
        (s.sqrt(), 10_000, "42 steps", "31 layers with what each reads"),
    ],
    ids=str,
)
def test_large_plans_are_folded_and_say_so(schedule, layers, row, column):
    plan = schedule.plan(layers)
    svg = plan.draw()
    assert len(svg) < 300_000 and str(plan.peak) in texts(svg)
    assert f"Each column is {column}, each row {row}. Blank: not computed yet, or done with." in texts(svg)
    assert any(words.startswith("Folded to fit") for words in texts(svg))


def test_ticks_are_round_numbers():
    assert ticks(100, 11) == [1, *range(10, 101, 10)] and ticks(1, 9) == [1]
    assert ticks(5052, 9) == [1, *range(1000, 5001, 1000)]


def test_names_are_text_and_nothing_else():
    evil = '</text><script>alert("&")</script>\x00\n' + "x" * 100
    plan = s.uniform(3).plan(9)
    for svg in (draw(dataclasses.replace(from_plan(plan), name=evil)), compare({evil: plan, "two": plan})):
        assert not elements(svg, "script")
        assert any(words.startswith('</text><script>alert("&")') for words in texts(svg))


def test_pictures_are_saved_and_shown_in_notebooks(chain, tmp_path):
    tracer, _ = chain(9).run(3)
    svg = tracer.spacetime(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == svg == svg._repr_svg_()
    assert repr(svg) == f"<Svg of {len(svg):,} characters>"
    assert s.uniform(3).plan(9).draw(str(tmp_path / "plan.SVG")) == (tmp_path / "plan.SVG").read_text()


def test_several_stand_side_by_side_on_one_scale(chain):
    plans = [s.store_all().plan(100), s.every(10).plan(100), s.triangular().plan(100), s.binomial(8).plan(100)]
    svg = compare(plans)
    found = "store_all() has 100 activations live at the peak; binomial(8) has 9, and 156 layers run again"
    assert texts(svg)[0] == found
    assert {"store_all()", "every(10)", "triangular()", "binomial(8)", "19 live at the peak"} < set(texts(svg))
    panels = [boxes(group) for group in elements(svg, "g", "st-step")]
    assert len({strips[0][1] for strips in panels}) == len({strips[0][3] for strips in panels}) == 1
    assert [len(strips) for strips in panels] == [201, 282, 287, 357]
    ends = [strips[0][0] + strips[0][2] for strips in panels]
    assert all(end <= strips[0][0] for end, strips in zip(ends, panels[1:], strict=False)) and ends[-1] <= 900
    tracer, _ = chain(9).run(3)
    both = texts(compare({"planned": s.uniform(3).plan(9), "measured": tracer}))
    assert both[0] == "Each has 5 activations live at the peak" and {"planned", "measured"} < set(both)


def test_the_pictures_of_the_lessons_come_out_the_same_each_time(tmp_path):
    paths = write_pictures(tmp_path / "one")
    assert [path.name for path in paths] == [f"spacetime-{name}.svg" for name in ("uniform", "triangular", "compare")]
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in write_pictures(tmp_path / "two")]
    assert all(path.stat().st_size < 300_000 for path in paths)


# ---- In a browser ------------------------------------------------------------------------------------

BOXES = """[...document.querySelectorAll("text")].map(e => {
    const box = e.getBoundingClientRect();
    return [e.textContent, box.left, box.top, box.right, box.bottom];
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if find_chromium() is None:
        pytest.skip("there is no Chromium here")
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser_no_text_lies_on_another_or_leaves_the_page(browser, tmp_path, dark):
    write_pictures(tmp_path)
    slow = [s.offloaded(s.every(2), window=2).plan(6), s.h_revolve(2, 2).plan(40), s.store_all().plan(1)]
    for number, plan in enumerate([*slow, s.from_input().plan(100), s.sqrt().plan(1000)]):
        plan.draw(tmp_path / f"{number}.svg")
    compare([s.uniform(k).plan(64) for k in (1, 2, 4, 8, 16, 32)], tmp_path / "six.svg")
    for path in sorted(tmp_path.iterdir()):
        browser.open(path, width=900, dark=dark)
        assert browser.problems == [] and len(browser.requests) <= 2  # itself, and a blank page before
        found = browser.evaluate(BOXES)
        assert len(found) > 8
        for words, left, top, right, _ in found:
            assert left >= 0 and top >= 0 and right <= 900, (path.name, words)
        for (one, *a), (two, *b) in itertools.combinations(found, 2):
            apart = a[2] <= b[0] + 0.5 or b[2] <= a[0] + 0.5 or a[3] <= b[1] + 2 or b[3] <= a[1] + 2
            assert apart, (path.name, one, two)
        ground = browser.evaluate("getComputedStyle(document.querySelector('.st-ground')).fill")
        assert ground == ("rgb(18, 24, 30)" if dark else "rgb(255, 255, 255)")


# ---- Mistakes ----------------------------------------------------------------------------------------


def test_what_cannot_be_drawn_is_said(chain, tmp_path):
    plan = s.uniform(2).plan(4)
    with pytest.raises(mg.errors.ArgumentError, match=r"'plan.png' does not end in .svg"):
        plan.draw(tmp_path / "plan.png")
    with pytest.raises(mg.errors.ArgumentError, match="50,005,002 steps on 10000 layers.*at most 2,000,000"):
        s.from_input().plan(10_000).draw()
    with pytest.raises(mg.errors.ArgumentError, match="nothing ran"):
        mg.Tracer().spacetime()
    with mg.Tracer() as tracer:
        (mg.ones(3, requires_grad=True) * 2).sum().backward()
    with pytest.raises(mg.errors.ArgumentError, match="checkpoint_sequential"):
        tracer.spacetime()
    with pytest.raises(mg.errors.ArgumentError, match="two to six"):
        compare([plan])
    with pytest.raises(mg.errors.ArgumentError, match="no Tracer"):
        compare([plan, "plan"])
