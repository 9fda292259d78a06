"""`mg.profile`: what each layer of a chain keeps and how long it takes, measured.

The layers run once, as one checkpoint that keeps no buffer. At each op, while its arrays are at hand, a `Listener`
notes how many bytes it makes and in whose memory, what it needs while it runs, and how long it takes; then at the
end of each layer, how long the layer takes on the tape, forward and backward. So a network that would not fit in
memory can be profiled, as long as any one of its layers fits, and besides it as many states between layers as the
depth has binary digits.
"""

import collections
import dataclasses
import statistics
import time
import tracemalloc
from dataclasses import dataclass, field

from ..engine.checkpoint import Region, tensors_in
from ..engine.device import array_module, is_array, memory_owner
from ..engine.modes import enable_grad, local
from ..engine.op import run
from ..engine.place import user_position
from ..engine.replay import PLAIN, Body, Call, Manner, checkpoint_nodes, constant_like, execute, results
from ..engine.tensor import Tensor
from ..engine.walk import Sweep
from ..errors import ArgumentError, NoGradientError
from ..retention.advice import is_parameter
from ..retention.checkpoint import data_in
from ..retention.offload import Offload
from ..schedules import as_schedule, bisection
from ..schedules.layer_costs import LayerCosts
from ..schedules.schedule import whole_number
from ..table import bytes_text, table
from ..trace.recorder import allocated_by
from .forecast import Forecast, Ledger, Memory, Taped
from .sequential import run_layer
from .sizes import LayerSizes, costs_of


@dataclass(frozen=True)
class LayerProfile:
    """What was measured of one layer.

    name              its number in the chain, and its kind
    ops               how many ops it runs
    output_bytes      bytes of what it returns, as far as that is no memory of its input's
    kept_bytes        bytes that the tape keeps of it when it is taped, its input aside
    workspace_bytes   the most that an op or a vjp of it needs beside its result, only while it runs
    forward_seconds, backward_seconds     on the tape, medians
    """

    name: str
    ops: int
    output_bytes: int
    kept_bytes: int
    workspace_bytes: int
    forward_seconds: float
    backward_seconds: float


@dataclass(frozen=True)
class Profile:
    """Measured sizes and times of a chain of layers, as `mg.profile` returns it. Print it.

    layers       a LayerProfile for each
    costs        the same as a `schedules.LayerCosts`, on which `schedules.hetero` works

    `forecast(schedule)` says what a run under that schedule will hold and run again, exactly, and `seconds(schedule)`
    estimates how long it will take.
    """

    layers: tuple
    costs: LayerCosts
    body: Body = field(repr=False)
    memory: dict = field(repr=False)
    line_seconds: dict = field(repr=False)

    def __len__(self):
        return len(self.layers)

    def forecast(self, schedule) -> Forecast:
        """Walk through a forward and a backward under this schedule, without arrays; see Forecast."""
        for memory in self.memory.values():
            memory.holders.clear()
        return Forecast(self.body, self.memory, as_schedule(schedule))

    def seconds(self, forecast) -> float:
        """How long a forward and a backward take that run again what this forecast says."""
        once = sum(layer.forward_seconds + layer.backward_seconds for layer in self.layers)
        own = self.forecast(as_schedule(1)).lines_run  # of checkpoints that layers have: a part of their backward
        return once + self._run_again(forecast.lines_run) - self._run_again(own)

    def _run_again(self, lines):
        return sum(self.line_seconds[line] for line in lines)

    def __str__(self):
        rows = []
        for layer in self.layers:
            sizes = layer.output_bytes, layer.kept_bytes, layer.workspace_bytes
            times = layer.forward_seconds, layer.backward_seconds
            rows.append((layer.name, layer.ops, *(f"{n:,}" for n in sizes), *(f"{t * 1e3:.2f}" for t in times)))
        forward = sum(layer.forward_seconds for layer in self.layers)
        backward = sum(layer.backward_seconds for layer in self.layers)
        everything = self.forecast(as_schedule(1))
        note = (
            f"{len(self)} layers: {forward * 1e3:.1f} ms forward, {backward * 1e3:.1f} ms backward. The tape holds "
            f"{bytes_text(everything.peak_activation_bytes)}, {bytes_text(self.costs.input_bytes)} from outside.\n"
            "Columns: bytes that the layer returns; that the tape keeps of it beside its input; that one of its\n"
            "ops needs only while it runs; milliseconds, medians."
        )
        headers = ("layer", "ops", "returns", "keeps", "workspace", "forward", "backward")
        return table(headers, rows, right=(1, 2, 3, 4, 5, 6), note=note)


def profile(layers, x, repeats: int = 3) -> Profile:
    """Measure the layers of a chain on this input: sizes exactly, times as medians of `repeats` warm runs.

    layers  a sequence of functions or modules of one value each, as for `checkpoint_sequential`
    x       the input of the first: a tensor, or a tuple, list or dict with tensors

    Each layer's own code runs once; what is repeated are the ops that it ran, and at the end some backwards of the
    whole chain, as a checkpoint under bisection(), by which the times are brought to those of a whole run. The random
    numbers that they drew are drawn; statistics of a batch norm move once, as in any forward pass.

    >>> import minigrad as mg
    >>> weight = mg.eye(4, requires_grad=True)
    >>> measured = profile([lambda h: mg.tanh(h @ weight)] * 16, mg.ones((2, 4)))
    >>> [layer.kept_bytes for layer in measured.layers[:3]]
    [32, 32, 32]
    >>> measured.forecast(mg.schedules.store_all())
    <Forecast: 17 activations at the peak, 544 bytes; 0 ops replayed>
    >>> measured.forecast(mg.schedules.uniform(4))
    <Forecast: 8 activations at the peak, 256 bytes; 18 ops replayed>
    """
    layers, repeats = list(layers), whole_number(repeats, "the number of repeats")
    if not layers:
        raise ArgumentError("profile needs at least one layer")
    context = local.context
    if context.region is not None:
        raise ArgumentError("profile measures layers on their own; do not call it inside a checkpoint")
    region = Region(PLAIN)
    region.listener = listener = Listener(repeats)
    tracers, context.tracer = context.tracer, None  # whoever watches sees nothing of this
    context.region = context.open_region = region
    try:
        with enable_grad():
            return measure_chain(layers, x, region, listener)
    finally:
        context.region = context.open_region = region.outer
        context.tracer, region.open = tracers, False
        region.end()


def measure_chain(layers, x, region, listener):
    values, outputs, given = [x], [], data_in(x)
    for i, layer in enumerate(layers):
        x = run_layer(layer, i, x)
        region.cuts.append(len(region.lines))
        outputs = list(dict.fromkeys(tensor.node for tensor in tensors_in(x)))
        listener.layer_ends(region, f"{i} {kind_of(layer)}", values[-1], outputs)
        values.append(x)
        values[-2] = None  # one layer at a time
    lines, outputs, cuts = region._alive([node for node in outputs if node.region is region])
    if not any(node.requires_grad for node in outputs):
        raise NoGradientError("nothing in these layers requires grad, so a backward would keep nothing")
    return listener.profile(Body(lines, outputs, cuts, Manner(given=given, memory=Offload)), region.outside)


def kind_of(layer):
    return getattr(layer, "__name__", type(layer).__name__)


class Listener:
    """Hears of each op of the layers while its arrays are at hand, and of each layer's end.

    memory           node -> the Memory that its value lives in
    line_seconds     line -> how long its op takes; once its layer has ended, how long a replay takes for it
    workspace        of the layer that is running: the most that one of its ops, or a vjp, needs beside its result
    """

    def __init__(self, repeats):
        self.repeats, self.memory, self.line_seconds = repeats, {}, {}
        self.owners = {}  # id of an array that owns memory -> Memory; of arrays that outlive the profile only
        self.workspace, self.lines_heard, self.layers, self.sizes = 0, [], [], []

    # ---- each op -----------------------------------------------------------------------------------

    def hears(self, line, arrays, out):
        """A line has been added: an op with its arrays, or a checkpoint in a layer, whose ops were heard already."""
        if isinstance(line, Call):
            for node, output in zip(line.outputs, line.body.outputs, strict=True):
                self.memory[node] = self.memory[output]
            return
        owners = [memory_owner(array) if is_array(array) else None for array in arrays]
        for source, owner in zip(line.inputs, owners, strict=True):
            if owner is not None and source not in self.memory:  # data from outside, which stays where it is
                counts = not is_parameter(source)
                self.memory[source] = self.owners.setdefault(id(owner), Memory(owner.nbytes, counts))
        owner = memory_owner(out)
        shared = [source for source, other in zip(line.inputs, owners, strict=True) if other is owner]
        self.memory[line] = self.memory[shared[0]] if shared else Memory(owner.nbytes)
        self.line_seconds[line] = self.median(lambda: run(line.op, arrays, line.attrs))
        self.lines_heard.append(line)
        self.measure_workspace(line, arrays, out)

    def median(self, function):
        return statistics.median([seconds_of(function) for _ in range(self.repeats)])

    def measure_workspace(self, line, arrays, out):
        """What the op and its vjps allocate beside their results, by tracemalloc."""
        values = {line: out, **dict(zip(line.inputs, arrays, strict=True))}

        def read(source, reader):
            return values[source]

        gradient = array_module(out).ones_like(out)
        with Allocations() as allocations:
            self.workspace = max(self.workspace, allocations.beside_result(run, line.op, arrays, line.attrs))
            for _, vjp in line.needs.vjps:
                self.workspace = max(self.workspace, allocations.beside_result(vjp, gradient, line, read))

    # ---- each layer --------------------------------------------------------------------------------

    def layer_ends(self, region, name, value, outputs):
        """A layer has run on `value`, and gave `outputs`: measure it on the tape, forward and backward.

        What it gave may be what it was given (a skip that it passes on, or a Dropout in eval): no work of its own.
        """
        start = region.cuts[-2] if len(region.cuts) > 1 else 0
        alive = set(region._alive(outputs)[0])
        lines = [line for line in region.lines[start:] if line in alive]
        made = {node for line in lines for node in results(line)}
        body = Body(lines, [node for node in outputs if node in made])
        arrays = {tensor.node: tensor.data for tensor in tensors_in(value)}
        for source in body.boundary:
            if source not in arrays:
                arrays[source] = region.outside[source] if source in region.outside else region.value(source)
        forward, backward = self.time_on_tape(body, arrays)
        self.scale_to(forward)
        self.add_layer(name, body, arrays, outputs, forward, backward)
        self.workspace, self.lines_heard = 0, []

    def time_on_tape(self, body, arrays):
        """Median seconds of writing the layer on the tape, and of sweeping it."""
        swept = [output for output in body.outputs if output.requires_grad]
        if not swept:
            return self.median(lambda: execute(body, body.work(values=body.outputs), dict(arrays))), 0.0
        timings = [time_once(body, arrays, swept) for _ in range(self.repeats + 1)][1:]
        return tuple(statistics.median(times) for times in zip(*timings, strict=True))

    def scale_to(self, forward):
        """Let the ops' seconds add up to the layer's, which has the engine's own time in it."""
        total = sum(self.line_seconds[line] for line in self.lines_heard) or 1.0
        for line in self.lines_heard:
            self.line_seconds[line] *= max(1.0, forward / total)

    def add_layer(self, name, body, arrays, outputs, forward, backward):
        inputs = [node for node in arrays if node in self.memory]
        sizes = LayerSizes(self.memory, body, inputs, outputs)
        self.sizes.append((sizes, forward, backward))
        ops = len(self.lines_heard)
        self.layers.append(
            LayerProfile(name, ops, sizes.output_bytes, sizes.kept_bytes, self.workspace, forward, backward)
        )

    def profile(self, body, outside) -> Profile:
        """All that was measured. What comes from outside is held nearly always: it counts with the input."""
        self.scale_all(*self.scales(body, outside))
        from_outside = {self.memory[source] for source in body.boundary}
        costs = costs_of(self.sizes, sum(m.nbytes for m in from_outside if m.counts), self.line_seconds)
        return Profile(tuple(self.layers), costs, body, self.memory, self.line_seconds)


    # ---- the whole chain ---------------------------------------------------------------------------

    def scales(self, body, outside):
        """How much longer forward and backward take in a run of the whole chain than layer by layer; two factors.

        A layer on its own finds its memory and its caches in another state. So the chain is swept once more, as
        one checkpoint that is split as bisection() says: that holds little, and runs nearly every op.
        """
        expected = Ledger(self.memory)
        for memory in self.memory.values():
            memory.holders.clear()
        chain = Body(body.lines, body.outputs, body.cuts, body.manner._replace(schedule=bisection()))
        swept = [output for output in chain.outputs if output.requires_grad]
        call = Call(chain, chain.boundary, chain.outputs, "", None)
        expected.tape.append(Taped(call, swept))
        expected.backward()
        forward = sum(self.line_seconds[line] for line in expected.lines_run)
        backward = sum(seconds for _, _, seconds in self.sizes)
        runs = [sweep_once(chain, outside, swept) for _ in range(3)][1:]
        replayed, rest = (min(seconds) for seconds in zip(*runs, strict=True))
        return (replayed / forward if forward else 1.0), (rest / backward if backward else 1.0)

    def scale_all(self, forward, backward):
        self.line_seconds = {line: seconds * forward for line, seconds in self.line_seconds.items()}
        self.sizes = [(sizes, f * forward, b * backward) for sizes, f, b in self.sizes]
        times = [{"forward_seconds": f, "backward_seconds": b} for _, f, b in self.sizes]
        self.layers = [dataclasses.replace(old, **new) for old, new in zip(self.layers, times, strict=True)]


def sweep_once(chain, outside, swept):
    """Seconds of the replays, and of the other steps, of a backward through a chain that is one checkpoint."""
    context = local.context
    region, context.region = context.region, None
    try:
        arrays = [outside[source] for source in chain.boundary]
        inputs = [s if s.op is None else constant_like(s, a) for s, a in zip(chain.boundary, arrays, strict=True)]
        place = user_position()
        nodes = checkpoint_nodes(chain, tuple(inputs), arrays, chain.work(sweep=swept), chain.outputs, "", place)
        seeds = [
            (Tensor(gradient_like(node, arrays), node), gradient_like(node, arrays))
            for node in nodes
            if node.requires_grad
        ]
        targets = [node for node, source in zip(inputs, chain.boundary, strict=True) if source.requires_grad]
        replayed, rest, then = 0.0, 0.0, time.perf_counter()
        for fields in Sweep(seeds, False, False, targets).walk():
            now = time.perf_counter()
            if fields is not None and fields[0] == "replay":
                replayed += now - then
            else:
                rest += now - then
            then = now
        return replayed, rest
    finally:
        context.region = region


def seconds_of(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def time_once(body, arrays, swept):
    """Seconds of writing a body on the tape, all of it, and of sweeping it from a gradient at each output."""
    context = local.context
    region, context.region = context.region, None
    fresh = {source: source if source.op is None else constant_like(source, arrays[source]) for source in body.boundary}
    targets = [fresh[source] for source in body.boundary if source.requires_grad]
    whole = Body(body.lines, body.outputs, manner=Manner(whole=True))
    work, values = whole.work(sweep=swept), dict(arrays)
    try:
        start = time.perf_counter()
        execute(whole, work, values, fresh)
        middle = time.perf_counter()
        there = list(arrays.values())
        seeds = [(Tensor(gradient_like(node, there), fresh[node]), gradient_like(node, there)) for node in swept]
        begin = time.perf_counter()
        collections.deque(Sweep(seeds, False, False, targets).walk(), maxlen=0)
        return middle - start, time.perf_counter() - begin
    finally:
        context.region = region


def gradient_like(node, arrays):
    """Ones of a node's shape and dtype, made by the module that computes on `arrays`."""
    return array_module(*arrays).ones(node.shape, node.dtype)


class Allocations:
    """Measures with tracemalloc what calls allocate; starts it if it is not running."""

    def __enter__(self):
        self.started = not tracemalloc.is_tracing()
        if self.started:
            tracemalloc.start()
        return self

    def __exit__(self, *error):
        if self.started:
            tracemalloc.stop()

    def beside_result(self, function, *args) -> int:
        """The most bytes that were allocated at once during the call, less those of its result."""
        result, peak = allocated_by(function, *args)
        return max(0, peak - (memory_owner(result).nbytes if is_array(result) else 0))
