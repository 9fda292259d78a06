# Keeps all that backward reads, and does not look at the budget.
def best_to_keep(costs, sizes, needed, budget):
    return set(needed)
