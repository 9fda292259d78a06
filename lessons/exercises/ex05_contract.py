"""Exercises for lesson 05. Fill in the blanks; `make check N=05` looks at them."""

import numpy as np  # noqa: F401

import minigrad as mg  # noqa: F401


def buffers_kept(reads):
    """How many buffers the tape keeps for a chain of ops of one input each, found from their contracts alone.

    Value 0 goes into the first op. Op number i, counted from 0, takes value i and gives value i + 1. All vjps will run.

    reads  for each op, in order, the set of what its vjp names: "x" for its input, "out" for its output. So
           [{"out"}, {"x"}] is a tanh, then a log.
    """
    raise NotImplementedError("your turn: which values does some vjp name? Count each of them once")


def make_softsign():
    """A new op, softsign(x) = x / (1 + |x|), element by element, whose gradient reads the op's output alone.

    The slope is 1 / (1 + |x|)². Write it with the output. Declare the op with `@mg.op`, its vjp with `@name.vjp("x")`,
    and return the op.
    """
    raise NotImplementedError("your turn: 1 / (1 + |x|) = 1 - |softsign(x)|")


def make_gate():
    """A new op, gate(x) = x · tanh(x), element by element, that keeps its input and nothing else.

    Written with two ops of the library, `x * mg.tanh(x)`, it would keep two buffers. As one op it keeps one, and
    computes the tanh again in its vjp. Return the op.
    """
    raise NotImplementedError("your turn: the product rule, with tanh' = 1 - tanh²")
