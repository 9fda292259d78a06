# Goes down the gradient with a fixed rate, without a second derivative.
import minigrad as mg


def newton_step(f, x):
    t = mg.tensor(x, requires_grad=True)
    (gradient,) = mg.grad(f(t), t)
    return x - 0.01 * gradient.numpy()
