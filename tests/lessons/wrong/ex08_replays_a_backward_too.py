# Believes that a replayed layer is differentiated twice as well.
def time_factor(forward, backward, replayed, layers):
    return 1 + replayed / layers
