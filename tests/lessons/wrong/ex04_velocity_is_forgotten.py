# Begins each step with a fresh velocity: plain gradient descent.
def momentum_step(parameters, velocities, rate, momentum):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.assign_(parameter.data - rate * parameter.grad.data)
