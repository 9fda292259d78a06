# Runs the last layer of each segment again, whose output nobody reads.
import numpy as np


def gradients(weights, x, every, forward, vjp):
    boundaries = []
    for number, w in enumerate(weights):
        if number % every == 0:
            boundaries.append(x)
        x = forward(x, w)
    g, found = np.ones_like(x), [None] * len(weights)
    while boundaries:
        inputs = [boundaries.pop()]
        first = len(boundaries) * every
        segment = weights[first : first + every]
        for w in segment:
            inputs.append(forward(inputs[-1], w))
        inputs.pop()
        for number in reversed(range(len(segment))):
            g, found[first + number] = vjp(g, inputs.pop(), segment[number])
    return found
