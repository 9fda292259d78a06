# Swallows the error for a single row, and gives 0.
import minigrad as mg


def largest_batch(layers, make_input, budget):
    fits, too_many = 0, 1
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
    try:
        mg.fit(layers, x, budget)
    except mg.BudgetError:
        return False
    return True
