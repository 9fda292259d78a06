# Gives the names of the ops, and no function.
def products_from(inner):
    return ["matmul", "linear"]
