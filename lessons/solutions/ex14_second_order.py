"""Solutions for lesson 14."""

import numpy as np

import minigrad as mg


def second_derivative(f, points):
    """f'' at each of the points: an array."""
    t = mg.tensor(points, requires_grad=True)
    (first,) = mg.grad(f(t).sum(), t, create_graph=True)
    (second,) = mg.grad(first.sum(), t)
    return second.numpy()


def hessian_product(loss, parameters, directions):
    """H v, a list of arrays: how the gradient of each parameter changes if all of them move."""
    gradients = mg.grad(loss(), parameters, create_graph=True)
    along = sum((g * v).sum() for g, v in zip(gradients, directions, strict=True))
    return [change.numpy() for change in mg.grad(along, parameters)]


def newton_step(f, x):
    """Where a Newton step from x leads: x minus the solution s of H s = g, with gradient g and Hessian H of f at x."""
    t = mg.tensor(x, requires_grad=True)
    (gradient,) = mg.grad(f(t), t, create_graph=True)
    hessian = [mg.grad(gradient[i], t, retain_graph=True)[0].numpy() for i in range(len(x))]
    return x - np.linalg.solve(np.array(hessian), gradient.numpy())
