# Rounds the length of a segment down, and so forgets that some segments are longer.
def best_number(layers):
    best = 1
    for k in range(1, layers + 1):
        if k + layers // k < best + layers // best:
            best = k
    return best
