# Takes one more than the whole part of the root, always.
def best_number(layers):
    return min(layers, int(layers**0.5) + 1)
