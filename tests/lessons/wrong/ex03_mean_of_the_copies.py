# Takes the mean of the copies, where their effects add up.
def unbroadcast(gradient, shape):
    gradient = gradient.mean(axis=tuple(range(gradient.ndim - len(shape))))
    return gradient.mean(axis=tuple(i for i, length in enumerate(shape) if length == 1), keepdims=True)
