# Multiplies cost and neighbourhood, so that a value without gaps beside it costs nothing.
def score(storage):
    return storage.cost * storage.neighbourhood / (storage.nbytes * storage.staleness)
