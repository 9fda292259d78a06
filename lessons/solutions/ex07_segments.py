"""Solutions for lesson 07."""


def best_number(layers):
    """The number of segments k for which k + ceil(layers / k) - 1 is smallest; any of them if there are several."""
    best, smallest = 1, layers
    for k in range(1, layers + 1):
        peak = k + -(-layers // k) - 1
        if peak < smallest:
            best, smallest = k, peak
    return best


def equal_lengths(layers, segments):
    """The lengths of `segments` segments of a chain, as equal as can be, the longer ones first: a list of ints."""
    length, rest = divmod(layers, segments)
    return [length + 1] * rest + [length] * (segments - rest)


def longest_lengths(peak):
    """The segments of the longest chain that can do with `peak` live activations: a list of lengths, first to last."""
    return list(range(peak, 0, -1))
