# Counts whole rounds of all layers, as if each began with the full length.
def lru_runs(layers, room):
    return (layers - room) * (layers // room)
