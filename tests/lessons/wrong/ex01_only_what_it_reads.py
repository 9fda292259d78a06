# Believes that a line depends on what it reads, and not on what that has read.
def needed(tape, output):
    return {output, *tape[output][0]}
