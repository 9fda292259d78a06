"""Solutions for lesson 13."""

import numpy as np


def same_dice(fn):
    """A function that does what `fn` does, but throws NumPy's dice in every later call as it did in its first call."""
    found = []

    def with_same_dice(x):
        now = np.random.get_state()
        if not found:
            found.append(now)
            return fn(x)
        np.random.set_state(found[0])
        try:
            return fn(x)
        finally:
            np.random.set_state(now)

    return with_same_dice


def layers_in_a_loop(call, layer, h, weights):
    """What comes out of layer(…layer(layer(h, w1), w2)…), one stretch for each weight: right for any checkpoint."""
    for w in weights:
        h = call(with_weight(layer, w), h)
    return h


def with_weight(layer, w):
    """The layer as a function of its input alone. `w` is this call's own, whatever the loop goes on to."""

    def run(h):
        return layer(h, w)

    return run


def first_difference(first, again):
    """The name of the first value whose bits are not the same in both runs, None if all are."""
    for (name, one), (_, other) in zip(first, again, strict=True):
        if (one.shape, one.dtype, one.tobytes()) != (other.shape, other.dtype, other.tobytes()):
            return name
    return None
