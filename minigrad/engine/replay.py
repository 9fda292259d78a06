"""Replay: a checkpoint's stretch of tape as a program, and what a backward runs of it again.

A `Body` is what a checkpoint keeps instead of buffers. When the sweep comes to a checkpoint node, `Work`
walks the body's lines backwards once and finds what this replay has to do: which lines the gradient will
pass, which values their vjps will read, and so which ops must run. A line whose output nobody reads is not
run (the last layer of a segment, as a rule); a line whose output is still held is not run either; dead
ends are skipped. `execute` then goes forwards, runs those ops on arrays, writes the lines that the gradient
will pass on the tape again, through the ordinary `op.record`, and drops each value after its last use.
"""

import weakref
from typing import NamedTuple

from .modes import local
from .op import Needs, record, run
from .tape import Leaf, Node, hollow


class Family(Needs):
    """What stands in `node.needs` of checkpoint nodes: no vjps, and the siblings that stand for one body.

    members  weak references to them, in the order of the body's outputs
    kept     node of the body -> what the checkpoint itself keeps for its replay: an array, for a line that a
             policy chose, or a SlowCopy, for a node of the boundary that was offloaded
    """

    __slots__ = ("members", "kept", "__weakref__")

    def __init__(self):
        super().__init__((), 0)
        self.members, self.kept = [], {}


class CheckpointOp:
    """What stands in `node.op` of a checkpoint node. It has no forward of its own: it has a body."""

    name = "checkpoint"

    def __repr__(self):
        return "<op checkpoint>"


CHECKPOINT = CheckpointOp()


class Call:
    """A checkpoint as one line of a body: `body` run on `inputs` gives `outputs` (all of them nodes)."""

    __slots__ = ("body", "inputs", "outputs", "layer", "where")

    def __init__(self, body, inputs, outputs, layer, where):
        self.body, self.inputs, self.outputs = body, inputs, outputs
        self.layer, self.where = layer, where


class Manner(NamedTuple):
    """How a body is kept and replayed.

    name      for tables and pictures
    digests   with verify=True: who notes what the first run gave, and compares (retention/verify.py)
    schedule  how a replay splits the layers of a chain again; None: it tapes all of them
    whole     a replay runs every line, also those whose output nobody reads
    slow      where the boundary waits, if not in fast memory (retention/offload.py)
    memory    what makes such a place for a schedule that wants so many boundaries at hand
    kind      the class of the checkpoint's nodes; another than Node may not hold the outputs (retention/discard.py)
    given     data that was given to the checkpoint as an argument: of data, only that is offloaded
    keep      lines whose values a policy wants kept
    """

    name: str | None = None
    digests: object = None
    schedule: object = None
    whole: bool = False
    slow: object = None
    memory: object = None
    kind: type = Node
    given: frozenset = frozenset()
    keep: frozenset = frozenset()

    @property
    def discard(self) -> bool:
        """Whether the tape does not hold the outputs either."""
        return self.kind is not Node

    def under(self, schedule):
        """The same for a part that is a checkpoint under `schedule`."""
        slow = None if schedule.offload is None else self.memory(schedule.offload)
        return self._replace(schedule=schedule, whole=not schedule.early_stop, slow=slow, given=frozenset())


PLAIN = Manner()


class Body:
    """A stretch of tape as a program: `lines` in order, from `boundary` to `outputs`.

    lines     Nodes and Calls without buffers; they name each other and the boundary by identity
    boundary  the outside nodes that the lines read; a checkpoint node's `inputs` are in the same order
    outputs   the nodes whose values leave the stretch
    cuts      for each layer of a chain, how many lines there are up to its end; empty if it is no chain
    manner    how it is kept and replayed
    """

    def __init__(self, lines, outputs, cuts=(), manner=PLAIN):
        self.lines, self.outputs, self.cuts, self.manner = lines, tuple(outputs), tuple(cuts), manner
        inside = {node for line in lines for node in results(line)}
        self.boundary = tuple(dict.fromkeys(s for line in lines for s in values_read(line) if s not in inside))
        self._works = {}

    def __repr__(self):
        return f"<Body of {len(self.lines)} lines: {len(self.boundary)} nodes in, {len(self.outputs)} out>"

    def work(self, sweep=(), values=(), live=()):
        """What a replay for these outputs has to do when the boundary and `live` are at hand; found once."""
        key = frozenset(sweep), frozenset(values), frozenset(live)
        if key not in self._works:
            self._works[key] = Work(self, *key)
        return self._works[key]

    def kept_for(self, swept, live=()):
        """The work that says what of the boundary to keep: for a replay, and to make an output that is not kept."""
        return self.work(sweep=swept, values=swept if self.manner.discard else (), live=live)

    def for_replay(self):
        """The lines as a replay runs them: what the schedule checkpoints again has become Calls."""
        if self.manner.schedule is None:
            return self
        return self.split(self.manner.schedule.parts_of_replay(len(self.cuts)))

    def split(self, parts):
        """The body with those parts of its layers that have a schedule as Calls: checkpoints under it."""
        if len(parts) == 1 and parts[0][1] is None:
            return self
        ends = (0, *self.cuts)
        needed, pieces, last = set(self.outputs), [], len(self.cuts)
        for length, schedule in reversed(parts):
            first = last - length
            part = self.lines[ends[first] : ends[last]]
            if schedule is not None and part:
                cuts = [cut - ends[first] for cut in self.cuts[first:last]]
                outputs = [node for line in part for node in results(line) if node in needed]
                body = Body(part, outputs, cuts, self.manner.under(schedule))
                line = part[0]
                part = [Call(body, body.boundary, body.outputs, line.layer, line.where)]
            needed.update(source for line in part for source in line.inputs)
            pieces.append(part)
            last = first
        lines = [line for piece in reversed(pieces) for line in piece]
        return Body(lines, self.outputs, (), self.manner._replace(schedule=None))

    def substitute(self, new):
        """Put `new[node]` wherever a line reads `node`."""
        if not new:
            return
        for line in self.lines:
            if any(source in new for source in line.inputs):
                line.inputs = tuple(new.get(source, source) for source in line.inputs)
            if isinstance(line, Call):
                line.body.substitute(new)
                for node in line.outputs:
                    node.inputs = line.inputs
        self.boundary = tuple(new.get(source, source) for source in self.boundary)


def results(line):
    return line.outputs if isinstance(line, Call) else (line,)


def values_read(line):
    """The nodes that a line reads; plain numbers are part of the program, not of its boundary."""
    return [source for source in line.inputs if source.dtype is not None]


class Work:
    """What one replay of a body has to do, found by walking its lines backwards once.

    sweep    outputs that have a gradient (their lines are taped again and swept)
    values   outputs whose values are wanted
    live     nodes whose values are at hand already

    taped    lines that a gradient passes          runs   lines that must be executed
    read     nodes whose values are needed         drops  line -> values that it is the last to use
    oldest   node -> the first op that reads its value: a leaf may not have been overwritten since

    A replay that is `whole` (body.manner) runs every line that a gradient passes, its outputs read or not.
    """

    def __init__(self, body, sweep=(), values=(), live=()):
        self.taped, self.read, self.runs = set(sweep), set(values), set()
        self.drops, self.replays, self.advances, self.oldest = {}, {}, {}, {}
        self.whole = body.manner.whole and bool(sweep)
        for line in reversed(body.lines):
            if self.whole:
                unread = [out for out in results(line) if out not in self.read]
            uses = self._op(line, live) if line.body is None else self._call(line, live)
            self.drops[line] = drops = self._last_uses(uses)
            if self.whole:
                drops += [out for out in unread if out not in self.read]

    def _last_uses(self, uses):
        """Note that these values are read; returns those that no later line reads."""
        read, drops = self.read, []
        for source in uses:
            if source not in read:
                read.add(source)
                drops.append(source)
        return drops

    def _op(self, line, live):
        taped, needs, inputs, uses = self.taped, line.needs, line.inputs, []
        runs = line in self.read
        if line in taped:
            for index, _ in needs.vjps:
                taped.add(inputs[index])
            for index in needs.inputs:
                uses.append(inputs[index])
            if needs.out:
                uses.append(line)
            runs = runs or needs.out or self.whole
        if runs and line not in live:
            self.runs.add(line)
            for source in inputs:
                if source.dtype is not None:  # a plain number is part of the program
                    uses.append(source)
        oldest = self.oldest
        for source in uses:
            oldest[source] = line
        return uses

    def _call(self, call, live):
        """A Call in the body may be taped again (its own replay comes later), advanced now, or both."""
        inside = dict(zip(call.outputs, call.body.outputs, strict=True))
        outside = dict(zip(call.body.boundary, call.inputs, strict=True))
        uses = []
        passed = [node for node in call.outputs if node in self.taped]
        if passed:
            work = self.replays[call] = call.body.kept_for([inside[node] for node in passed])
            self.taped.update(node for node in call.outputs if inside[node] in work.taped)  # which others read, inside
            self.taped.update(outside[source] for source in work.taped if source in outside)
            uses += self._uses_of(work, outside)
        needed = [node for node in call.outputs if node in self.read or (self.whole and node in passed)]
        wanted = [inside[node] for node in needed if node not in live]
        if wanted:
            work = self.advances[call] = call.body.work(values=wanted)
            self.runs.add(call)
            uses += self._uses_of(work, outside)
        return uses

    def _uses_of(self, work, outside):
        """What of the outside a nested body's work reads, and which op in there reads it first."""
        read = {source: actual for source, actual in outside.items() if source in work.read}
        for source, actual in read.items():
            first, known = work.oldest[source], self.oldest.get(actual)
            self.oldest[actual] = first if known is None or first.number < known.number else known
        return list(read.values())


def execute(body, work, values, fresh=None, kept=None):
    """Run the lines of `body` that `work` asks for; with `fresh`, also write the taped ones on the tape again.

    values  node -> array, for what is at hand; grows as lines run, and shrinks as values have been used
    fresh   node of the body -> node of the tape, to be filled; None to compute only
    kept    line -> array, to be filled with what the body's policy wants kept; None for nothing
    """
    tracer, region = local.context.tracer, local.context.region
    digests, runs, taped, drops = body.manner.digests, work.runs, work.taped, work.drops
    for line in body.lines:
        is_call = line.body is not None
        kept_inside = {} if is_call else None
        if is_call and line in runs:
            advance(line, work.advances[line], values, kept_inside)
        elif line in runs:
            arrays = [values[source] if source.dtype is not None else source.out for source in line.inputs]
            values[line] = out = run(line.op, arrays, line.attrs, tracer)
            arrays = None
            if tracer is not None:
                tracer.replayed(values, line, out)
            if digests is not None:
                digests.compare(line, out)
            if kept is not None and line in body.manner.keep:
                kept[line] = out
            out = None
        if fresh is not None and is_call and line in work.replays:
            tape_call(line, work.replays[line], values, fresh, kept_inside)
        elif fresh is not None and line in taped:
            tape_op(line, values, fresh)
            if region is not None and line in values and line not in runs:
                region.given[fresh[line]] = values[line]
        for source in drops[line]:
            if values.pop(source, None) is not None and tracer is not None:
                tracer.dropped(values, source)


def advance(call, work, values, kept):
    """Run a nested body for its outputs alone: nothing in it is taped; but `kept` gets what its policy keeps."""
    tracer = local.context.tracer
    inside = {s: values[actual] for s, actual in zip(call.body.boundary, call.inputs, strict=True) if s in work.read}
    execute(call.body, work, inside, kept=kept)
    for node, output in zip(call.outputs, call.body.outputs, strict=True):
        if output in inside:
            values[node] = inside.pop(output)
            if tracer is not None:
                tracer.handed_on(inside, output, values, node)


def tape_op(line, values, fresh):
    """Write one op of a body on the tape again."""
    inputs, arrays = [], []
    for source in line.inputs:
        if source.dtype is None:
            inputs.append(source)
            arrays.append(source.out)
        else:
            inputs.append(fresh[source] if source in fresh else fresh_input(source, values, fresh))
            arrays.append(values.get(source))
    node = record(
        line.op, line.attrs, inputs, arrays, values.get(line), line.shape, line.dtype, line.needs,
        line.layer, line.code, line.offset, local.context,
    )  # fmt: skip
    fresh[line] = node if line.extras is None else with_watchers(node, line, fresh)


def tape_call(call, work, values, fresh, kept):
    """Write a nested checkpoint on the tape again: fresh nodes on the same body."""
    inputs = tuple([fresh_input(source, values, fresh) for source in call.inputs])
    arrays = [values.get(source) for source in call.inputs]
    nodes = checkpoint_nodes(call.body, inputs, arrays, work, call.outputs, call.layer, call.where, kept)
    for output, node, inner in zip(call.outputs, nodes, call.body.outputs, strict=True):
        if inner not in work.taped:
            continue  # no gradient comes to it: who reads it reads a constant
        if output is inner:  # a stretch that a schedule has split off: the line itself is watched, when it is taped
            node.name = output.name
            fresh[output] = node
        else:
            fresh[output] = with_watchers(node, output, fresh)


def fresh_input(source, values, fresh):
    """The tape's node for what a body's line reads; a value through which no gradient flows is a constant."""
    if source.dtype is None:
        return source
    if source not in fresh:
        # Its readers retain the data; under a budget an op that does not read it may have to run again.
        fresh[source] = constant_like(source, None if local.context.budget is None else values.get(source))
    return fresh[source]


def constant_like(source, array):
    """A leaf in the place of `source`, with `array` for its data."""
    leaf = Leaf(array, name=source.name)
    leaf.shape, leaf.dtype, leaf.number = source.shape, source.dtype, source.number
    return leaf


def with_watchers(node, line, fresh):
    """`node` with the hooks, the name and the holder of a gradient that were put on the body's line."""
    node.hooks, node.holder, node.name = line.hooks, line.holder, line.name
    if line.alias is not None:
        node.alias = fresh.get(line.alias)
    return node


def checkpoint_nodes(body, inputs, arrays, work, outputs, layer, where, kept=None):
    """A node for each output of a checkpoint.

    Retains what of its boundary `work`, its replay, will read, in fast or slow memory, and what a policy has
    `kept` (line -> array).
    """
    context = local.context
    region, family, kind = context.region, Family(), body.manner.kind
    if region is None:
        family.kept.update(kept or {})
        inputs = retain_boundary(body, inputs, arrays, work, family)
    nodes = []
    for index, output in enumerate(outputs):
        node = kind(
            CHECKPOINT, {"index": index}, inputs, output.shape, output.dtype, layer, *where,
            output.requires_grad, family, region,
        )  # fmt: skip
        node.body, node.name = body, body.manner.name
        family.members.append(weakref.ref(node))
        nodes.append(node)
    if region is not None:
        region.add(Call(body, inputs, tuple(nodes), layer, where), arrays)
        return nodes
    if context.tracer is not None:
        for node in nodes:
            context.tracer.held(node, held_boundary(body, inputs, work))
        context.tracer.kept(family, nodes[0])
    if context.tape is not None:
        context.tape.nodes.extend(nodes)
    return nodes


def retain_boundary(body, inputs, arrays, work, family):
    """Keep what a replay will read of the boundary; returns the inputs, hollow where slow memory has the data."""
    inputs = list(inputs)
    for index, (source, array, actual) in enumerate(zip(body.boundary, arrays, inputs, strict=True)):
        if source not in work.read:
            inputs[index] = actual if may_run_for_values(body) else hollow(actual)
        elif body.manner.slow is not None and body.manner.slow.wants(actual, body.manner.given):
            family.kept[source] = body.manner.slow.store(actual, array)
            inputs[index] = hollow(actual)
        elif actual.op is not None and source not in work.taped:
            inputs[index] = constant_like(actual, array)  # read, but no gradient flows: the sweep may never pass it
            inputs[index].number = min(actual.number, source.number)  # as old as what the body's lines have read
        elif actual.out is None:
            actual.hold(array)
    return tuple(inputs)


def held_boundary(body, inputs, work):
    """Of a checkpoint node's inputs those whose values it holds."""
    needs_all = may_run_for_values(body)
    pairs = zip(body.boundary, inputs, strict=True)
    return [actual for source, actual in pairs if source in work.read or (needs_all and actual.op is None)]


def may_run_for_values(body):
    """Whether the body may have to run for its outputs alone, so that it needs also what its replay does not read."""
    return body.manner.discard or local.context.budget is not None
