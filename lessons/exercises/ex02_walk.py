"""Exercises for lesson 02. Fill in the blanks; `make check N=02` looks at them.

A node has a `number`, its `inputs` (a tuple of older nodes; empty for a leaf) and `is_leaf`. Use nothing else of it.
"""


def order_of_sweep(root):
    """The numbers of the nodes that a backward from `root` comes to, in its order, leaves left out: a list.

    Each node once, and each after everything that reads it and leads down from `root`. No recursion.
    """
    raise NotImplementedError("your turn: the third walk of the lesson, without gradients")


def ways(root, leaf):
    """How many ways lead from `root` down to `leaf`. A node that reads another one twice has two ways to it.

    There may be more ways than you could ever walk (fifty diamonds): visit each node once, and count.
    """
    raise NotImplementedError("your turn: what could wait at a node instead of a gradient?")


def is_good_order(order):
    """Whether a backward that goes through the list `order` from its beginning would be right: True or False.

    order  nodes, each of them once: all that a loss depends on, in some order
    """
    raise NotImplementedError("your turn: what must have come before a node?")
