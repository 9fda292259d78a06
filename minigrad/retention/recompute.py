"""What a replay costs, given what is kept: for policies that weigh the one against the other.

`recompute_cost` asks the engine itself (replay.Work) what a replay would run. `problem_of` writes a region down as
numbers, for knapsack.py to try many choices quickly; for any choice it says the same cost.
"""

from typing import NamedTuple

from ..engine.replay import Body, Call, results, values_read
from ..ops.cost import flops
from .knapsack import Problem


def recompute_cost(lines, kept, outputs, cost=flops):
    """What a replay of `lines` costs if the values of `kept` are at hand: the sum of `cost` over what it runs.

    outputs  the lines whose gradients backward brings. Nested checkpoints replay later, each by itself, whatever is
             kept here; what counts here is what this replay runs of them to get at their outputs
    """
    return cost_of_work(Body(lines, outputs).work(sweep=outputs, live=kept), cost)


def cost_of_work(work, cost):
    total, waiting = 0, [work]
    while waiting:
        work = waiting.pop()
        for line in work.runs:
            if isinstance(line, Call):
                waiting.append(work.advances[line])
            else:
                total += cost(line)
    return total


def problem_of(lines, outputs, cost):
    """The ops of a region as a knapsack Problem, and the line at each of its positions.

    The ops in nested checkpoints are among them, as what they read may have to be run; but they cannot be kept.
    """
    flat, position = flattened(lines)
    every_result = [node for line in lines for node in results(line)]
    needed = Body(lines, outputs).work(sweep=outputs, live=every_result).read
    problem = Problem(
        costs=tuple([cost(op.line) for op in flat]),
        sizes=tuple([op.line.nbytes if op.depth == 0 else None for op in flat]),
        reads=tuple([op.reads for op in flat]),
        needed=frozenset([position[node] for node in needed if node in position]),
    )
    return problem, [op.line for op in flat]


class FlatOp(NamedTuple):
    """An op of a region: its line, the positions of those that it reads, and how many checkpoints it is inside of."""

    line: object
    reads: tuple
    depth: int


def flattened(lines):
    """The ops of a region, those of nested checkpoints in their place; and the position of each node of the region.

    Inside a nested checkpoint names are its own: one body may be there twice, with other inputs.
    """
    flat, position = [], {}
    frames = [(iter(lines), position, None)]  # lines to come, positions known there, the Call that this is
    while frames:
        coming, known, call = frames[-1]
        line = next(coming, None)
        if isinstance(line, Call):
            pairs = zip(line.body.boundary, line.inputs, strict=True)
            frames.append((iter(line.body.lines), {s: known[actual] for s, actual in pairs if actual in known}, line))
        elif line is not None:
            reads = {known[source] for source in values_read(line) if source in known}
            known[line] = len(flat)
            flat.append(FlatOp(line, tuple(sorted(reads)), len(frames) - 1))
        else:
            frames.pop()
            if call is not None:
                outer = frames[-1][1]
                outer.update(zip(call.outputs, [known[output] for output in call.body.outputs], strict=True))
    return flat, position
