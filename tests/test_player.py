"""The player: what its page shows is what the tracer counted, and a person can use it, in a real browser."""

import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, schedules
from minigrad.view import player, player_film, player_graph
from tests.browser import Browser, find_chromium
from tests.conftest import Chain

EVIL = '</script><img src=x onerror="window.broken = 1">\'"&<b>'
NAMES = ("store all", "every 4")


def film_in(path):
    """What a page was given to show."""
    return json.loads(re.search(r'<script type="application/json" id="film">(.*?)</script>', path.read_text())[1])


@pytest.fixture(scope="module")
def runs():
    many = Chain(20)
    plans = dict(zip(NAMES, (schedules.store_all(), schedules.every(4)), strict=True))
    return {name: many.run(schedule)[0] for name, schedule in plans.items()}


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory):
    """name -> page: "pair", two runs side by side; "one", a block of a transformer; "evil", names that bite."""
    folder = tmp_path_factory.mktemp("pages")
    block, x = nn.TransformerBlock(16, 2), mg.tensor(np.ones((2, 4, 16)), name="tokens")
    with mg.Tracer() as one, warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.CheckpointWarning)
        mg.checkpoint(block, x).sum().backward()
    return {
        "pair": player.write(folder / "pair.html", runs),
        "one": one.to_html(folder / "one.html"),
        "evil": player.write(folder / "evil.html", {EVIL: evil_run()}, title=EVIL),
    }


def evil_run():
    """A run in which everything that a user can name has a name that is markup."""
    x = mg.tensor(np.ones(3), requires_grad=True, name=EVIL)
    data = mg.tensor(np.ones(3), name=EVIL)
    with mg.Tracer() as tracer, warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.CheckpointWarning)
        line = mg.checkpoint(lambda t: mg.tanh(t * data) * data, x, name=EVIL)  # </script><script>window.broken = 2
        line.sum().backward()
    return tracer


# ---- What the page is given --------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [schedules.every(4), schedules.triangular(), schedules.from_input()], ids=str)
def test_each_frame_shows_the_fullest_moment_of_its_step(chain, schedule):
    tracer, _ = chain(20).run(schedule)
    frames = player_film.film(tracer, player_graph.Graph(tracer.transcript, player_film.held_data(tracer)))
    assert [frame.steps[0] for frame in frames] == list(range(1, tracer.step + 2))
    for frame in frames[:-1]:
        events = [event for event in tracer.events if max(event.step, 1) == frame.steps[0]]
        assert frame.activations == max(event.live_activations for event in events) == sum(frame.counts.values())
        assert frame.bytes == max(event.live_bytes for event in events) == sum(frame.sizes.values())
    assert (frames[-1].activations, frames[-1].bytes) == (0, tracer.live_bytes)
    assert max(frame.activations for frame in frames) == tracer.peak_activations
    assert max(frame.bytes for frame in frames) == tracer.peak_bytes


def test_there_is_no_box_for_a_parameter_and_one_for_data_that_is_held(runs):
    graph = player_graph.Graph(runs["every 4"].transcript, player_film.held_data(runs["every 4"]))
    assert [box.short for box in graph.boxes] == ["data", *map(str, range(20)), "sum"]
    assert [box.column for box in graph.boxes] == [-1, *range(21)]
    assert graph.breaks[:2] == [(0, ""), (4, "")] and len(graph.breaks) == 5


def test_branches_stand_side_by_side_and_the_order_of_columns_is_that_of_the_run():
    block, x = nn.TransformerBlock(16, 2), mg.tensor(np.ones((2, 4, 16)))
    with mg.Tracer() as tracer:
        block(x).sum().backward()
    graph = player_graph.Graph(tracer.transcript)
    places = [(box.column, box.lane) for box in graph.boxes]
    assert len(set(places)) == len(places)
    for box in graph.boxes:
        assert all(graph.boxes[source].column < box.column for source in box.inputs)
    heads = [box for box in graph.boxes if box.short == "getitem"][:3]
    assert len({box.column for box in heads}) == 1 and {box.lane for box in heads} == {0, 1, 2}


@pytest.mark.parametrize("schedule", [schedules.store_all(), schedules.sqrt()], ids=str)
def test_a_large_run_is_folded_and_its_figures_stay(chain, schedule):
    tracer, _ = chain(300).run(schedule)
    graph = player_graph.Graph(tracer.transcript, player_film.held_data(tracer), limit=40)
    frames = player_film.film(tracer, graph)
    assert graph.folded and len(graph.boxes) <= 40 and len(frames) < 130
    assert sorted(index for box in graph.boxes for index in box.values) == sorted(graph.place)
    assert max(frame.activations for frame in frames) == tracer.peak_activations
    assert player_film.as_data(frames)["replayed"][-1] == tracer.replayed_ops
    assert re.fullmatch(r"layers \d+ to \d+", graph.boxes[3].name)


def test_layers_fold_before_neighbours_do():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(6)])
    with mg.Tracer() as tracer:
        model(mg.ones(2, 4)).sum().backward()
    graph = player_graph.Graph(tracer.transcript, limit=8)
    assert [box.name for box in graph.boxes] == [f"layers {i}.0 to {i}.1" for i in range(6)] + ["1 op"]
    graph = player_graph.Graph(tracer.transcript, limit=4)
    assert len(graph.boxes) <= 4 and graph.boxes[0].name == "layers 0.0 to 1.1"


def test_a_page_asks_for_nothing_and_names_no_machine(pages):
    for page in pages.values():
        text = page.read_text()
        assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
        assert "default-src 'none'" in text and "/tests/" not in text and "/view/" not in text


def test_a_page_says_what_the_runs_show(pages, runs):
    film = film_in(pages["pair"])
    low, high = runs["every 4"].peak_activations, runs["store all"].peak_activations
    times = f"{high / low:.1f} times fewer"
    assert film["title"] == f"every 4 peaks at {low} live activations, store all at {high}: {times}"
    assert film["facts"] == f"ops replayed: store all 0, every 4 {runs['every 4'].replayed_ops}"
    for run, tracer in zip(film["runs"], runs.values(), strict=True):
        assert (run["peakActivations"], run["peakBytes"]) == (tracer.peak_activations, tracer.peak_bytes)
        assert (run["replayedOps"], run["steps"]) == (tracer.replayed_ops, tracer.step)


def test_a_vjp_stands_there_with_its_source_and_without_its_docstring(pages):
    functions = {function["name"]: function for function in film_in(pages["one"])["functions"]}
    assert functions["gelu_wrt_x"]["text"].startswith('@gelu.vjp("x")\ndef gelu_wrt_x(g')
    assert functions["gelu"]["place"].startswith("activation.py:") and '"""' not in functions["gelu"]["text"]


@pytest.mark.parametrize(
    "given", [mg.Tracer(), {}, {"a": 3}, {"a": mg.Tracer()}], ids=["nothing ran", "no run", "no tracer", "a named one"]
)
def test_nothing_to_play_is_an_error(given, tmp_path):
    with pytest.raises(mg.ArgumentError):
        player.write(tmp_path / "no.html", given)
    assert not (tmp_path / "no.html").exists()


# ---- In a browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if find_chromium() is None:
        pytest.skip("the player is tested in Chromium, which is not installed (on Debian: apt-get install chromium)")
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def shown(chromium, pages):
    """The browser, with the two runs on its page."""
    chromium.open(pages["pair"])
    yield chromium
    assert chromium.problems == []


def figures(browser):
    """For each run: (live activations, live bytes, ops replayed), as the page shows them."""
    cells = [browser.texts(f"[data-figure={name}]") for name in ("activations", "bytes", "replayed")]
    return list(zip(map(int, cells[0]), cells[1], map(int, cells[2]), strict=True))


def counted(tracer, step):
    """The same from the tracer's events."""
    events = [event for event in tracer.events if event.step == step] or [tracer.events[-1]]
    replayed = sum(event.kind == "replayed" and event.step <= step for event in tracer.events)
    size = max(event.live_bytes for event in events) if step <= tracer.step else tracer.events[-1].live_bytes
    return max(event.live_activations for event in events), mg.table.bytes_text(size), replayed


def go(browser, step):
    browser.evaluate(f"player.go({step - 1})")


@pytest.mark.parametrize("name", ["pair", "one", "evil"])
def test_it_loads_without_a_word_on_the_console_and_fetches_nothing(chromium, pages, name):
    chromium.open(pages[name])
    for key in ("p", "r", "b", "End", "Home"):
        chromium.press(key)
    assert chromium.problems == []
    assert chromium.requests == [pages[name].resolve().as_uri()]


def test_the_figures_are_the_tracers_at_every_step(shown, runs):
    last = max(tracer.step for tracer in runs.values())
    for step in (1, 2, 9, 20, 21, 22, 30, 42, 50, last, last + 1):
        go(shown, step)
        assert figures(shown) == [counted(tracer, step) for tracer in runs.values()], step
    go(shown, last + 1)
    for peak, tracer in zip(shown.texts("[data-peak=activations]"), runs.values(), strict=True):
        assert peak == f"peak {tracer.peak_activations}"


def test_as_many_boxes_are_filled_as_activations_are_live(shown):
    """In both runs, at every step."""
    wrong = shown.evaluate(
        """[...Array(player.length).keys()].filter(position => {
            player.go(position);
            return player.runs.some(run => run.frames.activations[run.frame] !==
                run.article.querySelectorAll(".s-activation, .s-boundary, .s-replayed, .s-input").length);
        })"""
    )
    assert wrong == [] and shown.evaluate("player.length") > 40


def test_scrubbing_changes_the_picture(shown):
    shown.press("Home")
    pictures, drawn = [shown.screenshot()], shown.evaluate("runs.innerHTML")
    for step in (10, 30):
        shown.evaluate(f"slider.value = {step}; slider.dispatchEvent(new Event('input', {{bubbles: true}}))")
        assert shown.text("#where").startswith(f"{step + 1} of ")
        pictures.append(shown.screenshot())
    assert len(set(pictures)) == 3
    shown.press("Home")
    assert shown.evaluate("runs.innerHTML") == drawn


def test_a_press_and_a_drag_on_the_curve_move_the_time_line(shown):
    left, top, width, height = shown.evaluate(
        "(({left, top, width, height}) => [left, top, width, height])"
        "(document.querySelector('.curve svg').getBoundingClientRect())"
    )
    shown.click(left + width / 2, top + height / 2)
    middle = shown.evaluate("player.position")
    shown.click(left + width / 2, top + height / 2, to=(left + width * 0.8, top + height / 2))
    assert 0.3 < middle / shown.evaluate("player.length") < 0.6 < shown.evaluate("player.position / player.length")


def test_the_keys_do_what_the_buttons_say(shown, runs):
    kinds = film_in_browser(shown, "every 4")["frames"]["kind"]
    replays = [i for i, kind in enumerate(kinds) if kind == "replay" and kinds[i - 1] != "replay"]
    where = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageDown", "PageUp", "End", "Home", "r", "r", "r", "R"):
        shown.press(key)
        where.append(shown.evaluate("player.position"))
    end = max(tracer.step for tracer in runs.values())
    assert where == [1, 2, 1, 11, 1, end, 0, *replays[:3], replays[1]]
    seen = set()
    for _ in range(2):
        shown.press("p")
        now = {name: row[0] for name, row in zip(NAMES, figures(shown), strict=True)}
        seen.update(name for name in NAMES if now[name] == runs[name].peak_activations)
    assert seen == set(NAMES)


def film_in_browser(browser, name):
    return next(run for run in browser.evaluate("film.runs") if run["name"] == name)


def test_all_of_it_works_from_the_keyboard_alone(shown):
    names = []
    for _ in range(40):
        shown.press("Tab")
        names.append(shown.evaluate("(document.activeElement.textContent || document.activeElement.id).trim()"))
    for word in ("start", "replay", "step", "play", "peak", "end", "slider"):
        assert any(word in name for name in names), word
    shown.evaluate("document.querySelector('[data-go=end]').focus()")
    shown.press(" ")
    assert shown.evaluate("player.position === player.length - 1 && player.timer === null")
    assert shown.evaluate("document.activeElement.matches(':focus-visible')")
    assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_screen_reader_is_told_what_happens(shown):
    shown.press("Home", "ArrowRight")
    said = shown.text("[role=status][aria-live=polite]")
    assert said.startswith("store all: Forward: layer 1 (matmul) runs. The tape keeps: layer 0. Live activations: 2.")
    assert "every 4: Forward: layer 1 (matmul) runs." in said
    assert shown.attribute("#slider", "aria-valuetext").startswith("step 2 of 54. store all: Forward")
    assert shown.evaluate("slider.labels[0].textContent").startswith("step")
    assert "Peak: live activations, 20" in shown.attribute(".curve svg", "aria-label")
    assert "layer 1 (matmul) runs" in shown.attribute(".graph svg", "aria-label")
    shown.evaluate("player.play(); player.go(20)")
    assert shown.text("#announcer") == said  # silent while it plays
    shown.press(" ")
    assert shown.text("#announcer") != said


def test_a_step_says_whose_turn_it_is_and_shows_the_line_and_the_vjp(shown, runs):
    go(shown, 24)
    store_all, every_4 = shown.texts(".sentence")
    vjps = "matmul_wrt_a and matmul_wrt_b"
    assert store_all == f"Backward: layer 18 (matmul) is differentiated, by {vjps}. Then let go: layer 18."
    assert shown.texts(".phase") == ["backward", "backward"] and "Backward: layer 18" in every_4
    assert shown.texts(".yours")[0] == "return h @ self.weight"
    assert "def matmul_wrt_a(g" in shown.texts(".engine")[0]
    shown.press("r")
    assert shown.texts(".phase") == ["backward", "replay"]
    assert shown.texts(".sentence")[1].startswith("Replay: layer 12 (matmul) runs again; its value had been dropped.")
    assert "def matmul(a, b)" in shown.texts(".engine")[1]
    shown.press("End")
    assert shown.texts(".phase") == ["finished", "finished"]
    assert shown.texts(".sentence")[0] == "The run is over. Live activations: none; at the peak there were 20."


def test_two_runs_stand_side_by_side_on_one_time_line(shown, runs):
    left, right = shown.evaluate("player.runs.map(run => run.article.getBoundingClientRect().toJSON())")
    assert left["top"] == right["top"] and left["right"] < right["left"]
    assert shown.texts("h2")[:2] == list(NAMES)
    go(shown, runs["store all"].step + 3)
    assert shown.texts(".phase")[0] == "finished" and shown.texts(".phase")[1] in ("backward", "replay")
    rows = shown.evaluate("player.runs.map(run => run.at.slice(1).map(place => place.row))")
    assert rows[0] == rows[1] and rows[0] == sorted(rows[0])  # the same boxes in the same rows


def test_it_plays_and_pauses_and_stops_at_the_end(shown):
    shown.press("End", "ArrowLeft", "ArrowLeft", " ")
    assert shown.text("#play span") == "pause"
    shown.wait("player.timer === null")
    assert shown.evaluate("player.position === player.length - 1") and shown.text("#play span") == "play"


def test_who_wants_no_motion_gets_a_calmer_play(chromium, pages):
    delays = []
    for calm in (False, True):
        chromium.open(pages["pair"], calm=calm)
        chromium.evaluate("window.setInterval = (what, delay) => { window.delay = delay; return 1; }")
        chromium.evaluate("player.length = 1000; player.play()")
        delays.append(chromium.evaluate("window.delay"))
    assert delays[0] < 50 and delays[1] >= 250
    assert chromium.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("name", ["pair", "one", "evil"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(chromium, pages, name):
    chromium.open(pages[name], width=390, height=844, touch=True)
    for key in ("Home", "p", "r", "b", "End"):
        chromium.press(key)
        assert chromium.evaluate("document.documentElement.scrollWidth") == 390
        outside = chromium.evaluate(
            "[...document.querySelectorAll('button, input, h1, article, pre, .sentence, svg rect')]"
            ".filter(e => e.closest('.unseen') === null && e.getBoundingClientRect().width > 0)"
            ".filter(e => e.getBoundingClientRect().right > 390 || e.getBoundingClientRect().left < 0).length"
        )
        assert outside == 0
    heights = chromium.evaluate("[...document.querySelectorAll('button')].map(e => e.getBoundingClientRect().height)")
    assert min(heights) >= 38  # for a thumb
    assert chromium.evaluate("getComputedStyle(document.querySelector('#controls')).position") == "sticky"


def test_a_resized_window_is_laid_out_again(shown):
    before = shown.evaluate("player.runs[0].find('.graph svg').getAttribute('width')")
    shown.command("Emulation.setDeviceMetricsOverride", width=500, height=800, deviceScaleFactor=1, mobile=False)
    shown.wait(f"player.runs[0].find('.graph svg').getAttribute('width') !== '{before}'")
    assert shown.evaluate("document.documentElement.scrollWidth") == 500


def test_dark_and_light_follow_the_reader_and_both_can_be_read(chromium, pages):
    for dark in (False, True):
        chromium.open(pages["one"], dark=dark)
        go(chromium, 30)
        card = chromium.evaluate("getComputedStyle(document.querySelector('article')).backgroundColor")
        for selector in (".sentence", "h3", "figcaption", ".figures small"):
            text = chromium.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
            assert contrast(text, card) >= 4.5, (selector, dark)
        hatch = chromium.evaluate("getComputedStyle(document.querySelector('#hatch .role-replayed')).fill")
        for state in chromium.evaluate("STATES"):
            look = look_of(chromium, state)
            ground = {"none": card}.get(look["fill"], hatch if look["fill"].startswith("url") else look["fill"])
            assert contrast(look["text"], ground) >= 4.5, (state, dark)


def contrast(a, b):
    """The ratio of the luminances of two colours "rgb(…)", as WCAG defines it."""
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = np.array([float(part) for part in re.findall(r"[\d.]+", colour)[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_no_state_is_told_by_colour_alone(shown):
    """Two states never differ in their filling only: also in the line, its dashes, the corners or a pattern."""
    paper = shown.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    looks = {}
    for state in shown.evaluate("STATES"):
        look = look_of(shown, state)
        filling = "hollow" if look["fill"] in ("none", paper) else "hatched" if "url" in look["fill"] else "filled"
        looks[state] = filling, look["dashes"], look["width"], look["corner"]
    assert len(set(looks.values())) == len(looks) == 7, looks


def look_of(browser, state):
    """How a box in this state looks."""
    drawing = """
        const graph = document.querySelector(".graph svg"), data = state === "input" ? "data" : "";
        graph.insertAdjacentHTML("beforeend", `<g class="box s-${state} ${data}"><rect/><text>x</text></g>`);
        const [rect, text] = graph.lastElementChild.children, look = getComputedStyle(rect);
        return {fill: look.fill, dashes: look.strokeDasharray, width: look.strokeWidth, corner: look.rx,
                text: getComputedStyle(text).fill};
    """
    return browser.evaluate(f"(state => {{{drawing}}})({json.dumps(state)})")


def test_names_that_are_markup_are_shown_as_text(chromium, pages):
    chromium.open(pages["evil"])
    assert chromium.text("h1") == chromium.text("h2") == chromium.evaluate("document.title") == EVIL
    titles = []
    for key in ("Home", "End", "p", "r", "b"):
        chromium.press(key)
        titles += chromium.texts(".graph title")
    assert any(EVIL in title for title in titles)
    assert EVIL in " ".join(chromium.texts(".box text") + titles)
    go(chromium, 1)
    assert "</script><script>window.broken = 2" in chromium.text(".yours")
    assert chromium.evaluate("window.broken === undefined && document.images.length === 0")
    assert chromium.problems == []


def test_a_thousand_boxes_stay_smooth(chromium, chain, tmp_path):
    tracer, _ = chain(1000).run(schedules.sqrt())
    page = tracer.to_html(tmp_path / "large.html")
    assert page.stat().st_size < 1_000_000
    chromium.open(page)
    assert chromium.evaluate("player.runs[0].boxes.length") == 1002
    milliseconds = chromium.evaluate(
        "(() => { const start = performance.now(); for (let i = 0; i < 300; i++) player.go(1000 + i);"
        "return (performance.now() - start) / 300; })()"
    )
    assert milliseconds < 10  # of the 16 that a frame of the screen lasts; 0.5 on a laptop
    assert chromium.problems == []


# ---- python -m minigrad play -------------------------------------------------------------------------


def play(folder, text, *options, arguments=()):
    """The finished process of playing a script with this text."""
    (folder / "script.py").write_text(text)
    command = [sys.executable, "-W", "error", "-m", "minigrad", "play", *options, "script.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


SCRIPT = """
import sys
import minigrad as mg
from minigrad import nn
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)])
model[0].weight.assign_(model[0].weight * 0.5)
for schedule in (1, 3):
    mg.checkpoint_sequential(model, schedule, mg.ones(2, 4)).sum().backward()
print("done", sys.argv[1:])
"""


def test_a_script_is_played_and_told_where_the_page_is(tmp_path):
    process = play(tmp_path, SCRIPT, arguments=("--", "a", "--out"))
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines() == [
        "done ['a', '--out']",
        "one pass: 14 steps; at most 6 live activations; 0 ops replayed",
        "Open out/script.html in a browser.",
    ]
    (run,) = film_in(tmp_path / "out" / "script.html")["runs"]
    assert run["peakActivations"] == 6 and [box["op"] for box in run["graph"]["boxes"]] == ["", *["linear"] * 6, "sum"]


def test_two_passes_stand_side_by_side(tmp_path):
    process = play(tmp_path, SCRIPT, "--passes", "2", "--out", "both.html")
    assert "pass 2: 16 steps; at most 4 live activations; 2 ops replayed" in process.stdout
    film = film_in(tmp_path / "both.html")
    assert [(run["name"], run["peakActivations"]) for run in film["runs"]] == [("pass 1", 6), ("pass 2", 4)]
    assert {"name": "script.py:8", "text": SCRIPT.splitlines()[7].strip()} in film["places"]


def test_an_error_in_the_script_has_the_users_own_traceback_and_what_ran_is_played(tmp_path):
    text = SCRIPT + "mg.ones(3) @ mg.ones(4)\n"
    process = play(tmp_path, text)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == plain.returncode == 1
    assert process.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1] and "script.py" in process.stderr
    assert "minigrad/play.py" not in process.stderr and "minigrad/step.py" not in process.stderr
    assert "Open out/script.html" in process.stdout


def test_the_scripts_own_exit_status_is_kept(tmp_path):
    process = play(tmp_path, SCRIPT + "sys.exit('enough')\n")
    assert (process.returncode, process.stderr) == (1, "enough\n") and "Open" in process.stdout
    assert play(tmp_path, SCRIPT + "sys.exit()\n").returncode == 0


def test_a_script_without_a_gradient_is_told(tmp_path):
    process = play(tmp_path, "import minigrad as mg\nprint(mg.ones(2) + 1)\n")
    assert process.returncode == 1 and "nothing to play" in process.stdout
    assert play(tmp_path, "", "--passes", "0").returncode == 2
