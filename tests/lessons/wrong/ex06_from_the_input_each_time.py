# Keeps no boundaries, and runs from the network's input for each layer.
import numpy as np


def gradients(weights, x, every, forward, vjp):
    g, found = None, [None] * len(weights)
    for number in reversed(range(len(weights))):
        h = x
        for w in weights[:number]:
            h = forward(h, w)
        if g is None:
            g = np.ones_like(forward(h, weights[number]))
        g, found[number] = vjp(g, h, weights[number])
    return found
