# Forgets that a linear is a product too.
def products_from(inner):
    def is_large_product(line):
        return line.op.name == "matmul" and line.inputs[0].shape[-1] >= inner

    return is_large_product
