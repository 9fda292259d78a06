# Compares each node only with the one right before it.
def is_good_order(order):
    return all(earlier not in later.inputs for earlier, later in zip(order, order[1:], strict=False))
