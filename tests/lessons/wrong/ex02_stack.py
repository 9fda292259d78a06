# Takes a stack, which is depth-first, each node once.
def order_of_sweep(root):
    stack, met, order = [root], {root}, []
    while stack:
        node = stack.pop()
        if not node.is_leaf:
            order.append(node.number)
        for source in node.inputs:
            if source not in met:
                met.add(source)
                stack.append(source)
    return order
