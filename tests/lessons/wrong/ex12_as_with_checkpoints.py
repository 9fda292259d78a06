# Believes that every layer that is not held runs again once, as with checkpoints.
def lru_runs(layers, room):
    return max(0, layers - room)
