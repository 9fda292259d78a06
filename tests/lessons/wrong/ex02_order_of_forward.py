# Wants each node after what it has read, as in forward.
def is_good_order(order):
    place = {node: i for i, node in enumerate(order)}
    return all(place[source] < place[node] for node in order for source in node.inputs)
