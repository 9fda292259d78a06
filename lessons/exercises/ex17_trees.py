"""Exercises for lesson 17. Fill in the blanks; `make check N=17` looks at them."""


def as_lists(schedule, layers):
    """The tree of a schedule on so many layers, as the lists that the programs for PyTorch and JAX walk.

    A stretch that is taped is its number of layers; a checkpoint is the list of what is in it. So uniform(3) on nine
    layers is [[3], [3], 3]. schedule.split(layers) gives the parts of a stretch in order, as (length, None) or
    (length, schedule of the checkpoint).
    """
    raise NotImplementedError("your turn: what is inside of a checkpoint is a tree again")


def calls_of_code(lists):
    """How often PyTorch calls the code of each layer in one forward and backward: a list of ints, first layer first.

    lists  a tree as `as_lists` makes it
    """
    raise NotImplementedError("your turn: how many checkpoints is a layer in?")


def torch_lengths(layers, segments):
    """The lengths of the segments that PyTorch's checkpoint_sequential makes: a list of ints.

    layers    how many layers there are
    segments  how many segments; at most as many as layers
    """
    raise NotImplementedError("your turn: how long are all but the last, and what is left for that one?")
