# Calls zero_grad before each backward, as in a training loop, and keeps the last part only.
import minigrad as mg


def backward_in_parts(network, x, labels, parts):
    length = len(x) // parts
    for start in range(0, len(x), length):
        network.zero_grad()
        (mg.cross_entropy(network(x[start : start + length]), labels[start : start + length]) / parts).backward()
