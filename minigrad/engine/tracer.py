"""The tracer: a ledger of the buffers that are really alive.

It watches arrays, not promises: for each buffer it holds a weak reference to the array that owns the memory
(a view leads there by `.base`), so views and shared buffers count once, and the end of a buffer is its real
end. On NumPy its figures agree with tracemalloc's.

Beside that it knows who *holds* a buffer: a node of the tape (its own `out`, or a constant that it will
read), or a replay in progress. A buffer that is held is a live *activation*, whatever its role, parameters
and gradients aside; one that only your own variable keeps alive is not.

An engine without a tracer asks `context.tracer is None` and goes on.
"""

import weakref
from collections import deque

from .device import is_array, memory_owner
from .modes import local
from .tensor import Tensor

ROLES = ("parameter", "input", "value", "activation", "boundary", "replayed", "offloaded", "gradient", "workspace")
NONE = -1
NO_ACTIVATIONS = ("parameter", "gradient", "offloaded")


class Buffer:
    """One line of the ledger: a piece of memory, its role, and who holds it."""

    __slots__ = ("nbytes", "role", "unheld_role", "holders", "reference", "number", "op", "layer", "value", "index")

    def __init__(self, index, nbytes, role, op, layer):
        self.index, self.nbytes, self.role, self.unheld_role = index, nbytes, role, role
        self.op, self.layer, self.number, self.value = op, layer, 0, NONE
        self.holders = {}  # a set, whose entries come and go without a call: no interrupt in between

    @property
    def is_activation(self):
        return bool(self.holders) and self.role not in NO_ACTIVATIONS


class EndOf(weakref.ref):
    """A weak reference that, when its array or its node has come to an end, is put into the queue `ended`.

    Python swallows what is raised in such a callback, an interrupt as well. So it runs nothing of Python's: it is the
    queue's own `append`, and the ledger looks into the queue before it counts on.
    """

    __slots__ = ("key", "tell")

    def __new__(cls, thing, key, tell, ended):
        return super().__new__(cls, thing, ended.append)

    def __init__(self, thing, key, tell, ended):
        super().__init__(thing, ended.append)
        self.key, self.tell = key, tell


def settled(name, what):
    """A figure of the ledger, which is brought up to date when somebody looks."""

    def look(tracer):
        tracer._settle()
        return getattr(tracer, name)

    return property(look, doc=what)


class Silent:
    """In the place of a transcript: nobody reads what the ledger has heard."""

    def nothing(self, *told):
        return NONE

    ran = held = replays = sweeps = of_array = nothing


class Tracer:
    """Counts buffers and bytes while its block runs, in this thread: the figures alone.

    `mg.Tracer` (trace/recorder.py) writes down what happens, too, and shows it.

    ignore   tensors whose buffers shall not be counted at all, such as the labels of a loss
    """

    transcript, workspace = Silent(), False

    def __init__(self, ignore=()):
        self._live_activations = self.peak_activations = self.replayed_ops = 0
        self._live_activation_bytes = self.peak_activation_bytes = 0
        self.writes = self.reads = self.step = 0
        self._live_buffers = self.peak_buffers = self._live_bytes = self.peak_bytes = 0
        self._buffers_met, self._ended = 0, deque()
        self._live, self._peak = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0)
        self._at_peak = dict(self._live)
        self._buffers = {}  # id of the owning array -> Buffer
        self._held = {}  # holder -> ids of the owning arrays that it holds
        self._ends = {}  # id of a node that holds something -> the reference that tells of its end
        self._replay_holders = set()
        self._ignored = {id(memory_owner(tensor.data)): tensor for tensor in ignore}

    live_activations = settled("_live_activations", "buffers held by the tape or a replay")
    live_activation_bytes = settled("_live_activation_bytes", "bytes of these")
    live_buffers = settled("_live_buffers", "all buffers that are alive")
    live_bytes = settled("_live_bytes", "bytes of these")
    def __enter__(self):
        context = local.context
        speak_to_all(context, (*context.tracers, self))
        return self

    def __exit__(self, *error):
        context = local.context
        tracers = list(context.tracers)
        del tracers[len(tracers) - 1 - tracers[::-1].index(self)]
        speak_to_all(context, tuple(tracers))

    def __repr__(self):
        return (
            f"<Tracer: {self._live_activations} activations live, {self.peak_activations} at the peak, "
            f"{self.replayed_ops} ops replayed>"
        )

    def live(self, role: str) -> int:
        """Bytes of one role that are alive now."""
        self._settle()
        return self._live[role]

    def peak(self, role: str) -> int:
        """The most bytes of one role that were alive at any moment."""
        return self._peak[role]

    # ---- what the engine tells ---------------------------------------------------------------------

    def ran(self, op, args, arrays, out):
        """An op has run."""
        self._settle()
        self.step += 1
        value = self.transcript.ran(op, args, arrays, out)
        for arg, array in zip(args, arrays, strict=True):
            if isinstance(arg, Tensor):
                node = arg._node
                role = "value" if node is not None and node.op is not None else role_of(node)
                buffer = self._see(array, role)
                if role == "parameter" and buffer is not None:
                    self._set_role(buffer, role)  # an op made it, and then it became a parameter
        self._note("op", 0, op.name, local.context.layer, "value", 0, value)
        self._see(out, "value", op.name)

    def replayed(self, values, line, out):
        """A replay has run a line of a body, and keeps the value in `values` until its last use."""
        self._settle()
        self.step += 1
        self.replayed_ops += 1
        value = self.transcript.replays(line, out)
        self._note("replayed", line.number, line.op.name, line.layer, "replayed", 0, value)
        self._hold_for_replay(values, line, self._see(out, "replayed", line.op.name, line.layer))

    def taken_over(self, values, replay=None):
        """A replay begins, and keeps these values of its boundary, whatever the tape lets go of.

        replay  the values of that replay, if they are not all of them new
        """
        self._settle()
        for source, array in values.items():
            buffer = self._see(array, "boundary" if source.op is not None else source.role)
            self._name(buffer, source, array)
            self._hold_for_replay(values if replay is None else replay, source, buffer)

    def _hold_for_replay(self, values, line, buffer):
        holder = (id(values), id(line))
        self._replay_holders.add(holder)
        self._hold(buffer, values[line], holder)

    def dropped(self, values, line):
        """A replay needs a value no longer."""
        self._settle()
        self._replay_holders.discard((id(values), id(line)))
        self._release((id(values), id(line)))

    def handed_on(self, old_values, old, new_values, new):
        """A value that was computed inside a nested body now belongs to the replay around it."""
        self._settle()
        holder, new_holder = (id(old_values), id(old)), (id(new_values), id(new))
        for key in self._held.pop(holder, ()):
            self._buffers[key].holders[new_holder] = None
            self._buffers[key].holders.pop(holder, None)
            self._held.setdefault(new_holder, set()).add(key)
        self._replay_holders.discard(holder)
        self._replay_holders.add(new_holder)

    def replay_ended(self):
        self._settle()
        for holder in list(self._replay_holders):
            self._release(holder)
        self._replay_holders.clear()

    def held(self, reader, sources=None):
        """`reader` is on the tape, which now keeps the buffers of `sources`: those that its vjps will read."""
        self._settle()
        self.transcript.held(reader)
        if sources is None:
            sources = [reader.inputs[i] for i in reader.needs.inputs]
            if reader.needs.out:
                sources.append(reader)
        for source in sources:
            if source.out is not None and source.dtype is not None:
                self._held_for(source, reader)

    def _held_for(self, source, reader):
        if source.op is None:
            holder, first_role = reader, source.role
        else:
            holder, first_role = source, "replayed" if local.context.phase == "replay" else "value"
        buffer = self._see(source.out, first_role, "" if source.op is None else source.op.name)
        self._name(buffer, source, source.out)
        if buffer is None or buffer.role == "parameter":
            return
        buffer.number, buffer.layer = source.number, source.layer
        if reader.body is not None or source.body is not None:
            self._set_role(buffer, "boundary")
        elif buffer.role == "value":
            self._set_role(buffer, "activation")
        if id(holder) not in self._ends:
            self._ends[id(holder)] = EndOf(holder, id(holder), "_release", self._ended)
        self._hold(buffer, source.out, id(holder))

    def kept(self, family, node):
        """A checkpoint keeps, itself, values that a policy chose, and copies; `node` is its first output."""
        self._settle()
        for line, array in family.kept.items():
            if not is_array(array):  # a copy in slow memory
                self._name(self._see(array.array, "offloaded"), line, array.array)
            else:
                buffer = self._see(array, "boundary", "" if line.op is None else line.op.name, line.layer)
                self._hold_as_boundary(buffer, array, family, node)

    def offloaded(self, copy):
        """A value has been copied to slow memory."""
        self._settle()
        self.writes += 1
        self._see(copy.array, "offloaded")

    def fetched(self, copy):
        """A value has come back from slow memory, ahead of its use."""
        self._settle()
        self.reads += 1
        self._hold_as_boundary(self._see(copy.fast, "boundary"), copy.fast, copy)

    def _hold_as_boundary(self, buffer, array, holder, node=None):
        if buffer is None or buffer.role == "parameter":
            return
        if node is not None:
            buffer.number = node.number
        self._set_role(buffer, "boundary")
        if id(holder) not in self._ends:
            self._ends[id(holder)] = EndOf(holder, id(holder), "_release", self._ended)
        self._hold(buffer, array, id(holder))

    def let_go(self, node):
        """The sweep has passed a node; the tape drops what it held. Also of a checkpoint's family, of a copy."""
        self._settle()
        self._release(id(node))

    def evicted(self, node):
        """A memory budget takes a node's own buffer off the tape; constants that the node reads stay."""
        self._settle()
        holder, key = id(node), id(memory_owner(node.out))
        constants, end = self._held.pop(holder, set()) - {key}, self._ends.get(holder)
        self._held[holder] = {key}
        self._release(holder)
        if constants:
            self._held[holder], self._ends[holder] = constants, end

    def sweeps(self, node):
        """The vjps of a node run."""
        self._settle()
        self.step += 1
        self._note("vjp", node.number, node.op.name, node.layer, "gradient", 0, self.transcript.sweeps(node))

    def gradient(self, node, array):
        """A gradient has arrived at `node`."""
        self._settle()
        array = array._data if isinstance(array, Tensor) else array
        self._see(array, "gradient", "" if node.op is None else node.op.name, node.layer)

    def _settle(self):
        """Book the ends that have come since, in their order."""
        while self._ended:
            reference = self._ended[0]
            getattr(self, reference.tell)(reference.key)
            del self._ended[0]  # now, and by no call: if an interrupt comes earlier, it is booked again

    # ---- the ledger --------------------------------------------------------------------------------

    def _see(self, array, role, op="", layer=None):
        """The ledger's line for the memory behind `array`; a new one if it is not known yet."""
        owner = memory_owner(array)
        key = id(owner)
        if key in self._ignored or key in self._buffers:
            return self._buffers.get(key)
        layer = local.context.layer if layer is None else layer
        buffer = self._buffers[key] = Buffer(self._buffers_met, owner.nbytes, role, op, layer)
        self._buffers_met += 1
        buffer.reference = EndOf(owner, key, "_gone", self._ended)
        buffer.value = self.transcript.of_array(array)
        self._live_buffers += 1
        self._live_bytes += buffer.nbytes
        self._live[role] += buffer.nbytes
        self.peak_buffers = max(self.peak_buffers, self._live_buffers)
        self._peak[role] = max(self._peak[role], self._live[role])
        if self._live_bytes > self.peak_bytes:
            self.peak_bytes = self._live_bytes
            self._at_peak = dict(self._live)
        self._note_buffer("new", buffer, buffer.nbytes)
        return buffer

    def _name(self, buffer, node, array):
        """Write into the ledger whose value the buffer holds, if that was not known."""
        if buffer is not None and buffer.value == NONE:
            buffer.value = self.transcript.of_array(array, node)
            self._note_buffer("named", buffer, 0)

    def _gone(self, key):
        if key not in self._buffers:
            return  # told again, after an interrupt
        buffer = self._buffers[key]
        activations = 1 if buffer.is_activation else 0
        del self._buffers[key]  # from here to the last figure no call: Python looks for Ctrl-C at calls
        self._live_activations -= activations
        self._live_activation_bytes -= activations * buffer.nbytes
        self._live_buffers -= 1
        self._live_bytes -= buffer.nbytes
        self._live[buffer.role] -= buffer.nbytes
        self._note_buffer("gone", buffer, -buffer.nbytes)

    def _hold(self, buffer, array, holder):
        if buffer is None or holder in buffer.holders:
            return
        was = buffer.is_activation
        self._held.setdefault(holder, set()).add(id(memory_owner(array)))
        activations = 0 if was or buffer.role in NO_ACTIVATIONS else 1
        buffer.holders[holder] = None
        self._live_activations += activations
        self._live_activation_bytes += activations * buffer.nbytes
        if activations:
            self._count(buffer, 0)
            self._note_buffer("hold", buffer, 0)

    def _count(self, buffer, change):
        """One activation more, or one less."""
        self._live_activations += change
        self._live_activation_bytes += change * buffer.nbytes
        self.peak_activations = max(self.peak_activations, self._live_activations)
        self.peak_activation_bytes = max(self.peak_activation_bytes, self._live_activation_bytes)

    def _release(self, holder):
        for key in self._held.get(holder, ()):
            buffer = self._buffers.get(key)
            if buffer is None or holder not in buffer.holders:
                continue
            activations = 1 if buffer.is_activation and len(buffer.holders) == 1 else 0
            del buffer.holders[holder]
            self._live_activations -= activations
            self._live_activation_bytes -= activations * buffer.nbytes
            if activations:
                self._note_buffer("drop", buffer, 0)
                self._set_role(buffer, buffer.unheld_role)
        self._held.pop(holder, None)
        self._ends.pop(holder, None)

    def _set_role(self, buffer, role):
        """Take the buffer out of one role and put it into another: two events, whose bytes cancel out."""
        if role == buffer.role:
            return
        was = buffer.is_activation
        self._note_buffer("role", buffer, -buffer.nbytes)
        self._live[buffer.role] -= buffer.nbytes
        self._live[role] += buffer.nbytes
        self._peak[role] = max(self._peak[role], self._live[role])
        buffer.role = role
        if buffer.is_activation != was:
            self._count(buffer, 1 if buffer.is_activation else -1)
        self._note_buffer("role", buffer, buffer.nbytes)

    def _note_buffer(self, kind, buffer, nbytes):
        self._note(kind, buffer.number, buffer.op, buffer.layer, buffer.role, nbytes, buffer.value, buffer.index)

    def _note(self, kind, number, op, layer, role, nbytes, value, buffer=NONE):
        """Something has happened; a recorder writes it down."""


def speak_to_all(context, watching=None, budget=NONE):
    """Let `context.tracer` be None, the one open tracer, or all of them together, each once.

    watching, budget   those that watch from now on, if they change. The last line does it all or, interrupted, nothing
    """
    watching = context.tracers if watching is None else watching
    budget = context.budget if budget is NONE else budget
    tracers = list(dict.fromkeys(reversed(watching)))
    if budget is not None:
        tracers.insert(0, budget)  # the first to hear, so that it has made room when the others count
    speaker = Together(*tracers) if len(tracers) > 1 else tracers[0] if tracers else None
    context.tracers, context.budget, context.tracer = watching, budget, speaker


class Together:
    """Tells several tracers, for `with` blocks inside one another."""

    def __init__(self, *tracers):
        self.tracers = tracers
        self.workspace = any(tracer.workspace for tracer in tracers)

    def measured(self, function, *args, **kwargs):
        """Only the innermost tracer that measures workspace books it: the call can be made but once."""
        measuring = next(tracer for tracer in self.tracers if tracer.workspace)
        return measuring.measured(function, *args, **kwargs)

    def __getattr__(self, name):
        def tell(*args):
            for tracer in self.tracers:
                getattr(tracer, name)(*args)

        return tell


def role_of(node):
    return "input" if node is None else node.role
