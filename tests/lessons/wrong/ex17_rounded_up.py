# Rounds the length up, so that the last segment is the short one.
def torch_lengths(layers, segments):
    length = -(-layers // segments)
    return [length] * (segments - 1) + [layers - length * (segments - 1)]
