# Takes the length of the output's last axis for the inner length.
def products_from(inner):
    def is_large_product(line):
        return line.op.name in ("matmul", "linear") and line.shape[-1] >= inner

    return is_large_product
