"""Rematerialisation: evicted values come back by running their recorded ops again.

To have a value one runs its op, and for that one needs the op's inputs. Those that are not held have to be run before,
and so on, down to what is held. `Rematerialisation` finds these ops by walking down from what is asked for, and runs
them in the order of the tape. There is no recursion: a stretch of a hundred thousand evicted values is a list.

While it runs, the budget holds. Each value that it makes may push out others: among them such as were there when it was
planned, and are read only later. When it comes to that, their ops are planned as well, in front of the others.
"""

from ..engine.device import memory_owner
from ..engine.messages import freed_error, overwritten_error
from ..engine.modes import local
from ..engine.op import run
from ..engine.replay import Family, execute
from ..engine.tape import number_of
from ..engine.tracer import speak_to_all
from ..retention.discard import Discarding
from ..trace.saved import read_in_backward
from .eviction import entry_of, inputs_to_run, kept_inside, unheld, work_for_values


def rematerialise(source, reader):
    """The value of `source`, which `reader` reads; what else `reader` reads and is evicted comes back with it."""
    pool = entry_of(source).pool
    sources = [*dict.fromkeys([*read_in_backward(reader), source])]
    missing = [node for node in sources if unheld(node) is not None and unheld(node).pool is pool]
    missing = [node for node in missing if type(node) is not Discarding]  # comes back in a way of its own
    with InForce(pool):
        pool.lock(sources)
        Rematerialisation(pool, missing).run()
        pool.lock(sources)
    return source.out


class InForce:
    """While values come back their pool listens, in a replay's phase, whatever budget the caller is in."""

    def __init__(self, pool):
        self.pool = pool

    def __enter__(self):
        context = local.context
        self.before = context.budget, context.tracer, context.phase, self.pool.rematerialising
        context.budget, context.phase, self.pool.rematerialising = self.pool, "replay", True
        speak_to_all(context)

    def __exit__(self, *error):
        context = local.context
        context.budget, context.tracer, context.phase, self.pool.rematerialising = self.before


class Rematerialisation:
    """Runs recorded ops again until the values of `targets` are on the tape.

    todo    nodes to be run, the oldest last
    values  node -> array: what has run, and is still to be read by a node in `todo`. Nothing of it is evicted
    uses    node -> how many nodes in `todo` will read it

    A value that some vjp will read goes back on the tape as soon as it is there. When `values` has dropped it, after
    its last use here, it can be evicted again, like any other. A value that no vjp reads is gone then.
    """

    def __init__(self, pool, targets):
        self.pool, self.tracer, self.targets = pool, local.context.tracer, targets
        self.todo, self.values, self.uses = [], {}, dict.fromkeys(targets, 1)  # that of whoever asks

    def run(self):
        try:
            self.plan(self.targets)
            while self.todo:
                missing = self.missing_for(self.todo[-1])
                if missing:
                    self.plan(missing)  # there when this node was planned, and evicted since
                else:
                    self.run_oldest()
        finally:
            for node in list(self.values):
                self.drop(node)

    def missing_for(self, node):
        return [source for source in inputs_to_run(node) if source.out is None and source not in self.values]

    def plan(self, nodes):
        """Put on `todo` what must run for these nodes. All of them are older than what is there already."""
        found, waiting = set(), list(nodes)
        while waiting:
            node = waiting.pop()
            if node in found or node.out is not None or node in self.values:
                continue
            if entry_of(node) is None or is_freed_checkpoint(node):
                raise freed_error(node)
            found.add(node)
            waiting += inputs_to_run(node)
        for node in found:
            for source in dict.fromkeys(inputs_to_run(node)):
                self.uses[source] = self.uses.get(source, 0) + 1
        self.todo += sorted(found, key=number_of, reverse=True)

    def run_oldest(self):
        """Run the oldest node of `todo`; of a checkpoint's nodes all that are there, which come one after another."""
        nodes = [self.todo.pop()]
        if nodes[0].body is not None:
            while self.todo and self.todo[-1].needs is nodes[0].needs and not self.missing_for(self.todo[-1]):
                nodes.append(self.todo.pop())
        sources = [source for node in nodes for source in dict.fromkeys(inputs_to_run(node))]
        self.pool.operands = {id(memory_owner(source.out)) for source in sources if source.out is not None}
        try:
            if nodes[0].body is None:
                self.run_op(nodes[0])
            else:
                self.run_body(nodes)
        finally:
            self.pool.operands = set()
        for node in nodes:
            self.put_back(node)
        for source in sources:
            self.uses[source] -= 1
            if not self.uses[source] and source in self.values:
                self.drop(source)

    def run_op(self, node):
        arrays = [self.value(source, node) for source in node.inputs]
        self.values[node] = out = run(node.op, arrays, node.attrs, self.tracer)
        self.tracer.replayed(self.values, node, out)

    def run_body(self, siblings):
        """Run a checkpoint's body for the values of these nodes of it, writing nothing on the tape."""
        node, body = siblings[0], siblings[0].body
        work = work_for_values(siblings)
        inside = {line: array for line, array in kept_inside(node).items() if line in work.read}
        for source, actual in zip(body.boundary, node.inputs, strict=True):
            if source in work.read:
                inside[source] = self.value(actual, work.oldest[source] if actual.op is None else node)
        execute(body, work, inside)
        for sibling in siblings:
            line = body.outputs[sibling.attrs["index"]]
            self.values[sibling] = inside[line]
            self.tracer.handed_on(inside, line, self.values, sibling)

    def value(self, source, reader):
        if source.op is None and source.number > reader.number:
            raise overwritten_error(source, reader)
        return self.values[source] if source.out is None else source.out

    def put_back(self, node):
        """Retain a value again, if some vjp will read it; drop it, if nothing here will."""
        if (entry_of(node).wanted or node in self.targets) and not node.freed:
            node.out = self.values[node]  # which a Discarding node does not take
            self.tracer.held(node, [node])
        if not self.uses.get(node):
            self.drop(node)

    def drop(self, node):
        del self.values[node]
        self.tracer.dropped(self.values, node)


def is_freed_checkpoint(node):
    """Whether this is a checkpoint's node that a backward has passed: its body is gone. Other ops can still run."""
    return node.body is None and isinstance(node.needs, Family)
