# Computes new tensors and puts them into the list; the network's own parameters stay where they were.
def momentum_step(parameters, velocities, rate, momentum):
    for number, parameter in enumerate(parameters):
        if parameter.grad is not None:
            velocities[number] = momentum * velocities.get(number, 0) + parameter.grad.data
            parameters[number] = parameter - rate * velocities[number]
