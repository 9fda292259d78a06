# Takes it for granted that √L of L layers is the least there is.
import math


def least_share(layers, x):
    return math.ceil(100 * (2 * math.sqrt(len(layers)) - 1) / len(layers))
