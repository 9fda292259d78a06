# Looks at the inputs and the readers themselves, and goes no further.
def neighbourhood(node, reads, evicted):
    near = set(reads[node]) | {name for name in reads if node in reads[name]}
    return near & evicted
