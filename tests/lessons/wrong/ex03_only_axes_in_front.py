# Forgets the axes that were stretched from length 1.
def unbroadcast(gradient, shape):
    return gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
