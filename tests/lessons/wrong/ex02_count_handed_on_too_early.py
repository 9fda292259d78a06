# Counts depth-first, each node once: what arrives later is not handed on.
def ways(root, leaf):
    stack, met, counts = [root], {root}, {root: 1}
    while stack:
        node = stack.pop()
        for source in node.inputs:
            counts[source] = counts.get(source, 0) + counts[node]
            if source not in met:
                met.add(source)
                stack.append(source)
    return counts.get(leaf, 0)
