# Counts the boundaries as if they were in fast memory.
def fast_peak(layers, segments, window):
    return layers // segments - 1 + segments
