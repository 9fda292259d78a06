# Takes a queue: nodes come in the order in which they were found.
from collections import deque


def order_of_sweep(root):
    queue, met, order = deque([root]), {root}, []
    while queue:
        node = queue.popleft()
        if not node.is_leaf:
            order.append(node.number)
        for source in node.inputs:
            if source not in met:
                met.add(source)
                queue.append(source)
    return order
