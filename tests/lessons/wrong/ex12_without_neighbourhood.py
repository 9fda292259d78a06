# Leaves the neighbourhood out.
def score(storage):
    return storage.cost / (storage.nbytes * storage.staleness)
