# Forgets that there may be fewer boundaries than the window is wide.
def fast_peak(layers, segments, window):
    return layers // segments - 1 + window
