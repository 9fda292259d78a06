# Gives the layers that are left over to the last segment.
def equal_lengths(layers, segments):
    length = layers // segments
    return [length] * (segments - 1) + [layers - length * (segments - 1)]
