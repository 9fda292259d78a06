# Goes on beyond values that are held, though nobody has to run anything there.
def neighbourhood(node, reads, evicted):
    readers = {name: [other for other in reads if name in reads[other]] for name in reads}
    found = set()
    for neighbours in (reads, readers):
        seen, waiting = set(), [node]
        while waiting:
            for other in neighbours[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        found |= seen & evicted
    return found
