"""The recorder: a tracer that writes down what happens, and shows it.

Each change of the ledger becomes an `Event`; what was computed and read stands in the `transcript`, in words, with the
lines of the user's program. Tables, curves, space-time pictures and the player are made of these two.
"""

import tracemalloc
from dataclasses import dataclass

from ..doors import door
from ..engine import tracer as ledger
from ..engine.device import is_array, memory_owner
from ..engine.modes import local
from ..engine.tracer import NONE, ROLES, settled
from ..table import bytes_text, table
from .transcript import Transcript


@dataclass(slots=True)
class Event:
    """One change of the ledger.

    step      how many ops and replayed ops had run, and nodes been swept, with the one that this event is part of
    phase     "forward", "replay" or "backward"
    kind      "new" or "gone": a buffer begins or ends · "hold" or "drop": the tape or a replay takes or leaves
              it · "role": its role changes, told by two events, one with minus its bytes in the old role and one
              with its bytes in the new · "named": which value it has is known from here on · "op", "replayed", "vjp":
              something runs
    number    the node's number on the tape, 0 for none; op and layer are the node's
    role      the buffer's role, and nbytes its size
    live_bytes, live_activations   of the ledger after the event
    value     which of the tracer's `transcript.values` is in the buffer, or is computed; -1 if that is not known
    buffer    which buffer, counted from 0 in the order in which the tracer met them; -1 if something runs
    """

    step: int
    phase: str
    kind: str
    number: int
    op: str
    layer: str
    role: str
    nbytes: int
    live_bytes: int
    live_activations: int
    value: int = NONE
    buffer: int = NONE


class Tracer(ledger.Tracer):
    """Counts buffers and bytes while its block runs, in this thread.

        with mg.Tracer() as tracer:
            loss = model(x)
            loss.backward()
        print(tracer.report())

    live_activations, peak_activations   buffers held by the tape or a replay, parameters and gradients aside
    live_activation_bytes, peak_activation_bytes   bytes of these: what a byte budget is about
    replayed_ops                         ops that replays have run
    writes, reads                        boundaries copied to slow memory, and back (offload)
    live_buffers, peak_buffers           all buffers that are alive, as a count
    live_bytes, peak_bytes               the same in bytes
    live(role), peak(role)               bytes of one role
    events                               everything that happened, in order (Event)
    transcript                           the values that were computed and read, with your source lines (Transcript)

    Roles: parameter · input (data and constants) · value (an op's result that only your own variable keeps) ·
    activation (kept by the tape) · boundary (kept for a checkpoint, or made by one) · replayed · offloaded (a
    copy in slow memory) · gradient · workspace (what an op needs only while it runs, if it is measured).

    Buffers made before the tracer count from the moment an op reads them. Tracers nest; the outer one sees
    everything that the inner one sees.

    ignore     tensors whose buffers shall not be counted at all, such as the labels of a loss
    workspace  measure, with tracemalloc, what each op and each vjp allocates besides its result. Slow.
    """

    def __init__(self, ignore=(), workspace=False):
        super().__init__(ignore)
        self._events, self.workspace, self.transcript = [], workspace, Transcript()
        self._started_tracemalloc = False

    events = settled("_events", "everything that happened, in order")

    def __enter__(self):
        if self.workspace and not tracemalloc.is_tracing():
            tracemalloc.start()
            self._started_tracemalloc = True
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        if self._started_tracemalloc and self not in local.context.tracers:
            tracemalloc.stop()
            self._started_tracemalloc = False

    def report(self) -> str:
        """A table of bytes by role: now, at the moment of the highest total, and each role's own highest."""
        self._settle()
        rows = [
            (role, *(f"{figures[role]:,}" for figures in (self._live, self._at_peak, self._peak)))
            for role in ROLES
            if self._peak[role]
        ]
        rows.append(("all", f"{self._live_bytes:,}", f"{self.peak_bytes:,}", f"{self.peak_bytes:,}"))
        note = (
            f"activations: {self._live_activations} live now, {self.peak_activations} at the peak; "
            f"ops replayed: {self.replayed_ops}; buffers at the peak: {self.peak_buffers} "
            f"({bytes_text(self.peak_bytes)})\n"
            "Columns are bytes: alive now, alive when the total was highest, and the role's own highest."
        )
        return table(("role", "now", "at the peak", "own peak"), rows, right=(1, 2, 3), note=note)

    def plot(self, path=None, what="bytes"):
        """Draw the memory curve of this run, stacked by role, with its phases and its peak.

        path  an .svg, .png or .pdf file, which is returned; None: the figure is returned, and a notebook shows it
        what  "bytes": all live bytes; "activations": how many are live

        Without matplotlib the curve is printed as text; a file is then a MinigradError, which says how to get it.
        """
        return door("view.curves").plot_or_print(self, path, what)

    def spacetime(self, path=None):
        """Draw which layer ran when, and what was live then, as SVG text: a column a layer, a row a step.

        path  where to save it too: an .svg file

        For a chain of layers, run by checkpoint_sequential or an nn.Sequential. ArgumentError if there is none.
        """
        spacetime = door("view.spacetime")
        return spacetime.draw(spacetime.from_run(self), path)

    def to_html(self, path):
        """Write the player, an HTML file in which one goes through this run step by step; returns the path."""
        return door("view.player").write(path, self)

    def measured(self, function, *args, **kwargs):
        """Call `function`, and book what it allocates beyond its result as workspace."""
        self._settle()
        result, transient = allocated_by(function, *args, **kwargs)
        known = id(memory_owner(result)) in self._buffers if is_array(result) else True
        space = max(0, transient - (0 if known else memory_owner(result).nbytes))
        self._live["workspace"] = space
        self._peak["workspace"] = max(self._peak["workspace"], space)
        if self._live_bytes + transient > self.peak_bytes:
            self.peak_bytes = self._live_bytes + transient
            self._at_peak = dict(self._live)
        self._live["workspace"] = 0
        return result

    def _note(self, kind, number, op, layer, role, nbytes, value, buffer=NONE):
        about = kind, number, op, layer, role, nbytes, self._live_bytes, self._live_activations, value, buffer
        self._events.append(Event(self.step, local.context.phase, *about))


def allocated_by(function, *args, **kwargs):
    """(result of the call, the most bytes that were allocated at once during it), by tracemalloc, which must run."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    result = function(*args, **kwargs)
    return result, tracemalloc.get_traced_memory()[1] - before
