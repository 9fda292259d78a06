"""Looks at lessons/exercises/ex02_walk.py."""

import itertools

import minigrad as mg


class Watched:
    """A node that counts how often it is asked for its inputs, and stops a walk that would never end."""

    numbers = itertools.count(1)

    def __init__(self, name, *inputs):
        self.name, self._inputs, self.number, self.asked = name, inputs, next(self.numbers), 0
        self.is_leaf = not inputs

    def __repr__(self):
        return self.name

    @property
    def inputs(self):
        self.asked += 1
        assert self.asked <= 100, (
            f"the node {self.name} was asked for its inputs more than 100 times: this walk takes every way. Visit each "
            "node once; see the third walk of lesson 02"
        )
        return self._inputs


def ladder(rungs):
    """(end, leaf) of a program like Fibonacci's numbers: each node reads the two before it."""
    leaf = Watched("leaf")
    before, last = leaf, Watched("n1", leaf)
    for rung in range(2, rungs + 1):
        before, last = last, Watched(f"n{rung}", last, before)
    return last, leaf


def diamonds(count):
    """(end, leaf) of x = x + x, so many times."""
    leaf = Watched("leaf")
    last = leaf
    for i in range(1, count + 1):
        last = Watched(f"n{i}", last, last)
    return last, leaf


def program():
    """A loss with a long and a short way to the same value, and a value on which the loss does not depend."""
    a, b = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)
    p = a * b
    unused = mg.exp(p)
    q = mg.tanh(mg.tanh(mg.tanh(p)))
    return p + q * p, unused


def check_order_of_sweep(answers):
    for name, made in (("the lesson's diamonds", diamonds(2)), ("a ladder of six rungs", ladder(6))):
        root = made[0]
        found = answers.order_of_sweep(root)
        assert isinstance(found, list), f"order_of_sweep must give a list of numbers, not {found!r}"
        assert len(set(found)) == len(found), f"{name}: backward comes to each node once, and yours is {found}"
        expected = sorted(found, reverse=True)
        assert found == expected, (
            f"{name}: each node must come after all that read it, so {expected}, and yours is {found}. What tells you "
            "who is next: the order in which nodes were found, or their numbers?"
        )
    loss, unused = program()
    expected = [step.node.number for step in mg.steps(loss, retain_graph=True) if step.kind == "op"]
    found = answers.order_of_sweep(loss.node)
    assert unused.node.number not in found, "order_of_sweep has a node on which the root does not depend"
    assert len(found) == len(expected), (
        f"a program of {len(expected)} ops and some leaves: mg.steps goes to {len(expected)} op nodes, and "
        f"order_of_sweep has {len(found)}. Are the leaves left out, and is the root in?"
    )
    assert found == expected, (
        f"with a long and a short way to the same value mg.steps goes {expected}, and order_of_sweep says {found}. A "
        "node that is found early may be old"
    )
    root = Watched("leaf")
    for i in range(20_000):
        root = Watched(f"n{i}", root)
    try:
        answers.order_of_sweep(root)
    except RecursionError:
        raise AssertionError(
            "on a chain of 20,000 nodes order_of_sweep calls itself deeper than Python allows. See the last part of "
            "lesson 02, 'Broken and repaired: too deep'"
        ) from None


def check_ways(answers):
    root, leaf = diamonds(3)
    found = answers.ways(root, leaf)
    assert found == 8, (
        f"x = x + x three times: each node reads the one before it twice, so there are 2 * 2 * 2 = 8 ways, and ways "
        f"says {found}. Both inputs of a node count, even if they are the same node"
    )
    root, leaf = ladder(6)
    found = answers.ways(root, leaf)
    assert found == 13, (
        "a ladder in which each node reads the two before it, with six rungs: the ways are as many as to both nodes "
        f"before, added up: 1, 2, 3, 5, 8, 13; ways says {found}. When is the count at a node complete?"
    )
    assert answers.ways(root, Watched("stranger")) == 0, "no way leads to a node that the root does not depend on: 0"
    root, leaf = diamonds(50)
    found = answers.ways(root, leaf)
    assert found == 2**50, f"fifty diamonds have 2^50 = {2**50} ways, and ways says {found}"


def check_is_good_order(answers):
    a, b = Watched("a"), Watched("b")
    p = Watched("p", a, b)
    q = Watched("q", p, a)
    r = Watched("r", p, q)
    loss = Watched("loss", r, q)
    for order, expected, why in (
        ([loss, r, q, p, b, a], True, "it is the walk of lesson 02"),
        ([loss, r, q, p, a, b], True, "a and b do not read each other, so either may come first"),
        ([a, b, p, q, r, loss], False, "it is the order of forward"),
        ([loss, r, p, a, b, q], False, "q comes after p, and has read it"),
        ([loss, q, r, p, b, a], False, "r comes after q, and has read it"),
    ):
        found = answers.is_good_order(list(order))
        assert found is expected, f"{order}: expected {expected}, because {why}; is_good_order says {found!r}"
    short, long = Watched("short", a), Watched("long", Watched("middle", b))
    middle, end = long.inputs[0], Watched("end", short, long)
    for order in ([end, long, middle, b, short, a], [end, short, long, a, middle, b]):
        found = answers.is_good_order(list(order))
        assert found is True, (
            f"{order}: two branches that have nothing to do with each other. Each node comes after its reader, so the "
            f"order is good, though it is not the order of the numbers; is_good_order says {found!r}"
        )
    order = [end, middle, short, a, long, b]
    found = answers.is_good_order(order)
    assert found is False, (
        f"{order}: 'long' has read 'middle' and comes after it, though the two do not stand side by side; "
        f"is_good_order says {found!r}"
    )
