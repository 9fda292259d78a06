# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 01 A tape in forty lines
#
# **Reverse-mode differentiation is a list of what was computed, with the slope of each line, and one loop over it from
# the end to the beginning.**
#
# Needs: nothing. Minutes: 15.
#
# You build that list from nothing but Python, with plain numbers instead of arrays. Then you check it twice, break it,
# repair it, and let it learn something. At the end you see what it lacks.
#
# ## What is asked for
#
# A program computes one number, the **output**, from others. You want to know for each of the others how fast the
# output rises when it rises: its **gradient**. A gradient of 3 at `a` says: raise `a` by a little, and the output rises
# by three times as much.
#
# A program is made of small ops, and for a small op the slopes are known. `a * b` rises `b` times as fast as `a`, and
# `a` times as fast as `b`. The slope of tanh is 1 − tanh². The rest is two rules:
#
# - *along a chain, slopes multiply*: if z rises 3 times as fast as y, and y 2 times as fast as x, then z rises 6 times
#   as fast as x;
# - *where ways meet, slopes add up*: if x reaches z on two ways, the effects of both add up.
#
# ## The tape
#
# Each op writes one line: its name, its value, which earlier lines it has read, and one slope for each of them. A line
# is called a **node**, and the list of them the **tape**. A node that reads nothing is a **leaf**.

# %%
import math
import random

import _drawings
import _pictures as pictures

import minigrad as mg  # to compare with, and for pictures: the tape itself is plain Python

# %%
tape = []


class Node:
    """One line of the tape: a value, the nodes it was computed from, and how fast it rises with each of them."""

    def __init__(self, op, value, inputs=(), slopes=()):
        self.op, self.value, self.inputs, self.slopes = op, value, inputs, slopes
        self.number = len(tape)
        tape.append(self)

    def __add__(self, other):
        other = as_node(other)
        return Node("add", self.value + other.value, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = as_node(other)
        return Node("mul", self.value * other.value, (self, other), (other.value, self.value))

    def __sub__(self, other):
        return self + as_node(other) * -1.0

    __radd__, __rmul__ = __add__, __mul__


def as_node(value):
    return value if isinstance(value, Node) else Node("leaf", value)


def tanh(x):
    out = math.tanh(x.value)
    return Node("tanh", out, (x,), (1 - out * out,))


def backward(output):
    """The gradient of every line of the tape, by its number."""
    gradients = [0.0] * len(tape)
    gradients[output.number] = 1.0
    for node in reversed(tape):
        for source, slope in zip(node.inputs, node.slopes, strict=True):
            gradients[source.number] += gradients[node.number] * slope
    return gradients


# %% [markdown]
# That is all of it. Read `backward` again: it goes over the tape once, from the youngest node to the oldest. The output
# rises as fast as itself, so its gradient is 1. Each node hands its gradient on to what it has read, times the slope
# (slopes multiply), and `+=` adds it to what is there already (ways add up).
#
# ## A function to try it on
#
# `tanh` is an argument here, so that later the same program can run on other kinds of numbers.
#
# *Before you run the next cell: how many lines will this write? Which of them are read twice?*

# %%
def program(a, b, tanh):
    h = a * b
    return tanh(h) + h * a


tape.clear()  # so that you can run this cell again
a, b = Node("leaf", 1.5), Node("leaf", 0.4)
output = program(a, b, tanh)
for node in tape:
    reads = [f"#{source.number} (slope {slope:.3f})" for source, slope in zip(node.inputs, node.slopes, strict=True)]
    print(f"#{node.number}  {node.op:4}  value {node.value:.3f}  reads {', '.join(reads) or 'nothing'}")

# %% [markdown]
# A node can read only what is there already. So every line reads *earlier* lines. The picture shows the tape from left
# to right with an arc from each node to what it has read: all arcs point to the left. When the loop comes to a node
# from the right, all that has read it lies behind, and its gradient is complete. Nothing else needs to be known about
# the order.
#
# *Before you run the next cell: `h` is read by a tanh and by a product. Which two numbers will be added for its
# gradient? The slopes are in the table above.*

# %%
gradients = backward(output)
for node in tape:
    print(f"#{node.number}  {node.op:4}  gradient {gradients[node.number]:.4f}")

_drawings.arcs(tape, gradients, pictures.path("01-tape.svg"))

# %% [markdown]
# ![The six lines of the tape from left to right, each with its value and its gradient; arcs lead from each node to the
# left, to what it has read, with the slope on them](pictures/01-tape.svg)
#
# ## First check: move it and look
#
# Whoever writes slopes by hand gets one wrong some day. So check: move one input a little both ways, run the program
# again, and divide the change of the output by the change of the input. That is a *difference quotient*. It needs two
# runs for each input, where the loop needed one pass for all of them.

# %%
def by_differences(function, values, step=1e-6):
    """How fast function(*values) rises with each of the values."""
    slopes = []
    for i in range(len(values)):
        above, below = list(values), list(values)
        above[i] += step
        below[i] -= step
        slopes.append((function(*above) - function(*below)) / (2 * step))
    return slopes


def on_floats(a, b):
    return program(a, b, math.tanh)


measured = by_differences(on_floats, [a.value, b.value])
ours = [gradients[a.number], gradients[b.number]]
print("by the tape       ", ours)
print("by differences    ", measured)

# %% [markdown]
# They agree in as many digits as a difference quotient has. Why it has no more, and how a check like this one can
# deceive you, is lesson 03.
#
# ## Second check: minigrad
#
# The same program runs on minigrad's tensors. A tensor of one number is as good as a float.

# %%
tensors = [mg.tensor(value, dtype="float64", requires_grad=True) for value in (a.value, b.value)]
program(*tensors, mg.tanh).backward()
theirs = [tensor.grad.item() for tensor in tensors]
print("by minigrad       ", theirs)
print("largest difference", max(abs(x - y) for x, y in zip(ours, theirs, strict=True)))

# %% [markdown]
# ## Broken and repaired
#
# Suppose you had written `=` instead of `+=` in the last line of `backward`. It is one character.
#
# *Before you run the next cell: which of the six gradients will be wrong? And would `tanh(a * b)` alone have shown it?*

# %%
def backward_that_forgets(output):
    gradients = [0.0] * len(tape)
    gradients[output.number] = 1.0
    for node in reversed(tape):
        for source, slope in zip(node.inputs, node.slopes, strict=True):
            gradients[source.number] = gradients[node.number] * slope
    return gradients


forgetful = backward_that_forgets(output)
for node, found, right in zip(tape, forgetful, gradients, strict=True):
    verdict = "" if found == right else "  WRONG"
    print(f"#{node.number}  {node.op:4}  gradient {found:.4f}, should be {right:.4f}{verdict}")

tape.clear()
unshared = tanh(Node("leaf", 1.5) * Node("leaf", 0.4))
right_without_sharing = backward_that_forgets(unshared) == backward(unshared)
print("right for tanh(a * b):", right_without_sharing)

# %% [markdown]
# A node that is read twice keeps only what came last. What it hands on is wrong too, and so the mistake travels to
# leaves. In a program in which every value is read once nothing shows. The repair is the `+=`. The lesson behind it:
# try gradients on a program that *shares* values.
#
# ## It learns
#
# Forty lines are enough to train a network: four units of tanh, and four points that no straight line can separate (the
# exclusive or). The **loss** is one number that says how wrong the network is: here the squared errors at the four
# points, added up. The numbers that it learns are its *weights*. Each step computes the loss on a fresh tape, goes
# backward, and moves each weight a little against its gradient, as the loss rises along it.

# %%
POINTS = [(-1.0, -1.0, -1.0), (-1.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0)]  # two inputs, what should come out
UNITS, RATE, STEPS = 4, 0.05, 200


def network(weights, x, y):
    out = 0.0
    for unit in range(UNITS):
        w = weights[4 * unit : 4 * unit + 4]
        out = tanh(w[0] * x + w[1] * y + w[2]) * w[3] + out
    return out


def squared_error(weights):
    total = 0.0
    for x, y, target in POINTS:
        error = network(weights, x, y) - target
        total = error * error + total
    return total


random.seed(0)
values = [random.gauss(0, 1) for _ in range(4 * UNITS)]
losses = []
for _ in range(STEPS):
    tape.clear()
    weights = [Node("leaf", value) for value in values]
    loss = squared_error(weights)
    gradients = backward(loss)
    values = [w.value - RATE * gradients[w.number] for w in weights]
    losses.append(loss.value)

lines_per_step = len(tape)
print(f"loss {losses[0]:.3f} at first, {losses[-1]:.0e} after {STEPS} steps; each step wrote {lines_per_step} lines")

# %% [markdown]
# ## What is missing
#
# Three things can be measured at once. First, what if you forget `tape.clear()`? (The lines of the last training step
# are still there, so the first of the three lengths is that of two steps.) Second, does `backward` visit lines that
# the output does not depend on? Third, what is left on the tape when backward is done?

# %%
lengths = []
for _ in range(3):
    squared_error([Node("leaf", value) for value in values])
    lengths.append(len(tape))
print("lines on the tape, step after step without clear():", lengths)

tape.clear()
x, y = Node("leaf", 2.0), Node("leaf", 3.0)
wanted = x * y
for _ in range(100):
    y = y * 0.5  # nobody asks for these
visited = len(tape)
useful = sum(gradient != 0 for gradient in backward(wanted))
print(f"lines that backward visited: {visited}, lines with a gradient: {useful}")
print("lines on the tape before backward and after it:", visited, len(tape))

# %% [markdown]
# What minigrad does about it, and where you will see it:
#
# - *A line holds one number.* A network has millions. A node of minigrad's holds an array, and its slope becomes a
#   function, the vjp: lesson 03.
# - *The tape is one list that everybody shares, and it grows.* In minigrad a node only points to its inputs, and dies
#   when nobody can reach it. There is no list to clear. The order is in the numbers: lesson 02.
# - *The loop visits everything.* minigrad starts at the output and comes only to what it depends on: lesson 02.
# - *Every slope is computed in forward, and kept.* minigrad keeps only what a vjp reads, and lets go of it as backward
#   passes: lesson 05. And when even that is too much, it keeps less and computes again: lesson 06.
# - *A gradient is a plain number.* You cannot ask how fast the gradient itself changes: lesson 14.
#
# ## In PyTorch and in JAX this is called
#
# In PyTorch each op that needs a gradient makes a node, `tensor.grad_fn`; what it has read is in
# `grad_fn.next_functions`. There is no list either: nodes point to the nodes that they have read, as in minigrad. In
# JAX `jax.vjp(f, x)` gives the value of `f` and a function that goes backward; `jax.grad` is made of that. Books call
# the list a *Wengert list*, and the loop *reverse accumulation*.
#
# ## Exercises
#
# `lessons/exercises/ex01_tape.py`, three functions; `make check N=01`.
#
# 1. `divide`: the value and the slopes that an op for `a / b` writes on its line.
# 2. `tangents`: the same tape, read forward: how fast does every line rise with one leaf?
# 3. `needed`: which lines must a backward visit?
#
# ## Questions
#
# 1. Why does one loop from the end to the beginning find every gradient complete, and a loop from the beginning not?
# 2. What does `+=` do that `=` does not, and in which programs does one see the difference?
# 3. A program has a thousand inputs and one output. How many runs do difference quotients need, and how many passes
#    does the tape need?
