# Divides by the extra time and forgets that the forward is part of what it is compared with.
def backward_in_forwards(factor, replayed, layers):
    return replayed / layers / (factor - 1)
