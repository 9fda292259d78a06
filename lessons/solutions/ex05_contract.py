"""Solutions for lesson 05."""

import numpy as np

import minigrad as mg


def buffers_kept(reads):
    """How many buffers the tape keeps for a chain of ops of one input each, found from their contracts alone."""
    kept = set()
    for number, named in enumerate(reads):
        if "x" in named:
            kept.add(number)
        if "out" in named:
            kept.add(number + 1)
    return len(kept)


def make_softsign():
    """A new op, softsign(x) = x / (1 + |x|), element by element, whose gradient reads the op's output alone."""

    @mg.op
    def softsign(x):
        return x / (1 + np.abs(x))

    @softsign.vjp("x")
    def softsign_wrt_x(g, out):
        return g * (1 - abs(out)) ** 2

    return softsign


def make_gate():
    """A new op, gate(x) = x · tanh(x), element by element, that keeps its input and nothing else."""

    @mg.op
    def gate(x):
        return x * np.tanh(x)

    @gate.vjp("x")
    def gate_wrt_x(g, x):
        t = mg.tanh(x)
        return g * (t + x * (1 - t * t))

    return gate
