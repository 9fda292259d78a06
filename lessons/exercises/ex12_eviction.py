"""Exercises for lesson 12. Fill in the blanks; `make check N=12` looks at them."""


def lru_runs(layers, room):
    """How many layers run again when a chain goes forward and backward with room for `room` activations, under LRU.

    Do not simulate: count. At the end of forward the input is held, and what was read last. Backward uses that up,
    begins again at the input, and ends with the same picture further down. So the answer is a sum.

    layers  how many layers the chain has
    room    how many activations fit, the input among them; at least 3
    """
    raise NotImplementedError("your turn: which value does backward miss first, and which one after that?")


def score(storage):
    """The heuristic of Kirisame and others, for `mg.memory_budget(evict=score)`: the buffer with the lowest goes.

    storage.cost           operations that it takes to run its op again
    storage.neighbourhood  those of its evicted neighbourhood
    storage.nbytes         its size
    storage.staleness      how long nobody has read it
    """
    raise NotImplementedError("your turn: what is cheap, large and stale should have the lowest score")


def neighbourhood(node, reads, evicted):
    """The evicted neighbourhood of a node in any graph: a set of nodes.

    To have its value again after an eviction, evicted values that it was computed from have to be there: its inputs, if
    they are evicted, their inputs, if they are evicted, and so on. And others cannot be had without it: evicted nodes
    that read it, evicted nodes that read those, and so on. What is held ends the way, in both directions. The node
    itself is not its neighbour.

    node     a name
    reads    name of each node -> list of the names of those that it reads, each of them a node as well
    evicted  the names of the nodes whose values are not there: a set
    """
    raise NotImplementedError("your turn: go down from the node, and go up from the node, but do not turn round")
