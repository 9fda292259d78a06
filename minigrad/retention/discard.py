"""Checkpoints that do not keep their output either.

In `y = mg.checkpoint(norm, x)` followed by `linear(y)` the tape holds x, the boundary, and y, which linear's gradient
will read. With keep_output=False it holds x alone. When linear's vjp asks for y, the checkpoint is run again, a
little earlier than it would be anyway: what its own backward will read stays until then, and no op runs twice.

Of an output that is the boundary of another checkpoint there is no need to ask twice: that one keeps it.

Source: Megatron-LM calls it "checkpoint without output", for the norms and activations in front of a matmul.
"""

from ..engine.gradients import read_array
from ..engine.modes import local
from ..engine.replay import Work, execute, results
from ..engine.tape import Node


class Discarding(Node):
    """A checkpoint node that takes no value when an op wants it retained: `out` is None until it is restored."""

    __slots__ = ("restored",)

    def __init__(self, *fields):
        super().__init__(*fields)
        self.keeper = DISCARDED

    @property
    def out(self):
        return self.restored

    @out.setter
    def out(self, array):
        if array is None:
            self.restored = None

    def hold(self, array):
        self.restored = array


class Discarded:
    """The keeper of all outputs that the tape does not hold."""

    def bring_back(self, node, reader):
        return restore(node)


DISCARDED = Discarded()


def restore(node):
    """The value of a discarded output: its checkpoint runs now, and keeps what its own backward will read."""
    body, family, context = node.body, node.needs, local.context
    output = body.outputs[node.attrs["index"]]
    inside = {result for line in body.lines for result in results(line)}
    kept = {line: array for line, array in family.kept.items() if line in inside}
    later = body.work(sweep=[out for out in body.outputs if out.requires_grad]).read & inside
    work = Work(body, values=later | {output}, live=kept)
    values = {line: array for line, array in kept.items() if line in work.read}
    for source, actual in zip(body.boundary, node.inputs, strict=True):
        if source in work.read:
            copy = family.kept.get(source)
            reader = work.oldest.get(source, node) if actual.op is None else node
            values[source] = read_array(actual, reader) if copy is None else copy.fetch()
    run_for_values(body, work, values)
    family.kept.update((line, values[line]) for line in later)
    node.restored = values[output]
    if context.tracer is not None:
        context.tracer.kept(family, node)
        context.tracer.held(node, [node])
        context.tracer.replay_ended()
    return node.restored


def run_for_values(body, work, values):
    """Execute a replay that writes nothing on the tape."""
    context = local.context
    phase, context.phase = context.phase, "replay"
    try:
        if context.tracer is not None:
            context.tracer.taken_over(values)
        execute(body, work, values)
    finally:
        context.phase = phase
