# Gives the last value that differs, where the first one is the cause of the others.
def first_difference(first, again):
    found = None
    for (name, one), (_, other) in zip(first, again, strict=True):
        if (one.shape, one.dtype, one.tobytes()) != (other.shape, other.dtype, other.tobytes()):
            found = name
    return found
