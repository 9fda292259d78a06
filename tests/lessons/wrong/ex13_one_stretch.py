# Puts the whole loop into one function: right, but one stretch instead of one for each weight.
def layers_in_a_loop(call, layer, h, weights):
    def run(t):
        for w in weights:
            t = layer(t, w)
        return t

    return call(run, h)
