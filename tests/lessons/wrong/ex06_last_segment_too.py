# Replays the last segment as well.
def times_run(lengths):
    return [times for length in lengths for times in [2] * (length - 1) + [1]]
