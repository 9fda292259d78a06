# Remembers the state when the function is made, not when it is called for the first time.
import numpy as np


def same_dice(fn):
    state = np.random.get_state()

    def again(x):
        now = np.random.get_state()
        np.random.set_state(state)
        out = fn(x)
        np.random.set_state(now)
        return out

    return again
