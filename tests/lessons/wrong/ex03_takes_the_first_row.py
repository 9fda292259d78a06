# Takes one of the copies instead of adding them up.
def unbroadcast(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    for axis, length in enumerate(shape):
        if length == 1:
            gradient = gradient.take([0], axis=axis)
    return gradient
