"""Exercises for lesson 14. Fill in the blanks; `make check N=14` looks at them."""

import numpy as np  # noqa: F401

import minigrad as mg  # noqa: F401


def second_derivative(f, points):
    """f'' at each of the points: an array.

    f       works element by element, with ops of minigrad: f(t) has the shape of the tensor t
    points  an array of float64
    """
    raise NotImplementedError("your turn: a gradient of a sum, twice; which of the two has to be recorded?")


def hessian_product(loss, parameters, directions):
    """H v, a list of arrays: how the gradient of each parameter changes if *all* of them move along their directions.

    loss        loss() computes the loss, a tensor with one number
    parameters  tensors; the gradient of the loss with respect to each of them depends on it
    directions  for each parameter an array of its shape

    No Hessian is built: two backwards are enough.
    """
    raise NotImplementedError("your turn: of which single number is H v the gradient?")


def newton_step(f, x):
    """Where a Newton step from x leads: x minus the solution s of H s = g, with gradient g and Hessian H of f at x.

    f  takes a tensor of n numbers and gives a tensor with one
    x  an array of n numbers, float64

    n is small. Row i of H is the gradient of number i of the gradient; np.linalg.solve solves the system. Returns an
    array.
    """
    raise NotImplementedError("your turn: several backwards go over one recorded gradient; what must the tape keep?")
