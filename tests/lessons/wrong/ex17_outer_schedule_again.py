# Splits the inside of a checkpoint by the outer schedule, and not by the checkpoint's own.
def as_lists(schedule, layers):
    parts = []
    for length, inner in schedule.split(layers):
        parts.append(length if inner is None or length == 1 else as_lists(schedule, length))
    return parts
