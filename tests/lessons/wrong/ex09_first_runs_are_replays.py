# Counts the first run of each layer as a replay.
import math


def fewest_replays(layers, slots):
    return cost(layers, slots)


def cost(layers, slots):
    if layers == 1:
        return 0
    if slots == 0:
        return math.inf
    return min(j + cost(layers - j, slots - 1) + cost(j, slots) for j in range(1, layers))
