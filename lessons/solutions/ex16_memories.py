"""Solutions for lesson 16."""

import minigrad as mg


def in_slow_memory(layers, x, segments, window):
    """layers[-1](… layers[0](x)), cut into equal segments, each a checkpoint with its input in slow memory."""
    length = len(layers) // segments

    def run(first, x):
        for layer in layers[first : first + length]:
            x = layer(x)
        return x

    for first in range(0, len(layers), length):
        x = mg.checkpoint(run, first, x, offload=window)
    return x


def fast_peak(layers, segments, window):
    """The most live activations in fast memory in a run of `in_slow_memory`, for a chain of layers `h @ w`."""
    inside = layers // segments - 1  # its own input is one of the window's
    return inside + min(window, segments)


def break_even(moving, replaying):
    """What a transfer may cost, in forwards of one layer, for `moving` to take as long as `replaying`."""
    transfers = (moving.writes + moving.reads) - (replaying.writes + replaying.reads)
    return (replaying.extra_forwards - moving.extra_forwards) / transfers
