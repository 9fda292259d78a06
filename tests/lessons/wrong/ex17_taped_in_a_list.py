# Puts taped stretches into lists as well, which makes checkpoints of them.
def as_lists(schedule, layers):
    return [[length] if inner is None else as_lists(inner, length) for length, inner in schedule.split(layers)]
