# Counts activations, and takes all of them for as large as the average.
def peak_bytes(sizes, lengths):
    most = max(number + length - 1 for number, length in enumerate(lengths, start=1))
    return most * sum(sizes) // len(sizes)
