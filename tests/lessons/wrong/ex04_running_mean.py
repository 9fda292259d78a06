# Takes momentum for a running mean of the gradients, whose share of the new one is smaller.
def momentum_step(parameters, velocities, rate, momentum):
    for number, parameter in enumerate(parameters):
        if parameter.grad is not None:
            velocities[number] = momentum * velocities.get(number, 0) + (1 - momentum) * parameter.grad.data
            parameter.assign_(parameter.data - rate * velocities[number])
