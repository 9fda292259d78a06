"""What one layer of a chain holds in each of the things that a schedule may do with it.

A schedule runs a layer for its output alone, tapes it in the middle of a stretch, or tapes it as the last one of a
stretch that is replayed; then it is swept. Each is walked through without arrays (`forecast.Ledger`), and the highest
point and the end are read off. `costs_of` puts the layers together into the numbers that `schedules.hetero` works on.
They are upper bounds: what two layers share counts in both.
"""

from ..engine.replay import Work
from ..schedules.layer_costs import LayerCosts
from .forecast import Ledger


class LayerSizes:
    """Bytes of one layer, counted on top of its input, and of its output where that is said.

    reads_input        whether the tape keeps the layer's input for it
    output_bytes       what it returns
    kept_bytes         what the tape keeps of a taped layer, its output with it, as the next layer's input
    taped_extra        beyond that, while it runs
    forward_extra      beyond input and output, while it runs for its output alone
    passing_extra      the same if its input may go as soon as it has been used
    held_output_bytes  of its outputs those that its own vjps read: they stay while a stretch that it ends is replayed
    backward_extra     beyond input and kept_bytes, while it is swept: what a checkpoint of its own replays
    last               the layer as the last of a replay, its output at hand
    last_again         the same, its output to be made again
    """

    def __init__(self, memory, body, inputs, outputs):
        self.memory, self.body = memory, body
        others = [source for source in body.boundary if source not in inputs]
        swept = [output for output in body.outputs if output.requires_grad]
        run, tape = Work(body, values=body.outputs), Work(body, sweep=swept, values=body.outputs)
        input_bytes, self.output_bytes = self.bytes_of(inputs), self.bytes_of(outputs)
        advanced, passing = self.walk(run, [*inputs, *others]), self.walk(run, others, inputs)
        self.forward_extra = max(0, advanced.most - self.output_bytes)
        self.passing_extra = max(0, passing.most - self.output_bytes - input_bytes)
        taped, alone = self.walk(tape, [*inputs, *others]), self.walk(tape, others, inputs)
        self.reads_input = not alone.retained.isdisjoint(inputs)
        self.kept_bytes = taped.kept if self.reads_input else alone.kept  # a view keeps its input's memory
        self.taped_extra = max(0, taped.most - self.kept_bytes)
        own = [output for output in swept if output in Work(body, sweep=swept, live=swept).read]
        self.held_output_bytes = self.bytes_of(own)
        self.last = self.walk(Work(body, sweep=swept, live=own), [*inputs, *others, *own])
        self.last_again = self.walk(Work(body, sweep=swept), [*inputs, *others])
        walks = taped, self.last, self.last_again
        self.backward_extra = max(walk.most_in_backward - walk.kept for walk in walks)

    def bytes_of(self, nodes):
        found = {self.memory[node] for node in nodes if node in self.memory}
        return sum(memory.nbytes for memory in found if memory.counts)

    def walk(self, work, given, passing=()):
        """Go through the layer once, `given` held all the time, `passing` until their last use; a ledger."""
        for memory in self.memory.values():
            memory.holders.clear()
        ledger, values = Ledger(self.memory), {}
        for node in given:
            ledger.hold(node, self)
        before = ledger.live_activation_bytes
        for node in passing:
            ledger.take(node, values)
        ledger.execute(self.body, work, values, taped=True)
        ledger.most, ledger.kept = ledger.peak_activation_bytes - before, ledger.live_activation_bytes - before
        ledger.peak_activation_bytes = ledger.live_activation_bytes
        self.sweep(ledger)
        ledger.most_in_backward = ledger.peak_activation_bytes - before
        return ledger

    def sweep(self, ledger):
        """Backward through the layer. What is read off afterwards is about the moment before."""
        lines_run, holders = ledger.lines_run, {memory: set(memory.holders) for memory in self.memory.values()}
        ledger.lines_run = []
        ledger.backward()
        ledger.lines_run = lines_run
        for memory, held in holders.items():
            memory.holders = held

    @property
    def last_kept_bytes(self):
        return self.last.kept

    @property
    def last_extra(self):
        return self.last.most - self.last.kept

    @property
    def last_extra_again(self):
        """As last_extra, if the output has to be made again, on top of what it leaves."""
        return max(self.last_extra, self.last_again.most - self.last.kept - self.held_output_bytes)


def costs_of(layers, data_bytes, line_seconds) -> LayerCosts:
    """The costs of a chain from (LayerSizes, forward seconds, backward seconds) of each layer.

    data_bytes    of the chain's input and other data that its layers read
    line_seconds  line -> seconds of a replay's run of it
    """
    rows = []
    for (sizes, forward, backward), follower in zip(layers, [*layers[1:], None], strict=True):
        is_at_hand = follower is None or follower[0].reads_input  # the next layer holds this one's output
        last = sizes.last if is_at_hand else sizes.last_again
        rows.append(
            {
                "output_bytes": sizes.output_bytes,
                # nobody reads what the chain returns, unless the last layer itself does
                "kept_bytes": sizes.kept_bytes if follower else sizes.held_output_bytes + sizes.last_kept_bytes,
                "forward": forward,
                "backward": backward,
                "reads_input": sizes.reads_input,
                "forward_extra": sizes.forward_extra,
                "passing_extra": sizes.passing_extra,
                "taped_extra": sizes.taped_extra,
                "backward_extra": sizes.backward_extra,
                "last_forward": sum(line_seconds[line] for line in last.lines_run),
                "last_kept_bytes": sizes.last_kept_bytes,
                "last_extra": sizes.last_extra if is_at_hand else sizes.last_extra_again,
                "held_output_bytes": sizes.held_output_bytes,
            }
        )
    return LayerCosts(data_bytes, **{name: tuple(row[name] for row in rows) for name in rows[0]})
