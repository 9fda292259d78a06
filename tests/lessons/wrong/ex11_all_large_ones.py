# Keeps whatever has an input of that length, also what is no product.
def products_from(inner):
    def is_large(line):
        return line.inputs[0].shape[-1:] >= (inner,)

    return is_large
