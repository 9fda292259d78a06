# Adds up the slopes of a line, and never multiplies along a chain.
def tangents(tape, leaf):
    rises = [0.0] * len(tape)
    rises[leaf] = 1.0
    for number, (inputs, slopes) in enumerate(tape):
        for source, slope in zip(inputs, slopes, strict=True):
            if rises[source]:
                rises[number] += slope
    return rises
