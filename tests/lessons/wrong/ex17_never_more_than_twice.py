# Thinks that a checkpoint means one more call, however many of them there are around a layer.
def layers_in(part):
    return sum(map(layers_in, part)) if isinstance(part, list) else part


def calls_of_code(lists):
    calls = []
    for part in lists:
        calls += [2 if isinstance(part, list) else 1] * layers_in(part)
    return calls
