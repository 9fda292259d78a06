"""Plans for people and for other programs: the tree of stretches as text, and as JSON that reading.py reads back.

A schedule unfolds its tree as it is asked. The drawing asks only for what it shows: it opens checkpoints level by
level, the outermost first, until it has as many rows as a screen, and says of the others how many levels deeper they
go. Nothing here is recursive, since a tree may be as deep as the chain is long.
"""

import json
import textwrap
from collections import deque
from typing import NamedTuple

from ..errors import ArgumentError
from ..table import WIDTH, table

MAX_DEPTH, MAX_ROWS = 6, 24  # of a drawing
WIDEST = 15  # levels that fit a line with their words
DEEPEST = 300  # levels of a whole tree in JSON or in a program: readers of both give up at some depth
TAPED = "taped in full: the input of every layer is kept."
CHECKPOINT = (
    "checkpoint: of its layers only the first one's input is kept, and backward replays them. What hangs below it is "
    "how the replay splits them again; if nothing does, the replay tapes them in full."
)


class Part(NamedTuple):
    """Layers first..last (from 1): taped in full (schedule None), or a checkpoint whose replay `schedule` splits."""

    first: int
    last: int
    schedule: object

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def parts(self) -> list:
        """The parts into which a replay of this checkpoint splits it; none if it is taped already."""
        found, first = [], self.first
        for length, schedule in self.schedule.parts(self.length) if self.schedule is not None else ():
            found.append(Part(first, first + length - 1, schedule))
            first += length
        return found


def whole(plan) -> Part:
    """All layers of a plan as one part, which its schedule splits."""
    return Part(1, plan.layers, plan.schedule)


def from_the_leaves(part, value_of, known):
    """`value_of(parts, values)` for a checkpoint: its parts, and for each its own such value, None if it is taped.

    known   (schedule, length) -> value, filled on the way: equal checkpoints are walked once
    """
    waiting, asked = [part], {}
    while waiting:
        key = waiting[-1].schedule, waiting[-1].length
        if key in known or key[0] is None:
            waiting.pop()
            continue
        if key not in asked:
            asked[key] = waiting[-1].parts()
        missing = [inner for inner in asked[key] if (inner.schedule, inner.length) not in known]
        missing = [inner for inner in missing if inner.schedule is not None]
        if missing:
            waiting.extend(missing)
        else:
            parts = asked.pop(key)
            known[key] = value_of(parts, [known.get((inner.schedule, inner.length)) for inner in parts])
            waiting.pop()
    return known.get((part.schedule, part.length))


def levels_below(part, known) -> int:
    """How many levels of smaller checkpoints a part holds; 0 if it is taped, now or by its replay."""
    return from_the_leaves(part, levels_of, known) or 0


def levels_of(parts, levels) -> int:
    return max([1 + inner for inner in levels if inner is not None], default=0)


def check_depth(plan, advice):
    """Raise ArgumentError if the plan's tree is too deep to be written out as a whole."""
    levels = levels_below(whole(plan), {})
    if levels > DEEPEST:
        raise ArgumentError(
            f"the tree of {plan.schedule} on {plan.layers} layers has {levels} levels of checkpoints in checkpoints; "
            f"at most {DEEPEST} can be written out. {advice}"
        )


# ---- As text -----------------------------------------------------------------------------------------


class Row:
    """A row of the drawing: `count` equal parts side by side.

    part    the first of them
    below   rows of what is inside it; empty if it is not opened
    hidden  levels that are inside it and not shown
    """

    __slots__ = ("part", "count", "last", "below", "hidden")

    def __init__(self, part):
        self.part, self.count, self.last, self.below, self.hidden = part, 1, part.last, [], 0


class Gap(NamedTuple):
    """A row that stands for others, which are left out."""

    count: int
    first: int
    last: int


def draw(plan, max_depth=MAX_DEPTH, max_rows=MAX_ROWS) -> str:
    """The tree of a plan as a table of at most `max_rows` rows and `max_depth` levels, of which 15 fit a line."""
    rows = [
        (f"{lines}{span_text(row.first if isinstance(row, Gap) else row.part.first, row.last)}", *words_for(row))
        for lines, row in with_lines(opened(plan, min(max_depth, WIDEST), max(max_rows, 8)))
    ]
    return table(("layers", "length", "kept as"), rows, right=(1,), width=WIDTH)


def opened(plan, max_depth, max_rows) -> list:
    """The outermost rows, with as much below them as there is room for, level by level."""
    top = shortened(folded(whole(plan).parts()), max_rows)
    known, room = {}, max_rows - len(top)
    waiting = deque((row, 1) for row in top if isinstance(row, Row))
    while waiting:
        row, depth = waiting.popleft()
        row.hidden = levels_below(row.part, known)
        if row.hidden == 0 or depth >= max_depth:
            continue
        below = folded(row.part.parts())
        room -= len(below)  # once something has not fitted, nothing that comes later is opened
        if room >= 0:
            row.below, row.hidden = below, 0
            waiting.extend((inner, depth + 1) for inner in below)
    return top


def folded(parts) -> list:
    """Rows for these parts: equal checkpoints next to each other as one, taped stretches as one."""
    rows = []
    for part in parts:
        row = rows[-1] if rows else None
        if row is not None and part.schedule is None and row.part.schedule is None:
            row.part = Part(row.part.first, part.last, None)
        elif row is not None and (part.schedule, part.length) == (row.part.schedule, row.part.length):
            row.count += 1
        else:
            rows.append(Row(part))
        rows[-1].last = part.last
    return rows


def shortened(rows, most):
    """Rows without those in the middle, if there are more than `most`."""
    if len(rows) <= most:
        return rows
    start, end = rows[: most - 4], rows[-3:]
    left_out = rows[len(start) : -3]
    return [*start, Gap(len(left_out), left_out[0].part.first, left_out[-1].last), *end]


def with_lines(rows):
    """(the lines that lead to it, row), from top to bottom."""
    waiting = [(row, "", row is rows[-1]) for row in reversed(rows)]
    while waiting:
        row, before, is_last = waiting.pop()
        yield before + ("└─ " if is_last else "├─ "), row
        below = row.below if isinstance(row, Row) else []
        before += "   " if is_last else "│  "
        waiting.extend((inner, before, inner is below[-1]) for inner in reversed(below))


def words_for(row) -> tuple:
    """The length of a row's stretches, and how they are kept."""
    if isinstance(row, Gap):
        return "…", f"… {row.count} more rows"
    if row.part.schedule is None:
        return row.part.length, "taped in full"
    one, schedule = row.count == 1, row.part.schedule
    text = "checkpoint" if one else f"{row.count} checkpoints"
    if schedule.offload is not None:
        text += f", {'its input' if one else 'their inputs'} in slow memory"
    if not schedule.early_stop:
        text += ", replayed to the end"
    if row.below and not one:
        text += ", each like the first:"
    if row.hidden:
        text += f" … {counted(row.hidden, 'deeper level')}"
    return row.part.length if one else f"{row.count} x {row.part.length}", text


def span_text(first, last) -> str:
    return f"{first}-{last}" if last > first else str(first)


def totals(plan) -> str:
    """What a plan costs, in a few lines."""
    lines = [
        f"{plan.schedule} on {counted(plan.layers, 'layer')}: peak {counted(plan.peak, 'activation')}, "
        f"{counted(plan.extra_forwards, 'layer')} replayed",
        "",
        f"  memory  {counted(plan.peak, 'activation')} at the peak, {plan.peak_between_ops:,} between ops; "
        f"storing all keeps {plan.layers:,}",
        f"  time    {counted(plan.total_forwards, 'forward')}; {plan.time_factor:.2f} times the time of storing all, "
        "if a backward takes two forwards",
    ]
    if plan.writes or plan.reads:
        lines.append(
            f"  slow    {counted(plan.slow_peak, 'activation')} in slow memory at the peak; {plan.writes:,} written to "
            f"it, {plan.reads:,} read back"
        )
    return "\n".join([part for line in lines for part in textwrap.wrap(line, WIDTH) or [""]])


def counted(number, what) -> str:
    """
    >>> counted(1, "layer"), counted(4851, "layer")
    ('1 layer', '4,851 layers')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def as_text(plan, max_depth=MAX_DEPTH, max_rows=MAX_ROWS) -> str:
    """A plan for people: its totals, its tree as far as it fits a screen, and what the words mean."""
    tree = draw(plan, max_depth, max_rows)
    words = [TAPED] * ("taped in full" in tree) + [CHECKPOINT] * ("checkpoint" in tree)
    return "\n\n".join([totals(plan), tree, textwrap.fill(" ".join(words), WIDTH)])


# ---- As JSON -----------------------------------------------------------------------------------------


def to_json(plan, max_depth=None) -> str:
    """A plan as JSON: its numbers, and its tree with a part to a line.

    max_depth  levels of the tree that are written; a checkpoint below them gets `"parts": null`

    A part is {"layers": [first, last], "kept": "taped" or "checkpoint"}. A checkpoint has "parts", what its replay
    splits it into; "offload", if its input waits in slow memory, the number of boundaries that are at hand in
    a replay; and "early_stop": false, if its replay runs all its layers. ArgumentError for a tree of more than 300
    levels without max_depth.

    >>> import minigrad as mg
    >>> print(to_json(mg.schedules.uniform(2).plan(4)))
    {"schedule": "uniform(2)",
     "layers": 4,
     "peak": 3,
     "peak_between_ops": 3,
     "extra_forwards": 1,
     "total_forwards": 5,
     "time_factor": 1.0833333333333333,
     "slow_peak": 0,
     "writes": 0,
     "reads": 0,
     "tree": [
      {"layers": [1, 2], "kept": "checkpoint", "parts": [
       {"layers": [1, 2], "kept": "taped"}]},
      {"layers": [3, 4], "kept": "taped"}]}
    """
    if max_depth is None:
        check_depth(plan, "The outermost ones can: set max_depth, or --depth")
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in figures(plan).items()]
    return "{" + "\n".join([*lines, ' "tree": [', *tree_lines(plan, max_depth)]).lstrip() + "}"


def figures(plan) -> dict:
    """The numbers of a plan, by name."""
    return {
        "schedule": str(plan.schedule),
        "layers": plan.layers,
        "peak": plan.peak,
        "peak_between_ops": plan.peak_between_ops,
        "extra_forwards": plan.extra_forwards,
        "total_forwards": plan.total_forwards,
        "time_factor": plan.time_factor,
        "slow_peak": plan.slow_peak,
        "writes": plan.writes,
        "reads": plan.reads,
    }


def tree_lines(plan, max_depth):
    """The parts of the tree, a line each, indented by their level. The last of a list closes it."""
    waiting = closed_by("]", whole(plan).parts(), 1)
    while waiting:
        part, level, closing = waiting.pop()
        fields = {"layers": [part.first, part.last], "kept": "taped" if part.schedule is None else "checkpoint"}
        if part.schedule is not None:
            fields |= settings_of(part.schedule)
        line = " " * (level + 1) + json.dumps(fields)[:-1]
        if part.schedule is None:
            yield line + "}" + closing
        elif max_depth is not None and level >= max_depth:
            yield line + ', "parts": null}' + closing
        else:
            yield line + ', "parts": ['
            waiting += closed_by("]}" + closing, part.parts(), level + 1)


def closed_by(closing, parts, level) -> list:
    """(part, level, what follows it), the first part last: to be taken from the end."""
    return [(part, level, closing if part is parts[-1] else ",") for part in reversed(parts)]


def settings_of(schedule) -> dict:
    """What is particular about a checkpoint: nothing, as a rule."""
    settings = {} if schedule.offload is None else {"offload": schedule.offload}
    return settings if schedule.early_stop else {**settings, "early_stop": False}
