"""The Pareto picture of schedules: memory against replays, and the line below which no schedule is known.

A schedule of the reference chain is a point: M, the live activations at its peak, and R, the layers that it replays.
Nothing is run; measured points can be drawn over it.
"""

from .. import schedules as make
from ..errors import BudgetError
from ..schedules.schedule import whole_number
from . import canvas
from .canvas import INK, PALE
from .placing import Label, place_labels
from .sweeps import compared, measured_points, spread

MOST_POINTS, MOST_OF_LINE = 60, 1000  # of a family of schedules, and of the thick line
FACTORS = (1, 1.05, 1.1, 1.3, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SLOW = "#75663F"  # the colour of slow memory, dark enough for letters
RIGHT = 0.915  # room for a second axis


def pareto(layers=100, schedules=None, path=None, measured=None):
    """All schedules as points: live activations at the peak against layers replayed; a matplotlib Figure.

    layers     how many the chain has
    schedules  name -> Schedule: the points that get a name; None: one of each kind
    path       where to save it too: .svg, .png or .pdf
    measured   name -> a Tracer, or (live activations at the peak, layers replayed)

    The thick line is the fewest replays that are known for each peak, those of optimal(M) or binomial(M). Below it
    there are only schedules that use slow memory. The axis at the right is the time against storing all, if every
    layer's backward takes twice the time of its forward.
    """
    layers = whole_number(layers, "the number of layers", 2)
    plans = planned(usual_schedules(layers) if schedules is None else schedules, layers)
    lines, best = families(layers), fewest_replays(layers)
    rings = measured_points(measured)
    points = [*map(place_of, plans.values()), *(point for line in lines.values() for point in line), *rings.values()]
    figure, (axes,) = canvas.page(title(layers), facts(plans, rings), right=RIGHT)
    scales(axes, layers, [*points, *best])
    axes.fill_between(*zip(*best, strict=True), color=PALE, alpha=0.6, linewidth=0, zorder=0.5, gid="below")
    handles = axes.plot(*zip(*best, strict=True), color=INK, linewidth=3, label="fewest replays known", gid="fewest")
    for (name, family), (colour, _), mark in zip(lines.items(), canvas.STYLES, "svD^P", strict=False):
        style = {"color": colour, "marker": mark, "markersize": 3.6, "linewidth": 0.7}
        handles += axes.plot(*zip(*family, strict=True), **style, label=name, gid=name)
    handles += axes.plot([], [], "o", color=SLOW, label="with slow memory")
    axes.text(
        (best[0][0] * layers) ** 0.5, max(1, layers / 20) * 0.5, "no schedule is known here\nthat needs no slow memory",
        color=canvas.GREY, fontsize=9.5, ha="center", va="center",
    )  # fmt: skip
    if rings:
        axes.plot(*zip(*rings.values(), strict=True), **canvas.RING, gid="measured")
    name_points(axes, plans, [best, *lines.values()])
    canvas.legend(figure, "right", handles, right=RIGHT)
    return canvas.saved(figure, path)


# ---- Which schedules ---------------------------------------------------------------------------------


def usual_schedules(layers) -> dict:
    """name -> Schedule, one of each kind, with settings that suit so many layers."""
    least = make.triangular().plan(layers).peak
    few = max(2, least // 3)
    chosen = [
        make.store_all(), make.sqrt(), make.triangular(), make.bisection(), make.nested(4), make.from_input(),
        make.torch_compatible(max(2, round(layers**0.5))),
        make.offloaded(make.every(1)), make.offloaded(make.sqrt()), make.multistage(few, few), make.h_revolve(few, few),
    ]  # fmt: skip
    return {str(schedule): schedule for schedule in chosen}


def planned(schedules, layers) -> dict:
    """name -> Plan, without the schedules that have none for so many layers."""
    plans = {}
    for name, schedule in schedules.items():
        try:
            plans[name] = schedule.plan(layers)
        except BudgetError:
            continue
    return plans


def families(layers) -> dict:
    """name -> places of the plans of one kind of schedule, over the number that it is given."""
    few = make.triangular().plan(layers).peak
    kinds = {
        "uniform(k)": (make.uniform, spread(2, layers, MOST_POINTS)),
        "nested(k)": (make.nested, spread(2, max(3, round(layers**0.5)), MOST_POINTS)),
        "mixed(s)": (make.mixed, spread(1, layers, MOST_POINTS // 2)),
        "online(s)": (make.online, spread(2, few, MOST_POINTS)),
    }
    return {name: [place_of(kind(k).plan(layers)) for k in ks] for name, (kind, ks) in kinds.items()}


def fewest_replays(layers) -> list:
    """[(M, the fewest replays that are known for a peak of M)], for many M."""
    found = {}
    for slots in spread(2, layers, MOST_OF_LINE):
        for kind in (make.optimal, make.binomial):
            try:
                peak, replays = place_of(kind(slots).plan(layers))
            except BudgetError:  # too few slots
                continue
            found[peak] = min(replays, found.get(peak, replays))
    line = []
    for peak, replays in sorted(found.items()):
        if not line or replays < line[-1][1]:
            line.append((peak, replays))
    return line


def place_of(plan):
    return plan.peak, plan.extra_forwards


# ---- What the texts say ------------------------------------------------------------------------------


def title(layers):
    """The finding: what the schedule costs at which the line has its bend."""
    plan = make.triangular().plan(layers)
    more = f"{plan.time_factor - 1:.0%} more time"
    return f"{plan.peak} live activations instead of {layers} cost {more}; fewer cost ever more"


def facts(plans, rings):
    parts = ["at the bend are ever shorter segments, triangular(); the thick line is optimal(M) or binomial(M)"]
    return "; ".join([*parts, *compared(rings, {name: place_of(plan) for name, plan in plans.items()})])


# ---- Drawing -----------------------------------------------------------------------------------------


def scales(axes, layers, points):
    """A logarithmic axis of peaks, and one of replays that has a place for 0; times at the right."""
    from matplotlib.ticker import FixedLocator, NullLocator

    most = max(replays for _, replays in points)
    bend = max(1, layers / 20)  # up to here the axis of replays is linear
    axes.set_xlim(min(peak for peak, _ in points) * 0.86, layers * 1.2)
    canvas.logarithmic(axes.xaxis)
    axes.set_xlabel("M: live activations at the peak")
    times = axes.twinx()
    times.spines[["top", "left", "right", "bottom"]].set_visible(False)
    replays = {0: "0", **{count: short(count) for count in steps_to(bend, most)}}
    factors = {3 * layers * (factor - 1): f"{factor:g}x" for factor in FACTORS}
    for side, ticks in ((axes, replays), (times, factors)):
        side.set_yscale("symlog", linthresh=bend, linscale=0.5)
        side.set_ylim(-0.12 * bend, 2 * most)
        places = far_apart(side, [place for place in ticks if place <= 1.6 * most])
        side.yaxis.set_major_locator(FixedLocator(places))
        side.yaxis.set_minor_locator(NullLocator())
        side.set_yticklabels([ticks[place] for place in places])
        side.tick_params(colors=canvas.GREY, labelsize=10)
    axes.set_ylabel("R: layers replayed")
    times.set_ylabel("time, against storing all", fontsize=10.5, color=INK)
    axes.set_zorder(times.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.8)


def far_apart(axes, places):
    """Those of some places on the vertical axis at which words have room above each other, from the lowest on."""
    kept, lowest = [], float("-inf")
    for place, (_, height) in zip(places, canvas.pixels(axes, [(1, place) for place in places]), strict=True):
        if height >= lowest:
            kept.append(place)
            lowest = height + 24
    return kept


def short(count):
    """A number that takes little room: 500, 2000, 10k, 500k."""
    return f"{count:g}" if count < 10_000 else f"{count / 1000:g}k"


def steps_to(first, last):
    """1, 2, 5, 10, 20, ... between two numbers."""
    steps = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    return [step for step in steps if first <= step <= 1.6 * last]


def name_points(axes, plans, lines):
    """A dot and a name for each plan; plans at the same place share them."""
    places = {}
    for name, plan in plans.items():
        places.setdefault(place_of(plan), []).append(name)
    labels = []
    for place, names in sorted(places.items()):
        colour = SLOW if any(plans[name].writes for name in names) else INK
        axes.plot(*place, "o", color=colour, markersize=6.5, zorder=3, gid="named")
        labels.append(Label([place], ", ".join(names), colour, 9.5, "normal"))
    place_labels(axes, labels, lines, [point for line in lines[1:] for point in line])
