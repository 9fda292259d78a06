# Takes one layer of each segment.
import minigrad as mg


def in_slow_memory(layers, x, segments, window):
    for first in range(0, len(layers), len(layers) // segments):
        x = mg.checkpoint(layers[first], x, offload=window)
    return x
