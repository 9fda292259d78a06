# Pushes a node once for each node that reads it.
import heapq
from itertools import count


def order_of_sweep(root):
    tie, order = count(), []
    heap = [(-root.number, next(tie), root)]
    while heap:
        node = heapq.heappop(heap)[2]
        if not node.is_leaf:
            order.append(node.number)
        for source in node.inputs:
            heapq.heappush(heap, (-source.number, next(tie), source))
    return order
