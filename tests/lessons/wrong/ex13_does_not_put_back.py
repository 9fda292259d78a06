# Restores the state of the first call, and leaves the generator there for whoever throws next.
import numpy as np


def same_dice(fn):
    found = []

    def again(x):
        if found:
            np.random.set_state(found[0])
        else:
            found.append(np.random.get_state())
        return fn(x)

    return again
