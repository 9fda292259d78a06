# Is right, and calls itself as deep as the tape is long.
def needed(tape, output):
    found = {output}
    for source in tape[output][0]:
        found |= needed(tape, source)
    return found
