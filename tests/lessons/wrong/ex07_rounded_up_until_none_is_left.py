# Fills segments of the rounded-up length until no layer is left, and so may make fewer of them.
def equal_lengths(layers, segments):
    length, lengths = -(-layers // segments), []
    while layers:
        lengths.append(min(length, layers))
        layers -= lengths[-1]
    return lengths
