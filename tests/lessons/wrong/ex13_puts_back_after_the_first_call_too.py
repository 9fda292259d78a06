# Puts the generator back after the first call as well, so that the next layer throws the same dice.
import numpy as np


def same_dice(fn):
    found = []

    def again(x):
        now = np.random.get_state()
        found.append(now)
        np.random.set_state(found[0])
        out = fn(x)
        np.random.set_state(now)
        return out

    return again
