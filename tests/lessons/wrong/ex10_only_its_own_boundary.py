# Counts for each segment what is inside, and forgets the boundaries of the segments before it.
def peak_bytes(sizes, lengths):
    most = first = 0
    for length in lengths:
        most = max(most, sum(sizes[first : first + length]))
        first += length
    return most
