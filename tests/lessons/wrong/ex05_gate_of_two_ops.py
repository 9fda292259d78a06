# Returns a function of two library ops, which is no op of its own and keeps two buffers.
import minigrad as mg


def make_gate():
    def gate(x):
        return x * mg.tanh(x)

    return gate
