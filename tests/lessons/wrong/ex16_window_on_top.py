# Counts the segment's own input twice: inside the segment, and in the window.
def fast_peak(layers, segments, window):
    return layers // segments + min(window, segments)
