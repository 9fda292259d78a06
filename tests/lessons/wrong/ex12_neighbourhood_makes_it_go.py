# Thinks that a value in a gap is of little use by itself, so that it may as well go.
def score(storage):
    return storage.cost / (storage.nbytes * storage.staleness * (1 + storage.neighbourhood))
