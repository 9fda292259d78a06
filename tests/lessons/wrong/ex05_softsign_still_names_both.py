# Computes with the output alone, but leaves the input in the signature.
import numpy as np

import minigrad as mg


def make_softsign():
    @mg.op
    def softsign(x):
        return x / (1 + np.abs(x))

    @softsign.vjp("x")
    def softsign_wrt_x(g, x, out):
        return g * (1 - abs(out)) ** 2

    return softsign
