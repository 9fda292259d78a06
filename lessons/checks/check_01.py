"""Looks at lessons/exercises/ex01_tape.py."""

import math
import random


def rise_of(function, values, i, step=1e-6):
    """A difference quotient of function(*values) in the value number i."""
    above, below = list(values), list(values)
    above[i] += step
    below[i] -= step
    return (function(*above) - function(*below)) / (2 * step)


def random_tape(length, seed):
    """A tape with three leaves, whose lines read one or two earlier ones, some of them the same one twice."""
    rng = random.Random(seed)
    tape = [((), ())] * 3
    for number in range(3, length):
        inputs = tuple(rng.randrange(number) for _ in range(rng.choice((1, 2, 2))))
        tape.append((inputs, tuple(rng.uniform(-1, 1) for _ in inputs)))
    return tape


def gradients_of(tape, output):
    """The loop of lesson 01."""
    gradients = [0.0] * len(tape)
    gradients[output] = 1.0
    for number in range(len(tape) - 1, -1, -1):
        for source, slope in zip(*tape[number], strict=True):
            gradients[source] += gradients[number] * slope
    return gradients


def check_divide(answers):
    for a, b in ((3.0, 2.0), (-1.5, 0.4), (0.0, -2.0)):
        found = answers.divide(a, b)
        has_form = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], tuple) and len(found[1]) == 2
        assert has_form, (
            f"divide({a}, {b}) must give a value and a tuple of two slopes, not {found!r}. Look at __mul__ in lesson "
            "01: it gives a Node a value, and one slope for each input"
        )
        value, slopes = found
        assert math.isclose(value, a / b), f"divide({a}, {b}): the value should be {a / b}, and yours is {value}"
        for i, name in enumerate("ab"):
            expected = rise_of(quotient, (a, b), i)
            assert math.isclose(slopes[i], expected, rel_tol=1e-6, abs_tol=1e-8), (
                f"divide({a}, {b}): when {name} rises by a little, the quotient rises {expected:.6g} times as much; "
                f"your slope for {name} is {slopes[i]:.6g}. Use by_differences of lesson 01 to try your own"
            )


def quotient(a, b):
    return a / b


def check_tangents(answers):
    chain = [((), ()), ((0,), (3.0,)), ((1,), (2.0,))]
    found = answers.tangents(chain, 0)
    assert isinstance(found, list) and len(found) == 3, f"tangents must give a list, one number a line, not {found!r}"
    assert found == [1.0, 3.0, 6.0], (
        f"on the chain {chain} line 1 rises 3 times as fast as the leaf, and line 2 rises 2 times as fast as line 1. "
        f"Along a chain slopes multiply, so the answer is [1.0, 3.0, 6.0], and yours {found}"
    )
    diamond = [((), ()), ((0,), (3.0,)), ((0, 1), (5.0, 2.0))]
    found = answers.tangents(diamond, 0)
    assert found[2:] == [11.0], (
        f"in {diamond} line 2 reads the leaf twice: directly, and through line 1. Ways add up, 5 + 2 * 3 = 11, and "
        f"yours is {found[2:]}. Look at the two rules in lesson 01"
    )
    for seed in range(5):
        tape = random_tape(30, seed)
        backward = gradients_of(tape, 29)
        for leaf in range(3):
            found = answers.tangents(tape, leaf)
            assert math.isclose(found[29], backward[leaf], rel_tol=1e-9, abs_tol=1e-12), (
                f"on a random tape of 30 lines the last one rises {backward[leaf]:.6g} times as fast as leaf {leaf}, "
                f"says the loop of lesson 01; tangents says {found[29]:.6g}. Leaves that are not asked for do not rise"
            )


def check_needed(answers):
    tape = [((), ()), ((), ()), ((0,), (1.0,)), ((1,), (1.0,)), ((2, 0), (1.0, 1.0)), ((3, 4), (1.0, 1.0))]
    found = answers.needed(tape, 4)
    assert isinstance(found, set), f"needed must give a set of numbers, not {found!r}"
    for output, expected in ((4, {0, 2, 4}), (3, {1, 3}), (0, {0}), (5, {0, 1, 2, 3, 4, 5})):
        found = answers.needed(tape, output)
        missing, too_many = expected - found, found - expected
        assert not missing, (
            f"line {output} of {tape} depends on the lines {sorted(expected)}, and {sorted(missing)} are missing. What "
            "a needed line has read is needed too, and what that has read, and so on"
        )
        assert not too_many, (
            f"line {output} of {tape} depends on the lines {sorted(expected)} alone; backward would visit "
            f"{sorted(too_many)} for nothing"
        )
    chain = [((), ())] + [((number,), (1.0,)) for number in range(20_000)]
    try:
        count = len(answers.needed(chain, 20_000))
    except RecursionError:
        raise AssertionError(
            "on a chain of 20,000 lines needed calls itself deeper than Python allows (RecursionError). The lines are "
            "in order, so one loop from the output to the beginning is enough"
        ) from None
    assert count == 20_001, f"the end of a chain of 20,001 lines depends on all of them, and needed found {count}"
