"""Curves of memory, drawn by matplotlib: of runs, from what a tracer wrote down, and of plans (sweeps.py, tradeoff.py).

A tracer's events carry everything: what came and went of each role, step by step, and in which phase (columns.py).
Colours, pages and labels are canvas.py's. Where there is no matplotlib, bars.py has the same in text.
"""

import itertools
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, MinigradError
from . import bars, canvas
from .canvas import PHASE_COLOURS, ROLE_COLOURS, ROLE_WORDS
from .columns import check, columns, forward_steps, highest, stretches
from .findings import check_runs, measure, run_facts, run_title, runs_facts, runs_title
from .placing import Label, place_labels
from .sweeps import growth, sweep
from .tradeoff import pareto

__all__ = ["plot_run", "plot_runs", "plot_or_print", "sweep", "pareto", "growth"]

STRIP = 0.945  # where the strip of phases begins, as a share of the height
STEPS = "steps: ops run, ops replayed, nodes swept"


def plot_run(tracer, path=None, hide=(), what="bytes"):
    """What was alive in one run, step by step and stacked by role, with its phases; a matplotlib Figure.

    path  where to save it too: .svg, .png or .pdf
    hide  roles to leave out, such as ("parameter",) when parameters dwarf the rest
    what  "bytes": all live bytes; "activations": how many are live
    """
    check(tracer, what)
    hide = roles_to_hide(hide)
    found = columns(tracer, what, hide)
    peak = highest(found)
    unit, axis_words, say = measure(what, peak.total)
    figure, (axes,) = canvas.page(run_title(peak, what), run_facts(tracer, peak, what, hide))
    axes.set_xlim(found[0].step - 0.5, found[-1].step + 0.5)
    axes.set_ylim(0, 1.2 * max(peak.total, 1) / unit)
    axes.set_xlabel(STEPS)
    axes.set_ylabel(axis_words)
    whole_numbers(axes, what)
    phases = mark_phases(axes, found)
    roles = stack(axes, found, unit)
    axes.plot([peak.step], [peak.total / unit], "o", color=canvas.INK, markersize=5, zorder=5, gid="peak")
    outline = as_steps(np.array([(column.step, column.total / unit) for column in found], float))
    label = Label([(peak.step, peak.total / unit)], f"peak {say(peak.total)}", canvas.INK, 11)
    place_labels(axes, [label], [outline], ceiling=STRIP)
    left = canvas.legend(figure, "left", [(ROLE_COLOURS[role], ROLE_WORDS[role]) for role in reversed(roles)])
    right = canvas.legend(figure, "right", [(PHASE_COLOURS[phase], phase) for phase in phases])
    canvas.make_room(figure, left, right)
    return canvas.saved(figure, path)


def plot_runs(runs, path=None, what="activations", relative=False):
    """Several runs over each other, one line each, with their peaks, and below them their phases; a matplotlib Figure.

    runs      name -> Tracer, in the order of the colours
    path      where to save it too: .svg, .png or .pdf
    what      "activations": how many are live; "bytes": all live bytes
    relative  draw all runs equally long, each from its beginning, 0, to its end, 1
    """
    check_runs(runs, what)
    found = {name: columns(tracer, what) for name, tracer in runs.items()}
    peaks = {name: highest(run).total for name, run in found.items()}
    unit, axis_words, say = measure(what, max(peaks.values()))
    share = min(0.045 * len(runs), 0.5)
    figure, (axes, strips) = canvas.page(runs_title(peaks, what, say), runs_facts(runs), heights=(1 - share, share))
    axes.set_xlim(0, 1 if relative else max(run[-1].step for run in found.values()) + 1)
    axes.set_ylim(0, 1.14 * max(*peaks.values(), 1) / unit)
    axes.set_ylabel(axis_words)
    whole_numbers(axes, what)
    axes.grid(axis="y", color=canvas.PALE, linewidth=0.8)
    axes.tick_params(labelbottom=False)
    if not relative:
        mark_forward(axes, runs)
    lines, labels = [], []
    for (name, tracer), (colour, dash) in zip(runs.items(), styles(), strict=False):
        line = curve_of(tracer, found[name], what, unit, relative)
        axes.plot(*line.T, color=colour, linestyle=dash, linewidth=1.8, drawstyle="steps-mid", label=name, gid=name)
        lines.append(as_steps(line))
        tops = line[line[:, 1] == line[:, 1].max()]
        labels.append(Label([tuple(top) for top in tops], f"{name}: {say(peaks[name])}", colour, 11))
    place_labels(axes, labels, lines)
    for label in labels:
        axes.plot(*label.point, "o", color=label.colour, markersize=5, gid="peak")
    strips_of_phases(strips, found, relative)
    strips.set_xlabel("share of the run" if relative else STEPS)
    canvas.legend(figure, "right", [(colour, phase) for phase, colour in PHASE_COLOURS.items()])
    return canvas.saved(figure, path)


def plot_or_print(tracer, path=None, what="bytes"):
    """What Tracer.plot does: `plot_run`, or without matplotlib a chart in text, which is printed.

    Returns the path if there is one, otherwise the Figure, or the chart. A path without matplotlib is a MinigradError,
    after the chart.
    """
    check(tracer, what)
    try:
        canvas.check_matplotlib()
    except MinigradError as error:
        chart = bars.run(tracer, what, note=str(error), ascii=not bars.terminal_has_blocks())
        print(chart)
        if path is not None:
            raise
        return chart
    figure = plot_run(tracer, path, what=what)
    return figure if path is None else Path(path)


def roles_to_hide(hide) -> tuple:
    """The roles, or the one role, to leave out; ArgumentError for what is no role."""
    roles = (hide,) if isinstance(hide, str) else tuple(hide)
    unknown = [role for role in roles if role not in ROLE_COLOURS]
    if unknown:
        raise ArgumentError(f"there is no role {unknown[0]!r:.40} to hide; there are {', '.join(ROLE_COLOURS)}")
    return roles


def whole_numbers(axes, what):
    """Let the vertical axis have no fractions of activations."""
    if what == "activations":
        axes.yaxis.get_major_locator().set_params(integer=True)


# ---- One run -----------------------------------------------------------------------------------------


def mark_phases(axes, found):
    """A strip of phases above the curve, and replays shaded below it; returns the phases too short for their name."""
    across, unnamed = axes.get_xaxis_transform(), []
    for phase, spans in stretches(found).items():
        colour = PHASE_COLOURS[phase]
        strip = axes.broken_barh(spans, (STRIP, 1 - STRIP), transform=across, facecolor=colour, linewidth=0)
        strip.set_gid(f"phase-{phase}")
        if phase == "replay":
            axes.broken_barh(spans, (0, STRIP), transform=across, facecolor=colour, alpha=0.09, linewidth=0, zorder=0)
        start, length = max(spans, key=length_of)
        text = axes.text(
            start + length / 2, (1 + STRIP) / 2 - 0.003, phase, transform=across, ha="center", va="center",
            fontsize=9.5, color=ink_on(phase),
        )  # fmt: skip
        left, _, right, _ = canvas.box_of(text, axes.figure)
        (begin, _), (end, _) = canvas.pixels(axes, [(start, 0), (start + length, 0)])
        if right - left + 2 * canvas.GAP > end - begin:
            text.remove()
            unnamed.append(phase)
    return unnamed


def length_of(span):
    return span[1]


def ink_on(name):
    """The colour of letters on the area of a role or a phase."""
    return "white" if name in canvas.ON_DARK else canvas.INK


def stack(axes, found, unit):
    """Draw the roles on top of each other, and write their names into them; returns those too thin for a name."""
    steps = np.array([column.step for column in found], float)
    around = np.concatenate([steps[:1] - 0.5, steps, steps[-1:] + 0.5])
    roles = [role for role in ROLE_COLOURS if any(role in column.parts for column in found)]
    bottom, unnamed = np.zeros(len(found)), []
    edges = {}
    for role in roles:
        top = bottom + np.array([column.parts.get(role, 0) for column in found]) / unit
        low, high = np.pad(bottom, 1, "edge"), np.pad(top, 1, "edge")
        there = high > low
        there[:-1] |= (high > low)[1:]  # and the steps beside it, or half of its first and last one would be missing
        there[1:] |= (high > low)[:-1]
        area = axes.fill_between(around, low, high, there, color=ROLE_COLOURS[role], step="mid", linewidth=0.4)
        area.set_gid(f"role-{role}")
        edges[role], bottom = (bottom, top), top
    axes.plot(around, np.pad(bottom, 1, "edge"), color=canvas.INK, linewidth=0.9, drawstyle="steps-mid", gid="total")
    for role, (bottom, top) in edges.items():
        if not write_into(axes, role, steps, bottom, top):
            unnamed.append(role)
    return unnamed


def write_into(axes, role, steps, bottom, top):
    """Write a role's name into its area, where there is most room for it; returns whether there is enough."""
    text = axes.text(steps[0], 0, ROLE_WORDS[role], fontsize=10.5, ha="center", va="center", color=ink_on(role))
    left, low, right, high = canvas.box_of(text, axes.figure)
    corners = [(left - canvas.GAP, low - canvas.GAP), (right + canvas.GAP, high + canvas.GAP)]
    width, height = np.diff(axes.transData.inverted().transform(corners), axis=0)[0]
    count = int(width / (steps[-1] - steps[0] + 1) * len(steps)) + 2  # of columns that the name touches
    if count <= len(steps):
        floors = np.lib.stride_tricks.sliding_window_view(bottom, count).max(axis=1)
        ceilings = np.lib.stride_tricks.sliding_window_view(top, count).min(axis=1)
        best = int((ceilings - floors).argmax())
        if ceilings[best] - floors[best] >= height:
            text.set_position(((steps[best] + steps[best + count - 1]) / 2, (ceilings[best] + floors[best]) / 2))
            return True
    text.remove()
    return False


# ---- Several runs ------------------------------------------------------------------------------------


def styles():
    """Colours and kinds of line, over and over."""
    return itertools.cycle(canvas.STYLES)


def curve_of(tracer, found, what, unit, relative):
    """The points of one run's line: each step at its highest, and then what is left."""
    end = found[-1].step + 1
    points = [(column.step, column.total) for column in found] + [(end, getattr(tracer.events[-1], f"live_{what}"))]
    return np.array(points, float) / (end if relative else 1, unit)


def as_steps(points):
    """The corners of a line of steps, with each point in the middle of its step."""
    middles = (points[1:, 0] + points[:-1, 0]) / 2
    x = np.repeat(np.concatenate([points[:1, 0], middles, points[-1:, 0]]), 2)[1:-1]
    return np.column_stack([x, np.repeat(points[:, 1], 2)])


def mark_forward(axes, runs):
    """A line where the forward ends, if that is the same step in all runs."""
    ends = {forward_steps(tracer) for tracer in runs.values()}
    if len(ends) == 1:
        end, top = ends.pop() + 0.5, axes.get_ylim()[1]
        axes.axvline(end, color=canvas.GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=0)
        axes.annotate("forward\u00a0\u00a0", (end, top), fontsize=9.5, color=canvas.GREY, ha="right", va="top")
        axes.annotate("\u00a0\u00a0backward", (end, top), fontsize=9.5, color=canvas.GREY, ha="left", va="top")


def strips_of_phases(axes, found, relative):
    """For each run a strip that shows in which phase it was, with a sample of its line at the left."""
    for row, (run, (colour, dash)) in enumerate(zip(found.values(), styles(), strict=False)):
        unit = run[-1].step + 1 if relative else 1
        for phase, spans in stretches(run).items():
            spans = [(start / unit, length / unit) for start, length in spans]
            strip = axes.broken_barh(spans, (row - 0.36, 0.72), facecolor=PHASE_COLOURS[phase], linewidth=0)
            strip.set_gid(f"phase-{phase}-{row}")
        axes.plot(
            (-0.055, -0.012), (row, row), color=colour, linestyle=dash, linewidth=1.8, clip_on=False,
            transform=axes.get_yaxis_transform(), gid=f"sample-{row}",
        )  # fmt: skip
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
