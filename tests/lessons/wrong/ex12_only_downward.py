# Counts what the node needs, and forgets those that need the node.
def neighbourhood(node, reads, evicted):
    found, waiting = set(), [node]
    while waiting:
        for other in reads[waiting.pop()]:
            if other in evicted and other not in found:
                found.add(other)
                waiting.append(other)
    return found
