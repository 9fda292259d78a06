# Stays with equal segments, although the first ones have more room.
def longest_lengths(peak):
    half = (peak + 1) // 2
    return [peak + 1 - half] * half
