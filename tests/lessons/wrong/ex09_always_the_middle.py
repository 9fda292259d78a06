# Cuts in the middle, as bisection does, and does not look for a better place.
import math


def fewest_replays(layers, slots):
    return cost(layers, slots) - (layers - 1)


def cost(layers, slots):
    if layers == 1:
        return 0
    if slots == 0:
        return math.inf
    j = layers - 1 if slots == 1 else layers // 2
    return j + cost(layers - j, slots - 1) + cost(j, slots)
