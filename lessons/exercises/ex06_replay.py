"""Exercises for lesson 06. Fill in the blanks; `make check N=06` looks at them."""

import numpy as np  # noqa: F401


def runs_before(layer, every, layers):
    """The layers that a replay runs so that the input of `layer` is there again: a list of numbers, in order.

    The chain has `layers` layers, numbered from 0, with a checkpoint every `every` layers; the last segment is taped in
    full. Layer 55 of a hundred, every ten: [50, 51, 52, 53, 54].

    layer   a number from 0 to layers - 1
    every   the length of a segment; the last one is shorter if it does not divide `layers`
    """
    raise NotImplementedError("your turn: where does the segment of this layer begin, and was it taped?")


def times_run(lengths):
    """How often each layer runs in one forward and backward together: a list, one number a layer.

    lengths  how many layers each segment has, first to last. All but the last are checkpoints; the last is taped
    """
    raise NotImplementedError("your turn: once in forward; and in which replays?")


def gradients(weights, x, every, forward, vjp):
    """The gradients of the sum of a chain's output with respect to each weight, with checkpoints: a list of arrays.

    Run the chain once and keep only what goes into every segment. Then, from the last segment to the first: run it
    again from there, its last layer left out; go through it backward; let go of what was used. No minigrad, NumPy only.

    weights  one array for each layer
    x        the input of the first layer
    every    how many layers a segment has. Every segment is replayed here, the last one too
    forward  forward(h, w) gives a layer's output
    vjp      vjp(g, h, w) gives (the gradient of the layer's input h, the gradient of its weight w)

    The gradient of the sum with respect to the chain's output is an array of ones.
    """
    raise NotImplementedError("your turn: keep the boundaries; then replay segment by segment, last one first")
