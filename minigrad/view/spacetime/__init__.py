"""Space-time pictures: columns are layers, rows are steps, colours say which activations are live, and why.

    mg.schedules.uniform(10).plan(100).draw("plan.svg")        from a plan alone: nothing runs
    tracer.spacetime("run.svg")                                from a run; under the same schedule the same picture

What is live when is found out by plan.py and run.py; here it is drawn. A column is a layer and its
input, so a cell says whether that input is live in that step, and the layer in hand is marked. At the right the
live activations of each step are counted. Where there are more steps or layers than there is room for, several are
folded into one row or column, and the picture says so.
"""

from pathlib import Path

from ...errors import ArgumentError
from ...schedules import binomial
from ...schedules import every
from ...schedules import store_all
from ...schedules import triangular
from ...schedules import uniform
from ...schedules.plan import Plan
from ...schedules.report import counted
from ..markup import printable
from ..palette import HANDS
from .grid import fitting
from .page import LETTER, Page, Svg, saved
from .panel import WORDS, Panel
from .plan import from_plan
from .rows import SWEEP, SpaceTime
from .run import from_run

__all__ = ["draw", "compare", "write_pictures", "from_plan", "from_run", "SpaceTime", "Svg"]

MOST_ROWS, MOST_COLUMNS = 720, 330  # of a picture; what is larger is folded


def draw(spacetime, path=None) -> Svg:
    """The picture of one SpaceTime, as SVG text.

    path  where to save it too: an .svg file
    """
    page, (grid,) = Page(900), fitting([spacetime], MOST_ROWS, MOST_COLUMNS)
    page.heading(title(spacetime), facts([grid]))
    page.legend(legend([grid]), page.bottom + 14)
    left, top = page.margin + 62, page.bottom + 44
    width, height = cell_size(grid.columns, 660, 60), cell_size(grid.rows, 720, 18)
    panel = Panel(page, grid, left, top, width, height, 84, grid.peak)
    panel.draw()
    panel.layer_axis(11)
    panel.step_axis(9)
    panel.phases(left - 46)
    page.text(panel.peak_at[0] + 8, panel.peak_at[1] + 4.5, f"{grid.peak:,}", "st-bold", size=14)
    page.text(panel.curve_left, top - 22, "live activations", "st-grey")
    return saved(page.svg(f"Space-time picture. {title(spacetime)}"), path)


def compare(things, path=None) -> Svg:
    """Several pictures side by side, on one scale of time and one of live activations.

    things  two to six Plans, Tracers or SpaceTimes; or a dict with a name for each
    path    where to save it too: an .svg file
    """
    named = things if isinstance(things, dict) else dict(enumerate(things))
    if not 2 <= len(named) <= 6:
        raise ArgumentError(f"compare sets two to six pictures side by side, and was given {len(named)}")
    spacetimes = {name: as_spacetime(thing) for name, thing in named.items()}
    names = [shortened(name if isinstance(things, dict) else one.name, 40) for name, one in spacetimes.items()]
    spacetimes = list(spacetimes.values())
    page, between = Page(900), 18
    share = (page.width - 2 * page.margin - 36 + between) / len(named) - between
    grids = fitting(spacetimes, 600, int(0.79 * share / 1.5))
    most, rows = max(grid.peak for grid in grids), max(grid.rows for grid in grids)
    page.heading(comparison(names, spacetimes), facts(grids))
    page.legend(legend(grids), page.bottom + 14)
    left, top = page.margin + 36, page.bottom + 92
    height = cell_size(rows, 600, 12)
    for name, one, grid in zip(names, spacetimes, grids, strict=True):
        panel = Panel(page, grid, left, top, cell_size(grid.columns, 0.79 * share, 24), height, 0.13 * share, most)
        page.text(left, top - 58, name, "st-bold", size=min(13, 0.9 * share / LETTER / len(name)))
        page.text(left, top - 42, f"{one.peak:,} live at the peak", "st-grey")
        page.text(left, top - 26, again(one), "st-grey")
        panel.draw()
        panel.layer_axis(5, first="1")
        if one is spacetimes[0]:
            panel.step_axis(9, rows)
        left += share + between
    return saved(page.svg(f"Space-time pictures side by side. {comparison(names, spacetimes)}"), path)


def as_spacetime(thing) -> SpaceTime:
    """A Plan, a Tracer or a SpaceTime as a SpaceTime."""
    if isinstance(thing, SpaceTime):
        return thing
    return from_plan(thing) if isinstance(thing, Plan) else from_run(thing)


def cell_size(count, room, most):
    """Pixels for each of so many cells: as much as there is room for, in whole and half ones, at least one."""
    return max(1, int(2 * min(room / count, most)) / 2)


# ---- What the texts say ------------------------------------------------------------------------------


def title(spacetime):
    live = f"at most {counted(spacetime.peak, 'activation')} live"
    return f"{shortened(spacetime.name, 60)} on {counted(spacetime.layers, 'layer')}: {live}, {again(spacetime)}"


def again(spacetime):
    return f"{counted(spacetime.replays, 'layer')} run again" if spacetime.replays else "no layer run again"


def shortened(name, most):
    """A name on one line, cut with a visible "…" if it is too long."""
    name = printable(name)
    return name if len(name) <= most else name[: most - 1] + "…"


def comparison(names, spacetimes):
    """The finding: the least peak against the highest."""
    peaks = [one.peak for one in spacetimes]
    if min(peaks) == max(peaks):
        return f"Each has {counted(peaks[0], 'activation')} live at the peak"
    low, high = peaks.index(min(peaks)), peaks.index(max(peaks))
    price = f", and {again(spacetimes[low])}" if spacetimes[low].replays else ""
    return f"{names[high]} has {peaks[high]:,} activations live at the peak; {names[low]} has {peaks[low]:,}{price}"


def facts(grids):
    """How to read it, in lines."""
    grid = grids[0]
    row = "a step" if grid.steps == 1 else f"{grid.steps} steps"
    column = "a layer with the activation that it" if grid.layers == 1 else f"{grid.layers} layers with what each"
    lines = [f"Each column is {column} reads, each row {row}. Blank: not computed yet, or done with."]
    if grid.is_folded:
        lines.append("Folded to fit: a cell shows what is live at any moment of its steps, in any of its layers.")
    return lines


def legend(grids):
    """(class, words) of what occurs."""
    states = {span.state for grid in grids for span in grid.spans}
    entries = [(f"st-{state}", WORDS[state]) for state in WORDS if state in states]
    if "boundary" in states or "replayed" in states:
        entries.append(("st-dropped", WORDS["dropped"]))
    hands = [hand for hand in HANDS if any(grid.marks[hand] for grid in grids)]
    running = [HANDS[hand][1] for hand in hands if hand != SWEEP]
    entries.append(("st-forward", f"the layer {' or '.join(running)}"))
    if SWEEP in hands:
        entries.append(("st-backward", f"the layer {HANDS[SWEEP][1]}"))
    return entries


# ---- The pictures of the README and the lessons ------------------------------------------------------


def write_pictures(folder) -> list:
    """Write the pictures of 100 layers, from plans, into a folder; returns their paths. The same bytes every time."""
    folder, schedules = Path(folder), (uniform(10), triangular())
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"spacetime-{name}.svg" for name in ("uniform", "triangular", "compare")]
    for schedule, path in zip(schedules, paths, strict=False):
        draw(from_plan(schedule.plan(100)), path)
    compare([schedule.plan(100) for schedule in (store_all(), every(10), triangular(), binomial(8))], paths[2])
    return paths
