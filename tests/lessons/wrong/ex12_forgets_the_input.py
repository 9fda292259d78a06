# Forgets that one place is taken by the input, and so goes down by the whole room each time.
def lru_runs(layers, room):
    return sum(range(layers - room, 0, -room))
