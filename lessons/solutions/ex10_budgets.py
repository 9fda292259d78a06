"""Solutions for lesson 10."""

import minigrad as mg


def peak_bytes(sizes, lengths):
    """The most bytes that are alive at once, if a chain of layers of different sizes is cut into segments."""
    most = boundaries = first = 0
    for length in lengths:
        most = max(most, boundaries + sum(sizes[first : first + length]))
        boundaries += sizes[first]
        first += length
    return most


def best_cut(sizes):
    """Where to cut a chain in two segments so that the peak is smallest: how many layers the first segment has."""
    best = 1
    for cut in range(1, len(sizes)):
        if peak_bytes(sizes, [cut, len(sizes) - cut]) < peak_bytes(sizes, [best, len(sizes) - best]):
            best = cut
    return best


def largest_batch(layers, make_input, budget):
    """The largest number of rows for which `mg.fit` finds a schedule within the budget."""
    mg.fit(layers, make_input(1), budget)  # if not even this fits, it says so
    fits, too_many = 1, 2
    while is_enough(layers, make_input(too_many), budget):
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if is_enough(layers, make_input(middle), budget):
            fits = middle
        else:
            too_many = middle
    return fits


def is_enough(layers, x, budget):
    """Whether there is a schedule that takes x through these layers within the budget."""
    try:
        mg.fit(layers, x, budget)
    except mg.BudgetError:
        return False
    return True
