# Checks the gradient of the sum of the outputs.
import numpy as np


def is_right(function, vjp, x, seed=0):
    direction, step = np.random.default_rng(seed).standard_normal(x.shape), 1e-5
    cotangent = np.ones(np.shape(function(x)))
    expected = (function(x + step * direction) - function(x - step * direction)).sum() / (2 * step)
    found = (vjp(cotangent, x) * direction).sum()
    return bool(abs(found - expected) <= 1e-5 * abs(expected) + 1e-9)
