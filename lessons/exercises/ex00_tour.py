"""Exercises for lesson 00. Fill in the blanks; `make check N=00` looks at them."""

import minigrad as mg  # noqa: F401


def two_numbers(network, x):
    """The two numbers of one training step: (most live activations, ops replayed).

    Run a forward and a backward of `network(x).sum()`, and measure both together.

    network  a function that takes a tensor and gives a tensor
    x        a tensor
    """
    raise NotImplementedError("your turn: measure a forward and a backward with a mg.Tracer")


def half_checkpointed(layers, x):
    """`layers[-1](… layers[0](x))`, with the first half of the layers together in one checkpoint.

    layers  a list of functions of one tensor, an even number of them
    x       a tensor
    """
    raise NotImplementedError("your turn: one mg.checkpoint for the first half, and the second half as it is")


def freed_by(loss):
    """Walk backward from `loss`: a dict of the name of an op -> how many bytes the tape let go of at its nodes.

    Bytes freed at several nodes of the same op are added up. An op that frees nothing is not in the dict.

    loss  a tensor of one number, computed without a checkpoint
    """
    raise NotImplementedError("your turn: add up step.freed over mg.steps(loss), by the name of the node's op")
