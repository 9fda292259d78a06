# Looks at the outermost split only, and takes each checkpoint for one without others inside.
def as_lists(schedule, layers):
    return [length if inner is None else [length] for length, inner in schedule.split(layers)]
