# Compares what can be had without looking at values: shape and dtype.
def first_difference(first, again):
    for (name, one), (_, other) in zip(first, again, strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return name
    return None
