# Leaves the last layer of each checkpoint out, because its result is not needed.
def calls_of_code(lists):
    calls = []
    for part in lists:
        if isinstance(part, list):
            *others, last = calls_of_code(part)
            calls += [count + 1 for count in others] + [last]
        else:
            calls += [1] * part
    return calls
