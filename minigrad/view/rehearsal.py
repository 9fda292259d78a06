"""How much is live during a walk that is under way, and how much will be.

The stepper begins when the tape is there already, so its tracer has not seen it grow. `ledger_of` tells a fresh
tracer what the tape holds now; from there on it counts as any tracer does.

Where the most will be live cannot be read off the tape: a replay holds what its ops make, and only running them
shows which of these share memory. So the rest of the walk is *rehearsed*, with everything retained, and told to a
tracer of its own as if it were let go.
"""

from ..budget.eviction import entry_of
from ..engine.modes import local
from ..engine.tape import next_number, reachable
from ..engine.tracer import speak_to_all
from ..engine.walk import Sweep
from ..retention.offload import SlowCopy
from ..trace.recorder import Tracer
from ..trace.saved import read_in_backward


def ledger_of(roots) -> Tracer:
    """A tracer that knows what the tape holds for all that `roots` depend on. It watches nothing yet."""
    ledger = Tracer()
    for node in reachable(roots):
        if node.op is None or node.freed:
            continue
        buffers = [node, *read_in_backward(node)]  # its own too: those who read it may have been passed already
        ledger.held(node, [source for source in buffers if source.out is not None])
        if node.body is not None:
            ledger.kept(node.needs, node)
        for copy in fetched_ahead(node):
            ledger.fetched(copy)
    return ledger


def fetched_ahead(node) -> list:
    """The copies in slow memory of a checkpoint's boundary whose values have been brought back already (offload)."""
    kept = () if node.body is None else node.needs.kept.values()
    return [copy for copy in kept if isinstance(copy, SlowCopy) and copy.fast is not None]


class Rehearsal(Sweep):
    """The rest of a walk, run ahead of it: it sees the same nodes, and changes none of them.

    What this walk would let go of stays; only the tracer is told that it went. What a replay in the rehearsal has
    made is its own, and does go.
    """

    def __init__(self, walk, ledger):
        vars(self).update(vars(walk))
        self.ledger, self.lets_go = ledger, not walk.retain_graph
        self.heap, self.grads, self.destination = list(walk.heap), dict(walk.grads), walk.destination.rehearsed()
        self.came_from, self.at_home = dict(walk.came_from), set(walk.at_home)
        self.start = next_number()
        self.retain_graph = True
        self.replays = 1  # advice about checkpoints is for the walk itself

    def release(self, node):
        if self.lets_go and node.number < self.start and node.region is None:
            self.ledger.let_go(node)
            if node.body is not None:
                self.ledger.let_go(node.needs)
        return super().release(node)


def peak_ahead(walk, roots):
    """(steps from here, live activations) of the step of `walk` in which the most will be live.

    The vjps run, as they will again; hooks are not called, and no leaf gets a gradient. Raises what the walk will
    raise if it fails on the way.
    """
    ledger, context = ledger_of(roots), local.context
    rehearsal, best = Rehearsal(walk, ledger), (0, ledger.live_activations)
    aside, tracers, context.tracers = set_aside(roots), context.tracers, ()  # nobody else shall see it
    try:
        with ledger:
            for ahead, _ in enumerate(Sweep.walk(rehearsal), 1):
                if ledger.peak_activations > best[1]:
                    best = ahead, ledger.peak_activations
                if not rehearsal.heap:
                    break  # after it, leaves would get their gradients
    finally:
        put_back(aside)
        context.tracers = tracers
        speak_to_all(context)
    return best


def is_under_a_budget(roots) -> bool:
    """Whether something below `roots` was recorded under a memory budget, or one is in force."""
    return local.context.budget is not None or any(entry_of(node) is not None for node in reachable(roots))


def set_aside(roots) -> list:
    """Take the hooks off all nodes below `roots`, and note what these hold; returns what `put_back` needs."""
    found = []
    for node in everything_below(roots):
        kept = None if node.body is None else dict(node.needs.kept)
        fetched = [(copy, copy.fast) for copy in fetched_ahead(node)]
        found.append((node, node.hooks, node.out is None, kept, fetched))
        node.hooks = None
    return found


def put_back(aside):
    """Give nodes their hooks back, and take from them what a rehearsal has left."""
    for node, hooks, was_empty, kept, fetched in aside:
        node.hooks = hooks
        if was_empty and node.out is not None:
            node.out = None
        if kept is not None:
            node.needs.kept = kept
        for copy, value in fetched:
            copy.fast = value


def everything_below(roots):
    """The nodes that a walk from `roots` may come to: those on the tape, and the lines of checkpoints' bodies."""
    bodies, seen = [], set()
    for node in reachable(roots):
        yield node
        if node.body is not None:
            bodies.append(node.body)
    while bodies:
        body = bodies.pop()
        if body in seen:
            continue
        seen.add(body)
        for line in body.lines:
            if line.body is not None:
                bodies.append(line.body)
                yield from line.outputs
            else:
                yield line
