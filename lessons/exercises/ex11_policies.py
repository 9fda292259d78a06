"""Exercises for lesson 11. Fill in the blanks; `make check N=11` looks at them."""

import minigrad as mg  # noqa: F401


def products_from(inner):
    """A policy that keeps the outputs of products whose inner length is at least `inner`, and no others.

    A policy is a function of a line of the tape that answers True or False. Products are the ops called "matmul" and
    "linear"; their inner length is that of the last axis of their first input. A line has line.op.name and line.inputs,
    and each input has a .shape.

    inner  a whole number
    """
    raise NotImplementedError("your turn: give back a function, which looks at one line")


def runs_again(needed, kept):
    """Which ops a replay runs, in a stretch of ops that each read the output of the one before: a set of numbers.

    Op 0 reads the boundary, which is there. Op i reads the output of op i - 1.

    needed  a set: the numbers of the ops whose outputs backward reads
    kept    a set: the numbers of the ops whose outputs a policy has kept
    """
    raise NotImplementedError("your turn: from each needed op back, to the first output that is there already")


def best_to_keep(costs, sizes, needed, budget):
    """What to keep of such a stretch, in at most `budget` bytes, so that the replay costs the least: a set of numbers.

    Any of the best choices. There are few ops: try every set.

    costs   operations of each op
    sizes   bytes of each op's output
    needed  as for runs_again, which you may use
    budget  bytes
    """
    raise NotImplementedError("your turn: itertools.combinations gives all sets of one size")
