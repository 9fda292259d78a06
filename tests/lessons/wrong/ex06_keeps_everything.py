# Keeps the input of every layer: right gradients, no checkpoints.
import numpy as np


def gradients(weights, x, every, forward, vjp):
    inputs = []
    for w in weights:
        inputs.append(x)
        x = forward(x, w)
    g, found = np.ones_like(x), [None] * len(weights)
    for number in reversed(range(len(weights))):
        g, found[number] = vjp(g, inputs.pop(), weights[number])
    return found
