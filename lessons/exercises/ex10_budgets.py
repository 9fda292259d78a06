"""Exercises for lesson 10. Fill in the blanks; `make check N=10` looks at them."""

import minigrad as mg  # noqa: F401


def peak_bytes(sizes, lengths):
    """The most bytes that are alive at once, if a chain of layers of different sizes is cut into segments.

    Each layer keeps its input and nothing else. All segments but the last are checkpoints whose replay tapes them in
    full; the last is taped at once. While a segment is replayed (or taped), the inputs of the segments before it are
    held, and the inputs of all its own layers.

    sizes    bytes of the input of each layer, first to last
    lengths  how many layers each segment has, first to last; together as many as there are sizes
    """
    raise NotImplementedError("your turn: for each segment the boundaries in front of it, and all of its own inputs")


def best_cut(sizes):
    """Where to cut a chain in two segments so that the peak is smallest: how many layers the first segment has.

    Any of the best if there are several. Both segments have at least one layer.

    sizes  bytes of the input of each layer, as for peak_bytes; at least two layers
    """
    raise NotImplementedError("your turn: try every cut")


def largest_batch(layers, make_input, budget):
    """The largest number of rows for which `mg.fit` finds a schedule within the budget.

    Memory grows with the number of rows. Do not try them one by one: there may be thousands. If not even one row fits,
    let the mg.BudgetError of mg.fit pass.

    layers      a list of functions of one tensor
    make_input  a function: number of rows -> the tensor for the first layer
    budget      bytes
    """
    raise NotImplementedError(
        "your turn: double the rows until mg.fit refuses; then halve in on the last that it takes"
    )
