"""Exercises for lesson 15. Fill in the blanks; `make check N=15` looks at them."""

import numpy as np  # noqa: F401

import minigrad as mg  # noqa: F401


def gradients_in_parts(loss_of, parameters, inputs, targets, parts):
    """The gradients of a batch's mean loss, from `parts` smaller batches that follow one another.

    loss_of          loss_of(inputs, targets) gives the mean of the loss over the rows that it was given, a Tensor
    parameters       tensors that require a gradient; whatever gradient they have is to be forgotten first
    inputs, targets  NumPy arrays of equally many rows; np.array_split(array, parts) cuts an array along its rows
    parts            how many; the last ones may have a row less than the first ones

    Gives a list of NumPy arrays, one for each parameter: what one backward of the loss of all rows would have left
    there, up to rounding. At no time may the tape hold more than one of the smaller batches.
    """
    raise NotImplementedError("your turn: gradients add up by themselves; what is each mean's share of the whole mean?")


def in_three(block):
    """An nn.TransformerBlock whose activation is relu, as a list of three layers: one after the other they compute what
    the block computes, to the last bit, in training with dropout too.

    1. attention, with the sum behind it    2. the MLP up to its widest array    3. the rest of the MLP, and its sum

    The third layer needs two things, and a layer has one result. That may be a tuple, which the next layer is given.
    Look at `halves` in lesson 15, and at TransformerBlock.forward in minigrad/nn/attention.py.
    """
    raise NotImplementedError("your turn: where are norm1, norm2, linear1, linear2, and the three dropouts?")


def least_share(layers, x):
    """The smallest budget, in whole percent of what storing everything holds, for which mg.fit finds a schedule.

    layers, x  a chain and its input, as for mg.profile

    A profile has to be measured only once: mg.fit takes it in place of the layers.
    """
    raise NotImplementedError("your turn: what does mg.fit raise when it finds none?")
