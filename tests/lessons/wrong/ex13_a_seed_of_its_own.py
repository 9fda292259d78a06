# Seeds the generator in each call: always the same dice, in all layers, and never those that were there.
import numpy as np


def same_dice(fn):
    def seeded(x):
        np.random.seed(0)
        return fn(x)

    return seeded
