# Counts the calls of minigrad, where a replay never calls code.
def layers_in(part):
    return sum(map(layers_in, part)) if isinstance(part, list) else part


def calls_of_code(lists):
    return [1] * layers_in(lists)
