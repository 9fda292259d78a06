# Believes that a checkpoint runs each of its layers once more.
def times_run(lengths):
    return [2] * sum(lengths[:-1]) + [1] * lengths[-1]
