"""Exercises for lesson 07. Fill in the blanks; `make check N=07` looks at them."""


def best_number(layers):
    """The number of segments k for which k + ceil(layers / k) - 1 is smallest; any of them if there are several.

    layers  how many layers the chain has; k may be anything from 1 to that
    """
    raise NotImplementedError("your turn: there are not many candidates, and -(-a // b) rounds a / b up")


def equal_lengths(layers, segments):
    """The lengths of `segments` segments of a chain, as equal as can be, the longer ones first: a list of ints.

    layers    how many layers the chain has, at least as many as segments
    segments  how many segments to make
    """
    raise NotImplementedError("your turn: how many layers has each, and to whom go those that are left over?")


def longest_lengths(peak):
    """The segments of the longest chain that can do with `peak` live activations: a list of lengths, first to last.

    While segment number j (from 1) is replayed, j boundaries are alive, and the inside of that segment. No length is 0,
    and every layer is replayed at most once, as in the lesson; but the segments need not be equal any more.
    """
    raise NotImplementedError("your turn: how long may segment j be, if j + length - 1 must not exceed the peak?")
