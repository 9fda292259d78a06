"""Whether a checkpoint saves anything, and how much its replay will hold: counted from its body.

A checkpoint costs a replay. One that keeps as many buffers as the tape would have kept, or that stands for all
there is, so that its replay brings everything back at once, costs it for nothing; then the user is told.
"""

from ..engine.messages import warn_policy, warn_useless, warn_whole
from ..engine.replay import Call


def warn_if_useless(region, body, work, chosen):
    """One op, or ops that keep nothing: then the boundary costs as much as the tape would have.

    With a policy, whose choice is `chosen`, bytes are compared: it may well keep fewer, but larger buffers.
    """
    if body.manner.window is not None:
        return  # what is kept leaves the fast memory
    plain = buffers_of_plain_taping(body)
    kept = [s for s in body.boundary if s in work.read and not is_parameter(s)]
    if chosen:
        here, there = (sum(node.nbytes for node in nodes if is_new(node)) for nodes in ([*kept, *chosen], plain))
        if here > there:
            warn_policy(region, len(chosen), here, there)
    elif sum(map(is_new, plain)) <= sum(map(is_new, kept)):
        warn_useless(region, len(kept), len(plain))


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


def buffers_of_plain_taping(body):
    """The nodes, parameters aside, whose buffers the tape would keep if the body were no checkpoint."""
    kept = set()
    for line in body.lines:
        if isinstance(line, Call):
            work = line.body.work(sweep=[o for o in line.body.outputs if o.requires_grad])
            kept.update(s for s, b in zip(line.inputs, line.body.boundary, strict=True) if b in work.read)
        else:
            kept.update(line.inputs[i] for i in line.needs.inputs)
            kept.update([line] if line.needs.out else [])
    return {node for node in kept if node.dtype is not None and not is_parameter(node)}


def is_held_constant(node):
    """Whether this input is a constant whose data its reader keeps."""
    return node.op is None and node.dtype is not None and node.out is not None and node.role == "input"


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
