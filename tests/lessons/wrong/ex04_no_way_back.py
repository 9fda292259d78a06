# Computes on arrays, through which no gradient flows.
import numpy as np

import minigrad as mg


def cross_entropy(scores, labels):
    shifted = scores.numpy() - scores.numpy().max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return mg.tensor(-logs[np.arange(len(scores)), labels.numpy()].mean())
