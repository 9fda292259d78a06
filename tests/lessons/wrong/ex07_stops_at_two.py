# Leaves out the last segment, because a checkpoint around one layer saves nothing; but it costs nothing more either.
def longest_lengths(peak):
    return list(range(peak, 1, -1)) or [1]
