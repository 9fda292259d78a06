"""Looks at lessons/exercises/ex11_policies.py."""

import itertools

import numpy as np

import minigrad as mg
from minigrad.retention.knapsack import Problem, least_recomputation

A_POLICY = "Look at 'A policy' in lesson 11."
WRONG_THING = "Look at 'Break it: the wrong thing' in lesson 11."


def parameter(*shape):
    return mg.tensor(np.full(shape, 0.1), requires_grad=True)


def block(x, wide, narrow, back):
    """Products of inner lengths 12, 3 and 5 (a linear), with something between them that reads them."""
    h = mg.exp(mg.tanh(x @ wide))  # (4, 12) @ (12, 3)
    h = mg.exp(mg.tanh(h @ narrow))  # (4, 3) @ (3, 5)
    return mg.exp(mg.tanh(mg.linear(h, back)))  # (4, 5), and back has shape (2, 5)


def check_products_from(answers):
    x, weights = mg.tensor(np.full((4, 12), 0.1)), (parameter(12, 3), parameter(3, 5), parameter(2, 5))
    for inner, expected in ((1, [12, 3, 5]), (4, [12, 5]), (5, [12, 5]), (6, [12]), (13, [])):
        policy = answers.products_from(inner)
        assert callable(policy), f"products_from({inner}) must give a function of a line, not {policy!r}. {A_POLICY}"
        out = mg.checkpoint(block, x, *weights, policy=policy)
        kept = [row.node for row in mg.saved(out) if row.node.op is not None and row.node is not out.node]
        others = sorted({node.op.name for node in kept} - {"matmul", "linear"})
        assert not others, f"products_from({inner}) also keeps outputs of {', '.join(others)}: those are no products"
        found = [node.inputs[0].shape[-1] for node in kept]
        assert found == expected, (
            f"of products with inner lengths 12, 3 and (a linear) 5, products_from({inner}) keeps those with {found}, "
            f"and should keep {expected}. The inner length is the one that both factors share. {A_POLICY}"
        )


STRETCHES = ({0}, {3}, {0, 1, 2, 3}, {1, 3}, {0, 3}, {2})


def problem(costs, sizes, needed):
    """The same question for minigrad's own knapsack."""
    reads = tuple((number - 1,) if number else () for number in range(len(costs)))
    return Problem(tuple(costs), tuple(sizes), reads, frozenset(needed))


def check_runs_again(answers):
    asked = [set(some) for count in range(5) for some in itertools.combinations(range(4), count)]
    for needed, kept in itertools.product(STRETCHES, asked):
        found = answers.runs_again(set(needed), set(kept))
        right = set(problem([1] * 4, [1] * 4, needed).runs(kept))
        assert isinstance(found, set), f"runs_again must give a set of numbers, not {found!r}"
        assert found == right, (
            f"four ops, backward reads the outputs of {needed or '{}'}, kept are {kept or '{}'}: a replay runs "
            f"{right or 'nothing'}, and runs_again says {found or 'nothing'}. To run an op, what it reads must be "
            f"there. {WRONG_THING}"
        )


CASES = (  # costs, sizes, needed, budget
    ([100, 1, 9, 8], [4, 4, 4, 4], {1, 2, 3}, 8),
    ([16, 1, 10], [8, 4, 4], {2}, 4),
    ([6, 5, 5], [4, 3, 3], {0, 1, 2}, 6),
    ([3, 50, 2, 40, 1, 30], [4, 16, 16, 4, 8, 8], {0, 2, 3, 5}, 20),
    ([9, 9, 9], [4, 4, 4], {0, 1, 2}, 3),
    ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], {4}, 5),
)


def check_best_to_keep(answers):
    for costs, sizes, needed, budget in CASES:
        kept = answers.best_to_keep(list(costs), list(sizes), set(needed), budget)
        case = f"best_to_keep({costs}, {sizes}, {needed}, {budget}) gave {kept!r}"
        is_set = isinstance(kept, (set, frozenset)) and kept <= set(range(len(costs)))
        assert is_set, f"{case}; it must be a set of numbers of ops"
        question = problem(costs, sizes, needed)
        assert question.nbytes(kept) <= budget, f"{case}: that is {question.nbytes(kept)} bytes"
        best = least_recomputation(question, budget)
        assert question.cost(kept) == question.cost(best), (
            f"{case}, with which the replay costs {question.cost(kept)}; {question.cost(best)} is possible. What a "
            "value is worth is all that need not run because it is there. And the dearest per byte may leave no room "
            f"for two others. {WRONG_THING}"
        )
