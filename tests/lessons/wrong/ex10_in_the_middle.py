# Cuts in the middle, as if all layers were alike.
def best_cut(sizes):
    return len(sizes) // 2
