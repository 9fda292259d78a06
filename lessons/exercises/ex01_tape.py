"""Exercises for lesson 01. Fill in the blanks; `make check N=01` looks at them.

Here a line of the tape is a pair (inputs, slopes), nothing more: the numbers of the earlier lines that it has read,
and how fast its value rises with each of them. A leaf is ((), ()). The tape of the lesson's picture:

    [((), ()), ((), ()), ((0, 1), (0.4, 1.5)), ((2,), (0.712,)), ((2, 0), (1.5, 0.6)), ((3, 4), (1.0, 1.0))]
"""


def divide(a, b):
    """What an op for a / b writes on its line: (value, (slope for a, slope for b)).

    a, b  plain numbers; b is not 0
    """
    raise NotImplementedError("your turn: how fast does a / b rise with a, and how fast with b?")


def tangents(tape, leaf):
    """How fast the value of each line rises when the value of line number `leaf` does: a list, one number a line.

    One loop over the tape, from its beginning to its end. Lines that do not depend on the leaf have 0.0.

    tape  a list of (inputs, slopes)
    leaf  the number of a line that reads nothing
    """
    raise NotImplementedError("your turn: the same two rules as in backward, in the other direction")


def needed(tape, output):
    """The numbers of all lines that line number `output` depends on, itself among them: a set.

    These are the lines that a backward must visit. The tape can be long: no recursion.

    tape  a list of (inputs, slopes)
    """
    raise NotImplementedError("your turn: which lines are read, by lines that are needed themselves?")
