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
from .device import is_array
from .gradients import add_gradients, call_hooks, fit, has_nan, own, passed_on, plus, read_array, read_tensor
from .messages import freed_error, locate, nan_error, vjp_error
from .modes import advisers, local
from .replay import Work, constant_like, execute
from .tape import hollow, is_held_constant, next_number, reachable, ways_down
from .tensor import Tensor, protected


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
        self.leaves, self.deposits = {}, []
        self.targets = frozenset(targets or ())
        self.collected = {}
        self.leading = None if targets is None else Leading(self.targets, [tensor._node for tensor, _ in seeds])
        self.wanted = None if targets is None else self.leading.wanted
        self.start = next_number()
        self.buffers_freed, self.replays = 0, 0
        self.came_from = {}  # first number of a replay's fresh nodes -> its checkpoint node, the innermost replay last
        self.stands_for = {}  # fresh node of a replay -> the target, a line of the body, that it is made for
        self.at_home = set()  # with create_graph: fresh nodes of this walk's own replays that have an alias
        self.began_at = frozenset(tensor._node.number for tensor, _ in seeds)
        here.add(self)
        tracer = local.context.tracer
        for tensor, gradient in seeds:
            if tracer is not None:
                tracer.gradient(tensor._node, gradient)
            if self.wanted is None or tensor._node in self.wanted:
                self.give(tensor._node, gradient)

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
        gradient = self.grads.pop(node)
        if node.extras is not None and node.alias is not None and node not in self.at_home:
            self.give(node.alias, gradient)  # an earlier walk has made it: its gradient belongs to the output itself
            return "op", node, gradient, [], 0
        if node.body is not None:
            return self.checkpoint(node, gradient)
        if node.extras is not None or self.targets:
            gradient = self.arrived(node, gradient)
        if self.wanted is not None and self.wanted.isdisjoint(node.inputs):
            return "op", node, gradient, [], 0  # a target, and nothing below it is one: it is not passed
        tracer = self.context.tracer
        if tracer is not None:
            tracer.sweeps(node)
        read = read_tensor if self.create_graph else read_array
        waiting, leaves, anomaly = self.grads, self.leaves, self.context.anomaly
        results = [] if self.watched else None
        measuring = tracer is not None and tracer.workspace
        for index, vjp in node.needs.vjps:
            source = node.inputs[index]
            if self.wanted is not None and source not in self.wanted:
                continue
            try:
                result = tracer.measured(vjp, gradient, node, read) if measuring else vjp(gradient, node, read)
                shape = None if result is None else result.shape
            except (MinigradError, Warning):
                raise
            except Exception as error:
                raise vjp_error(node, vjp, gradient, error) from error
            if result is None:
                continue
            if results is not None:
                results.append(result if self.create_graph else protected(result))
            if anomaly and has_nan(result):
                raise nan_error(node, vjp, gradient, result, next(iter(self.checkpoints_around(node)), None))
            if shape != source.shape or result.dtype is not source.dtype or not shape:
                result = fit(result, source, node, vjp)
            if tracer is not None:
                tracer.gradient(source, result)
            if source.op is None:  # from here on, what give() does, without its call
                if result is gradient:
                    result = passed_on(result)
                leaves[source] = self.sum(source, leaves[source], result) if source in leaves else result
            elif source in waiting:
                waiting[source] = self.sum(source, waiting[source], result)
            else:
                waiting[source] = result
                heapq.heappush(self.heap, (-source.number, source))
        freed = self.release(node)
        return None if results is None else ("op", node, gradient, results, freed)

    def arrived(self, node, gradient):
        """The gradient of a node is whole, and somebody may want to see it."""
        if node.hooks:
            gradient = call_hooks(node, gradient, self.create_graph)
        if node.holder is not None or self.targets:
            self.watch(node, gradient)
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

    def watch(self, node, gradient):
        """Collect what `grad` asked for, and what `retain_grad` asked for."""
        target = self.stands_for.pop(node, node)
        if target in self.targets:
            earlier = self.collected.get(target)  # of another replay of the same line
            shared = gradient if node.op is None else passed_on(gradient)
            self.collected[target] = shared if earlier is None else plus(earlier, gradient)
        elif node.holder is not None and self.wanted is None:
            self.deposits.append((node, gradient if node.op is None else passed_on(gradient)))

    def checkpoint(self, node, gradient):
        """Take a checkpoint node, with its siblings that have a gradient: made together, they come together."""
        gradients = {node: gradient}
        while self.heap and self.heap[0][1].body is node.body:
            sibling = heapq.heappop(self.heap)[1]
            gradients[sibling] = self.grads.pop(sibling)
        if self.wanted is not None and not any(map(self.goes_below, gradients)):
            for sibling, whole in gradients.items():
                self.arrived(sibling.origin, whole)  # a target, and nothing of interest below it
            return "op", node, gradients[node], [], 0
        return self.replay(node, gradients)

    def goes_below(self, node):
        """Whether a target lies below the line that this checkpoint's output stands for, and not only there."""
        while node.body is not None:
            found, line = self.leading.lines_of(node), output_of(node)
            if any(source in found for source in ways_down(line)):
                return True
            node = line
        return False

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
        if self.replays == 0 and not self.grads and self.wanted is None:
            for adviser in advisers:
                adviser.replays(node, body, live, self.buffers_freed)
        self.replays += 1
        live.clear()
        if self.context.tracer is not None:
            self.context.tracer.taken_over(values)  # which the tape is about to let go of
        copies = {source: copy for source, copy in node.needs.kept.items() if source in work.read and source in inputs}
        leading = None if self.wanted is None else self.leading.lines_of(node)  # found before the body is let go
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
        for line, node in fresh.items() if self.targets else ():
            if line in self.targets and line is not node:
                self.stands_for[node] = line
        if leading is not None:
            self.wanted.update(node for line, node in fresh.items() if line in leading)
        for sibling, waiting in gradients.items():
            node = fresh[output[sibling]]
            if self.wanted is None or node in self.wanted:
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
        """Deposit the gradients of leaves, all together, and yield a Step for each."""
        for leaf, gradient in self.leaves.items():
            if leaf.hooks:
                gradient = call_hooks(leaf, gradient, self.create_graph)
            if self.wanted is None:
                self.deposits.append((leaf, gradient))
            else:
                self.watch(leaf, gradient)
        totals, tracer = {}, self.context.tracer
        for node, gradient in self.deposits:
            tensor = node.holder()
            if tensor is not None:
                if self.watched:
                    gradient = passed_on(gradient)  # whoever looks at the steps has this array too
                total = gradient if self.create_graph else Tensor(own(gradient))
                earlier = totals[id(tensor)][1] if id(tensor) in totals else tensor._grad
                if earlier is not None:
                    total = add_gradients(earlier, total)
                totals[id(tensor)] = tensor, total
        for tensor, total in totals.values():
            tensor._grad = total
            if tracer is not None:
                tracer.gradient(tensor.node, total)
        region = self.context.open_region
        while region is not None:
            region.known = {}  # what it has computed again for this walk
            region = region.outer
        for node, gradient in self.deposits if self.watched else ():
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


class Leading:
    """What leads to a target: of the nodes below `roots` (`wanted`), and of the lines of checkpoints' bodies."""

    def __init__(self, targets, roots):
        self.targets, self.wanted, self._lines = targets, set(), {}
        for node in reachable(roots):
            if node.body is None or node.alias is not None:
                leads = node in targets or not self.wanted.isdisjoint(ways_down(node))
            else:
                leads = output_of(node) in self.lines_of(node)
            if leads:
                self.wanted.add(node)

    def lines_of(self, node):
        """Of a checkpoint's body the lines that lead to a target, and of its boundary the nodes that do."""
        family = node.needs
        if family not in self._lines:
            self._lines[family] = self._in_body(node.body, node.inputs, self.wanted)
        return self._lines[family]

    def _in_body(self, body, inputs, wanted):
        pairs = zip(body.boundary, inputs, strict=True)
        found = {source for source, actual in pairs if actual in wanted}
        for line in body.lines:
            if line.body is None:
                if line in self.targets or not found.isdisjoint(ways_down(line)):
                    found.add(line)
                continue
            inside = self._in_body(line.body, line.inputs, found)
            found.update(node for node, output in zip(line.outputs, line.body.outputs, strict=True) if output in inside)
        return found


def siblings_of(node):
    """The nodes of a checkpoint's outputs, those that somebody still has."""
    members = [reference() for reference in node.needs.members]
    return [member for member in members if member is not None and member.body is not None]


def output_of(node):
    """The node of the body whose value a checkpoint node stands for."""
    return node.body.outputs[node.attrs["index"]]
