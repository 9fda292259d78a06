"""Whether a checkpoint saves anything, and how much its replay will hold: counted from its body.

A checkpoint costs a replay. One that keeps as many buffers as the tape would have kept, or that stands for all
there is, so that its replay brings everything back at once, costs it for nothing; then the user is told.
"""

from ..engine.messages import warn_policy, warn_useless, warn_whole
from ..engine.modes import advisers
from ..engine.replay import Call


def warn_if_useless(region, body, work, chosen):
    """One op, or ops that keep nothing: then the boundary costs as much as the tape would have.

    With a policy, whose choice is `chosen`, bytes are compared: it may well keep fewer, but larger buffers.
    """
    if body.manner.slow is not None:
        return  # what is kept leaves the fast memory
    kept = [s for s in body.boundary if s in work.read and not is_parameter(s)]
    if chosen:
        here = sum(node.nbytes for node in (*kept, *chosen) if is_new(node))
        there = sum(node.nbytes for node in buffers_of_plain_taping(body) if is_new(node))
        if here > there:
            warn_policy(region, len(chosen), here, there)
    elif not keeps_more_than(body, sum(map(is_new, kept))):
        warn_useless(region, len(kept), len(buffers_of_plain_taping(body)))


def warn_if_whole(node, body, live, freed):
    """The first replay of a walk, which has freed `freed` buffers so far, may be of nearly all there is."""
    inside = len(buffers_of_plain_taping(body).union(live))
    plain = inside + freed
    leaves_only = all(source.op is None for source in node.inputs)
    no_calls = not any(isinstance(line, Call) for line in body.lines)
    if leaves_only and inside > 1 and freed * 10 <= plain and no_calls:
        warn_whole(node, replay_peak(body), plain)


def is_parameter(node):
    return node.op is None and node.role == "parameter"


def is_new(node):
    """Whether keeping this node's buffer costs anything: not if the tape holds it already for somebody else."""
    return node.op is None or node.out is None


def keeps_more_than(body, count):
    """Whether the tape would keep more buffers than that; looks no further than it must."""
    found = set()
    for first in range(0, len(body.lines), count + 1):
        lines = body.lines[first : first + count + 1]
        found.update(node for node in buffers_of_plain_taping(body, lines) if is_new(node))
        if len(found) > count:
            return True
    return False


def buffers_of_plain_taping(body, lines=None):
    """The nodes, parameters aside, whose buffers the tape would keep of a body, or of these lines of it."""
    kept = set()
    for line in body.lines if lines is None else lines:
        if isinstance(line, Call):
            work = line.body.work(sweep=[o for o in line.body.outputs if o.requires_grad])
            kept.update(s for s, b in zip(line.inputs, line.body.boundary, strict=True) if b in work.read)
        else:
            kept.update(line.inputs[i] for i in line.needs.inputs)
            kept.update([line] if line.needs.out else [])
    return {node for node in kept if node.dtype is not None and not is_parameter(node)}


def replay_peak(body):
    """The most buffers, parameters aside, that a replay of a body without nested checkpoints holds at once."""
    work = body.work(sweep=[output for output in body.outputs if output.requires_grad])
    kept = {source for source in body.boundary if source in work.read}
    live, peak = {source for source in kept if not is_parameter(source)}, 0
    for line in body.lines:
        if line in work.runs:
            live.add(line)
            peak = max(peak, len(live))
        if line in work.taped:
            kept.update(line.inputs[i] for i in line.needs.inputs)
            kept.update([line] if line.needs.out else [])
        live.difference_update([source for source in work.drops[line] if source not in kept])
    return peak


class Advice:
    """What the engine tells of checkpoints (engine.modes.advisers)."""

    def checkpointed(self, region, body, work, kept):
        warn_if_useless(region, body, work, kept)

    def replays(self, node, body, live, freed):
        warn_if_whole(node, body, live, freed)


advisers.append(Advice())
