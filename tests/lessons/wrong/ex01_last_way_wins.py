# Writes `=` for `+=`: of several ways only the last one counts.
def tangents(tape, leaf):
    rises = [0.0] * len(tape)
    rises[leaf] = 1.0
    for number, (inputs, slopes) in enumerate(tape):
        for source, slope in zip(inputs, slopes, strict=True):
            rises[number] = slope * rises[source]
    return rises
