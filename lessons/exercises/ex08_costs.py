"""Exercises for lesson 08. Fill in the blanks; `make check N=08` looks at them."""

import minigrad as mg  # noqa: F401
from minigrad import schedules  # noqa: F401


def time_factor(forward, backward, replayed, layers):
    """How many times as long a pass takes with checkpoints as without, if all layers take equally long.

    forward, backward  seconds of one forward and one backward when everything is stored
    replayed           how many layers run again, counted as often as they do
    layers             how many layers there are
    """
    raise NotImplementedError("your turn: what does a replay of one layer take?")


def backward_in_forwards(factor, replayed, layers):
    """How many forwards a backward takes, if a pass with checkpoints takes `factor` times as long as one without.

    The other way round of `time_factor`.

    factor    a time factor, more than 1
    replayed  how many layers run again, at least one
    layers    how many layers there are
    """
    raise NotImplementedError("your turn: solve the formula of lesson 08 for B / F")


def fewest_replays(layers, peak):
    """The number of segments k for which `uniform(k)` replays the fewest layers, of those whose planned peak fits.

    If several replay equally few, the smallest k. mg.BudgetError if none fits.

    layers  how many layers the chain has
    peak    how many activations may be live at once
    """
    raise NotImplementedError("your turn: plan every k; keep those that fit")
