# Loses the lists: all lengths in a row.
def as_lists(schedule, layers):
    flat = []
    for length, inner in schedule.split(layers):
        flat += [length] if inner is None else as_lists(inner, length)
    return flat
