# Goes through the segments from the first to the last, as in forward.
import numpy as np


def gradients(weights, x, every, forward, vjp):
    boundaries = []
    for number, w in enumerate(weights):
        if number % every == 0:
            boundaries.append(x)
        x = forward(x, w)
    g, found = np.ones_like(x), [None] * len(weights)
    for count, boundary in enumerate(boundaries):
        first = count * every
        segment, inputs = weights[first : first + every], [boundary]
        for w in segment[:-1]:
            inputs.append(forward(inputs[-1], w))
        for number in reversed(range(len(segment))):
            g, found[first + number] = vjp(g, inputs.pop(), segment[number])
    return found
