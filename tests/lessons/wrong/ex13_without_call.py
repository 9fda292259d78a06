# Runs the layers itself, without a checkpoint.
def layers_in_a_loop(call, layer, h, weights):
    for w in weights:
        h = layer(h, w)
    return h
