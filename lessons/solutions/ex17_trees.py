"""Solutions for lesson 17."""


def as_lists(schedule, layers):
    """The tree of a schedule on so many layers, as the lists that the programs for PyTorch and JAX walk."""
    parts = []
    for length, inner in schedule.split(layers):
        parts.append(length if inner is None else as_lists(inner, length))
    return parts


def calls_of_code(lists):
    """How often PyTorch calls the code of each layer in one forward and backward: a list of ints, first layer first."""
    calls = []
    for part in lists:
        if isinstance(part, list):
            calls += [count + 1 for count in calls_of_code(part)]
        else:
            calls += [1] * part
    return calls


def torch_lengths(layers, segments):
    """The lengths of the segments that PyTorch's checkpoint_sequential makes: a list of ints."""
    length = layers // segments
    return [length] * (segments - 1) + [layers - length * (segments - 1)]
