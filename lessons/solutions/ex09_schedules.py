"""Solutions for lesson 09."""

import functools
import math

import minigrad as mg


def halved(layers, x):
    """`layers[-1](… layers[0](x))` in logarithmic memory: what `schedules.bisection()` does, by hand."""
    if len(layers) == 1:
        return layers[0](x)
    half = len(layers) // 2
    middle = mg.checkpoint(halved, layers[:half], x)
    return halved(layers[half:], middle)


def most_layers(slots, runs):
    """The most layers that `slots` slots for boundaries and `runs` runs of each layer can do: β(slots, runs)."""
    longest = [1] * (runs + 1)  # without a slot, for 0, 1, ... runs
    for _ in range(slots):
        for more in range(1, runs + 1):
            longest[more] += longest[more - 1]
    return longest[runs]


def fewest_replays(layers, slots):
    """The fewest layers that have to run again with `slots` slots, by trying every place for the next boundary."""
    return cost(layers, slots) - (layers - 1)


@functools.cache
def cost(layers, slots):
    """The runs that it takes to go backward through so many layers, the first run included."""
    if layers == 1:
        return 0
    if slots == 0:
        return math.inf
    return min(j + cost(layers - j, slots - 1) + cost(j, slots) for j in range(1, layers))
