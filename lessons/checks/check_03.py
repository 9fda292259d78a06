"""Looks at lessons/exercises/ex03_arrays.py."""

import numpy as np


def check_unbroadcast(answers):
    rng = np.random.default_rng(0)
    for shape, full in (((4,), (3, 4)), ((3, 1), (3, 4)), ((1, 4), (3, 4)), ((3, 4), (3, 4)), ((), (3, 4)),
                        ((2, 1, 4), (5, 2, 3, 4)), ((1,), (1,)), ((1, 1), (3, 4))):  # fmt: skip
        gradient = rng.standard_normal(full)
        found = answers.unbroadcast(gradient.copy(), shape)
        assert np.shape(found) == shape, (
            f"an array of shape {shape} was broadcast to {full}; its gradient must have its own shape {shape}, and "
            f"unbroadcast gives {np.shape(found)}. A stretched axis stays with length 1; one in front goes"
        )
        # Which numbers belong together: broadcast the places of the array, and add the gradient to each.
        places = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), full)
        expected = np.bincount(places.ravel(), gradient.ravel()).reshape(shape)
        assert np.allclose(found, expected), (
            f"from {full} to {shape}: the first number of the array was read {int((places == 0).sum())} times, and its "
            f"gradient is the sum of the gradients there, {expected.flat[0]:.6g}; unbroadcast gives "
            f"{np.asarray(found).flat[0]:.6g}. See 'Broadcasting: read more than once' in lesson 03"
        )


def log_softmax(x):
    return x - np.log(np.exp(x).sum())


def check_log_softmax_vjp(answers):
    rng = np.random.default_rng(1)
    x, g, step = rng.standard_normal(4), rng.standard_normal(4), 1e-5
    found = answers.log_softmax_vjp(g, log_softmax(x))
    assert np.shape(found) == (4,), f"the gradient of a vector of 4 has shape (4,), and yours {np.shape(found)}"
    for j in range(4):
        move = step * np.eye(4)[j]
        expected = (g * (log_softmax(x + move) - log_softmax(x - move))).sum() / (2 * step)
        assert abs(found[j] - expected) < 1e-7, (
            f"x = {x.round(3)}, g = {g.round(3)}: the difference quotient for x[{j}] is {expected:.6f}, and your vjp "
            f"gives {found[j]:.6f}. out[j] rises with x[j] directly; besides, x[j] is in the sum, which every out[i] "
            "reads. How fast does the logarithm of that sum rise with x[j]? (out is a logarithm: np.exp(out) are the "
            "shares.)"
        )


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def softmax_vjp(g, x):
    out = softmax(x)
    return out * (g - (g * out).sum())


def softmax_vjp_without_factor(g, x):
    return g - (g * softmax(x)).sum()


def backwards(x):
    return 3 * x[::-1]


def backwards_vjp(g, x):
    return 3 * g[::-1]


def forwards_vjp(g, x):
    return 3 * g


def square(x):
    return x * x


def square_vjp(g, x):
    return 2 * g * x


def square_vjp_of_the_neighbour(g, x):
    return np.roll(2 * g * x, 1)


def small_sine(x):
    return 1e-6 * np.sin(x)


def small_sine_vjp(g, x):
    return 1e-6 * g * np.cos(x)


def nothing(g, x):
    return 0 * x


def large_exp(x):
    return 1e6 * np.exp(x)


def large_exp_vjp(g, x):
    return 1e6 * g * np.exp(x)


def large_exp_vjp_a_little_off(g, x):
    return 1.001 * 1e6 * g * np.exp(x)


def check_is_right(answers):
    x = np.random.default_rng(2).standard_normal(8)
    where = "See 'A check that cannot fail' and 'How large a step?' in lesson 03"
    for function, vjp in ((softmax, softmax_vjp), (backwards, backwards_vjp), (square, square_vjp),
                          (small_sine, small_sine_vjp), (large_exp, large_exp_vjp)):  # fmt: skip
        found = answers.is_right(function, vjp, x)
        assert found in (True, False), f"is_right must say True or False, not {found!r}"
        assert found, (
            f"the vjp of {function.__name__} is right, and is_right calls it wrong. Is the direction random, the step "
            f"neither too large nor too small, and the tolerance relative to the size of the numbers? {where}"
        )
    for function, vjp, hint in (
        (square, nothing, "It gives zeros. Does your check ever look at a number that is not zero?"),
        (large_exp, large_exp_vjp_a_little_off, "All its gradients are too large by a thousandth."),
        (small_sine, nothing, "It gives zeros, where the gradients are about 1e-6."),
        (softmax, softmax_vjp_without_factor, "There is a cotangent under which both give zeros: is it yours?"),
        (backwards, forwards_vjp, "It puts each gradient in the wrong place."),
        (square, square_vjp_of_the_neighbour, "It gives each number the gradient of its neighbour."),
    ):
        for seed in range(3):
            assert not answers.is_right(function, vjp, x, seed), (
                f"{vjp.__name__} is no vjp of {function.__name__}, and is_right (seed {seed}) lets it pass. {hint} "
                f"{where}"
            )
