# Runs the layer that is to be differentiated too, though its gradient reads its input only.
def runs_before(layer, every, layers):
    first = layer // every * every
    return [] if first == (layers - 1) // every * every else list(range(first, layer + 1))
