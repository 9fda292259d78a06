"""Checkpoint nodes: record a stretch of the tape without its buffers.

`record_stretch(run, manner)` calls `run` once, ever. The ops that it runs become the lines of a `Body`, which
retains nothing. Whatever the body reads from outside is its *boundary* (arguments, closed-over tensors,
parameters, constants: found by looking, not by asking), and of that the tape keeps what a replay will read.

In backward the body is replayed (replay.py). A replay runs *recorded ops*, never `run`. So prints do not
repeat, statistics are not updated twice, a dropout mask comes back from its key, and no flag, cache or loop
variable that has changed in between can change anything.
"""

import collections
import itertools

from .messages import warn_nothing_returned
from .modes import advisers, local
from .place import source_line, user_position
from .replay import Body, Manner, Work, checkpoint_nodes, execute, may_run_for_values, results, tape_call
from .tape import hollow
from .tensor import Tensor


def record_stretch(run, manner, policy=None):
    """Record what `run()` does as a checkpoint, to be kept and replayed in this manner."""
    context = local.context
    if not context.grad:
        return run()
    outer, region = context.region, Region(manner, policy)
    try:
        context.region = context.open_region = region
        result = run()
        context.region = outer
        return region.close(result)
    finally:
        context.region = context.open_region = outer
        region.open = False
        region.end()


class Region:
    """A checkpoint while its function runs: collects the lines of the body, and finds the boundary.

    The confusing program it exists for is the one that uses tensors across its border:

        def fn(t):
            self.cache = t * 2          # smuggled: an error if it is used outside
            return mg.exp(t * w)        # w comes from outside: boundary

    A node remembers the region that it was recorded in, and the region whether it is still open. So the
    first use of a foreign tensor, in either direction, is noticed at no cost to anyone else.

    lines    what ran, as the lines of a body        cuts    how many lines there were after each layer
    outside  outside node -> the value it had        manner  how the body is to be kept and replayed
    policy   which lines' values to keep, or None    kept    line -> its value, of those
    loose    weak references to tensors without gradient that were made in here: they may leave as constants
    known    values that were computed again for a `mg.grad` in here, while it walks
    given    line -> value, of lines that a replay in here has written without running them: they cannot be run again
    states   of an online loop: step -> {node: value}, the states that are kept now
    listener who is told of each line, as it is added, with its arrays (profiling.Listener), or None
    """

    __slots__ = (
        "open", "outer", "lines", "outside", "loose", "known", "given", "cuts", "manner", "policy", "kept", "counts",
        "states", "listener", "where",
    )  # fmt: skip

    def __init__(self, manner, policy=None):
        self.open, self.outer = True, local.context.region
        self.lines, self.cuts, self.outside, self.loose, self.known, self.given = [], [], {}, [], {}, {}
        if self.outer is not None and self.outer.manner.digests is not None and manner.digests is None:
            manner = manner._replace(digests=self.outer.manner.digests.for_a_checkpoint_inside())
        self.manner, self.policy = manner, policy
        self.listener = None if self.outer is None else self.outer.listener
        self.kept, self.counts, self.states = {}, collections.Counter(), {}
        self.where = user_position()

    def __repr__(self):
        name = f" {self.manner.name!r}" if self.manner.name else ""
        return f"the checkpoint{name} at {source_line(self.where)}"

    def add(self, line, arrays, out=None):
        """Append what ran: an op's node with its output, or a nested checkpoint's Call."""
        for source, array in zip(line.inputs, arrays, strict=True):
            if source.region is not self and source.dtype is not None and array is not None:
                self.outside.setdefault(source, array)
        self.lines.append(line)
        if self.listener is not None:
            self.listener.hears(line, arrays, out)
        if out is None:
            return
        if self.manner.digests is not None:
            self.manner.digests.note(line, out)
        if self.policy is not None:
            if self.policy.at_end or self.policy.keeps(line, self.counts[line.op.name]):
                self.kept[line] = out
            self.counts[line.op.name] += 1

    def keep_state(self, step, state):
        """The state before this step of an online loop is to be a boundary, as far as is known now."""
        values = self.states[step] = {tensor.node: tensor.data for tensor in tensors_in(state)}
        if local.context.tracer is not None:
            local.context.tracer.taken_over(values)

    def forget_state(self, step):
        values = self.states.pop(step)
        if local.context.tracer is not None:
            for node in values:
                local.context.tracer.dropped(values, node)

    def value(self, node):
        """The value of a node that this region made or read: for a `mg.grad` called in here.

        The region keeps no buffers, so its own values are computed again from outside, and stay `known` until
        that walk is over. None if the region has not got the node at all.
        """
        if node.region is not self:
            return self.outside.get(node)
        if node in self.given:
            return self.given[node]
        if node not in self.known:
            body, live = Body(self._alive([node])[0], [node]), {**self.given, **self.known}
            wanted = [result for line in Work(body, values=[node], live=live).runs for result in results(line)]
            values = {**self.outside, **live}
            execute(body, Work(body, values=wanted, live=live), values)
            self.known.update((result, values[result]) for result in wanted if result in values)
        return self.known[node]

    def close(self, result):
        """The function has returned `result`: make the checkpoint's nodes, and move its tensors onto them.

        The tensors stay the same objects, so whoever else has got hold of one has the real thing.
        """
        found = {id(tensor): tensor for tensor in tensors_in(result)}
        handles = [t for t in found.values() if t._node is not None and t._node.region is self]
        outputs = list(dict.fromkeys(t._node for t in handles if t.requires_grad or self.outer is not None))
        if not outputs and any(node.requires_grad for line in self.lines for node in results(line)):
            warn_nothing_returned(self, result)
        nodes = dict(zip(outputs, self._record(outputs), strict=True)) if outputs else {}
        for line, node in nodes.items():
            given = line.name if line.body is None else None  # a tensor's name; not that of a checkpoint inside
            node.name = given or node.name
        for tensor in handles:
            tensor._node = nodes.get(tensor._node)
        return result

    def _record(self, outputs):
        lines, outputs, cuts = self._alive(outputs)
        swept = [node for node in outputs if node.requires_grad]
        manner = self.manner._replace(keep=self._chosen(lines, swept))
        body = Body(lines, outputs, cuts, manner)
        if self.states and self.outer is None:
            return self._record_parts(body, swept)
        kept = {line: self.kept[line] for line in manner.keep} if self.outer is None else {}
        work = body.kept_for(swept, live=kept)
        arrays = [self.outside.get(source) for source in body.boundary]
        if self.outer is None:
            if not may_run_for_values(body):
                body.substitute({s: hollow(s) for s in body.boundary if s not in work.read and s is not hollow(s)})
            for adviser in advisers:
                adviser.checkpointed(self, body, work, kept)
        return checkpoint_nodes(body, body.boundary, arrays, work, outputs, local.context.layer, self.where, kept)

    def _chosen(self, lines, swept):
        """The lines whose values the policy keeps: of those that it wants, what a replay will read."""
        candidates = [line for line in lines if line in self.kept]
        if self.policy is not None and self.policy.at_end:
            candidates = self.policy.choose(lines, swept)
        given = [line for line in lines if line in self.given] if self.given else []
        if not candidates and not given:
            return frozenset()
        self.kept.update(self.given)
        candidates = frozenset([*candidates, *given])
        return candidates & Body(lines, swept).work(sweep=swept, live=candidates).read

    def _record_parts(self, body, swept):
        """An online loop has ended: its stretches become checkpoints, whose boundaries are the states kept."""
        body = body.for_replay()
        values = dict(self.outside)
        for state in self.states.values():
            values.update(state)
        fresh = {source: source for source in body.boundary}
        work = body.kept_for(swept)
        for line in body.lines:
            if line not in work.replays:
                continue  # no gradient passes: what is read of it is a constant
            for source in line.inputs:
                if source.dtype is not None and source not in values:
                    values[source] = self.value(source)  # read across stretches, and no part of a state
            tape_call(line, work.replays[line], values, fresh, kept={})
        for step in list(self.states):
            self.forget_state(step)
        return [fresh[node] for node in body.outputs]

    def _alive(self, outputs):
        """The lines that `outputs` depend on, the outputs, and the cuts between layers counted anew."""
        needed, keep = set(outputs), []
        for line in reversed(self.lines):
            alive = line in needed if line.body is None else not needed.isdisjoint(line.outputs)
            keep.append(alive)
            if alive:
                needed.update(line.inputs)
        keep.reverse()
        lines = [line for line, alive in zip(self.lines, keep, strict=True) if alive]
        lines_before = [0, *itertools.accumulate(keep)]
        return lines, outputs, [lines_before[cut] for cut in self.cuts]

    def end(self):
        """Let go of all that the region has gathered. What left without gradient is data from here on.

        The caller has closed the border (`open` is False). First go the references that would make a cycle, the
        digests of its lines among them; an interrupt in the loops below leaves nothing alive.
        """
        lines, loose, states = self.lines, self.loose, self.states
        self.lines = self.outside = self.known = self.kept = self.given = ()
        self.loose, self.states, self.outer, self.manner = (), {}, None, Manner(name=self.manner.name)
        for line in lines:
            for node in results(line):
                node.out = None
        for reference in loose:
            tensor = reference()
            if tensor is not None and tensor._node is not None and tensor._node.region is self:
                tensor._node = None
        self.states = states
        for step in list(states):
            self.forget_state(step)


def tensors_in(value):
    """The tensors in any nesting of tuples, namedtuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
