"""A memory budget: at run time, without a plan, evict what does not fit, and compute it again when it is read.

    with mg.memory_budget("64MB"):
        loss = model(x)
        loss.backward()

Each op that is recorded retains what its vjps will read. Under a budget, before a buffer comes to be held, others are
*evicted* until it fits: `node.out` becomes None, and the node stays, with its op, its settings and its inputs. When the
sweep reads a value that has been evicted, it is *rematerialised*: the recorded op runs again, and before it those whose
values it needs (rematerialise.py). That is what the replay of a checkpoint does; but here nobody has said beforehand
where the checkpoints are, and the graph may have any shape. Which buffer goes is the choice of a heuristic
(eviction.py).

A `Pool` is a tracer's ledger that makes room. It hears from the engine all that a tracer hears, before the others do,
so its count of bytes is a tracer's `live_activation_bytes`: whatever is held, by the tape or by a replay in progress.

Source: Kirisame et al. 2021, Dynamic Tensor Rematerialization, arXiv:2006.09616.
"""

import threading
from collections import Counter
from typing import NamedTuple

from ..engine.device import memory_owner
from ..engine.modes import local
from ..engine.place import source_line
from ..engine.tracer import NO_ACTIVATIONS, Tracer, speak_to_all
from ..errors import BudgetError
from ..ops.cost import flops
from ..table import bytes_text, parse_bytes, table
from ..trace.saved import read_in_backward
from .eviction import Entry, Storage, entries, entry_of, heuristic, tell_neighbours
from .rematerialise import rematerialise


def memory_budget(budget, evict="dtr", seed=0):
    """Hold at most `budget` bytes of activations: what does not fit is evicted, and runs again when it is read.

    budget  bytes, or text such as "64MB" (table.parse_bytes)
    evict   which buffer goes: "dtr", by cost, size, time since its last use, and evicted neighbourhood; "local", the
            same without the neighbourhood; "lru", "size", "random"; or a function of an eviction.Storage whose lowest
            answer goes
    seed    of "random"

    Gradients are bit for bit those of a plain run. What counts is what a tracer counts as `live_activation_bytes`:
    buffers that the tape holds because of what was recorded in the block, or that a replay holds; not parameters, not
    gradients. What no op has made (an input, a constant), and what was computed before the block, counts and cannot be
    evicted. Constants that plain taping would let go of are kept, since ops may have to run again. A result is counted
    from the moment when the tape or a replay takes it; before that, an op has allocated it, and that comes on top.

    Put backward into the block. After the block the same limit holds for what was recorded in it, but not for what
    replays of checkpoints write on the tape then. Blocks nest: in the inner one the smaller limit holds, and its
    heuristic, for all that the outer one has recorded as well. Each thread has its own.

    Raises BudgetError when an op's own buffers and those that cannot be evicted are too many bytes; it names the op and
    the least budget that it needs (also as `error.least`): later ops may need more, and other evictions might have left
    room for it. OverwrittenError when a parameter was replaced that an op
    has to read again; GraphFreedError when another backward has freed what a value would have to be computed from.

    Source: Kirisame et al. 2021, Dynamic Tensor Rematerialization, arXiv:2006.09616.

    >>> import minigrad as mg
    >>> x = mg.ones(1000, requires_grad=True)
    >>> with mg.memory_budget("20 KB") as budget:
    ...     h = x
    ...     for _ in range(10):
    ...         h = mg.tanh(h)
    ...     h.sum().backward()
    >>> budget
    <memory budget of 20.0 kB, dtr: at most 20.0 kB held, 5 evictions, 5 ops run again>
    """
    return MemoryBudget(parse_bytes(budget), heuristic(evict, seed), getattr(evict, "__name__", evict))


class Figures(NamedTuple):
    """What has happened: name of an op -> how many of its values were evicted, how often it ran again; and bytes."""

    evicted: Counter
    run_again: Counter
    peak_bytes: int


class Entered(threading.local):
    """What one thread knows of a MemoryBudget.

    own     the pool of its blocks that are in no other budget's block
    pool    the pool of its latest block; inside another budget's block, that one's
    before  if it is another's: that pool's figures when the block began
    ended   and the block's own figures, once it has ended
    outer   for each open block what was in force around it
    """

    def __init__(self):
        self.own = self.pool = self.before = self.ended = None
        self.outer = []


class MemoryBudget:
    """A memory budget as a context manager, and its figures in this thread; `memory_budget` makes one.

    limit           bytes
    evictions       how often a piece of memory was evicted
    rematerialised  how many ops ran again to bring values back
    held_bytes      bytes held now
    peak_bytes      the most bytes that were ever held
    """

    def __init__(self, limit, rank, name):
        self.limit, self.rank, self.name = limit, rank, name
        self._here = Entered()

    def __enter__(self):
        here, context = self._here, local.context
        around = context.budget
        if around is None:
            here.own = here.own or Pool(self.limit, self.rank)
            here.own.catch_up()
            here.before = here.ended = None
        pool = here.pool = here.own if around is None else around
        here.outer.append((around, pool.limit, pool.rank, pool.peak_activation_bytes))
        if pool is not here.own:
            here.before, here.ended = pool.figures(), None
        try:
            pool.limit, pool.rank, pool.asker = min(self.limit, pool.limit), self.rank, None
            speak_to_all(context, budget=pool)
            pool.make_room(0)
        except BaseException:  # also what a heuristic raises
            self.__exit__()
            raise
        if pool is not here.own:
            pool.peak_activation_bytes = pool.live_activation_bytes
        return self

    def __exit__(self, *error):
        here, context = self._here, local.context
        pool = here.pool
        around, limit, rank, peak = here.outer.pop()
        if around is not None:
            pool.limit, pool.rank = limit, rank
        if pool is not here.own:
            here.ended = self.figures()
            pool.peak_activation_bytes = max(peak, pool.peak_activation_bytes)
        speak_to_all(context, budget=around)

    def figures(self) -> Figures:
        here = self._here
        if here.pool is None:
            return Figures(Counter(), Counter(), 0)
        if here.before is None or here.ended is not None:
            return here.ended or here.own.figures()
        now = here.pool.figures()
        return Figures(now.evicted - here.before.evicted, now.run_again - here.before.run_again, now.peak_bytes)

    @property
    def evictions(self) -> int:
        return self.figures().evicted.total()

    @property
    def rematerialised(self) -> int:
        return self.figures().run_again.total()

    @property
    def held_bytes(self) -> int:
        return 0 if self._here.pool is None else self._here.pool.live_activation_bytes

    @property
    def peak_bytes(self) -> int:
        return self.figures().peak_bytes

    def __repr__(self):
        return (
            f"<memory budget of {bytes_text(self.limit)}, {self.name}: at most {bytes_text(self.peak_bytes)} held, "
            f"{self.evictions} evictions, {self.rematerialised} ops run again>"
        )

    def report(self) -> str:
        """A table: of each op how many values were evicted, and how often it ran again."""
        evicted, run_again, _ = self.figures()
        rows = [(op, evicted[op], run_again[op]) for op in sorted({*evicted, *run_again})]
        rows.append(("all", evicted.total(), run_again.total()))
        note = f"{repr(self)[1:-1]}.\nOps whose values the tape does not keep run again on the way to others."
        return table(("op", "evicted", "run again"), rows, right=(1, 2), note=note)


# ---- The pool ----------------------------------------------------------------------------------------


class Pool(Tracer):
    """The buffers that the tape, or a replay in progress, holds because of what was recorded under a budget.

    limit      bytes that it may hold              rank  the heuristic
    clock      the cost of all ops that have run, replays included
    storages   id of the owning array -> Storage, of all values that the tape holds and that were recorded here
    locked     ids of the owning arrays that the vjps in hand read; operands: the same of the op in hand
    """

    def __init__(self, limit, rank):
        super().__init__()
        self.limit, self.rank, self.clock = limit, rank, 0
        self.storages, self.locked, self.operands = {}, set(), set()
        self.evicted_ops, self.ops_run_again = Counter(), Counter()
        self.asker = None  # (op, source line, layer) for which there must be room
        self.rematerialising = False
        self.has_counted = False  # whether any Storage remembers its neighbourhood

    def figures(self):
        return Figures(self.evicted_ops.copy(), self.ops_run_again.copy(), self.peak_activation_bytes)

    def bring_back(self, node, reader):
        """The value of a node that has been evicted, or was never held: its op runs again (the node's keeper)."""
        return rematerialise(node, reader)

    # ---- making room -------------------------------------------------------------------------------

    def make_room(self, nbytes):
        """Evict until so many bytes more fit. BudgetError, and nothing is evicted, if they cannot."""
        if self.live_activation_bytes + nbytes <= self.limit:
            return
        candidates = self.candidates()
        if self.least_with(nbytes, candidates) > self.limit:
            self.catch_up()
            candidates = self.candidates()
        least = self.least_with(nbytes, candidates)
        if least > self.limit:
            raise self.too_little(least)
        while self.live_activation_bytes + nbytes > self.limit:
            victim = min(candidates, key=self.priority)
            candidates.remove(victim)
            self.evict(victim)

    def least_with(self, nbytes, candidates):
        """The bytes that would be held, these included, if all candidates were evicted."""
        return self.live_activation_bytes + nbytes - sum([storage.nbytes for storage in candidates])

    def priority(self, storage):
        return self.rank(storage), storage.number

    def candidates(self):
        """What may be evicted: memory that is held for nodes alone that can run again, and that is not in use."""
        in_use = self.operands if local.context.phase == "forward" else self.operands | self.locked
        return [
            storage
            for key, storage in self.storages.items()
            if storage.can_come_back and key not in in_use and len(self._buffers[key].holders) == len(storage.entries)
        ]

    def evict(self, storage):
        """Take a piece of memory off the tape."""
        self.evicted_ops[entries[storage.number].node().op.name] += 1
        for entry in list(storage.entries.values()):
            node = entry.node()
            if node.out is None:
                self.let_go(node)  # swept unheard, after the block
            else:
                local.context.tracer.evicted(node)
                node.out = None

    def catch_up(self):
        """Let go of what a sweep has let go of after the block, where nobody told."""
        for entry in list(entries.values()):
            node = entry.node()
            if entry.pool is self and node.freed and id(node) in self._held:
                self.let_go(node)

    def too_little(self, least):
        if self.asker is None:
            what = "what the tape holds, and what cannot be evicted of it, takes"
        else:
            op, where, layer = self.asker
            again = " to run again" if self.rematerialising else ""
            what = f"{op} at {source_line(where)}{f' in layer {layer}' if layer else ''} needs{again}"
        error = BudgetError(
            f"{what} {least:,} bytes at once, and the memory budget is {self.limit:,} bytes. What is in use cannot be "
            f"evicted, nor can data that no op has made. The least budget found so far is {least:,} bytes; what comes "
            "later may need more"
        )
        error.least = least
        return error

    # ---- what the engine tells ---------------------------------------------------------------------

    def kept_by(self, node):
        """What the tape keeps for a new node: what its vjps read, and the constants that it needs to run again."""
        constants = [source for source in node.inputs if source.op is None]
        reads = dict.fromkeys([*read_in_backward(node), *constants])
        return [source for source in reads if source.out is not None and source.dtype is not None]

    def held(self, reader, sources=None):
        """A node has been recorded, or its value has come back: make room for what the tape holds of it."""
        sources = self.kept_by(reader) if sources is None else [s for s in sources if s.out is not None]
        if reader.number not in entries:
            self.enter(reader)
        self.asker = asking(reader)
        new = [source for source in sources if self.is_new(source)]
        for source in new if self.has_counted else ():
            tell_neighbours(entry_of(source), source.number)
        self.operands = {id(memory_owner(source.out)) for source in sources if source.dtype is not None}
        try:
            super().held(reader, sources)
        except BudgetError:
            for source in new:
                self.evicted(source)
                source.out = None
            self._release(id(reader))
            raise
        finally:
            self.operands = set()

    def is_new(self, source):
        """Whether the tape did not hold this value before."""
        entry = entry_of(source)
        return entry is not None and entry.pool is self and entry.storage is None

    def enter(self, node):
        """A node is new on the tape: its op has run, and has read its inputs."""
        entry = entries[node.number] = Entry(node, self)
        if node.keeper is None:
            node.keeper = self
        for source in dict.fromkeys(node.inputs):
            if entry_of(source) is not None:
                entry_of(source).consumers.append(node.number)
                entry_of(source).used = self.clock
        self.clock += entry.cost
        entry.used = self.clock

    def replayed(self, values, line, out):
        self.clock += flops(line)
        if self.rematerialising:
            self.ops_run_again[line.op.name] += 1
        self.asker = asking(line)
        super().replayed(values, line, out)

    def taken_over(self, values, replay=None):
        if local.context.phase == "backward":  # the sweep begins a replay, which holds what it reads
            self.locked = set()  # what the vjps of the step before have read
        super().taken_over(values, replay)

    def sweeps(self, node):
        super().sweeps(node)
        self.asker = asking(node)
        self.lock(read_in_backward(node))

    def lock(self, sources):
        """What the vjps in hand read stays where it is until they have run."""
        self.locked = set()
        for source in sources:
            if source.dtype is not None and source.out is not None:
                self.locked.add(id(memory_owner(source.out)))
                if entry_of(source) is not None:
                    entry_of(source).used = self.clock

    def let_go(self, node):
        entry = entries.get(getattr(node, "number", None))
        if entry is not None and entry.pool is not self:
            entry.pool.let_go(node)
        elif entry is not None:
            if self.has_counted and entry.is_missed():
                tell_neighbours(entry, node.number)
            self.take_off(entry, node.number)
        super().let_go(node)

    def evicted(self, node):
        entry = entry_of(node)
        self.take_off(entry, node.number)
        super().evicted(node)
        if self.has_counted:
            tell_neighbours(entry, node.number)

    def forget(self, number):
        """A node has come to its end. If it was evicted, there is no way from it to those who have counted it."""
        entry = entries.pop(number)
        if self.has_counted and entry.wanted and entry.storage is None:
            for storage in self.storages.values():
                storage.changed()
            self.has_counted = False
        self.take_off(entry, number)

    # ---- the ledger --------------------------------------------------------------------------------

    def take_off(self, entry, number):
        """The tape does not hold the value of an entry any more."""
        storage, entry.storage = entry.storage, None
        if storage is not None:
            del storage.entries[number]
            storage.changed()
            if not storage.entries:
                self.storages.pop(storage.key, None)

    def put_on(self, entry, node):
        """The tape holds a value, in memory of its own or together with others; not that of a parameter."""
        key = id(memory_owner(node.out))
        storage, buffer = self.storages.get(key), self._buffers.get(key)
        if buffer is None or not buffer.is_activation:
            return
        if storage is None:
            storage = self.storages[key] = Storage(self, key, buffer.nbytes)
        if entry.storage is not storage:
            storage.add(node.number, entry)
        entry.storage, entry.wanted, entry.used = storage, True, self.clock

    def _held_for(self, source, reader):
        super()._held_for(source, reader)
        entry = entry_of(source)
        if entry is not None and entry.pool is self:
            self.put_on(entry, source)

    def _hold(self, buffer, array, holder):
        if buffer is not None and not buffer.holders and buffer.role not in NO_ACTIVATIONS:
            self.make_room(buffer.nbytes)
        super()._hold(buffer, array, holder)

    def _gone(self, key):
        storage = self.storages.pop(key, None)
        for entry in () if storage is None else storage.entries.values():
            entry.storage = None
        super()._gone(key)


def asking(node):
    """What an error says of the node that there must be room for. The node itself must be free to die."""
    return node.op.name, node.where, node.layer
