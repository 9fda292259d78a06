# Counts the ways by walking them.
def ways(root, leaf):
    if root is leaf:
        return 1
    return sum(ways(source, leaf) for source in root.inputs)
