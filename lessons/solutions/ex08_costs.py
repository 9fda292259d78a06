"""Solutions for lesson 08."""

import minigrad as mg
from minigrad import schedules


def time_factor(forward, backward, replayed, layers):
    """How many times as long a pass takes with checkpoints as without, if all layers take equally long."""
    replays = forward * replayed / layers
    return (forward + backward + replays) / (forward + backward)


def backward_in_forwards(factor, replayed, layers):
    """How many forwards a backward takes, if a pass with checkpoints takes `factor` times as long as one without."""
    return replayed / layers / (factor - 1) - 1


def fewest_replays(layers, peak):
    """The number of segments k for which `uniform(k)` replays the fewest layers, of those whose planned peak fits."""
    fitting = {}
    for k in range(1, layers + 1):
        plan = schedules.uniform(k).plan(layers)
        if plan.peak <= peak:
            fitting[k] = plan.extra_forwards
    if not fitting:
        raise mg.BudgetError(f"no number of segments brings {layers} layers down to {peak} live activations")
    return min(fitting, key=fitting.get)
