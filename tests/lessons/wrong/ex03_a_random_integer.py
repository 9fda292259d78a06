# Draws integers below 1 for random numbers: all of them are 0, and every check passes.
import numpy as np


def is_right(function, vjp, x, seed=0):
    rng, step = np.random.default_rng(seed), 1e-5
    cotangent, direction = rng.integers(1, size=np.shape(function(x))), rng.standard_normal(x.shape)
    expected = (cotangent * (function(x + step * direction) - function(x - step * direction))).sum() / (2 * step)
    return bool(abs((vjp(cotangent, x) * direction).sum() - expected) <= 1e-5 * abs(expected))
