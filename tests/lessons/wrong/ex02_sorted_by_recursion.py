# Sorts by recursion: right, and as deep as the network.
def order_of_sweep(root):
    order, met = [], set()

    def visit(node):
        if node not in met:
            met.add(node)
            for source in node.inputs:
                visit(source)
            order.append(node)

    visit(root)
    return sorted((node.number for node in order if not node.is_leaf), reverse=True)
