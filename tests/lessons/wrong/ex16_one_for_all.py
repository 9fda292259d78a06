# Puts all layers into one checkpoint, so that only the input moves.
import minigrad as mg


def in_slow_memory(layers, x, segments, window):
    def run(x):
        for layer in layers:
            x = layer(x)
        return x

    return mg.checkpoint(run, x, offload=window)
