"""What a memory budget can evict, and which of it goes first.

A budget knows each op that is recorded under it as an `Entry`. What is held of their values lies in `Storage`s, pieces
of memory: values that share memory, as views do, go together. A heuristic is a function that gives a Storage a number,
and the lowest goes. To see the point of the paper's own heuristic, run a chain under `dtr` and under
`least_recently_used`. Both like what nobody has read for long; but the first knows that a value whose neighbours are
gone is dear, since to compute it one must compute them. So it leaves gaps of even length, as if it knew of checkpoints;
the second evicts from one end, and starts again from the input each time.

Source: Kirisame et al. 2021, Dynamic Tensor Rematerialization, arXiv:2006.09616, section 4.
"""

import random
import weakref

from ..errors import ArgumentError
from ..ops.cost import flops
from ..retention.offload import SlowCopy

entries = {}  # number of a node -> its Entry, of all nodes that were recorded under a budget and are alive


class EndOfEntry(weakref.ref):
    """A weak reference to a node that tells its pool when the node has come to an end."""

    __slots__ = ("number", "tell")

    def __new__(cls, node, number, tell):
        return super().__new__(cls, node, announce)

    def __init__(self, node, number, tell):
        super().__init__(node, announce)
        self.number, self.tell = number, tell


def announce(reference):
    tell = reference.tell()
    if tell is not None:
        tell(reference.number)


class Entry:
    """What a budget knows of a node that was recorded under it, besides the node itself.

    node       a weak reference: nodes die by reference count, as ever, and their entries with them
    pool       the budget's pool
    cost       of running it again (cost.flops)
    consumers  numbers of the nodes that read it
    used       the pool's clock when its value was made or last read
    storage    the Storage that its value is in while the tape holds it, else None
    wanted     the tape has retained it, because some vjp reads it
    fixed      it cannot be run again, as something that it reads is lost; so it is never evicted
    """

    __slots__ = ("node", "pool", "cost", "consumers", "used", "storage", "wanted", "fixed")

    def __init__(self, node, pool):
        self.node = EndOfEntry(node, node.number, weakref.WeakMethod(pool.forget))
        self.pool, self.cost, self.consumers, self.used = pool, flops(node), [], pool.clock
        self.storage, self.wanted = None, False
        self.fixed = any(map(is_lost, inputs_to_run(node)))

    def is_missed(self):
        """Whether the value is not held, and is of use for itself or to others that no backward has passed yet."""
        if self.storage is not None:
            return False
        return self.wanted or any(not consumer.node().freed for consumer in self.living_consumers())

    def living_consumers(self):
        self.consumers = [number for number in self.consumers if number in entries]
        return [entries[number] for number in self.consumers]


def entry_of(node):
    """The entry of an op's node; None for a leaf, and for a node that no budget knows."""
    return None if node.op is None else entries.get(node.number)


def inputs_to_run(node):
    """The nodes whose values are needed to run a node again."""
    if node.body is None:
        return [source for source in node.inputs if source.dtype is not None]
    work = work_for_values([node])
    return [actual for source, actual in zip(node.body.boundary, node.inputs, strict=True) if source in work.read]


def work_for_values(siblings):
    """What a checkpoint's body has to do for the values of some of its nodes."""
    body, lines = siblings[0].body, [node.body.outputs[node.attrs["index"]] for node in siblings]
    return body.work(values=lines, live=kept_inside(siblings[0]))


def kept_inside(node):
    """The values that a checkpoint keeps of its body, because its policy says so."""
    return {line: array for line, array in node.needs.kept.items() if not isinstance(array, SlowCopy)}


def is_lost(source):
    """Whether a value is neither held, nor can be computed again."""
    if source.out is not None:
        return False
    entry = entry_of(source)
    return entry is None or entry.fixed


class Storage:
    """A piece of memory that can be evicted, as a heuristic sees it.

    nbytes         its size
    number         of the oldest value in it: its place on the tape
    staleness      how long nobody has read it, in units of cost: the clock moves by the cost of each op that runs
    cost           of running again the ops that made it
    neighbourhood  the costs of all evicted values that it would have to be computed from, and of all that would have
                   to be computed from it
    """

    __slots__ = ("pool", "key", "nbytes", "entries", "can_come_back", "_cost", "_neighbourhood")

    def __init__(self, pool, key, nbytes):
        self.pool, self.key, self.nbytes = weakref.proxy(pool), key, nbytes
        self.entries = {}  # number -> Entry of each value in it
        self.can_come_back = nbytes > 0
        self.changed()

    def add(self, number, entry):
        """One value more that lies in this memory."""
        self.entries[number] = entry
        self.can_come_back = self.can_come_back and not entry.fixed
        self.changed()

    def changed(self):
        """What has been counted around here is out of date."""
        self._cost = self._neighbourhood = None

    @property
    def number(self):
        return min(self.entries)

    @property
    def staleness(self):
        return max(1, self.pool.clock - max(entry.used for entry in self.entries.values()))

    @property
    def cost(self):
        if self._cost is None:
            self._cost = sum(entry.cost for entry in self.made_by().values())
        return self._cost

    @property
    def neighbourhood(self):
        if self._neighbourhood is None:
            mine = self.made_by()
            around = {**evicted_ancestors(mine), **wanted_of(evicted_descendants(self.entries))}
            self._neighbourhood = sum(entry.cost for number, entry in around.items() if number not in mine)
            self.pool.has_counted = True
        return self._neighbourhood

    def made_by(self):
        """The ops of the values in it, and where these are views, which cost nothing, of what they look at."""
        found = dict(self.entries)
        for entry in self.entries.values():
            while entry is not None and entry.cost == 0 and entry.node().inputs:
                source = entry.node().inputs[0]
                entry = unheld(source)
                if entry is not None:
                    found[source.number] = entry
        return found


# ---- The evicted neighbourhood -----------------------------------------------------------------------


def unheld(node):
    """The entry of a node whose value is not held, be it evicted or never retained; else None."""
    return None if node.out is not None or node.freed else entry_of(node)


def evicted_ancestors(start):
    """number -> Entry of the values that are not held and that must be there to run the ops of `start` again."""
    found, waiting = {}, list(start.values())
    while waiting:
        for source in waiting.pop().node().inputs:
            entry = unheld(source)
            if entry is not None and source.number not in found:
                found[source.number] = entry
                waiting.append(entry)
    return found


def evicted_descendants(start):
    """number -> Entry of the values that are not held and that are computed from those of `start`."""
    found, waiting = {}, list(start.values())
    while waiting:
        for consumer in waiting.pop().living_consumers():
            node = consumer.node()
            if node.number not in found and unheld(node) is not None:
                found[node.number] = consumer
                waiting.append(consumer)
    return found


def wanted_of(found):
    """Of these entries those that some vjp reads, and those that lead to one: nobody will miss the others."""
    wanted = {}
    for number in sorted(found, reverse=True):
        if found[number].wanted or any(consumer in wanted for consumer in found[number].consumers):
            wanted[number] = found[number]
    return wanted


def tell_neighbours(entry, number):
    """A value comes or goes: the storages whose neighbourhood it is in have to count again."""
    start = {number: entry}
    for reached in (entry, *evicted_ancestors(start).values(), *evicted_descendants(start).values()):
        sources = [entry_of(source) for source in reached.node().inputs]
        for neighbour in (*sources, *reached.living_consumers()):
            if neighbour is not None and neighbour.storage is not None:
                neighbour.storage.changed()


# ---- Heuristics --------------------------------------------------------------------------------------


def dtr(storage):
    """(cost + cost of the evicted neighbourhood) / (bytes x staleness): cheap, large, and long unread goes first."""
    return (storage.cost + storage.neighbourhood) / (storage.nbytes * storage.staleness)


def local_dtr(storage):
    """The same without the neighbourhood: cost / (bytes x staleness)."""
    return storage.cost / (storage.nbytes * storage.staleness)


def least_recently_used(storage):
    """What nobody has read for the longest time goes first."""
    return -storage.staleness


def largest(storage):
    """The largest goes first, of several the oldest."""
    return -storage.nbytes


class AtRandom:
    """Any goes first, with equal chances; the same in each run with the same seed."""

    def __init__(self, seed):
        self.numbers = random.Random(seed)

    def __call__(self, storage):
        return self.numbers.random()


HEURISTICS = {"dtr": dtr, "local": local_dtr, "lru": least_recently_used, "size": largest}


def heuristic(evict, seed):
    """The function of a Storage that `memory_budget(evict=...)` means."""
    if evict == "random":
        return AtRandom(seed)
    if callable(evict):
        return evict
    if evict in HEURISTICS:
        return HEURISTICS[evict]
    names = ", ".join([repr(name) for name in (*HEURISTICS, "random")])
    raise ArgumentError(f"evict is one of {names}, or a function of an eviction.Storage, not {evict!r:.60}")
