"""Exercises for lesson 09. Fill in the blanks; `make check N=09` looks at them."""

import minigrad as mg  # noqa: F401


def halved(layers, x):
    """`layers[-1](… layers[0](x))` in logarithmic memory: what `schedules.bisection()` does, by hand.

    The first half of the layers goes into one mg.checkpoint, in which it is halved in the same way; the second half is
    halved without one. A single layer is just called.

    layers  a list of functions of one tensor, at least one; its length is a power of two
    x       a tensor
    """
    raise NotImplementedError(
        "your turn: mg.checkpoint takes a function and its arguments, and it may be this function"
    )


def most_layers(slots, runs):
    """The most layers that `slots` slots for boundaries and `runs` runs of each layer can do: β(slots, runs).

    The slots count as in lesson 09: the input of the chain has one, and beside them there is room for the activation
    that is running. Find it by adding, from smaller cases.

    slots, runs  whole numbers from 0
    """
    raise NotImplementedError("your turn: without slots or without runs it is 1; otherwise add up two sides")


def fewest_replays(layers, slots):
    """The fewest layers that have to run again with `slots` slots, by trying every place for the next boundary.

    cost(l, s), the runs that it takes to go backward through l layers with s slots, the first run included:
    one layer costs nothing; otherwise put a boundary after j layers. These have to run to get there; then the layers
    behind it cost what they cost with one slot less, and at last the j layers themselves, with all slots.
    Of all the runs, layers - 1 are no replays: they are the first ones.

    layers  how many there are, from 1
    slots   from 1; the chain's input has one of them
    """
    raise NotImplementedError("your turn: the least over j; without a slot, only one layer can be done")
