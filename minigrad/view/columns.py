"""From a tracer's events to the columns of a curve: one for each step, at its own highest moment.

An op, a vjp or a replayed op is one step. Much comes and goes within it, so a column shows the moment of its step
at which most was alive; the highest column is then really the peak.
"""

from collections import Counter
from typing import NamedTuple

from ..errors import ArgumentError

MOST_COLUMNS = 1500  # more cannot be told apart in a picture
KINDS = ("bytes", "activations")


class Column(NamedTuple):
    """The highest moment of a step: its phase, how much was alive in all, and role -> how much."""

    step: int
    phase: str
    total: int
    parts: dict


def columns(tracer, what="bytes", hide=(), most=MOST_COLUMNS) -> list:
    """The Columns of a run, in order. If there are more than `most`, neighbours are folded to the highest of them.

    what  "bytes": all that is alive; "activations": how many are live
    hide  roles that are not counted
    """
    check(tracer, what)
    live, total, found = Counter(), 0, []
    for event, changes in (byte_changes if what == "bytes" else activation_changes)(tracer.events):
        for role, change in changes:
            live[role] += change
            total += 0 if role in hide else change
        is_new = not found or event.step != found[-1].step
        if is_new or total > found[-1].total:
            parts = {role: amount for role, amount in live.items() if amount and role not in hide}
            found[len(found) - (not is_new) :] = [Column(event.step, event.phase, total, parts)]
    return folded(found, most)


def byte_changes(events):
    """(event, [(role, how many bytes of it come or go)]) for each event."""
    for event in events:
        yield event, [(event.role, event.nbytes)]


def activation_changes(events):
    """(event, [(role, how many live activations of it come or go)]) for each event.

    The ledger counts them without their roles: one more or one less from an event to the next is one of the event's
    role. When a held buffer changes its role, two events tell of it, and the count stays. Whether the buffer was
    held is known from what was told of its value before.
    """
    held, count, old_role = Counter(), 0, None  # held: (value, role) -> how many of its buffers are held
    for event in events:
        change, count = event.live_activations - count, event.live_activations
        if event.kind == "role" and old_role is None:
            old_role = event.role
            yield event, []
            continue
        if change:
            changes = [(event.role if old_role is None or change > 0 else old_role, change)]
        elif old_role is not None and held[event.value, old_role] > 0:
            changes = [(old_role, -1), (event.role, 1)]
        else:
            changes = []
        for role, one in changes:
            held[event.value, role] += one
        old_role = None
        yield event, changes


def folded(found, most) -> list:
    """At most `most` columns: the highest of each of so many stretches, which are as equally long as can be."""
    count = min(len(found), most)
    cuts = [i * len(found) // count for i in range(count + 1)]
    return [highest(found[start:end]) for start, end in zip(cuts, cuts[1:], strict=False)]


def highest(found) -> Column:
    """The highest column; the first of several."""
    return max(found, key=total_of)


def total_of(column):
    return column.total


def stretches(found) -> dict:
    """phase -> [(where it begins, how long it is)], for each time that it was entered. A step is around its number."""
    starts = [i for i, column in enumerate(found) if i == 0 or column.phase != found[i - 1].phase]
    ends = [found[i].step for i in starts[1:]] + [found[-1].step + 1]
    phases = {}
    for i, end in zip(starts, ends, strict=True):
        phases.setdefault(found[i].phase, []).append((found[i].step - 0.5, end - found[i].step))
    return phases


def forward_steps(tracer) -> int:
    """How many steps the first forward took."""
    last = 0
    for event in tracer.events:
        if event.phase == "backward":
            break
        if event.phase == "forward":
            last = event.step
    return last


def check(tracer, what="bytes"):
    """Raise ArgumentError if there is nothing to show."""
    if what not in KINDS:
        raise ArgumentError(f'what must be "activations" or "bytes", not {what!r:.40}')
    if not getattr(tracer, "events", None):
        raise ArgumentError("there is nothing to plot: this is no Tracer, or nothing ran in its block")
