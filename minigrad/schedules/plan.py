"""What a schedule costs on the reference chain, counted by walking its tree of stretches.

Of a chain of n layers, layer i reads x_{i-1}. Taping a layer holds its input; a checkpoint holds the input
of its first layer. Backward comes to the last part first. A taped part is swept and lets go; a checkpoint
is replayed, which is the same story again for a shorter stretch, on top of what the earlier parts hold.
"""

from ..table import table


class Plan:
    """The cost of `schedule` on `layers` layers.

    peak            most activations live at any moment, x_0 included, as the tracer counts them
    extra_forwards  layers that are run again, in all
    segments        (length, taped or not) of the outermost split
    """

    def __init__(self, schedule, layers, peak, extra_forwards, parts):
        self.schedule, self.layers = schedule, layers
        self.peak, self.extra_forwards = peak, extra_forwards
        self.segments = [(length, inner is None) for length, inner in parts]

    def __repr__(self):
        return (
            f"Plan({self.schedule}, {self.layers} layers: peak {self.peak} activations, "
            f"{self.extra_forwards} layers replayed)"
        )

    def __str__(self):
        rows, first = [], 1
        for i, (length, taped) in enumerate(self.segments, 1):
            kept = "taped in full" if taped else "checkpoint"
            rows.append((i, f"{first}-{first + length - 1}" if length > 1 else first, length, kept))
            first += length
        return f"{self!r}\n\n" + table(("segment", "layers", "length", "kept as"), rows, right=(0, 2))


def count_plan(schedule, n) -> Plan:
    """Count a schedule on n layers: the peak and the replayed layers."""
    parts = schedule.parts(n)
    peak, replayed = count_parts(parts, first_run=True)
    return Plan(schedule, n, 1 + peak, replayed, parts)


def count_parts(parts, first_run):
    """(peak, layers run again) of one stretch, its own input not counted.

    In a replay (`first_run` false) a running layer's output counts while it runs, and nothing is run for the
    stretch's own output, since nobody in here reads it: not the last layer if it is taped, and not the last
    part at all if it is a checkpoint (its own replay follows).
    """
    held, peak, runs, before = 0, 0, 0, []
    for index, (length, inner) in enumerate(parts):
        is_last = index + 1 == len(parts)
        before.append(held)
        if not first_run:
            steps = length if not is_last else length - 1 if inner is None else 0
            # A taped layer's input is held; an advancing one has its input and its output beside what is
            # held, except the first, whose input is the part's own.
            peak = max(peak, held + (steps if inner is None else min(steps, 2)))
            runs += steps
        held += length - 1 if inner is None else 0
        peak = max(peak, held)
        held += not is_last  # the next part's input
    for (length, inner), below in zip(reversed(parts), reversed(before), strict=True):
        if inner is not None:
            inner_peak, inner_runs = count_parts(inner.parts(length), first_run=False)
            peak, runs = max(peak, below + inner_peak), runs + inner_runs
    return peak, runs
