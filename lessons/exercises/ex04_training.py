"""Exercises for lesson 04. Fill in the blanks; `make check N=04` looks at them."""

import minigrad as mg  # noqa: F401


def cross_entropy(scores, labels):
    """The mean over a batch of minus the logarithm of the share that softmax gives to the right class: a tensor.

    It must be one that backward can start from, and must not overflow where scores are large, such as 1000.
    Use ops of minigrad, but not mg.cross_entropy or mg.nll_loss.

    scores  a tensor (batch, classes)
    labels  a tensor of integers (batch,), the right class of each row
    """
    raise NotImplementedError("your turn: mg.log_softmax is one op; then pick one number from each row")


def momentum_step(parameters, velocities, rate, momentum):
    """One step of SGD with momentum, for each parameter that has a gradient g: v = momentum * v + g; p = p - rate * v.

    parameters  a list of tensors that are leaves; the step changes them
    velocities  a dict: the number of a parameter in the list -> its v, an array. At the first step it is empty, and v
                begins as g. The step changes it, and the next call gets it again
    rate, momentum  numbers
    """
    raise NotImplementedError("your turn: .grad.data is the gradient's array, and .assign_(array) replaces a parameter")


def backward_in_parts(network, x, labels, parts):
    """The gradients of the mean loss of the whole batch, at each parameter, while only one part of it is on the tape.

    Cut the batch into equal parts along its first axis; one forward and one backward for each. Afterwards `.grad` is
    what one backward from mg.cross_entropy(network(x), labels) would leave there, up to rounding. All parameters have
    no gradient when the function is called.

    x, labels  tensors; the length of their first axis is a multiple of `parts`
    """
    raise NotImplementedError("your turn: gradients add up by themselves; the mean of a part is not that of the whole")
