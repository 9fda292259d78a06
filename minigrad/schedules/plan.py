"""What a schedule costs on the reference chain, counted by walking its tree of stretches.

Of a chain of n layers, layer i reads x_{i-1}. Taping a layer holds its input; a checkpoint holds the input
of its first layer. Backward comes to the last part first. A taped part is swept and lets go; a checkpoint
is replayed, which is the same story again for a shorter stretch, on top of what the earlier parts hold.

Equal schedules on equally long stretches cost the same, so each such pair is counted once, and without
recursion: a tree may be as deep as the chain is long.
"""

from typing import NamedTuple

from ..doors import door
from ..errors import ArgumentError
from . import report, translate


class Cost(NamedTuple):
    """What one stretch costs, its own input not counted, unless that has come back from slow memory.

    peak      most activations live at any moment (a running layer's input and output both count)
    between   most activations live between two layers
    runs      layers that are run again
    slow      most boundaries in slow memory
    writes, reads   boundaries that go to slow memory, and that come back from it
    """

    peak: int
    between: int
    runs: int
    slow: int
    writes: int
    reads: int


class Plan:
    """The cost of `schedule` on `layers` layers.

    peak              most activations live at any moment, x_0 included, as the tracer counts them: while a
                      replay runs a layer, its input and its output both count
    peak_between_ops  the same between two layers, which is how most papers count; at most one less
    extra_forwards    layers that are run again, in all
    slow_peak         most boundaries that wait in slow memory (offload)
    writes, reads     boundaries that go there, and that come back
    segments          (length, taped or not) of the outermost split
    """

    def __init__(self, schedule, layers, cost, parts):
        self.schedule, self.layers = schedule, layers
        self.peak, self.peak_between_ops, self.extra_forwards = cost.peak, cost.between, cost.runs
        self.slow_peak, self.writes, self.reads = cost.slow, cost.writes, cost.reads
        self.segments = [(length, inner is None) for length, inner in parts]

    @property
    def total_forwards(self) -> int:
        """Layers that are run, the first time and again."""
        return self.layers + self.extra_forwards

    @property
    def time_factor(self) -> float:
        """Time against storing everything, if every layer's backward takes twice the time of its forward."""
        return (3 * self.layers + self.extra_forwards) / (3 * self.layers)

    def __repr__(self):
        return (
            f"Plan({self.schedule}, {self.layers} layers: peak {self.peak} activations, "
            f"{self.extra_forwards} layers replayed)"
        )

    def __str__(self):
        return report.as_text(self)

    def tree(self, max_depth: int = 6, max_rows: int = 24) -> str:
        """The tree of stretches as a table, outer levels first: `max_depth` of them, at most 15, in `max_rows` rows.

        >>> import minigrad as mg
        >>> print(mg.schedules.uniform(10).plan(100).tree())
        layers     length  kept as
        ---------  ------  -------------
        ├─ 1-90    9 x 10  9 checkpoints
        └─ 91-100      10  taped in full
        """
        return report.draw(self, max_depth, max_rows)

    def draw(self, path=None):
        """Draw which layer runs when, and what is live then, as SVG text: a column a layer, a row a step.

        path  where to save it too: an .svg file

        A notebook shows the picture itself. ArgumentError for another kind of file, or more than two million steps.

        >>> import minigrad as mg
        >>> mg.schedules.uniform(10).plan(100).draw().startswith("<svg")
        True
        """
        spacetime = door("view.spacetime")
        return spacetime.draw(spacetime.from_plan(self), path)

    def to_json(self, max_depth: int | None = None) -> str:
        """The plan as JSON, numbers and tree; `mg.schedules.from_json` makes a Schedule of it again.

        max_depth   write so many levels only; the tree then cannot be read back
        """
        return report.to_json(self, max_depth)

    def torch_code(self) -> str:
        """A PyTorch program that runs a list of layers with the same checkpoints."""
        return translate.torch_code(self)

    def jax_code(self) -> str:
        """A JAX program that runs a list of layers with the same checkpoints."""
        return translate.jax_code(self)


class Stretch(NamedTuple):
    """One thing to count: `length` layers under `schedule`.

    replayed   False for the first run of the whole chain
    slow_input its input is in slow memory
    older      boundaries in slow memory that are older, at most as many as the widest window fetches ahead
    """

    schedule: object
    length: int
    replayed: bool
    slow_input: bool
    older: int


def count_plan(schedule, n) -> Plan:
    """Count a schedule on n layers."""
    root = Stretch(schedule, n, False, False, 0)
    parts = schedule.parts(n)
    cost = count(root)
    if not goes_slow(root, 0, parts[0][1]):  # x_0 is in fast memory for as long as it all lasts
        cost = cost._replace(peak=cost.peak + 1, between=cost.between + 1)
    return Plan(schedule, n, cost, parts)


def count(root) -> Cost:
    """The cost of a stretch; those inside it are counted first, each once.

    How many older boundaries matter depends on the widest window of the tree, however deep it lies. It is not known
    before the tree has been walked: a window wider than those met so far begins the count afresh.
    """
    known, waiting, asked, widest = {}, [root], {}, 1
    while waiting:
        stretch = waiting[-1]
        schedule, n = stretch.schedule, stretch.length
        if stretch in known:
            waiting.pop()
            continue
        if stretch not in asked:
            parts = schedule.parts_of_replay(n) if stretch.replayed else schedule.parts(n)
            window = max([inner.offload or 1 for _, inner in parts if inner is not None], default=1)
            if window > widest:
                known, waiting, asked, widest = {}, [root], {}, window
                continue
            asked[stretch] = parts, inner_stretches(stretch, parts, widest)
        parts, inner = asked[stretch]
        missing = [one for one in inner if one is not None and one not in known]
        if any(one in asked for one in missing):
            raise ArgumentError(f"{schedule!r} splits {n} layers in a circle, which would never end")
        if missing:
            waiting.extend(missing)
        else:
            known[stretch] = cost_of(stretch, parts, [known.get(one) for one in inner])
            del asked[stretch]
            waiting.pop()
    return known[root]


def goes_slow(stretch, index, schedule):
    """Whether the boundary of this part waits in slow memory: not if it is an input that fast memory holds anyway."""
    if schedule is None or schedule.offload is None:
        return False
    return index > 0 or stretch.slow_input or not stretch.replayed


def inner_stretches(stretch, parts, widest):
    """For each part the stretch that its replay is, None for a taped one; `widest` is the widest window of all."""
    inner, older = [], stretch.older
    for index, (length, schedule) in enumerate(parts):
        if schedule is None:
            inner.append(None)
            continue
        is_slow = goes_slow(stretch, index, schedule)
        inner.append(Stretch(schedule, length, True, is_slow, min(older, widest - 1)))
        older += is_slow
    return inner


def cost_of(stretch, parts, inner_costs) -> Cost:
    """The cost of one stretch, given those of the checkpoints in it.

    In a replay a running layer's output counts while it runs. With early_stop nothing is run for the stretch's
    own output, since nobody in here reads it: not the last layer if it is taped, and not the last part at all
    if it is a checkpoint (its own replay follows).
    """
    replayed, early_stop = stretch.replayed, stretch.schedule.early_stop
    slow_parts = [goes_slow(stretch, index, schedule) for index, (_, schedule) in enumerate(parts)]
    held = int(stretch.slow_input and not slow_parts[0])  # an input that has come back, and stays
    peak = between = runs = slow = slow_peak = writes = reads = 0
    below = []  # (activations, slow boundaries) that the parts before each part hold
    for index, (length, inner) in enumerate(parts):
        is_first, is_last, is_slow = index == 0, index + 1 == len(parts), slow_parts[index]
        if is_slow and not is_first:
            held -= 1  # its input goes to slow memory, once the part has been run
        below.append((held, slow))
        if is_slow and not (is_first and stretch.slow_input):
            slow += 1
            writes += 1
        if replayed:
            steps = length if not is_last or not early_stop else length - 1 if inner is None else 0
            # A taped layer's input is held; an advancing one has its input and its output beside what is
            # held, except the first, whose input is the part's own.
            own_input = held + is_slow
            peak = max(peak, own_input + (steps if inner is None else min(steps, 2)))
            waiting = steps if not is_last or steps < length else length - 1  # the last output nobody reads
            between = max(between, own_input + (waiting if inner is None else min(waiting, 1)))
            runs += steps
        held += length - 1 if inner is None else 0
        peak, between, slow_peak = max(peak, held), max(between, held), max(slow_peak, slow)
        held += not is_last  # the next part's input
    for index in reversed(range(len(parts))):
        inner, cost = parts[index][1], inner_costs[index]
        if inner is None:
            continue
        (held, slow), is_slow = below[index], slow_parts[index]
        fetched_ahead = min(inner.offload - 1, slow + stretch.older) if is_slow else 0
        peak = max(peak, held + fetched_ahead + cost.peak)
        between = max(between, held + fetched_ahead + cost.between)
        slow_peak = max(slow_peak, slow + is_slow - (is_slow and index == 0 and stretch.slow_input) + cost.slow)
        runs, writes, reads = runs + cost.runs, writes + cost.writes, reads + cost.reads + is_slow
    return Cost(peak, between, runs, slow_peak, writes, reads)
