"""One walk backward, node by node.

The whole of the algorithm is in `walk` and `step`: take the youngest node; its gradient is complete, since
everything that reads it is younger; ask its vjps; add what they give to the gradients of its inputs; let go
of its buffer. `checkpoint` and `replay` are what happens instead at a checkpoint node, and `finish` is what
leaves get at the very end.
"""

import heapq
import threading
import weakref

from ..errors import MinigradError
from .destination import Collect, Deposit, output_of
from .device import is_array
from .gradients import ARRAYS, TENSORS, call_hooks, fit, has_nan, passed_on, plus, read_array
from .messages import freed_error, locate, nan_error, vjp_error
from .modes import advisers, local
from .replay import Work, constant_like, execute
from .tape import hollow, is_held_constant, next_number


class Here(threading.local):
    """The walks of this thread that are under way, for whoever wants a picture of where they are."""

    def __init__(self):
        self.references = []  # without callbacks, in which Python would swallow an interrupt

    def add(self, walk):
        self.references = [reference for reference in self.references if reference() is not None] + [weakref.ref(walk)]

    @property
    def walks(self):
        return [walk for reference in self.references if (walk := reference()) is not None]


here = Here()


class Sweep:
    """The state of one walk: a heap of nodes and the gradients that wait at them.

    With `targets` it collects their gradients, follows only nodes that lead to one, and leaves nothing in
    any `.grad`. With `create_graph` gradients are Tensors and every vjp is recorded; otherwise arrays.
    A walk that is not `watched` yields nothing of use, and nothing at all for leaves: nobody looks at it.
    """

    def __init__(self, seeds, retain_graph, create_graph, targets=None, watched=False):
        self.context, self.watched = local.context, watched
        self.retain_graph, self.create_graph = retain_graph or create_graph, create_graph
        self.heap, self.grads = [], {}
        self.arithmetic = TENSORS if create_graph else ARRAYS
        roots = [tensor._node for tensor, _ in seeds]
        self.destination = Deposit() if targets is None else Collect(targets, roots)
        self.start = next_number()
        self.buffers_freed, self.replays = 0, 0
        self.came_from = {}  # first number of a replay's fresh nodes -> its checkpoint node, the innermost replay last
        self.passed_by = []  # fresh nodes of earlier walks, whose gradients went to the outputs that have their values
        self.at_home = set()  # with create_graph: fresh nodes of this walk's own replays that have an alias
        self.began_at = frozenset(node.number for node in roots)
        here.add(self)
        tracer = local.context.tracer
        for tensor, gradient in seeds:
            if tracer is not None:
                tracer.gradient(tensor._node, gradient)
            if self.follows(tensor._node):
                self.give(tensor._node, gradient)

    @property
    def leaves(self):
        """leaf -> the gradient that waits for it."""
        return self.destination.leaves

    def follows(self, node):
        """Whether the walk is to come to this node."""
        return self.destination.wanted is None or node in self.destination.wanted

    def walk(self):
        """Yield the fields of a Step for each node, youngest first, then for each leaf that gets a gradient."""
        context = self.context
        while self.heap:
            node = heapq.heappop(self.heap)[1]
            try:
                if self.create_graph or node.body is not None or context.tracer or context.region:
                    fields = self.step_in_modes(node)
                else:
                    fields = self.step(node)  # arrays only: there is nobody whom the modes would concern
            except MinigradError as error:
                locate(error, [node, *self.checkpoints_around(node)])
                raise
            yield fields
            fields = None
        yield from self.finish()

    def give(self, node, gradient):
        """Add to the gradient that waits at `node`."""
        waiting = self.leaves if node.op is None else self.grads
        if node in waiting:
            gradient = self.sum(node, waiting[node], gradient)
        elif node.op is not None:
            heapq.heappush(self.heap, (-node.number, node))
        waiting[node] = gradient

    def sum(self, node, a, b):
        """Two gradients that arrive at one node, added: a new buffer, of which the tracer is told."""
        total = plus(a, b)
        if self.context.tracer is not None:
            self.context.tracer.gradient(node, total)
        return total

    def step(self, node):
        """Take one node: run its vjps, or replay it, and hand the gradients on."""
        if node.freed:
            raise freed_error(node)
        gradient, destination = self.grads.pop(node), self.destination
        if node.extras is not None and node.extras.alias is not None and node not in self.at_home:
            self.give(node.alias, gradient)  # an earlier walk has made it: its gradient belongs to the output itself
            self.passed_by.append(node)
            return "op", node, gradient, [], 0
        if node.body is not None:
            return self.checkpoint(node, gradient)
        vjps, pending, leaves = node.needs.vjps, self.grads, destination.leaves
        results = [] if self.watched else None
        if node.extras is not None or destination.wanted is not None:
            if node.extras is not None and node.extras.hooks:  # as arrived() does: a debugger finds four frames only
                gradient = call_hooks(node, gradient, self.arithmetic)
            destination.arrived(node, gradient)
            vjps = destination.followed(node)
            if not vjps:
                return "op", node, gradient, [], 0  # a target, and nothing below it is one: it is not passed
        tracer, call = self.context.tracer, None
        if tracer is not None or self.context.anomaly:
            call = self.observed(node)
        read = self.arithmetic.read
        for index, vjp in vjps:
            source = node.inputs[index]
            try:
                result = vjp(gradient, node, read) if call is None else call(vjp, gradient, node, read)
                if result is None:
                    continue
                shape = result.shape
            except (MinigradError, Warning):
                raise
            except Exception as error:
                raise vjp_error(node, vjp, gradient, error) from error
            if results is not None:
                results.append(self.arithmetic.look(result))
            if shape != source.shape or result.dtype is not source.dtype or not shape:
                result = fit(result, source, node, vjp)
            if tracer is not None:
                tracer.gradient(source, result)
            if result is gradient and source.op is None:
                result = passed_on(result)
            waiting = leaves if source.op is None else pending  # from here on, what give() does, without its call
            if source in waiting:
                result = self.sum(source, waiting[source], result)
            elif source.op is not None:
                heapq.heappush(self.heap, (-source.number, source))
            waiting[source] = result
        freed = self.release(node)
        return None if results is None else ("op", node, gradient, results, freed)

    def observed(self, node):
        """How to call the vjps of a node when somebody looks on: a tracer, or anomaly detection."""
        tracer, context = self.context.tracer, self.context
        if tracer is not None:
            tracer.sweeps(node)

        def call(vjp, gradient, node, read):
            measuring = tracer is not None and tracer.workspace
            result = tracer.measured(vjp, gradient, node, read) if measuring else vjp(gradient, node, read)
            if result is not None and context.anomaly and has_nan(result):
                raise nan_error(node, vjp, gradient, result, next(iter(self.checkpoints_around(node)), None))
            return result

        return call

    def arrived(self, node, gradient):
        """The gradient of a node is whole, and somebody may want to see it."""
        if node.extras is not None and node.extras.hooks:
            gradient = call_hooks(node, gradient, self.arithmetic)
        self.destination.arrived(node, gradient)
        return gradient

    def step_in_modes(self, node):
        """A step with the thread's modes as a backward wants them; the caller's own modes come back after it."""
        context = self.context
        before = context.phase, context.region, context.grad
        context.phase, context.grad = "backward", self.create_graph
        if not self.create_graph:
            context.region = None  # a mg.grad inside a checkpoint: its arithmetic is no part of the body
        try:
            return self.step(node)
        finally:
            context.phase, context.region, context.grad = before

    def release(self, node):
        """Let go of what a swept node holds; returns the bytes freed.

        Not if another walk is to follow. Then only what a replay of this walk has made goes (younger than
        `start`), for the other walk will replay it again. And not inside a region, which holds nothing.
        """
        if node.region is not None:
            return 0
        if self.retain_graph and (self.create_graph or node.number < self.start):
            return 0
        if self.context.tracer is not None:
            self.context.tracer.let_go(node)
        node.freed = True
        if node.body is not None:
            node.body = None
            if self.context.tracer is not None:
                self.context.tracer.let_go(node.needs)
            node.needs.kept = {}
        if len(node.needs.vjps) != len(node.inputs):  # there are constants among them
            self.buffers_freed += sum(map(is_held_constant, node.inputs))
            node.inputs = tuple([hollow(source) for source in node.inputs])
        out = node.out
        if out is None:
            return 0
        node.out = None
        self.buffers_freed += 1
        return out.nbytes

    def checkpoint(self, node, gradient):
        """Take a checkpoint node, with its siblings that have a gradient: made together, they come together."""
        gradients = {node: gradient}
        while self.heap and self.heap[0][1].body is node.body:
            sibling = heapq.heappop(self.heap)[1]
            gradients[sibling] = self.grads.pop(sibling)
        if not self.destination.goes_below(gradients):
            for sibling, whole in gradients.items():
                self.arrived(sibling.origin, whole)  # a target, and nothing of interest below it
            return "op", node, gradients[node], [], 0
        return self.replay(node, gradients)

    def replay(self, node, gradients):
        """Replay a checkpoint and let its fresh nodes take over the gradients of its outputs."""
        body = node.body.for_replay()
        output = {sibling: output_of(sibling) for sibling in gradients}
        live = {line: array for line, array in node.needs.kept.items() if is_array(array)}
        if not body.manner.whole:
            live.update((line, sibling.out) for sibling, line in output.items() if sibling.out is not None)
        work = Work(body, sweep=output.values(), live=live)
        values = {line: array for line, array in live.items() if line in work.read}
        inputs = dict(zip(body.boundary, node.inputs, strict=True))
        for source, actual in inputs.items():
            if source in work.read and source not in node.needs.kept:
                values[source] = read_array(actual, work.oldest[source] if actual.op is None else node)
        if self.replays == 0 and not self.grads and self.destination.wanted is None:
            for adviser in advisers:
                adviser.replays(node, body, live, self.buffers_freed)
        self.replays += 1
        live.clear()
        if self.context.tracer is not None:
            self.context.tracer.taken_over(values)  # which the tape is about to let go of
        copies = {source: copy for source, copy in node.needs.kept.items() if source in work.read and source in inputs}
        leading = self.destination.leading(node)  # found before the body is let go
        members = siblings_of(node) if self.create_graph else ()
        freed = sum(self.release(sibling) for sibling in gradients)
        for sibling in gradients:
            if sibling.freed:
                sibling.inputs = tuple([kept_input(actual, source in work.taped) for source, actual in inputs.items()])
        if copies:
            body.manner.slow.fetch_ahead(node)
        fresh = inputs | {source: bring_back(source, copy, values, inputs) for source, copy in copies.items()}
        self.run_again(body, work, values, fresh)
        copies.clear()  # until now they were there for checkpoints inside this one
        self.note_replay(node, [new.number for new in fresh.values() if new.number > node.number])
        self.note_aliases(members, fresh)
        self.take_over(gradients, output, fresh, leading)
        return "replay", node, gradients[node], [], freed

    def note_aliases(self, members, fresh):
        """With create_graph: what a later walk brings to a fresh node belongs to the output that has its value."""
        for member in members:
            node = fresh.get(output_of(member))
            if node is not None:
                node.alias = member
                self.at_home.add(node)

    def take_over(self, gradients, output, fresh, leading):
        """What waited at the outputs of a checkpoint waits at fresh nodes now: gradients, and what `grad` asked for."""
        self.destination.replayed(fresh, leading)
        for sibling, waiting in gradients.items():
            node = fresh[output[sibling]]
            if self.follows(node):
                self.give(node, waiting)

    def run_again(self, body, work, values, fresh):
        """Execute a replay in its own phase."""
        context = self.context
        context.phase, context.grad = "replay", True
        try:
            execute(body, work, values, fresh)
        finally:
            if context.tracer is not None:
                context.tracer.replay_ended()

    def release_below(self, node, oldest):
        """Let go of a stretch that an earlier walk's replay has written, and that this walk has passed by."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if node.op is not None and not node.freed and node.number > oldest:
                waiting.extend(node.inputs)
                self.release(node)

    def note_replay(self, node, numbers):
        """Remember which checkpoint the nodes of these numbers were replayed for, until the walk has passed them."""
        while self.came_from and next(reversed(self.came_from)) > node.number:
            self.came_from.popitem()  # the walk takes the youngest first: it is through with that replay
        if numbers:
            self.came_from[min(numbers)] = node

    def checkpoints_around(self, node):
        """The checkpoint whose replay has put this node on the tape, the one that this was replayed for, and so on."""
        around = []
        for first, checkpoint in reversed(self.came_from.items()):
            if first <= (around[-1] if around else node).number:
                around.append(checkpoint)
        return around

    def finish(self):
        """Hand over the gradients of leaves, all together, and yield a Step for each."""
        destination, tracer = self.destination, self.context.tracer
        for node in self.passed_by if not self.retain_graph else ():
            self.release_below(node, node.alias.number)
        for leaf, gradient in destination.leaves.items():
            self.arrived(leaf, gradient)
        for tensor, total in destination.finish(self.arithmetic, self.watched):
            if tracer is not None:
                tracer.gradient(tensor.node, total)
        region = self.context.open_region
        while region is not None:
            region.known = {}  # what it has computed again for this walk
            region = region.outer
        for node, gradient in destination.deposits if self.watched else ():
            if node.op is None:
                yield "leaf", node, gradient, [], 0


def kept_input(actual, is_reached):
    """What a replayed checkpoint remembers of an input: one that the sweep does not reach by it may die."""
    return hollow(actual) if is_reached or actual.op is None else constant_like(actual, None)


def bring_back(source, copy, values, inputs):
    """Take the value of `source` out of slow memory, into `values`; returns the node that has it on the tape."""
    values[source] = copy.take()
    actual = inputs[source]
    if actual.op is None:  # a hollow twin, which stands for it elsewhere too, and stays hollow
        actual = constant_like(actual, values[source])
    copy.stands_for(actual)
    if local.context.tracer is not None:
        local.context.tracer.taken_over({source: values[source]}, values)
    return actual


def siblings_of(node):
    """The nodes of a checkpoint's outputs, those that somebody still has."""
    members = [reference() for reference in node.needs.members]
    return [member for member in members if member is not None and member.body is not None]
