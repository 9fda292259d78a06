# Adds the rows up, and so the loss grows with the batch.
import minigrad as mg


def cross_entropy(scores, labels):
    return -mg.log_softmax(scores)[mg.arange(len(scores)), labels].sum()
