"""A walk backward that is taken step by step, and what there is to see after each step.

The walk is the engine's own generator (walk.py). A `Journey` looks at it before and after each step: which node
comes next, what its vjps are about to read, what is live afterwards. All of it is kept as text and numbers, so
that looking keeps no buffer alive.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy

from ..engine.tape import Leaf, number_of, reachable
from ..engine.tensor import Tensor
from ..engine.walk import Sweep
from ..table import bytes_text
from ..trace.listing import Tape
from ..trace.saved import saved
from .glance import WIDTH, clipped, glance, values_read
from .rehearsal import everything_below, ledger_of


@dataclass
class Moment:
    """Where a journey is: after one step, or before the first.

    number   of the step; 0 before the first
    kind     "start", or as in mg.steps: "op", "replay", "leaf"; "error" when the step has failed
    node     the node in hand; grad, grads and freed are the Step's
    reads    (name, value at a glance) of what its vjps have read
    live, live_bytes   activations that the tape holds after the step
    highest  the most activations that were live at any time during the step
    fresh    nodes that a replay has put on the tape, oldest first, and how many ops it has run for that
    """

    number: int
    kind: str
    node: object
    grad: object = None
    grads: list = field(default_factory=list)
    freed: int = 0
    reads: list = field(default_factory=list)
    live: int = 0
    live_bytes: int = 0
    highest: int = 0
    fresh: list = field(default_factory=list)
    replayed: int = 0

    def line(self) -> str:
        """The moment on one line of a terminal."""
        live = f"live {self.live} ({bytes_text(self.live_bytes)})"
        right = live if self.kind == "start" else f"{live:20}  freed {bytes_text(self.freed)}"
        room = WIDTH - len(right) - 2
        return f"{clipped(f'{self.number:>4}  {self.what()}', room):{min(room, 58)}}  {right}"

    def what(self) -> str:
        """The node, its line and its layer."""
        node = self.node
        if self.kind == "leaf":
            return f"leaf {node.name or node.role} #{node.number} has its gradient, {node.dtype}{list(node.shape)}"
        word = {"start": "start at", "replay": "replay of", "error": "failed in"}.get(self.kind, "")
        name = f" {node.name}" if node.name else ""
        layer = f"  in {node.layer}" if node.layer else ""
        op = node.op.name if node.op is not None else node.role
        return f"{word} {op} #{node.number}{name}  {node.line}{layer}".lstrip()

    def told_of_replay(self) -> str:
        """What a replay has run, and what is on the tape now."""
        ops = ", ".join(f"{count} {name}" for name, count in Counter(node.op.name for node in self.fresh).items())
        first, last = self.fresh[0].number, self.fresh[-1].number
        numbers = f"#{first}" if first == last else f"#{first}-#{last}"
        ran = "1 op ran again" if self.replayed == 1 else f"{self.replayed} ops ran again"
        most = f" with at most {self.highest} live" if self.highest > self.live else ""
        return f"{ran}{most}; fresh on the tape: {ops} ({numbers})"


class Journey:
    """A sweep, taken one step at a time.

    moment   where it is (Moment)
    ledger   the tracer that counts what is live
    passed   number of a node that has been swept -> its gradient at a glance
    made_by  number of a node that a replay has made -> which checkpoint that was
    """

    def __init__(self, sweep, origins):
        self.sweep, self.origins = sweep, list(origins)
        self.steps = Sweep.walk(sweep)
        self.ledger = ledger_of(self.origins)
        self.passed, self.made_by, self.newest = {}, {}, max(node.number for node in self.origins)
        self.moment = self.counted(Moment(0, "start", self.ahead() or self.origins[0]))

    def ahead(self):
        """The node that the next step takes; None if there are only leaves to come."""
        return self.sweep.heap[0][1] if self.sweep.heap else None

    def roots(self) -> list:
        """Nodes from which all that is on the tape can be reached: where the walk began, and where it waits."""
        return list(dict.fromkeys([*self.origins, *(node for _, node in self.sweep.heap)]))

    def step(self, closely, remember=True):
        """Take one step. Raises StopIteration at the end, and whatever the walk raises.

        closely   note what the vjps read
        remember  note what the gradient was, for whoever asks for it later
        """
        node, number = self.ahead(), self.moment.number + 1
        reads = values_read(node) if closely and node is not None and node.body is None else []
        arrived = None if node is None else self.sweep.grads.get(node)
        self.ledger.peak_activations, replayed = self.ledger.live_activations, self.ledger.replayed_ops
        try:
            with self.ledger:
                fields = next(self.steps)
        except StopIteration:
            raise
        except Exception:
            if node is not None:
                reads = reads or (values_read(node) if node.body is None else [])
                self.moment = self.counted(Moment(number, "error", node, arrived, reads=reads))
            raise
        finally:
            self.ledger.events.clear()
        kind, node, grad, grads, freed = fields
        self.moment = self.counted(Moment(number, kind, node, grad, grads, freed, reads))
        if kind == "replay":
            self.moment.fresh = self.fresh_nodes()
            self.moment.replayed = self.ledger.replayed_ops - replayed
            self.made_by.update(dict.fromkeys((n.number for n in self.moment.fresh), self.place_of(node)))
            self.newest = max([self.newest, *(n.number for n in self.moment.fresh)])
        if remember:
            self.passed[node.number] = glance(grad)
        return fields

    def counted(self, moment):
        ledger = self.ledger
        moment.live, moment.live_bytes = ledger.live_activations, ledger.live_activation_bytes
        moment.highest = ledger.peak_activations
        return moment

    def fresh_nodes(self) -> list:
        """The nodes that a replay has just made: younger than all that there were, and waiting on the heap."""
        found, waiting = set(), [node for _, node in self.sweep.heap]
        while waiting:
            node = waiting.pop()
            if node.op is not None and node.number > self.newest and node not in found:
                found.add(node)
                waiting.extend(node.inputs)
        return sorted(found, key=number_of)

    def place_of(self, checkpoint) -> str:
        """Which checkpoint it is, and what it was itself replayed for."""
        outer = self.made_by.get(checkpoint.number)
        name = f" {checkpoint.name!r}" if checkpoint.name else ""
        text = f"checkpoint{name} #{checkpoint.number} at {checkpoint.line}"
        return f"{text}, itself replayed for {outer}" if outer else text

    # ---- what there is ---------------------------------------------------------------------------------

    def tape(self):
        """The tape of this moment, the node in hand and the fresh ones included, oldest first."""
        return Tape(reachable([*self.roots(), self.moment.node]))

    def saved(self):
        """What the tape keeps now for the rest of the walk: mg.saved of a stand-in that depends on all roots."""
        above = Leaf(None, requires_grad=True)
        above.inputs = tuple(self.roots())
        return saved(Tensor(numpy.zeros(()), above))

    def to_come(self):
        """The nodes that the rest of the walk may come to, and lines of bodies that may be replayed."""
        return everything_below([node for _, node in self.sweep.heap])

    def has_passed(self, node) -> bool:
        return node.freed or node.number in self.passed

    def state_of(self, node) -> str:
        """Where a node's gradient is, in one word."""
        if node in self.sweep.grads or node in self.sweep.leaves:
            return "waits"
        return "passed" if self.has_passed(node) else ""

    def gradient_at(self, node) -> str:
        """The gradient of a node, as far as it is known now."""
        moment = self.moment
        if node is moment.node and moment.grad is not None:
            return glance(moment.grad)
        for waiting in (self.sweep.grads, self.sweep.leaves):
            if node in waiting:
                end = "added to .grad at the end" if node.op is None else "the sweep has yet to come here"
                return f"{glance(waiting[node])} (so far; {end})"
        if node.number in self.passed:
            return f"{self.passed[node.number]} (the sweep has passed it)"
        if node.freed:
            return "the sweep has passed it"
        return "none has come to it yet" if node.requires_grad else "a constant; no gradient flows to it"
