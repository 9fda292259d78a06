# Doubles until it is too much, and takes the last one that fitted.
import minigrad as mg


def largest_batch(layers, make_input, budget):
    mg.fit(layers, make_input(1), budget)
    rows = 1
    while True:
        try:
            mg.fit(layers, make_input(2 * rows), budget)
        except mg.BudgetError:
            return rows
        rows *= 2
