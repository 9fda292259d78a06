"""The unrestricted optimum for tiny chains, by trying everything.

`hetero` finds the best *persistent* schedule: what it holds, it holds until backward has used it. Here nothing of the
kind is asked. A state is what is held of each layer, and how far backward has come. Each move leads to another
state and takes its time; Dijkstra's algorithm finds the quickest way from "only the input is held" to "backward has
passed the first layer", among all states that fit the budget. There are up to L 4^L of them, so L must be small.

What is held of a layer is one of

    nothing
    output   its output, which the next layer reads
    tape     all that its backward reads beyond its input, and its output
    inner    the same without its output: what early stop leaves
"""

import heapq
import math
from typing import NamedTuple

from ..errors import ArgumentError, BudgetError
from ..table import parse_bytes
from .hetero import exactly
from .layer_costs import LayerCosts

LONGEST = 7
NOTHING, OUTPUT, TAPE, INNER = "nothing", "output", "tape", "inner"


class Optimum(NamedTuple):
    """The least time, and moves that take it, in order."""

    time: float
    moves: list


class State(NamedTuple):
    """What is held of each layer, and how many layers backward has still to pass."""

    held: tuple
    left: int


def exhaustive_optimum(costs, budget) -> Optimum:
    """The least time in which a chain of at most 7 layers goes forward and backward within `budget` bytes.

    Whatever is held at any moment counts, in the first run too (as with `hetero(…, count_first_run=True)`): the input
    of the chain, inputs and outputs of running layers, the gradient of the chain's output from the start.

    Raises BudgetError, with the least possible budget, for a smaller one; ArgumentError for longer chains.
    Source: Dijkstra 1959 for the search; Beaumont et al., RR-9302, 2019, for the moves.

    Three layers of the same size and time, and a loss without any. The best persistent schedule takes 8. It is quicker
    to let go of the first output, although backward has not used it yet, and to run the first layer again:

    >>> chain = LayerCosts(1, (1, 1, 1, 0), (1, 1, 1, 0), (1, 1, 1, 0), (1, 1, 1, 0), gradient_bytes=(1, 1, 1, 0))
    >>> best = exhaustive_optimum(chain, budget=4)
    >>> best.time, best.moves[:4]
    (7, ['run layer 0', 'tape layer 1', 'drop the output of layer 0', 'tape layer 2'])
    """
    costs = getattr(costs, "costs", costs)
    if not isinstance(costs, LayerCosts):
        raise ArgumentError(f"exhaustive_optimum needs a LayerCosts, not {costs!r:.60}")
    if costs.layers > LONGEST:
        raise ArgumentError(
            f"exhaustive_optimum tries everything, and can do so for at most {LONGEST} layers, not {costs.layers}; "
            "hetero() finds the best persistent schedule for long chains"
        )
    budget = parse_bytes(budget)
    found, refused = search(costs, budget)
    if found is not None:
        return found
    least = budget
    while found is None:  # the next budget worth a try is the smallest that a move has been refused for
        least = refused
        found, refused = search(costs, least)
    raise BudgetError(
        f"nothing takes these {costs.layers} layers through forward and backward in {exactly(budget)}; "
        f"the least possible is {exactly(least)}"
    )


def search(costs, budget):
    """Dijkstra's algorithm: the Optimum or None, and the least bytes that a move was refused for."""
    start = State((NOTHING,) * costs.layers, costs.layers)
    queue, count, refused = [(0, 0, start)], 1, math.inf  # the count decides between equal times, the earlier first
    times, came_from = {start: 0}, {start: None}
    while queue:
        time, _, state = heapq.heappop(queue)
        if state.left == 0:
            return Optimum(time, way_to(state, came_from)), refused
        if time > times[state]:
            continue
        for move, takes, needs, after in moves(costs, state):
            if needs > budget:
                refused = min(refused, needs)
            elif time + takes < times.get(after, math.inf):
                times[after], came_from[after] = time + takes, (move, state)
                heapq.heappush(queue, (time + takes, count, after))
                count += 1
    return None, refused


def way_to(state, came_from):
    """The moves that lead to a state."""
    way = []
    while came_from[state] is not None:
        move, state = came_from[state]
        way.append(move)
    return way[::-1]


def moves(costs, state):
    """What can be done in a state: (what, its time, the bytes held while it is done, the state after it)."""
    held, left = state
    live = bytes_held(costs, state)
    for layer in range(left):
        has = held[layer]
        has_input = layer == 0 or held[layer - 1] in (OUTPUT, TAPE)
        if has_input:
            yield from runs(costs, state, layer, live)
        if layer + 1 == left and can_be_swept(costs, layer, has, has_input):
            needs, after = live + costs.backward_extra[layer], State(put(held, layer, NOTHING), layer)
            yield f"backward of layer {layer}", costs.backward[layer], needs, after
        if has != NOTHING:
            yield f"drop the {has} of layer {layer}", 0, 0, State(put(held, layer, NOTHING), left)
        if has == TAPE:
            yield f"drop the tape of layer {layer} but for its output", 0, 0, State(put(held, layer, OUTPUT), left)
            if stops_early(costs, layer):
                yield f"drop the output of layer {layer}", 0, 0, State(put(held, layer, INNER), left)


def can_be_swept(costs, layer, has, has_input):
    """Whether all that a layer's backward reads is held."""
    has_output = has == TAPE or (has == INNER and not costs.held_output_bytes[layer])
    return has_output and (has_input or not costs.reads_input[layer])


def runs(costs, state, layer, live):
    """The ways to run a layer whose input is held."""
    held, left = state
    has = held[layer]
    if has in (NOTHING, INNER) and layer + 1 < left:
        needs = live + costs.output_bytes[layer] + costs.forward_extra[layer]
        after = State(put(held, layer, OUTPUT if has == NOTHING else TAPE), left)
        yield f"run layer {layer}", costs.forward[layer], needs, after
    if has != TAPE:
        needs = live + costs.kept_bytes[layer] + costs.taped_extra[layer]
        yield f"tape layer {layer}", costs.forward[layer], needs, State(put(held, layer, TAPE), left)
    if has in (NOTHING, OUTPUT) and stops_early(costs, layer):
        needs = live + costs.last_kept_bytes[layer] + costs.last_extra[layer]
        after = State(put(held, layer, INNER if has == NOTHING else TAPE), left)
        yield f"tape the inside of layer {layer}", costs.last_forward[layer], needs, after


def bytes_held(costs, state):
    """What is alive in a state: the chain's input, what is held of each layer, and the gradient that waits."""
    held, left = state
    sizes = {NOTHING: (0,) * costs.layers, OUTPUT: costs.output_bytes, TAPE: costs.kept_bytes}
    sizes[INNER] = costs.last_kept_bytes
    return costs.input_bytes + sum(sizes[has][i] for i, has in enumerate(held)) + costs.gradient_bytes[left - 1]


def stops_early(costs, layer):
    """Whether a run for the layer's inside alone differs from taping it. The chain's last layer runs for its output."""
    plain = costs.forward[layer], costs.kept_bytes[layer], costs.taped_extra[layer]
    early = costs.last_forward[layer], costs.last_kept_bytes[layer], costs.last_extra[layer]
    return (early != plain or costs.held_output_bytes[layer] > 0) and layer + 1 < costs.layers


def put(held, layer, what):
    return held[:layer] + (what,) + held[layer + 1 :]
