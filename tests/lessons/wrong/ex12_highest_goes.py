# Has the formula upside down, as if the highest score went.
def score(storage):
    return storage.nbytes * storage.staleness / (storage.cost + storage.neighbourhood)
