# Takes everything that hangs together, turning round on the way, and so counts siblings.
def neighbourhood(node, reads, evicted):
    readers = {name: [other for other in reads if name in reads[other]] for name in reads}
    found, waiting = set(), [node]
    while waiting:
        place = waiting.pop()
        for other in (*reads[place], *readers[place]):
            if other in evicted and other not in found:
                found.add(other)
                waiting.append(other)
    return found - {node}
