"""Pictures of plans: how many segments are best, and how memory grows with depth.

Plans are counted on the reference chain, where each layer keeps its input; nothing is run. Points that were measured
can be drawn over them, as rings, and the text below the title says whether they lie where they were planned.
"""

import math
from numbers import Real

import numpy as np

from .. import schedules as all_schedules
from ..errors import ArgumentError, BudgetError
from ..schedules.schedule import whole_number
from . import canvas
from .canvas import ROLE_COLOURS
from .placing import Label, place_labels

MOST_POINTS = 200  # plans that are counted for one line
LENGTHS = (10, 20, 50, 100, 200, 500, 1000)


# ---- How many segments -------------------------------------------------------------------------------


def sweep(layers=100, path=None, measured=None):
    """The peak and the replays of `uniform(k)` for each number of segments k; a matplotlib Figure.

    layers    how many the chain has
    path      where to save it too: .svg, .png or .pdf
    measured  k -> a Tracer, or (live activations at the peak, layers replayed)

    The peak is k boundaries and L/k - 1 activations in one segment; their sum is least where k is √L.
    """
    points = measured_points(measured)
    plans = plans_of_segments(layers, points)
    best = best_segments(plans)
    figure, panels = canvas.page(sweep_title(plans), sweep_facts(plans, points), heights=(0.7, 0.3))
    ks = list(plans)
    panels[0].set_xlim(0.93, 1.07 * max(ks))
    canvas.logarithmic(panels[0].xaxis)
    peaks, replays = [plan.peak for plan in plans.values()], [plan.extra_forwards for plan in plans.values()]
    rings = [[(k, point[i]) for k, point in points.items()] for i in (0, 1)]
    axes, below = panels
    draw_values(axes, ks, peaks, rings[0], best, f"{plans[best].peak} at k = {best}", is_filled=True)
    draw_values(below, ks, replays, rings[1], best, f"{plans[best].extra_forwards} layers")
    canvas.legend(figure, "left", fill_parts(axes, ks, peaks))
    axes.set_ylabel("live activations")
    axes.tick_params(labelbottom=False)
    below.set_ylabel("replayed")
    below.set_xlabel("number of segments k")
    return canvas.saved(figure, path)


def draw_values(axes, ks, values, rings, best, words, is_filled=False):
    """One panel: the planned line, measured rings, and the best point with its words."""
    height = values[ks.index(best)]
    axes.set_ylim(0, 1.2 * max([*values, *[ring for _, ring in rings], 1]))
    axes.plot(ks, values, color=canvas.INK, linewidth=1.4, gid="planned")
    rings_drawn = axes.plot(*np.reshape(rings, (-1, 2)).T, **canvas.RING, gid="measured")
    rings_drawn[0].set_markerfacecolor("white")
    axes.plot([best], [height], "o", color=canvas.INK, markersize=5, zorder=5, gid="best")
    axes.axvline(best, color=canvas.GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1.5)
    lines = [np.column_stack([ks, share * np.array(values)]) for share in np.linspace(0 if is_filled else 1, 1, 40)]
    lines.append([(best, 0), (best, axes.get_ylim()[1])])
    place_labels(axes, [Label([(best, height)], words, canvas.INK, 11)], lines, rings)


def plans_of_segments(layers, ks=()) -> dict:
    """k -> the plan of uniform(k), for each k up to `layers`, or for many: all of them around √L, and all of `ks`."""
    layers = whole_number(layers, "the number of layers")
    root = math.isqrt(layers)
    around = range(max(1, root // 2), min(layers, 2 * root + 2) + 1)
    return {k: all_schedules.uniform(k).plan(layers) for k in sorted({*spread(1, layers), *around, *ks})}


def spread(first, last, most=MOST_POINTS) -> list:
    """Whole numbers from the first to the last: all of them, or at most so many, each as much larger by a factor."""
    if last - first < most:
        return list(range(first, last + 1))
    return sorted({round(number) for number in np.geomspace(first, last, most)})


def best_segments(plans) -> int:
    """The k with the least peak; of several the one with the fewest replays, then the one nearest to √L."""
    root = math.sqrt(layers_of(plans))

    def badness(k):
        return plans[k].peak, plans[k].extra_forwards, abs(math.log(k / root))

    return min(plans, key=badness)


def layers_of(plans):
    return next(iter(plans.values())).layers


def fill_parts(axes, ks, peaks):
    """Fill the area below the peaks with what they are made of; returns colours and words for it."""
    boundaries = np.minimum(ks, peaks)
    parts = (
        ("boundary", 0 * boundaries, boundaries, "k boundaries"),
        ("replayed", boundaries, peaks, "and L/k - 1 activations in one segment"),
    )
    for role, bottom, top, _ in parts:
        area = axes.fill_between(ks, bottom, top, color=ROLE_COLOURS[role], linewidth=0, zorder=1)
        area.set_gid(f"role-{role}")
    return [(ROLE_COLOURS[role], words) for role, *_, words in parts]


def sweep_title(plans):
    """The finding: the best number of segments."""
    best, layers = best_segments(plans), layers_of(plans)
    if plans[best].peak == layers:
        return f"No number of segments helps with so few layers as {layers}"
    return f"{best} segments need the least: {plans[best].peak} live activations instead of {layers}"


def sweep_facts(plans, points, mark="rings: "):
    """The line below: the price, who else is as good, and whether measured points, drawn as `mark`, are as planned."""
    best = best_segments(plans)
    plan = plans[best]
    facts = [f"for {plan.extra_forwards} layers replayed, {plan.time_factor - 1:.0%} more time"]
    equal = [k for k in plans if plans[k].peak == plan.peak]
    if len(equal) > 1:
        gaps = "" if equal[-1] - equal[0] < len(equal) else f"{len(equal)} numbers from "
        facts.append(f"{gaps}{equal[0]} to {equal[-1]} segments peak at {plan.peak} too")
    planned = {k: (plans[k].peak, plans[k].extra_forwards) for k in points}
    return "; ".join([*facts, *compared(points, planned, mark)])


# ---- How memory grows --------------------------------------------------------------------------------


def growth(lengths=LENGTHS, schedules=None, path=None, measured=None):
    """The peak against the number of layers, both logarithmic, with the slope of each line; a matplotlib Figure.

    lengths    numbers of layers, at least two
    schedules  name -> Schedule; None: storing all, √L, triangular, bisection and from_input
    path       where to save it too: .svg, .png or .pdf
    measured   name -> {layers: a Tracer, or the peak}; names that are no schedule's make lines of their own

    A slope p says that the peak grows as L^p: 1 is in proportion, 0.5 with the square root. It is fitted to all
    points of a line, by least squares.
    """
    points = {name: {n: peak_of(some[n]) for n in sorted(some)} for name, some in (measured or {}).items()}
    lengths = {*lengths, *(n for some in points.values() for n in some)}
    planned = planned_peaks(lengths, usual_schedules() if schedules is None else schedules)
    lines = {**planned, **{name: some for name, some in points.items() if name not in planned}}
    slopes = {name: slope(line, name) for name, line in lines.items()}
    figure, (axes,) = canvas.page(growth_title(lines), growth_facts(planned, points), right=0.745)
    axes.set_xlabel("layers L")
    axes.set_ylabel("live activations at the peak")
    axes.grid(color=canvas.PALE, linewidth=0.8)
    ends = []
    for index, (name, line) in enumerate(lines.items()):
        colour, dash = canvas.STYLES[index % len(canvas.STYLES)]
        axes.plot(*points_of(line), color=colour, linestyle=dash, marker="o", markersize=4, gid=name)
        rings = axes.plot(*points_of(points.get(name, {})), **canvas.RING, gid=f"measured {name}")
        rings[0].set_markeredgecolor(colour)
        ends.append((*max(line.items()), f"{name}: slope {slopes[name]:.2f}", colour))
    for axis in (axes.xaxis, axes.yaxis):
        canvas.logarithmic(axis)
    name_ends(axes, ends)
    return canvas.saved(figure, path)


def points_of(line):
    """The x and the y of a line {x: y}."""
    return list(line), list(line.values())


def usual_schedules() -> dict:
    """What a picture of growth shows if nothing else is asked for."""
    make = all_schedules
    chosen = (make.store_all(), make.sqrt(), make.triangular(), make.bisection(), make.from_input())
    return {str(schedule): schedule for schedule in chosen}


def planned_peaks(lengths, schedules) -> dict:
    """name -> {layers: the planned peak}, without the lengths for which a schedule has no plan."""
    lengths = sorted({whole_number(n, "the number of layers") for n in lengths})
    if len(lengths) < 2:
        raise ArgumentError(f"growth needs at least two different numbers of layers, not {lengths}")
    lines = {name: {} for name in schedules}
    for name, schedule in schedules.items():
        for n in lengths:
            try:
                lines[name][n] = schedule.plan(n).peak
            except BudgetError:  # such as more segments than layers
                continue
    return lines


def slope(line, name="a line") -> float:
    """The p for which L^p fits a line {L: peak} best: least squares among the logarithms.

    >>> round(slope({10: 30, 40: 60, 90: 90}), 6)
    0.5
    """
    if len(line) < 2:
        raise ArgumentError(f"{name} has no slope: it needs at least two numbers of layers, and there are {list(line)}")
    power = np.polyfit(np.log(list(line)), np.log(list(line.values())), 1)[0]
    return round(float(power), 9) + 0.0  # no -0.0


def growth_title(lines):
    """The finding: what a deeper chain costs under each schedule."""
    first, last = (choose(n for line in lines.values() for n in line) for choose in (min, max))
    times = [(line[last] / line[first], name) for name, line in lines.items() if first in line and last in line]
    if not times:
        return f"How the peak grows from {first} to {last} layers"
    (least, thrifty), (most, greedy) = min(times), max(times)
    needs = "no more memory" if least == 1 else f"{least:.3g} times the memory"
    found = f"{last / first:.3g} times the layers: {thrifty} needs {needs}"
    return found if most == least else f"{found}, {greedy} {most:.3g} times as much"


def growth_facts(planned, points):
    """The line below: what a slope is, and whether measured points are as planned."""
    measured = {(name, n): peak for name, some in points.items() for n, peak in some.items()}
    expected = {(name, n): planned[name][n] for name, n in measured if n in planned.get(name, ())}
    facts = "a slope p says that the peak grows as L^p: 1 in proportion, 0.5 with the square root"
    return "; ".join([facts, *compared(measured, expected)])


def name_ends(axes, ends):
    """Write what each line is beside its end, at the right of the axes, as far apart as letters are high."""
    figure, texts = axes.figure, []
    for _, y, words, colour in ends:
        text = axes.annotate(
            words, (1, y), xycoords=axes.get_yaxis_transform(), xytext=(10, 0), textcoords="offset points",
            color=colour, fontsize=10.5, fontweight="bold", va="center", annotation_clip=False, parse_math=False,
        )  # fmt: skip
        texts.append(text)
    room = canvas.RIGHT * figure.bbox.width - canvas.box_of(texts[0], figure)[0]
    widest = max(np.diff(canvas.box_of(text, figure)[[0, 2]])[0] for text in texts)
    for text in texts:
        text.set_fontsize(10.5 * min(1, room / widest))
    boxes = [canvas.box_of(text, figure) for text in texts]
    lowest = -math.inf
    for _, i in sorted((end[1], i) for i, end in enumerate(ends)):
        raised = max(0, lowest - boxes[i][1])
        texts[i].set_position((10, raised * 72 / figure.dpi))
        lowest = boxes[i][3] + raised + 5


# ---- Points that were measured -----------------------------------------------------------------------


def measured_points(measured) -> dict:
    """key -> (live activations at the peak, layers replayed), of Tracers or of such pairs."""
    return {key: point_of(value) for key, value in (measured or {}).items()}


def point_of(value) -> tuple:
    """(live activations at the peak, layers replayed) of a Tracer or a Plan, or a pair of these numbers."""
    for peak, replays in (("peak_activations", "replayed_ops"), ("peak", "extra_forwards")):
        if hasattr(value, peak) and hasattr(value, replays):
            return getattr(value, peak), getattr(value, replays)
    try:
        peak, replays = value
    except TypeError:
        raise ArgumentError(f"a point is a Tracer, or (live activations, layers replayed), not {value!r:.60}") from None
    return peak, replays


def peak_of(value):
    """The peak of a Tracer or a Plan, or a number."""
    return value if isinstance(value, Real) else point_of(value)[0]


def compared(points, planned, mark="rings: ") -> list:
    """What to say of measured points: nothing if there are none, otherwise how many are where they were planned."""
    if not points:
        return []
    both = [key for key in points if key in planned]
    same = sum(points[key] == planned[key] for key in both)
    if not both:
        return [f"{mark}{len(points)} measured"]
    return [f"{mark}{len(points)} measured, {'all' if same == len(points) else same} as planned"]
