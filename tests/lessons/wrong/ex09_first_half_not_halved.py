# Halves the rest again and again, and leaves the first half whole inside its checkpoint.
import minigrad as mg


def halved(layers, x):
    if len(layers) == 1:
        return layers[0](x)
    half = len(layers) // 2
    return halved(layers[half:], mg.checkpoint(run, layers[:half], x))


def run(layers, h):
    for layer in layers:
        h = layer(h)
    return h
