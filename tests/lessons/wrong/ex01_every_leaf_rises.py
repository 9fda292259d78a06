# Lets all leaves rise at once, and so mixes their effects.
def tangents(tape, leaf):
    rises = []
    for inputs, slopes in tape:
        rise = 0.0 if inputs else 1.0
        for source, slope in zip(inputs, slopes, strict=True):
            rise += slope * rises[source]
        rises.append(rise)
    return rises
