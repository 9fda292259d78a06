# Looks at how long ago and how dear, not at how large.
def score(storage):
    return (storage.cost + storage.neighbourhood) / storage.staleness
