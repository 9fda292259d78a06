# Compares with an absolute tolerance, whatever the size of the numbers.
import numpy as np


def is_right(function, vjp, x, seed=0):
    rng, step = np.random.default_rng(seed), 1e-5
    cotangent, direction = rng.standard_normal(np.shape(function(x))), rng.standard_normal(x.shape)
    expected = (cotangent * (function(x + step * direction) - function(x - step * direction))).sum() / (2 * step)
    return bool(np.isclose((vjp(cotangent, x) * direction).sum(), expected, rtol=1e-5, atol=1e-3))
