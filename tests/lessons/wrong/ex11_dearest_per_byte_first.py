# Keeps what is dearest per byte by itself, as long as it fits.
def best_to_keep(costs, sizes, needed, budget):
    kept = set()
    for number in sorted(needed, key=lambda number: costs[number] / sizes[number], reverse=True):
        if sizes[number] <= budget:
            kept.add(number)
            budget -= sizes[number]
    return kept
