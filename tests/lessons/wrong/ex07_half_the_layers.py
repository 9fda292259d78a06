# Believes that half as many segments as layers are a good middle.
def best_number(layers):
    return max(1, layers // 2)
