"""Charts in text, for a terminal: the curve of a run, and bars for peaks.

They take at most 100 columns. Blocks of eighths make them fine; with `ascii` they are drawn with signs that any
terminal has.
"""

import sys
import textwrap

from ..errors import ArgumentError
from ..schedules.schedule import whole_number
from ..table import WIDTH
from .columns import check, columns, folded, highest
from .findings import check_runs, measure, run_facts, run_title, runs_title
from .sweeps import best_segments, measured_points, plans_of_segments, point_of, spread, sweep_facts, sweep_title

LYING = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")  # growing to the right, by eighths of a column
STANDING = " ▁▂▃▄▅▆▇█"  # growing upwards, by eighths of a line
PHASES = {"forward": "f", "replay": "r", "backward": "b"}
LEAST_WIDTH, HEIGHT, WIDEST_STEP, MOST_ROWS = 40, 12, 4, 24


class Chart(str):
    """A chart in text: print it."""

    def __repr__(self):
        return f"<chart of {len(self.splitlines())} lines; print() shows it>"


def chart(rows, title="", note="", width=WIDTH, ascii=False) -> Chart:
    """Bars below one another.

    rows         (label, value, words behind the bar); values are from 0 on
    title, note  text above and below
    width        columns, at least 40
    ascii        draw with signs of ASCII alone

    >>> print(chart([("store all", 100, "100"), ("sqrt", 19, "19"), ("nothing", 0, "0")], width=40))
    store all ┃█████████████████████████ 100
    sqrt      ┃████▊ 19
    nothing   ┃ 0
    """
    check_width(width)
    rows = [(" ".join(str(label).split()), value, str(words)) for label, value, words in rows]
    if not rows:
        raise ArgumentError("a chart needs at least one row: (label, value, words behind the bar)")
    most = max(value for _, value, _ in rows)
    behind = min(max(len(words) for *_, words in rows), width // 2)
    indent = min(max(len(label) for label, *_ in rows), width - behind - 15)
    room = width - indent - behind - 3
    lines = [
        f"{clipped(label, indent):{indent}} {edge(ascii)}{bar(value, most, room, ascii)} {clipped(words, behind)}"
        for label, value, words in rows
    ]
    return put_together(title, lines, note, width, ascii)


def bar(value, most, room, ascii=False) -> str:
    """A bar that takes `room` columns if the value is the most that there is, and is never longer than that.

    >>> bar(5, 10, 5), bar(5, 10, 6, ascii=True)
    ('██▌', '###')
    """
    share = min(max(value / most, 0), 1) if most else 0
    if ascii:
        return "#" * round(share * room)
    whole, eighths = divmod(round(share * room * 8), 8)
    return "█" * whole + LYING[eighths]


# ---- Runs --------------------------------------------------------------------------------------------


def run(tracer, what="bytes", note="", width=WIDTH, height=HEIGHT, ascii=False) -> Chart:
    """What was alive in one run, step by step, with the phases below: `curves.plot_run` in text.

    what    "bytes": all live bytes; "activations": how many are live
    note    text below it
    width   columns, at least 40; of more steps than there is room for, neighbours become the highest of them
    height  lines of the curve, at least 2
    ascii   draw with signs of ASCII alone
    """
    check(tracer, what)
    check_width(width)
    found = columns(tracer, what)
    peak = highest(found)
    _, _, say = measure(what, peak.total)
    ticks = {height - 1: say(peak.total), 0: "0"}
    indent = max(map(len, ticks.values()))
    shown = folded(found, width - indent - 2)
    each = min(WIDEST_STEP, (width - indent - 2) // len(shown))  # columns for a step
    lines = []
    for level in reversed(range(max(height, 2))):
        row = "".join(each * standing(column.total, peak.total, height, level, ascii) for column in shown)
        lines.append(f"{ticks.get(level, ''):>{indent}} {edge(ascii)}{row}")
    lines.append(" " * (indent + 2) + "".join(each * PHASES[column.phase] for column in shown))
    folds = "" if len(shown) == len(found) else f" in {len(shown)} columns, each as high as its highest step"
    legend = f"{len(found)} steps{folds}; f: forward, r: replay, b: backward"
    facts = run_facts(tracer, peak, what)
    return put_together(run_title(peak, what), lines, "\n".join([legend, facts, note]), width, ascii)


def standing(value, most, height, level, ascii) -> str:
    """The sign on one line of a curve of `height` lines; level 0 is the lowest."""
    filled = min(max(value * height / most - level, 0), 1) if most else 0
    if ascii:
        return "#" if filled >= 0.5 else " "
    return STANDING[round(8 * filled)]


def runs(tracers, what="activations", note="", width=WIDTH, ascii=False) -> Chart:
    """The peaks of several runs, and what they replayed: `curves.plot_runs` in text.

    tracers  name -> Tracer
    The others are those of `run`.
    """
    check_runs(tracers, what)
    peaks = {name: highest(columns(tracer, what)).total for name, tracer in tracers.items()}
    _, _, say = measure(what, max(peaks.values()))
    rows = []
    for name, tracer in tracers.items():
        rows.append((name, peaks[name], f"{say(peaks[name])}, {tracer.replayed_ops} replayed"))
    return chart(rows, runs_title(peaks, what, say), note, width, ascii)


# ---- Plans -------------------------------------------------------------------------------------------


def sweep(layers=100, measured=None, note="", width=WIDTH, ascii=False) -> Chart:
    """The peak of `uniform(k)` for numbers of segments k: `curves.sweep` in text, for at most 24 of them.

    layers    how many the chain has
    measured  k -> a Tracer, or (live activations at the peak, layers replayed): only these k are shown, as measured
    The others are those of `run`.
    """
    points = measured_points(measured)
    few = points or spread(1, whole_number(layers, "the number of layers"), MOST_ROWS - 1)
    plans = plans_of_segments(layers, few)
    best = best_segments(plans)
    rows = []
    for k in sorted({best, *few} if not points else points):
        peak, replays = points.get(k) or point_of(plans[k])
        rows.append((f"k = {k}", peak, f"{peak}, {replays} replayed{'  <- least' if k == best else ''}"))
    return chart(rows, sweep_title(plans), "\n".join([sweep_facts(plans, points, mark=""), note]), width, ascii)


# ---- Text --------------------------------------------------------------------------------------------


def put_together(title, lines, note, width, ascii) -> Chart:
    """The title, the lines of the chart, and the note, whose lines are broken at the width."""
    above = textwrap.wrap(title, width)
    below = [part for line in note.splitlines() for part in textwrap.wrap(line, width)]
    text = "\n".join([*above, *[line.rstrip() for line in lines], *below])
    return Chart(text.encode("ascii", "replace").decode() if ascii else text)


def edge(ascii) -> str:
    return "|" if ascii else "┃"


def clipped(text, width) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def check_width(width):
    if isinstance(width, bool) or not isinstance(width, int) or width < LEAST_WIDTH:
        raise ArgumentError(f"the width of a chart is a whole number of columns from {LEAST_WIDTH}, not {width!r:.40}")


def terminal_has_blocks() -> bool:
    """Whether what standard output is encoded in has signs for the charts."""
    try:
        ("┃" + STANDING + "".join(LYING)).encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True
