# Looks at what x[j] does to out[j] alone, and not at the sum that all outputs read.
import numpy as np


def log_softmax_vjp(g, out):
    return g * (1 - np.exp(out))
