# Differentiates the sum of the gradient, which is the diagonal of H only if nothing is coupled.
import minigrad as mg


def newton_step(f, x):
    t = mg.tensor(x, requires_grad=True)
    (gradient,) = mg.grad(f(t), t, create_graph=True)
    (diagonal,) = mg.grad(gradient.sum(), t)
    return x - gradient.numpy() / diagonal.numpy()
