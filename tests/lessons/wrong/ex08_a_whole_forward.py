# Adds a whole forward, however few layers are replayed.
def time_factor(forward, backward, replayed, layers):
    return (forward + backward + forward * (replayed > 0)) / (forward + backward)
