# Counts only the boundary of the segment itself, and lets each have as many layers as the peak.
def longest_lengths(peak):
    return [peak] * peak
