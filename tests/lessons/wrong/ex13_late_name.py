# The function looks its weight up when it runs, and finds the last one when the loop is over.
def layers_in_a_loop(call, layer, h, weights):
    for w in weights:
        h = call(lambda t: layer(t, w), h)  # noqa: B023
    return h
