# Differentiates the square of the slope, as in a penalty, instead of the slope.
import minigrad as mg


def second_derivative(f, points):
    t = mg.tensor(points, requires_grad=True)
    (first,) = mg.grad(f(t).sum(), t, create_graph=True)
    (second,) = mg.grad((first * first).sum(), t)
    return second.numpy()
