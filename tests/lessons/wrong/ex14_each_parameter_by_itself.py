# Moves one parameter at a time, and so leaves out how the others change its gradient.
import minigrad as mg


def hessian_product(loss, parameters, directions):
    products = []
    for parameter, direction in zip(parameters, directions, strict=True):
        (gradient,) = mg.grad(loss(), [parameter], create_graph=True)
        products.append(mg.grad((gradient * direction).sum(), [parameter])[0].numpy())
    return products
