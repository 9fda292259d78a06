# Adds all boundaries to the largest segment, as if they were there all the time.
def peak_bytes(sizes, lengths):
    firsts = [sum(lengths[:number]) for number in range(len(lengths))]
    inner = [sum(sizes[first + 1 : first + length]) for first, length in zip(firsts, lengths, strict=True)]
    return sum(sizes[first] for first in firsts) + max(inner)
