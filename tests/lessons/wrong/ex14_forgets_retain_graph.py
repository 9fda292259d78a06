# Lets the first row's backward free the recorded gradient, so that the second row finds nothing.
import numpy as np

import minigrad as mg


def newton_step(f, x):
    t = mg.tensor(x, requires_grad=True)
    (gradient,) = mg.grad(f(t), t, create_graph=True)
    hessian = [mg.grad(gradient[i], t)[0].numpy() for i in range(len(x))]
    return x - np.linalg.solve(np.array(hessian), gradient.numpy())
