"""Solutions for lesson 01."""


def divide(a, b):
    """What an op for a / b writes on its line: (value, (slope for a, slope for b))."""
    return a / b, (1 / b, -a / (b * b))


def tangents(tape, leaf):
    """How fast the value of each line rises when the value of line number `leaf` does: a list, one number a line."""
    rises = []
    for number, (inputs, slopes) in enumerate(tape):
        rise = 1.0 if number == leaf else 0.0
        for source, slope in zip(inputs, slopes, strict=True):
            rise += slope * rises[source]  # slopes multiply, ways add up
        rises.append(rise)
    return rises


def needed(tape, output):
    """The numbers of all lines that line number `output` depends on, itself among them: a set."""
    found = {output}
    for number in range(output, -1, -1):
        if number in found:  # whoever could have needed it is younger, and has been asked
            inputs, _ = tape[number]
            found.update(inputs)
    return found
