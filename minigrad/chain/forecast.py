"""What a run under a schedule will hold and run again: the engine's own steps, walked without any arrays.

`mg.profile` records a chain of layers as one body, a program without buffers, and notes for each value which memory
it lives in and how many bytes that has. Given a schedule, everything else follows: what the tape retains, what a
replay runs, when each value is dropped. `Forecast` goes through it in the engine's order, with the same `Work` that a
real replay would do, and keeps a ledger of holders as the tracer does. So its figures are the tracer's: the peak of
live activations, their bytes, the ops replayed. What it costs is time by the number of ops, not by their size.
"""

from ..engine.replay import Body, Call, Manner, Work
from ..retention.offload import Offload


class Memory:
    """One piece of memory that values live in: an activation of `nbytes`, or a parameter, which does not count."""

    __slots__ = ("nbytes", "counts", "holders")

    def __init__(self, nbytes, counts=True):
        self.nbytes, self.counts, self.holders = nbytes, counts, set()


class Taped:
    """A line that is on the tape now: an op, or a checkpoint with all its outputs. It holds what it retains."""

    __slots__ = ("line", "swept", "kept", "outputs", "copies", "held")

    def __init__(self, line, swept=(), kept=()):
        self.line, self.swept = line, swept
        self.kept = kept  # of a checkpoint: lines of its body whose values a policy of its own keeps
        self.outputs = set()  # of a checkpoint: those that the tape holds, for others that read them
        self.copies = set()  # of a checkpoint: nodes of its boundary that wait in slow memory
        self.held = []  # memory


class Ledger:
    """What is live, and who holds it, while a tape is written and swept without arrays.

    live_..., peak_...   activations, and their bytes      writes, reads   boundaries to slow memory, and back
    lines_run            the ops that replays run, in order, as lines of the body
    """

    def __init__(self, memory):
        self.memory = memory
        self.live_activations = self.peak_activations = 0
        self.live_activation_bytes = self.peak_activation_bytes = 0
        self.writes = self.reads = 0
        self.lines_run = []
        self.tape, self.of = [], {}  # what is on the tape, the youngest last; node -> the Taped that stands for it
        self.in_slow_memory, self.is_forward, self.given = set(), True, ()
        self.retained = set()  # nodes whose values some reader keeps
        self.ahead = {}  # node that has come back from slow memory -> its holder, until a replay takes it

    # ---- the ledger --------------------------------------------------------------------------------

    def hold(self, node, holder):
        memory = self.memory[node]
        if not memory.counts or holder in memory.holders:
            return
        if not memory.holders:
            self.live_activations += 1
            self.live_activation_bytes += memory.nbytes
            self.peak_activations = max(self.peak_activations, self.live_activations)
            self.peak_activation_bytes = max(self.peak_activation_bytes, self.live_activation_bytes)
        memory.holders.add(holder)

    def let_go(self, memory, holder):
        if holder in memory.holders:
            memory.holders.discard(holder)
            if not memory.holders:
                self.live_activations -= 1
                self.live_activation_bytes -= memory.nbytes

    def retain(self, node, reader):
        """The tape keeps a node's value for `reader`: the line that made it holds it, and of data the reader does."""
        self.retained.add(node)
        holder = self.of.get(node, reader)
        if node in self.of:
            holder.outputs.add(node)
        self.hold(node, holder)
        holder.held.append(self.memory[node])

    def release(self, taped):
        for memory in taped.held:
            self.let_go(memory, taped)

    # ---- the engine's steps ------------------------------------------------------------------------

    def write(self, line, work):
        """Put a line on the tape, if a gradient will pass it."""
        if isinstance(line, Call):
            if line in work.replays:
                self.write_checkpoint(line, work)
        elif line in work.taped:
            taped = Taped(line)
            self.tape.append(taped)
            for index in line.needs.inputs:
                source = line.inputs[index]
                if source.dtype is not None:
                    flows = line.needs.differentiates(index) or source.op is None
                    self.retain(source, taped) if flows else self.retain_constant(source, taped)
            self.of[line] = taped
            if line.needs.out:
                self.retain(line, taped)

    def retain_constant(self, node, reader):
        self.hold(node, reader)
        reader.held.append(self.memory[node])

    def write_checkpoint(self, call, outer):
        """Put a checkpoint on the tape. What its own policy keeps is there if it has just run for its outputs."""
        swept, work = [output for output in call.outputs if output in outer.taped], outer.replays[call]
        kept = call.body.manner.keep if self.is_forward or call in outer.runs else ()
        if kept and self.is_forward:
            inside = dict(zip(call.outputs, call.body.outputs, strict=True))
            work = call.body.work(sweep=[inside[output] for output in swept], live=kept)
        taped = Taped(call, swept, kept)
        for line in kept:
            self.retain_constant(line, taped)
        self.tape.append(taped)
        for source, actual in zip(call.body.boundary, call.inputs, strict=True):
            if source in work.read:
                self.keep_boundary(actual, taped, flows=source in work.taped)
        for node in call.outputs:
            self.of[node] = taped

    def keep_boundary(self, node, taped, flows):
        """A boundary is retained as any value is, or goes to slow memory, if the tape does not hold it anyway."""
        if taped.line.body.manner.slow is not None and self.is_offloaded(node):
            if node not in self.in_slow_memory:
                self.in_slow_memory.add(node)
                self.writes += 1
            taped.copies.add(node)
        elif flows or node.op is None:
            self.retain(node, taped)
        else:
            self.retain_constant(node, taped)

    def is_offloaded(self, node):
        if not self.memory[node].counts:
            return False
        if node not in self.of:  # data
            is_given = node in self.given or node.op is not None  # what a layer without parameters returned, say
            return (self.is_forward and is_given) or node in self.in_slow_memory
        return self.of[node] not in self.memory[node].holders

    def backward(self):
        """Sweep the tape, the youngest line first."""
        while self.tape:
            taped = self.tape.pop()
            if isinstance(taped.line, Call):
                self.replay(taped)
            self.release(taped)

    def replay(self, taped):
        """Run a checkpoint's lines again: values are held until their last use, and taped lines hold theirs."""
        call = taped.line
        inside = dict(zip(call.outputs, call.body.outputs, strict=True))
        outside = dict(zip(call.body.boundary, call.inputs, strict=True))
        body, live = call.body.for_replay(), list(taped.kept)
        if not body.manner.whole:
            live += [inside[node] for node in call.outputs if node in taped.outputs and inside[node] not in live]
        work = Work(body, sweep=[inside[node] for node in taped.swept], live=live)
        values = {}
        for source in [*live, *body.boundary]:
            if source in work.read and outside.get(source) not in taped.copies:
                self.take(source, values)
        self.release(taped)
        back = [source for source in body.boundary if source in work.read and outside[source] in taped.copies]
        if back:
            self.fetch_ahead(body.manner.slow.window)
        for source in back:
            self.fetch(outside[source])
            self.take(source, values)
            self.let_go(self.memory[source], self.ahead.pop(outside[source]))
        self.execute(body, work, values, taped=True)

    def fetch_ahead(self, window):
        """Fetch what the next older checkpoints want, so that `window` of them, with the one in hand, are at hand."""
        older = [taped for taped in reversed(self.tape) if taped.copies] if window > 1 else []
        for taped in older[: window - 1]:
            for node in taped.copies:
                self.fetch(node)

    def fetch(self, node):
        """Bring a value back from slow memory, if it has not come already."""
        if node not in self.ahead:
            self.reads += 1
            self.ahead[node] = object()
            self.hold(node, self.ahead[node])

    def take(self, node, values):
        """A replay holds a value until it drops it."""
        token = values[node] = object()
        self.hold(node, token)

    def execute(self, body, work, values, taped):
        for line in body.lines:
            if line in work.runs and isinstance(line, Call):
                self.advance(line, work.advances[line], values)
            elif line in work.runs:
                self.lines_run.append(line)
                self.take(line, values)
            if taped:
                self.write(line, work)
            for source in work.drops[line]:
                if source in values:
                    self.let_go(self.memory[source], values.pop(source))

    def advance(self, call, work, values):
        """Run a checkpoint inside a replay for its outputs alone."""
        inside = {}
        self.execute(call.body, work, inside, taped=False)
        for node, output in zip(call.outputs, call.body.outputs, strict=True):
            if output in inside:
                values[node] = inside.pop(output)


class Forecast(Ledger):
    """A chain under a schedule, walked through once: forward, then backward from all its outputs.

    peak_activations, peak_activation_bytes, replayed_ops    what a Tracer of a real run would say
    writes, reads    boundaries that go to slow memory and come back
    lines_run        the ops that replays run, in order, as lines of the body

    Not in it: what leads to no output or has no gradient passing, such as the layers before a detach, while a program
    still holds it; and checkpoints in a layer that do not keep their output. With these a tracer may say more.
    """

    def __init__(self, body, memory, schedule):
        super().__init__(memory)
        self.given = body.manner.given
        chain = Body(body.lines, body.outputs, body.cuts, Manner(schedule=schedule, memory=Offload))
        self.forward(chain.split(schedule.parts(len(body.cuts))))
        self.is_forward = False
        self.backward()

    @property
    def replayed_ops(self) -> int:
        return len(self.lines_run)

    def __repr__(self):
        return (
            f"<Forecast: {self.peak_activations} activations at the peak, {self.peak_activation_bytes:,} bytes; "
            f"{self.replayed_ops} ops replayed>"
        )

    def forward(self, body):
        """Record the chain: stretches that are taped in full, and checkpoints."""
        work = Work(body, sweep=[output for output in body.outputs if output.requires_grad])
        for line in body.lines:
            self.write(line, work)
