"""The fewest replays of a short chain, found by trying every strategy: Dijkstra over sets of live activations.

Knows nothing of schedules. A strategy is any sequence of three moves: run a layer whose input is live, let an
activation go, sweep the last layer that has not been swept if its input is live. Running costs 1, the rest nothing.
"""

import heapq


def fewest_replays(layers, slots, strict):
    """The least number of layers run again, or None if so few slots can never do it.

    strict  a running layer's input and output both take a slot; if not, the output may take its input's
    """
    start = layers, 1  # layers left to sweep, and the live x_i as bits: x_0
    queue, settled = [(0, start)], set()
    while queue:
        cost, state = heapq.heappop(queue)
        if state in settled:
            continue
        settled.add(state)
        if state[0] == 0:
            return cost - (layers - 1)  # the last layer's first run is none of them: nobody reads its output
        for more, following in moves(*state, slots, strict):
            if following not in settled:
                heapq.heappush(queue, (cost + more, following))
    return None


def moves(left, live, slots, strict):
    """(cost, state) after each move from a state. Activations that nothing further reads are let go at once."""
    if live >> (left - 1) & 1:
        yield 0, (left - 1, live & ((1 << (left - 1)) - 1))
    for i in range(1, left):
        before, after = 1 << (i - 1), 1 << i
        if live & after:
            yield 0, (left, live & ~after)
        elif live & before:
            both = live | after
            if both.bit_count() <= slots:
                yield 1, (left, both)
            if not strict:
                yield 1, (left, both & ~before)
