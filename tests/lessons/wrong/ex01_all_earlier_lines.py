# Believes that a line depends on all earlier lines.
def needed(tape, output):
    return set(range(output + 1))
