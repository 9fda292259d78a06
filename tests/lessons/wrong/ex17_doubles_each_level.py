# Thinks that each level of checkpoints doubles the calls.
def calls_of_code(lists):
    calls = []
    for part in lists:
        calls += [2 * count for count in calls_of_code(part)] if isinstance(part, list) else [1] * part
    return calls
