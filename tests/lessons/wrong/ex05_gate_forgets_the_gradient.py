# Gives the slope, and forgets the gradient that comes in.
import numpy as np

import minigrad as mg


def make_gate():
    @mg.op
    def gate(x):
        return x * np.tanh(x)

    @gate.vjp("x")
    def gate_wrt_x(g, x):
        t = mg.tanh(x)
        return t + x * (1 - t * t)

    return gate
