# Compares with the forward alone, instead of forward and backward together.
def time_factor(forward, backward, replayed, layers):
    return 1 + replayed / layers * forward / backward
