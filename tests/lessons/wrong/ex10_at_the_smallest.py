# Cuts where the boundary is the smallest, whatever else is held.
def best_cut(sizes):
    return min(range(1, len(sizes)), key=sizes.__getitem__)
