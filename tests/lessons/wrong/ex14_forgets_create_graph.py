# Takes the gradient of a gradient that has no history.
import minigrad as mg


def second_derivative(f, points):
    t = mg.tensor(points, requires_grad=True)
    (first,) = mg.grad(f(t).sum(), t)
    (second,) = mg.grad(first.sum(), t)
    return second.numpy()


def hessian_product(loss, parameters, directions):
    gradients = mg.grad(loss(), parameters)
    along = sum((g * v).sum() for g, v in zip(gradients, directions, strict=True))
    return [change.numpy() for change in mg.grad(along, parameters)]
