# Forgets that the last segment was taped.
def runs_before(layer, every, layers):
    return list(range(layer // every * every, layer))
