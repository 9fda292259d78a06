# Forgets that the last steps are leaves, which no op has made.
from collections import Counter

import minigrad as mg


def freed_by(loss):
    freed = Counter()
    for step in mg.steps(loss):
        freed[step.node.op.name] += step.freed
    return {name: count for name, count in freed.items() if count}
