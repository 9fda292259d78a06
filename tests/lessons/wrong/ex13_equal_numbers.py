# Compares numbers, not bits: a nan differs from itself.
import numpy as np


def first_difference(first, again):
    for (name, one), (_, other) in zip(first, again, strict=True):
        if not np.array_equal(one, other):
            return name
    return None
