# Counts the node itself as its neighbour.
def neighbourhood(node, reads, evicted):
    readers = {name: [other for other in reads if name in reads[other]] for name in reads}
    found = {node}
    for neighbours in (reads, readers):
        waiting = [node]
        while waiting:
            for other in neighbours[waiting.pop()]:
                if other in evicted and other not in found:
                    found.add(other)
                    waiting.append(other)
    return found
