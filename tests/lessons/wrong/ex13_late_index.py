# Looks the weight up by its number, and the number is late as well.
def layers_in_a_loop(call, layer, h, weights):
    for i in range(len(weights)):
        h = call(lambda t: layer(t, weights[i]), h)  # noqa: B023
    return h
