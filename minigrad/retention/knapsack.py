"""What to keep within a byte budget so that the least has to be computed again: a knapsack on a tape.

The classic knapsack has things with a weight and a worth each. Here the weight is the bytes of a value, and its worth
the cost of computing it again. But worths depend on one another: to compute a value again takes the values that it
reads, and those that are not kept have to be computed first. In

    a = matmul(x, w)        dear
    b = a + 1               b is what backward reads
    c = tanh(b)

keeping b saves the addition *and* the matmul; once b is kept, keeping a saves nothing.

Everything here is numbers: lines of a tape are positions 0, 1, 2, … in the order in which they ran. policies.py
makes a `Problem` of a region's lines, and `least_recomputation` solves it by branch and bound, which starts from what
a greedy choice finds. It is exact if the search ends within WORK steps, which it does for any 15 lines, and for most
regions of a few dozen; otherwise it is the best that was found until then. The count of steps is no clock: the same
problem has the same answer everywhere.

Source of the search and of its bound: Kolesar 1967, A branch and bound algorithm for the knapsack problem, Management
Science 13, 723-735.
"""

import functools
import heapq
import math
from dataclasses import dataclass

WORK = 2_000_000  # how many lines the search may look at; any 15 lines have fewer than 2**16 states of 15 lines


@dataclass(frozen=True)
class Problem:
    """The lines of a region, as numbers. All of it can be hashed, so that a solution is found once.

    costs   of computing each line again, when what it reads is there
    sizes   bytes of each line's value; None: it cannot be kept
    reads   for each line, the earlier lines whose values it reads
    needed  the lines whose values backward will read, whatever is kept
    """

    costs: tuple
    sizes: tuple
    reads: tuple
    needed: frozenset

    def runs(self, kept):
        """The lines that a replay runs if the values of `kept` are there: found by walking backwards, latest first."""
        read, found = set(self.needed), []
        for line in reversed(range(len(self.costs))):
            if line in read and line not in kept:
                found.append(line)
                read.update(self.reads[line])
        return found

    def cost(self, kept):
        return sum(self.costs[line] for line in self.runs(kept))

    def nbytes(self, kept):
        return sum(self.sizes[line] for line in kept)


@functools.lru_cache(maxsize=64)
def least_recomputation(problem, budget) -> frozenset:
    """The lines to keep: at most `budget` bytes together, such that what a replay runs costs the least.

    >>> reads = (), (0,), (1,), (2,)
    >>> tape = Problem(costs=(100, 1, 9, 8), sizes=(4, 4, 4, 4), reads=reads, needed=frozenset({1, 2, 3}))
    >>> keep = least_recomputation(tape, budget=8)
    >>> sorted(keep), tape.cost(keep)
    ([1, 2], 8)
    """
    smaller = merged(problem)
    unit = math.gcd(*filter(None, smaller.sizes))
    if unit:
        budget -= budget % unit  # a rest in which nothing fits would only make the bound look better than it is
    return search(smaller, budget, start=greedy(smaller, budget))


# ---- Fewer lines -------------------------------------------------------------------------------------


def merged(problem):
    """The same problem, with lines made part of their only reader where keeping them could never be better.

    A line that backward does not read, and that one other line reads, is computed again only for that one. If that
    one's value is no larger, then to keep it is at least as good. What is left of the line is its cost.
    """
    costs, reads, needed = list(problem.costs), [set(r) for r in problem.reads], set()
    readers = [set() for _ in costs]
    for line in problem.runs(kept=()):
        needed.add(line)
        for source in reads[line]:
            readers[source].add(line)
    for line in sorted(needed, reverse=True):
        if line in problem.needed or len(readers[line]) != 1:
            continue
        (reader,) = readers[line]
        size, size_of_reader = problem.sizes[line], problem.sizes[reader]
        if size is None or (size_of_reader is not None and size_of_reader <= size):
            costs[reader] += costs[line]
            costs[line] = 0
            reads[reader].remove(line)
            reads[reader] |= reads[line]
            for source in reads[line]:
                readers[source].remove(line)
                readers[source].add(reader)
    return Problem(tuple(costs), problem.sizes, tuple(map(tuple, reads)), problem.needed)


# ---- A first choice ----------------------------------------------------------------------------------


def greedy(problem, budget):
    """Keep what saves the most per byte as things stand, as long as it fits; again until nothing is gained."""
    kept, before = set(), None
    while kept != before:
        before = set(kept)
        kept &= values_read(problem, kept)  # what was kept early may have become useless
        fill(problem, kept, budget - problem.nbytes(kept))
    return frozenset(kept)


def values_read(problem, kept):
    """The lines whose values backward or a replay reads."""
    return problem.needed.union(*[problem.reads[line] for line in problem.runs(kept)])


def fill(problem, kept, room):
    """Add to `kept` what fits into `room`, the most saved per byte first.

    What a line saves changes as others are kept. So what stands first in the heap is looked at again, and goes back if
    it has become less.
    """
    running = set(problem.runs(kept))
    readers = dict.fromkeys(running, 0)
    for line in running:
        for source in problem.reads[line]:
            if source in running:
                readers[source] += 1
    heap = [(-per_byte(problem, line, running, readers), line) for line in running if problem.sizes[line] is not None]
    heapq.heapify(heap)
    while heap:
        _, line = heapq.heappop(heap)
        if line not in running or problem.sizes[line] > room:
            continue
        now = -per_byte(problem, line, running, readers)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, line))
        elif now < 0:
            kept.add(line)
            room -= problem.sizes[line]
            for stopped in stops(problem, line, running, readers):
                running.remove(stopped)
                for source in problem.reads[stopped]:
                    if source in readers:
                        readers[source] -= 1


def per_byte(problem, line, running, readers):
    """The cost that keeping one more line saves, by byte."""
    saved = sum(problem.costs[stopped] for stopped in stops(problem, line, running, readers))
    if problem.sizes[line]:
        return saved / problem.sizes[line]
    return math.inf if saved else 0.0


def stops(problem, line, running, readers):
    """The lines that run no more if `line` is kept: itself, and what would run for it alone."""
    found, lost = [line], {}
    for stopped in found:  # which grows meanwhile
        for source in problem.reads[stopped]:
            if source in running and source not in problem.needed:
                lost[source] = lost.get(source, 0) + 1
                if lost[source] == readers[source]:
                    found.append(source)
    return found


# ---- Branch and bound --------------------------------------------------------------------------------


def search(problem, budget, start):
    """Try to keep or to run each line that is needed, latest first, and give up where the bound is no better.

    A set of lines is an int, one bit for each. A state says which lines are needed and not decided, what the decided
    ones cost, the room that is left, and what is kept. The latest needed line is next: all that could need it is
    decided.
    """
    order = by_worth(problem)
    reads = [bits(sources) for sources in problem.reads]
    best, best_cost, first = bits(start), problem.cost(start), bits(start)
    states, left = [(bits(problem.needed), 0, budget, 0)], WORK
    while states and left > 0:
        needed, cost, room, kept = states.pop()
        left -= len(order)
        if cost + at_least(problem, order, needed, room) >= best_cost:
            continue
        if not needed:
            best, best_cost = kept, cost
            continue
        line = needed.bit_length() - 1
        rest, size = needed ^ 1 << line, problem.sizes[line]
        branches = [(rest | reads[line], cost + problem.costs[line], room, kept)]
        if size is not None and size <= room:
            branches.append((rest, cost, room - size, kept | 1 << line))
            if not first >> line & 1:
                branches.reverse()  # the last of them is tried first: what the greedy choice did
        states.extend(branches)
    return frozenset(line for line in range(len(reads)) if best >> line & 1)


def at_least(problem, order, needed, room):
    """The least that these lines can cost: as if one could keep a part of a value, and compute the rest of it."""
    cost = 0
    for line in order:
        if needed >> line & 1:
            size = problem.sizes[line]
            if size is None:
                cost += problem.costs[line]
            elif size <= room:
                room -= size
            else:
                cost += problem.costs[line] * (size - room) / size
                room = 0
    return cost


def by_worth(problem):
    """The lines that a replay could run: by cost per byte, the dearest first; last those that cannot be kept."""

    def worth(line):
        size = problem.sizes[line]
        return (size is not None, problem.costs[line] / size if size else math.inf)

    return sorted(problem.runs(kept=()), key=worth, reverse=True)


def bits(lines):
    return sum(1 << line for line in lines)
