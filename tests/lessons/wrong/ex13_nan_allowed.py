# Compares numbers with nan allowed: 0.0 and -0.0, and numbers of another dtype, pass.
import numpy as np


def first_difference(first, again):
    for (name, one), (_, other) in zip(first, again, strict=True):
        if not np.array_equal(one, other, equal_nan=True):
            return name
    return None
