# Saves a division by naming the output as well, and so keeps two buffers.
import numpy as np

import minigrad as mg


def make_gate():
    @mg.op
    def gate(x):
        return x * np.tanh(x)

    @gate.vjp("x")
    def gate_wrt_x(g, x, out):
        t = mg.tanh(x)
        return g * (t + x - out * t)

    return gate
