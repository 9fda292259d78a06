# Takes the inputs for a set: reading a node twice is one way.
import heapq


def ways(root, leaf):
    heap, counts = [(-root.number, root)], {root: 1}
    while heap:
        node = heapq.heappop(heap)[1]
        for source in set(node.inputs):
            if source not in counts:
                counts[source] = 0
                heapq.heappush(heap, (-source.number, source))
            counts[source] += counts[node]
    return counts.get(leaf, 0)
