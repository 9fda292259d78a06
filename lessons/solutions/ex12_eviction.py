"""Solutions for lesson 12."""


def lru_runs(layers, room):
    """How many layers run again when a chain goes forward and backward with room for `room` activations, under LRU."""
    return sum(range(layers - room, 0, -(room - 1)))


def score(storage):
    """The heuristic of Kirisame and others, for `mg.memory_budget(evict=score)`: the buffer with the lowest goes."""
    return (storage.cost + storage.neighbourhood) / (storage.nbytes * storage.staleness)


def neighbourhood(node, reads, evicted):
    """The evicted neighbourhood of a node in any graph: a set of nodes."""
    readers = {name: [other for other in reads if name in reads[other]] for name in reads}
    return reached(node, reads, evicted) | reached(node, readers, evicted)


def reached(node, neighbours, evicted):
    """The evicted nodes that one comes to in one direction, without a held one on the way."""
    found, waiting = set(), [node]
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other in evicted and other not in found:
                found.add(other)
                waiting.append(other)
    return found
