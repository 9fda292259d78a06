"""Solutions for lesson 02."""

import heapq


def order_of_sweep(root):
    """The numbers of the nodes that a backward from `root` comes to, in its order, leaves left out: a list."""
    return [node.number for node in youngest_first(root) if not node.is_leaf]


def youngest_first(root):
    """All nodes that `root` depends on, each once, the youngest first."""
    heap, met = [(-root.number, root)], {root}
    while heap:
        node = heapq.heappop(heap)[1]
        yield node
        for source in node.inputs:
            if source not in met:
                met.add(source)
                heapq.heappush(heap, (-source.number, source))


def ways(root, leaf):
    """How many ways lead from `root` down to `leaf`. A node that reads another one twice has two ways to it."""
    counts = {root: 1}
    for node in youngest_first(root):
        for source in node.inputs:
            counts[source] = counts.get(source, 0) + counts[node]
    return counts.get(leaf, 0)


def is_good_order(order):
    """Whether a backward that goes through the list `order` from its beginning would be right: True or False."""
    place = {node: i for i, node in enumerate(order)}
    return all(place[node] < place[source] for node in order for source in node.inputs)
