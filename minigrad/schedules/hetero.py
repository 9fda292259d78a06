"""The fastest schedule within a memory budget, for layers of unequal sizes and times.

A stretch start..stop of the chain is to go through forward and backward in some `memory`, its input counted. There
are three moves:

    last         One layer is left: tape it, and sweep it.
    tape         Tape the first layer. The rest of the stretch goes through in what memory that leaves.
    checkpoint   Run layers start..cut without a tape, hold the stretch's input, and let the rest, from layer `cut` on,
                 go through in what memory that leaves. Then nothing of the rest is held any more: replay start..cut,
                 a stretch of its own, in all of the memory.

The shortest time of a stretch follows from those of shorter ones: dynamic programming over start, stop and memory
(Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for heterogeneous chains, RR-9302, 2019; the
solver is known as rotor). It is the optimum among *persistent* schedules, which hold what they hold until backward
has used it. Letting go of something earlier can be faster still: see `exhaustive_optimum`.

Two things are finer here than in the paper. Stretches that end at the end of the chain are parts of the first run,
all others of replays, and a replay does less for its last layer, whose output nobody reads. And the *rest* of a stretch
may let go of its input, if no backward reads it; the input of a whole stretch is held by who made it.

The table has memory in steps, everything rounded up. The schedule is then unfolded from the table with *exact* bytes:
`Least`, another dynamic program, knows the least memory of every stretch, so what the table loses by its rounding
can cost some time, but a budget is never exceeded, and one that can be met is met.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy

from ..errors import ArgumentError, BudgetError
from ..table import bytes_text, parse_bytes
from .layer_costs import SIZES, LayerCosts
from .schedule import Schedule, whole_number


def hetero(profile, budget, slots: int = 500, count_first_run: bool = False) -> Schedule:
    """The fastest schedule for these layers that holds at most `budget` bytes.

    profile          a LayerCosts, or a profile that has one as its `costs`
    budget           bytes, as a number or as text such as "64MB": what the tape and replays may hold at once. The
                     chain's input counts, and so do input and output of a layer that a replay runs
    slots            steps of memory in the table. Exact when all sizes are multiples of a common step, and the
                     budget is at most `slots` of those. Time is O(L^3 slots); memory is 4 L^2 slots bytes, or twice
                     that if some input may be let go
    count_first_run  count input and output of a running layer in the first run too, where they are held by nobody
                     but the running program

    The schedule is for this chain and no other; of its stretches too it has

    predicted_time   of forward, replays and backward, in the unit of the costs
    predicted_bytes  the most that is held
    least_budget     the least that any persistent schedule for this chain can hold

    BudgetError, which says the least possible, for a smaller budget. Source: see the module.

    >>> schedule = hetero(LayerCosts.unit(8), budget=4)
    >>> schedule.split(8)
    [(2, hetero(layers 0-2 in 4 B)), (3, hetero(layers 2-5 in 3 B)), (2, hetero(layers 5-7 in 2 B)), (1, None)]
    >>> schedule.predicted_time, schedule.predicted_bytes, schedule.least_budget
    (28, 4, 3)
    """
    costs = getattr(profile, "costs", profile)
    if not isinstance(costs, LayerCosts):
        raise ArgumentError(
            f"hetero needs a profile, such as mg.profile(layers, x), or a LayerCosts, not {profile!r:.60}"
        )
    budget, slots = parse_bytes(budget), whole_number(slots, "the number of slots")
    needs = Needs(costs, count_first_run)
    least = Least(needs)
    least_budget = int(least.whole[0, costs.layers])
    if budget < least_budget:
        raise BudgetError(
            f"no schedule takes these {costs.layers} layers through forward and backward in {exactly(budget)}; "
            f"the least possible is {exactly(least_budget)}"
        )
    table = Table(needs, min(budget, needs.everything(0, costs.layers, False)), slots)
    return Hetero(unfold(needs, least, table, budget), 0, costs.layers)


def exactly(count):
    text = bytes_text(count)
    return text if count < 1000 else f"{text} ({count:,} bytes)"


class Solved(NamedTuple):
    """What was found for one stretch: its parts, as (start, stop, taped or not), and its cost.

    memory  what it was given; need: the most that it holds; least: the least that it could. Bytes, its input counted
    """

    parts: list
    time: float
    memory: int
    need: int
    least: int


class Solution:
    """The stretches that make up one schedule, by (start, stop). Equal only to itself."""

    def __init__(self, stretches):
        self.stretches = stretches


@dataclass(frozen=True, repr=False)
class Hetero(Schedule):
    """Layers start..stop of the chain that a solution is for. The whole chain is the first run, the others replays."""

    solution: Solution
    start: int
    stop: int

    def split(self, n):
        if n != self.stop - self.start:
            raise ArgumentError(
                f"{self!r} is for the {self.stop - self.start} layers that it was made for, and cannot split {n}; "
                "make another one from the costs of those layers"
            )
        return [
            (stop - start, None if taped else Hetero(self.solution, start, stop))
            for start, stop, taped in self._found.parts
        ]

    @property
    def _found(self):
        return self.solution.stretches[self.start, self.stop]

    @property
    def budget(self) -> int:
        """Bytes that it may hold, its input counted."""
        return self._found.memory

    @property
    def predicted_time(self) -> float:
        """Time of forward, replays and backward of its layers."""
        return self._found.time

    @property
    def predicted_bytes(self) -> int:
        """The most bytes that it holds, its input counted."""
        return self._found.need

    @property
    def least_budget(self) -> int:
        """The least bytes that any persistent schedule for these layers can hold, their input counted."""
        return self._found.least

    @property
    def label(self):
        return f"hetero(layers {self.start}-{self.stop} in {bytes_text(self.budget)})"


# ---- How much memory each move needs -------------------------------------------------------------------


class Needs:
    """What each move holds at its worst moment, in bytes, the input of the stretch or of its rest counted.

    A move of the rest of a stretch (`is_rest`) may let go of its input, when the layer has run.
    """

    def __init__(self, costs, count_first_run):
        self.costs, self.layers, self.count_first_run = costs, costs.layers, count_first_run
        self.activations, self.lets_go = costs.activations, costs.lets_go_of_input
        self.gradients = (0, *costs.gradient_bytes)  # of each activation; that of the chain's input is never asked
        held = (*costs.held_output_bytes[:-1], 0)
        self.waiting = (0, *map(sum, zip(costs.gradient_bytes, held, strict=True)))  # at the end of a replayed stretch
        self.advance_in_replay = [self._advance(start, costs.passing_extra) for start in range(self.layers)]
        self.advance_in_first_run = [self._advance(start, costs.forward_extra) for start in range(self.layers)]
        held = [(costs.held_bytes(i, False), costs.held_bytes(i, True)) for i in range(self.layers)]
        self.held_whole, self.held_rest = zip(*held, strict=True)

    def _advance(self, start, extra):
        """For each cut: the most that running start..cut without a tape holds. `extra`: of each layer but the first."""
        held = self.activations
        inner = [held[start] + held[i] + held[i + 1] + extra[i] for i in range(start + 1, self.layers - 1)]
        return numpy.maximum.accumulate([held[start] + held[start + 1] + self.costs.forward_extra[start], *inner])

    def is_counted(self, stop):
        """Whether what is held for a moment in forward counts, in a stretch that ends at `stop`."""
        return stop < self.layers or self.count_first_run

    def held(self, layer, is_rest):
        """A taped layer's input and inner values, while the rest goes on."""
        return self.held_rest[layer] if is_rest else self.held_whole[layer]

    def input_in_backward(self, layer, is_rest):
        """Its input, if that is still there when backward comes to it."""
        return 0 if is_rest and self.lets_go[layer] else self.activations[layer]

    def last(self, layer, is_rest):
        """Tape the last layer of a stretch, and sweep it. The chain's own last layer runs for its output."""
        costs, ends_chain = self.costs, layer + 1 == self.layers
        kept = costs.kept_bytes[layer] if ends_chain else costs.last_kept_bytes[layer]
        extra = costs.taped_extra[layer] if ends_chain else costs.last_extra[layer]
        forward = self.activations[layer] + extra if self.is_counted(layer + 1) else 0
        backward = self.input_in_backward(layer, is_rest) + costs.backward_extra[layer]
        return kept + self.waiting[layer + 1] + max(forward, backward)

    def tape(self, layer, stop, is_rest):
        """Tape the first layer of a stretch, and sweep it when the rest has been swept."""
        costs, forward, backward = self.costs, 0, 0
        if self.is_counted(stop):
            forward = self.activations[layer] + self.waiting[stop] + costs.kept_bytes[layer] + costs.taped_extra[layer]
        beside = self.gradients[layer + 1] + costs.backward_extra[layer]
        if beside:  # with nothing beside it, what a layer keeps has been counted with the rest
            backward = self.input_in_backward(layer, is_rest) + costs.kept_bytes[layer] + beside
        return max(forward, backward)

    def checkpoint(self, start, stop):
        """Run start..cut without a tape, for each cut from start + 1 to stop - 1: an array."""
        cuts = stop - start - 1
        if not self.is_counted(stop):
            return numpy.zeros(cuts, int)
        advance = self.advance_in_replay if stop < self.layers else self.advance_in_first_run
        return advance[start][:cuts] + self.waiting[stop]

    def everything(self, start, stop, is_rest):
        """Tape the whole stretch, or rest."""
        held = most = 0
        for layer in range(start, stop - 1):
            most = max(most, held + self.tape(layer, stop, is_rest))
            held += self.held(layer, is_rest)
            is_rest = True
        return max(most, held + self.last(stop - 1, is_rest))


class Least:
    """The least memory in which any of the moves takes layers start..stop through: whole[start, stop], rest[…]."""

    def __init__(self, needs):
        self.whole, self.rest = numpy.zeros((2, needs.layers + 1, needs.layers + 1), int)
        for stop in range(1, needs.layers + 1):
            self.whole[stop - 1, stop] = needs.last(stop - 1, False)
            self.rest[stop - 1, stop] = needs.last(stop - 1, True)
            for start in reversed(range(stop - 1)):
                self._fill(needs, start, stop)

    def _fill(self, needs, start, stop):
        cuts = slice(start + 1, stop)
        advance, replay = needs.checkpoint(start, stop), self.whole[start, cuts]
        after = needs.activations[start] + self.rest[cuts, stop]
        checkpoint = numpy.maximum(numpy.maximum(advance, replay), after).min()
        for least, is_rest in ((self.whole, False), (self.rest, True)):
            after = needs.held(start, is_rest) + self.rest[start + 1, stop]
            least[start, stop] = min(checkpoint, max(needs.tape(start, stop, is_rest), after))


# ---- The table -----------------------------------------------------------------------------------------


class Table:
    """The shortest time of layers start..stop in 0, 1, …, `slots` steps of memory; inf where it cannot be.

    whole[start][stop - start - 1] is an array over the steps, and so is rest[…], for the rest of a stretch.
    Whatever needs memory is rounded up to whole steps.
    """

    def __init__(self, needs, memory, slots):
        self.needs, self.costs = needs, needs.costs
        self.step = step_size(needs.costs, memory, slots)
        self.slots = memory // self.step
        self.forward_before = numpy.concatenate([[0], numpy.cumsum(self.costs.forward)])
        self.whole = self._rows()
        self.rest = self._rows() if any(needs.lets_go) else self.whole
        self._fill()

    def _rows(self):
        layers = self.needs.layers
        return [numpy.full((layers - start, self.slots + 1), math.inf) for start in range(layers)]

    def steps(self, count):
        return -(-count // self.step)

    def _fill(self):
        layers = self.needs.layers
        rests, space = numpy.empty((2, layers, self.slots + 1))  # rests[start]: of start..stop, + all forward before it
        for stop in range(1, layers + 1):
            for start in reversed(range(stop)):
                cuts = stop - start - 1
                best = self._best_cut(start, stop, rests[start + 1 : stop], space[:cuts]) if cuts else None
                self._fill_row(self.rest[start][cuts], start, stop, best, True)
                if self.rest is not self.whole:
                    self._fill_row(self.whole[start][cuts], start, stop, best, False)
                numpy.add(self.rest[start][cuts], self.forward_before[start], out=rests[start])

    def _fill_row(self, row, start, stop, best_cut, is_rest):
        """The shorter of two times: with the first layer taped, or with a checkpoint first."""
        if stop - start == 1:
            row[self.steps(self.needs.last(start, is_rest)) :] = last_time(self.costs, start)
            return
        shift, need = self.steps(self.needs.held(start, is_rest)), self.steps(self.needs.tape(start, stop, is_rest))
        need = max(need, shift)
        row[need:] = self.rest[start + 1][stop - start - 2][need - shift : max(0, len(row) - shift)]
        row[need:] += self.costs.forward[start] + self.costs.backward[start]
        numpy.minimum(row, best_cut, out=row)

    def _best_cut(self, start, stop, rests, times):
        """The shortest times with a checkpoint first, over the steps of memory."""
        shift = self.steps(self.needs.activations[start])
        times[:, :shift] = math.inf
        replays = self.whole[start][: stop - start - 1, shift:]
        numpy.add(rests[:, : max(0, self.slots + 1 - shift)], replays, out=times[:, shift:])
        for cut, need in enumerate(self.steps(self.needs.checkpoint(start, stop))):
            times[cut, :need] = math.inf
        return times.min(axis=0) - self.forward_before[start]

    def time(self, start, stop, memory, is_rest):
        """The time of what is known to fit; where the table does not know how, the time in a little more memory."""
        row = (self.rest if is_rest else self.whole)[start][stop - start - 1]
        memory = min(memory // self.step, self.slots)
        if row[memory] == math.inf:
            memory = int(numpy.argmax(row < math.inf))
        return row[memory]


def step_size(costs, memory, slots):
    """Bytes of a step. The common divisor of all sizes if that gives at most `slots` steps: then nothing is rounded."""
    sizes = [costs.activations, *(getattr(costs, name) for name in SIZES)]
    divisor = math.gcd(*(size for row in sizes for size in row))
    if divisor and memory // divisor <= slots:
        return divisor
    return max(1, -(-memory // slots))


def last_time(costs, layer):
    """The time of the last layer of a stretch: in the chain's first run it runs for its output."""
    forward = costs.forward if layer + 1 == costs.layers else costs.last_forward
    return forward[layer] + costs.backward[layer]


# ---- From the table to a schedule ----------------------------------------------------------------------


def unfold(needs, least, table, memory):
    """The stretches of the fastest schedule, from the whole chain down with exact memory; then their costs, back up."""
    moves, waiting = {}, [(0, needs.layers, memory)]
    for start, stop, room in waiting:  # which grows on the way
        moves[start, stop, room] = best_moves(needs, least, table, start, stop, room)
        waiting += [(first, end, left) for first, end, taped, left in moves[start, stop, room] if not taped]
    stretches = {}
    for (start, stop, room), made in reversed(moves.items()):
        time, need = cost_of(needs, start, stop, made, stretches)
        stretches[start, stop] = Solved(joined(made), time, room, need, int(least.whole[start, stop]))
    return Solution(stretches)


def best_moves(needs, least, table, start, stop, memory):
    """The moves that take one stretch through forward: (start, stop, taped or not, the memory that there is then)."""
    moves, is_rest = [], False
    while start < stop:
        if needs.everything(start, stop, is_rest) <= memory:
            cut = None
        else:
            cut = best_cut(needs, least, table, start, stop, memory, is_rest)
        if cut is None:
            moves.append((start, start + 1, True, memory))
            memory -= needs.held(start, is_rest)
        else:
            moves.append((start, cut, False, memory))
            memory -= needs.activations[start]
        start, is_rest = moves[-1][1], True
    return moves


def best_cut(needs, least, table, start, stop, memory, is_rest):
    """Where the first checkpoint shall end; None: tape the first layer. One of them always fits."""
    costs, best, best_time = needs.costs, None, None
    after = memory - needs.held(start, is_rest)
    if needs.tape(start, stop, is_rest) <= memory and least.rest[start + 1, stop] <= after:
        best_time = costs.forward[start] + costs.backward[start] + table.time(start + 1, stop, after, True)
    after = memory - needs.activations[start]
    for cut, need in enumerate(needs.checkpoint(start, stop), start + 1):
        if need <= memory and least.whole[start, cut] <= memory and least.rest[cut, stop] <= after:
            advance = table.forward_before[cut] - table.forward_before[start]
            time = advance + table.time(start, cut, memory, False) + table.time(cut, stop, after, True)
            if best_time is None or time < best_time:
                best, best_time = cut, time
    return best


def cost_of(needs, start, stop, moves, stretches):
    """Time of a stretch, and bytes that it needs, from its last move back to its first."""
    costs, time, need = needs.costs, 0, 0
    for first, end, taped, _ in reversed(moves):
        is_rest = first > start
        if end == stop:
            time, need = last_time(costs, first), needs.last(first, is_rest)
        elif taped:
            time += costs.forward[first] + costs.backward[first]
            need = max(needs.tape(first, stop, is_rest), needs.held(first, is_rest) + need)
        else:
            time += sum(costs.forward[first:end]) + stretches[first, end].time
            advance = int(needs.checkpoint(first, stop)[end - first - 1])
            need = max(advance, needs.activations[first] + need, stretches[first, end].need)
    return time, need


def joined(moves):
    """Moves as parts: neighbouring taped layers are one part."""
    parts = []
    for first, end, taped, _ in moves:
        if taped and parts and parts[-1][2]:
            first = parts.pop()[0]
        parts.append((first, end, taped))
    return parts
