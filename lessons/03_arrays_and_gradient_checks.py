# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 03 Arrays and gradient checks
#
# **A vjp says how the loss changes with an op's input when you know how it changes with the output, and a check of a
# vjp is worth something only if a wrong vjp can fail it.**
#
# Needs: 01, 02. Minutes: 20.
#
# In lesson 01 a node held one number, and its slopes were numbers. Now it holds an array. What becomes of the slopes?
# And how do you find out whether what you have written for them is right?

# %%
import _drawings
import _pictures as pictures
import numpy as np

import minigrad as mg

rng = np.random.default_rng(0)

# %% [markdown]
# ## From slopes to a vjp
#
# Each number of the output depends on each number of the input, with a slope. All of them together are a table, the
# *Jacobian*, with a row for each number of the output and a column for each number of the input.
#
# *Before you run the next cell: how many slopes has the product of two 64 × 64 matrices, for the first of them?*

# %%
a, b = rng.standard_normal((64, 64)), rng.standard_normal((64, 64))
slopes = (a @ b).size * a.size
print(f"slopes: {slopes:,}; numbers in the gradient that we want: {a.size:,}")

# %% [markdown]
# Nobody builds this table. Backward never asks for a slope. It arrives at the node with a gradient `g`, one number for
# each number of the output, and asks: *what is the gradient of the input?* The two rules of lesson 01 answer: multiply
# each `g` by the slope, and add up over the outputs. That is the product of the vector `g` with the Jacobian: a
# *vector-Jacobian product*, a **vjp**. The `g` that goes in is also called a **cotangent**.
#
# So for each op somebody has to write a function from `g` to the input's gradient, without the table. You get it by
# asking, for one number of the input: *who reads it, and with which slope?*
#
# ## Broadcasting: read more than once
#
# `x + b` with `x` of shape (3, 4) and `b` of shape (4,) adds `b` to each of the three rows.
#
# Here the output is not one number, so backward must be told where it begins: `gradient=g` gives each number of the
# output a gradient.
#
# *Before you run the next cell: which shape must the gradient of `b` have? What is in it?*

# %%
x = mg.tensor(rng.standard_normal((3, 4)), requires_grad=True, name="x")
b = mg.tensor(rng.standard_normal(4), requires_grad=True, name="b")
g = rng.standard_normal((3, 4))

for step in mg.steps(x + b, gradient=g):
    if step.kind == "op":
        shapes_from_the_vjps = [part.shape for part in step.grads]
print("what the vjps of add gave:", shapes_from_the_vjps)
print("what arrived at x and b:  ", [x.grad.shape, b.grad.shape])
print("b's gradient is the sum over the rows:", np.array_equal(b.grad.data, g.sum(axis=0)))

# %% [markdown]
# Each number of `b` was read three times, once in each row. Ways add up, so its gradient is the sum over the rows. The
# vjp of `add` gives `g` as it is. The *sweep* (minigrad's walk of lesson 02) adds up afterwards, in one place for all
# ops: along every axis that broadcasting has added or stretched. This is called *un-broadcasting*.
#
# ## Three vjps in words
#
# **sum.** Each number goes into the result with slope 1. So each gets the gradient of the result: `g`, repeated to the
# shape of the input. The vjp of a sum repeats, and the vjp of repeating sums.
#
# **matmul.** `out[i, j]` is the sum over k of `a[i, k] * b[k, j]`. Who reads `a[i, k]`? All of row i of the output, and
# `out[i, j]` with slope `b[k, j]`. So its gradient is the sum over j of `g[i, j] * b[k, j]`: row i of `g` times row k
# of `b`. For all i and k at once that is `g @ b.T`.
#
# **softmax.** `out = exp(x) / exp(x).sum()` gives shares that add up to 1. Raise `x[j]` a little: share j gains
# `out[j]`, and every share, j too, loses in proportion, since the sum must stay 1: share i loses `out[i] * out[j]`. So
# the gradient of `x[j]` is `out[j] * g[j]` minus the sum over i of `g[i] * out[i] * out[j]`. In one line:
# `out * (g - (g * out).sum())`. The sum in it is the mean of `g`, weighted by the shares: raising `x[j]` makes the
# loss rise where `g[j]` is above that mean.
#
# Here are the last two as programs, the product with loops as slow as the sentence.

# %%
a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
g = rng.standard_normal((3, 2))

by_loops = np.zeros_like(a)
for i in range(3):
    for k in range(4):
        for j in range(2):
            by_loops[i, k] += g[i, j] * b[k, j]

left = mg.tensor(a, requires_grad=True)
(left @ b).backward(g)
print("loops, g @ b.T and minigrad agree:", np.allclose(by_loops, g @ b.T) and np.allclose(by_loops, left.grad.data))


@mg.op
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@softmax.vjp("x")
def softmax_wrt_x(g, out):
    return out * (g - (g * out).sum())


x = rng.standard_normal(5)
print("shares:", softmax(x).round(3), "sum:", softmax(x).sum().round(12))

# %% [markdown]
# `@mg.op` makes an op of a function on arrays, and the function under `@softmax.vjp("x")` is its vjp. It names what it
# reads, here `out`. On plain arrays, as in the last line, an op only computes. (Taking the largest number off x first
# changes no share, and keeps `exp` from overflowing.)
#
# ## A check that cannot fail
#
# Is this vjp right? Here are four more that one could have written. All of them are wrong.

# %%
def right(g, out):
    return out * (g - (g * out).sum())


def without_factor(g, out):  # forgets that a large share moves more
    return g - (g * out).sum()


def own_share_only(g, out):  # forgets that the other shares lose
    return out * (1 - out) * g


def doubled(g, out):  # a factor from somewhere
    return 2 * right(g, out)


def nothing(g, out):  # as bad as it gets
    return 0 * g


VJPS = [right, without_factor, own_share_only, doubled, nothing]

# %% [markdown]
# And here are three checks. Each compares a vjp with difference quotients, as you did in lesson 01: choose a cotangent
# `v`, and see how fast the number `(v * softmax(x)).sum()` rises with each number of `x`. They differ in the cotangent
# and in the tolerance, and each of them has been written by somebody in earnest.

# %%
x = rng.standard_normal(50)


def rises(v, x, step=1e-5):
    """How fast (v * softmax(x)).sum() rises with each number of x."""
    moves = step * np.eye(x.size)
    return np.array([(v * (softmax(x + m) - softmax(x - m))).sum() / (2 * step) for m in moves])


def with_ones(vjp):
    v = np.ones(50)  # as if the loss were softmax(x).sum()
    return np.allclose(vjp(v, softmax(x)), rises(v, x), rtol=1e-5, atol=1e-7)


def with_a_random_integer(vjp):
    v = rng.integers(1, size=50)
    return np.allclose(vjp(v, softmax(x)), rises(v, x), rtol=1e-5, atol=1e-7)


def with_a_loose_tolerance(vjp):
    v = rng.standard_normal(50)
    return np.allclose(vjp(v, softmax(x)), rises(v, x), rtol=0.1, atol=0.1)


# %% [markdown]
# *Before you run the next cell: which of the four wrong vjps gets through which check? Write a table of your own.*

# %%
CHECKS = [with_ones, with_a_random_integer, with_a_loose_tolerance]
verdicts = {}
print(f"{'':24}", *[f"{vjp.__name__:16}" for vjp in VJPS])
for check in CHECKS:
    verdicts[check.__name__] = [check(vjp) for vjp in VJPS]
    words = ["passes" if passed else "found" for passed in verdicts[check.__name__]]
    print(f"{check.__name__:24}", *[f"{word:16}" for word in words])
print("five random integers below 1:", np.random.default_rng(0).integers(1, size=5))

# %% [markdown]
# The right one passes all three, and that told you nothing.
#
# - *Ones.* The shares add up to 1 whatever x is, so their sum has gradient 0. Every vjp that gives zeros under ones is
#   right in the eyes of this check. `softmax(x).sum().backward()` is this check.
# - *A random integer.* `integers(1)` means integers below 1. There is one such integer. All vjps give 0 for a cotangent
#   of zeros, so nothing that is a vjp at all can fail. (The call is `randint(1)` in older code.)
# - *A loose tolerance.* With fifty shares each is small, and so are the gradients. An absolute tolerance that is larger
#   than the numbers which it compares lets zeros through.
#
# So before you trust a check, **let it look at something wrong**. A check that you have never seen fail is a hope.
#
# ## A check that can fail
#
# `mg.gradcheck` draws a cotangent v and a direction u at random, moves all of x along u at once, and compares two
# numbers: backward's gradient times u, and the difference quotient of `(v * f(x)).sum()`. If the gradient is wrong
# anywhere, the two differ, but for an accident that has probability 0. The tolerance is relative, but for a last
# 1e-7: a small gradient has to be as right as a large one.

# %%
def op_with(vjp):
    """The op softmax with this vjp."""
    op = mg.op(softmax.forward)
    op.vjp("x")(vjp)
    return op


def with_gradcheck(vjp):
    try:
        return mg.gradcheck(op_with(vjp), mg.tensor(x, requires_grad=True))
    except mg.GradientMismatch:
        return False


verdicts["with_gradcheck"] = [with_gradcheck(vjp) for vjp in VJPS]
words = ["passes" if passed else "found" for passed in verdicts["with_gradcheck"]]
print(f"{'with_gradcheck':24}", *[f"{word:16}" for word in words])

# %% [markdown]
# ## Broken and repaired
#
# When it finds something it moves the numbers one by one after all, to say where the worst is: function, argument,
# index, what backward gave, and what it should be.

# %%
broken = op_with(without_factor)
try:
    mg.gradcheck(broken, mg.tensor(x, requires_grad=True))
except mg.GradientMismatch as error:
    complaint = str(error)
    print("GradientMismatch:", complaint)

broken.vjp("x")(right)
repaired = mg.gradcheck(broken, mg.tensor(x, requires_grad=True))
print("after the repair:", repaired)

# %% [markdown]
# ## How large a step?
#
# A difference quotient is itself only nearly right. How near depends on the step. Take a function whose slope you know
# by formula, and compare: with one step to the right, with a step both ways, and the latter in float32.
#
# *Before you run the next cell: which step is best both ways, 0.1, 1e-5, 1e-10 or 1e-15? Is smaller always better?*

# %%
def f(x):
    return x / (1 + x * x)


def slope_of_f(x):
    return (1 - x * x) / ((1 + x * x) * (1 + x * x))


def one_way(x, step):
    return (f(x + step) - f(x)) / step


def both_ways(x, step):
    return (f(x + step) - f(x - step)) / (2 * step)


def worst_error(quotient, step, number):
    """The largest relative error at some points, computed in numbers of the type `number`."""
    points = [0.1 + 0.02 * i for i in range(30)]
    found = [float(quotient(number(x), number(step))) for x in points]
    return max(abs(q / slope_of_f(x) - 1) for q, x in zip(found, points, strict=True))


steps = [2.0**-i for i in range(3, 47)]
coarse = [step for step in steps if step > 1e-6]  # below that float32 has nothing to say
errors = {
    "one way": [worst_error(one_way, step, np.float64) for step in steps],
    "both ways": [worst_error(both_ways, step, np.float64) for step in steps],
    "both ways, float32": [worst_error(both_ways, step, np.float32) for step in coarse],
}
best = {name: min(zip(values, steps, strict=False)) for name, values in errors.items()}
for name, (error, step) in best.items():
    print(f"{name:20} best step {step:.0e}, and there the error is {error:.0e}")

_drawings.step_sizes(steps, errors, pictures.path("03-step-size.svg"))

# %% [markdown]
# ![Relative error against step size for three difference quotients: each falls along a line to a lowest point and then
# rises again, a V; both ways in float64 goes lowest](pictures/03-step-size.svg)
#
# Read it from right to left. At first a smaller step is better, for the function bends less over it: one way, the error
# falls like the step; both ways, like its square, because the bends on both sides cancel. Then it rises again. The
# two values agree in more and more digits, and what rounding has left of their difference is divided by a tiny number:
# the error grows like rounding / step. The best is where the two lines meet. One way that is step = rounding / step,
# so the best step is near the square root of the rounding; both ways it is step² = rounding / step, and so near the
# cube root.
#
# Therefore `mg.gradcheck` goes both ways, with a step of 1e-5, and insists on float64. In float32 the quotient itself
# has only the few digits of that curve's lowest point, and a vjp that is wrong by less looks right.
#
# ## In PyTorch and in JAX this is called
#
# PyTorch has `torch.autograd.gradcheck(fn, inputs)`, which by default moves each number by itself, and wants float64
# too; with `fast_mode=True` it takes a random direction. A vjp of your own is the `backward` of a
# `torch.autograd.Function`. JAX has `jax.test_util.check_grads(f, args, order)`, with random directions and cotangents;
# `jax.vjp` gives you the vjp of any function, and `jax.custom_vjp` takes one of your own.
#
# ## Exercises
#
# `lessons/exercises/ex03_arrays.py`, three functions; `make check N=03`.
#
# 1. `unbroadcast`: bring a gradient back into the shape of what was broadcast.
# 2. `log_softmax_vjp`: derive it in words, as above, and write it in one line.
# 3. `is_right`: a gradient check of your own. It will be shown wrong vjps.
#
# ## Questions
#
# 1. A bias of shape (64,) is added to rows of a batch of shape (32, 64). What is the shape of its gradient, and which
#    numbers are added up for each entry?
# 2. Somebody checks the vjp of `flip` (the numbers of a vector in reverse order) with a cotangent of ones. Which wrong
#    vjp gets through?
# 3. Why is a step of 1e-12 worse than one of 1e-5?
