# Believes that the tape holds every value that was computed.
from collections import Counter

import minigrad as mg


def freed_by(loss):
    freed = Counter()
    for step in mg.steps(loss):
        if step.kind == "op":
            freed[step.node.op.name] += step.node.nbytes
    return dict(freed)
