"""Offload: a checkpoint's boundary waits in slow memory, and comes back when its replay is near.

On a GPU slow memory is the host's. On NumPy there is but one memory; then a copy stands for it, which the tracer
books under a role of its own, so that one can see what the fast memory would hold.

What is copied: values that the tape would keep for the checkpoint alone. Not parameters, nor constants that its
function reads from outside, which are there anyway; not what some other op on the tape has retained already.
"""

import heapq
import weakref

from ..engine.device import device_of, to_device
from ..engine.modes import local
from ..engine.tensor import frozen

_copies = weakref.WeakKeyDictionary()  # node -> weak reference to the copy of its value


class Offload:
    """Slow memory for the boundary of a checkpoint: which of it goes there, and what is fetched ahead.

    window  how many boundaries are at hand when one is replayed: its own, and those of the next older ones
    """

    __slots__ = ("window",)

    def __init__(self, window):
        self.window = window

    def wants(self, node, given):
        return can_be_offloaded(node, given)

    def store(self, node, array):
        return offload(node, array)

    def fetch_ahead(self, node):
        fetch_ahead(node, self.window)


class SlowCopy:
    """The value of one node in slow memory.

    array   the copy, in the host's memory
    fast    the value in fast memory, if it has been fetched ahead
    """

    __slots__ = ("array", "device", "fast", "__weakref__")

    def __init__(self, array, device):
        self.array, self.device, self.fast = array, device, None

    @property
    def nbytes(self):
        return self.array.nbytes

    def stands_for(self, node):
        """Another node has the value now; another checkpoint that wants it in slow memory need not copy."""
        _copies[node] = weakref.ref(self)

    def fetch(self):
        """Bring the value back ahead of its use; returns it."""
        if self.fast is None:
            self.fast = transfer(self.array, self.device)
            if local.context.tracer is not None:
                local.context.tracer.fetched(self)
        return self.fast

    def take(self):
        """The value in fast memory, for a replay that begins; from here on that alone holds it."""
        self.fetch()
        array, self.fast = self.fast, None
        if local.context.tracer is not None:
            local.context.tracer.let_go(self)
        return array


def offload(node, array) -> SlowCopy:
    """The copy of a node's value in slow memory: the one that there is, or a new one."""
    known = _copies.get(node)
    copy = None if known is None else known()
    if copy is None:
        copy = SlowCopy(transfer(array, "cpu"), device_of(array))
        copy.stands_for(node)
        if local.context.tracer is not None:
            local.context.tracer.offloaded(copy)
    return copy


def can_be_offloaded(node, given) -> bool:
    """Whether fast memory is spared when this node's value moves: not for parameters, not for what is held anyway.

    given  data that came as an argument; other data moves only if it has come out of slow memory
    """
    if node.op is not None:
        return node.out is None
    return node.role == "input" and (node in given or node in _copies)


def fetch_ahead(node, window):
    """A replay of `node` begins: fetch what the next older checkpoints below it will want, `window` with its own.

    They are found by walking down from the node, youngest first, as the sweep itself will.
    """
    families, heap, seen = [node.needs], [], set()
    push_inputs(node, heap, seen)
    while heap and len(families) < window:
        older = heapq.heappop(heap)[1]
        if older.body is not None and older.needs not in families and copies_of(older.needs):
            families.append(older.needs)
        push_inputs(older, heap, seen)
    for family in families[1:]:
        for copy in copies_of(family):
            copy.fetch()


def copies_of(family):
    return [value for value in family.kept.values() if isinstance(value, SlowCopy)]


def push_inputs(node, heap, seen):
    for source in node.inputs:
        if source.op is not None and source not in seen and not source.freed:
            seen.add(source)
            heapq.heappush(heap, (-source.number, source))


def transfer(array, device):
    """A copy of an array in the memory of `device`."""
    moved = to_device(array, device)
    if moved is array:
        moved = frozen(array.copy())
    return moved
