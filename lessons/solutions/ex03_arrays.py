"""Solutions for lesson 03."""

import numpy as np


def unbroadcast(gradient, shape):
    """The gradient of an array of shape `shape` that broadcasting has brought into the shape of `gradient`."""
    in_front = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(in_front)))
    stretched = tuple(i for i, length in enumerate(shape) if length == 1)
    return gradient.sum(axis=stretched, keepdims=True)


def log_softmax_vjp(g, out):
    """The vjp of out = log_softmax(x) = x - log(exp(x).sum()) for a vector x: the gradient of x."""
    return g - np.exp(out) * g.sum()


def is_right(function, vjp, x, seed=0):
    """Whether `vjp` is the vjp of `function` at the point x: True or False."""
    rng, step = np.random.default_rng(seed), 1e-5
    cotangent = rng.standard_normal(np.shape(function(x)))
    direction = rng.standard_normal(x.shape)
    above, below = function(x + step * direction), function(x - step * direction)
    expected = (cotangent * (above - below)).sum() / (2 * step)
    found = (vjp(cotangent, x) * direction).sum()
    return bool(abs(found - expected) <= 1e-5 * abs(expected))
