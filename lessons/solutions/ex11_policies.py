"""Solutions for lesson 11."""

import itertools


def products_from(inner):
    """A policy that keeps the outputs of products whose inner length is at least `inner`, and no others."""

    def is_large_product(line):
        return line.op.name in ("matmul", "linear") and line.inputs[0].shape[-1] >= inner

    return is_large_product


def runs_again(needed, kept):
    """Which ops a replay runs, in a stretch of ops that each read the output of the one before: a set of numbers."""
    runs = set()
    for number in needed:
        while number >= 0 and number not in kept:
            runs.add(number)
            number -= 1
    return runs


def best_to_keep(costs, sizes, needed, budget):
    """What to keep of such a stretch, in at most `budget` bytes, so that the replay costs the least."""
    numbers = range(len(costs))
    best, best_cost = set(), sum(costs[number] for number in runs_again(needed, set()))
    for count in range(1, len(costs) + 1):
        for kept in map(set, itertools.combinations(numbers, count)):
            cost = sum(costs[number] for number in runs_again(needed, kept))
            if cost < best_cost and sum(sizes[number] for number in kept) <= budget:
                best, best_cost = kept, cost
    return best
