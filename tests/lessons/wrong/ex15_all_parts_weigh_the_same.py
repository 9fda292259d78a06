# Divides by the number of parts, also where a part has a row less.
import numpy as np


def gradients_in_parts(loss_of, parameters, inputs, targets, parts):
    for parameter in parameters:
        parameter.grad = None
    for some, theirs in zip(np.array_split(inputs, parts), np.array_split(targets, parts), strict=True):
        (loss_of(some, theirs) / parts).backward()
    return [parameter.grad.numpy() for parameter in parameters]
