# Tapes the last segment, as uniform(k) does.
import minigrad as mg


def in_slow_memory(layers, x, segments, window):
    length = len(layers) // segments

    def run(first, x):
        for layer in layers[first : first + length]:
            x = layer(x)
        return x

    for first in range(0, len(layers) - length, length):
        x = mg.checkpoint(run, first, x, offload=window)
    return run(len(layers) - length, x)
