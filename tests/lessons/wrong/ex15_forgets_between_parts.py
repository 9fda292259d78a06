# Sets the gradients to None before each part, so that only the last part is left.
import numpy as np


def gradients_in_parts(loss_of, parameters, inputs, targets, parts):
    for some, theirs in zip(np.array_split(inputs, parts), np.array_split(targets, parts), strict=True):
        for parameter in parameters:
            parameter.grad = None
        (loss_of(some, theirs) * (len(some) / len(inputs))).backward()
    return [parameter.grad.numpy() for parameter in parameters]
