"""Exercises for lesson 16. Fill in the blanks; `make check N=16` looks at them."""

import minigrad as mg  # noqa: F401


def in_slow_memory(layers, x, segments, window):
    """layers[-1](… layers[0](x)), cut into equal segments, each of which is a checkpoint with its input in slow memory.

    layers    a list of functions of one tensor, as many as `segments` divides
    segments  how many checkpoints; the last segment is one, too
    window    how many boundaries are to be at hand when a replay begins, its own among them

    Write it with mg.checkpoint, and without mg.schedules.
    """
    raise NotImplementedError("your turn: what is the function of one checkpoint, and which argument moves its input?")


def fast_peak(layers, segments, window):
    """The most live activations in fast memory in a run of `in_slow_memory`, for a chain of layers `h @ w`.

    Each layer keeps its input. Count the fullest moment of a replay: the inside of the segment, and what the window
    holds. Nothing but integers: no arrays, no plan.

    layers, segments, window  whole numbers; segments divides layers
    """
    raise NotImplementedError("your turn: what if the window is wider than there are boundaries?")


def break_even(moving, replaying):
    """What a transfer may cost, in forwards of one layer, for `moving` to take as long as `replaying`.

    moving, replaying  plans of two schedules for the same layers; `moving` has more transfers and fewer replays.
                       A write and a read cost the same. plan.extra_forwards, plan.writes and plan.reads are there
    """
    raise NotImplementedError("your turn: replays + cost * transfers, on both sides; solve for the cost")
