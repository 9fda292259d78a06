# Forgets that the mean of a part is larger than its share in the mean of the whole.
import minigrad as mg


def backward_in_parts(network, x, labels, parts):
    length = len(x) // parts
    for start in range(0, len(x), length):
        mg.cross_entropy(network(x[start : start + length]), labels[start : start + length]).backward()
