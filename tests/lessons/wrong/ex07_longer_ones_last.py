# Makes the segments equal, but puts the longer ones behind.
def equal_lengths(layers, segments):
    length, rest = divmod(layers, segments)
    return [length] * (segments - rest) + [length + 1] * rest
