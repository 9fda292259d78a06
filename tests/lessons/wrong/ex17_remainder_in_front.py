# Cuts as minigrad's uniform does.
def torch_lengths(layers, segments):
    length, rest = divmod(layers, segments)
    return [length + 1] * rest + [length] * (segments - rest)
