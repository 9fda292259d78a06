# Puts the remainder into a segment of its own.
def torch_lengths(layers, segments):
    length, rest = divmod(layers, segments)
    return [length] * segments + ([rest] if rest else [])
