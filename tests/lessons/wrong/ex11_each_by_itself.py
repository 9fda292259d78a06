# Tries every set, but counts only the cost of the kept ops themselves as saved.
import itertools


def best_to_keep(costs, sizes, needed, budget):
    numbers = range(len(costs))
    choices = [set(some) for count in range(len(costs) + 1) for some in itertools.combinations(numbers, count)]
    fitting = [kept for kept in choices if sum(sizes[number] for number in kept) <= budget]
    return max(fitting, key=lambda kept: sum(costs[number] for number in kept))
