# Makes a checkpoint of both halves, and so replays the second one at once.
import minigrad as mg


def halved(layers, x):
    if len(layers) == 1:
        return layers[0](x)
    half = len(layers) // 2
    return mg.checkpoint(halved, layers[half:], mg.checkpoint(halved, layers[:half], x))
