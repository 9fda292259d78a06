# Makes a checkpoint of the half that backward comes to first.
import minigrad as mg


def halved(layers, x):
    if len(layers) == 1:
        return layers[0](x)
    half = len(layers) // 2
    return mg.checkpoint(halved, layers[half:], halved(layers[:half], x))
