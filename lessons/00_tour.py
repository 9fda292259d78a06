# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 00 A tour
#
# **minigrad writes down what your program computes, walks that list backward to get gradients, and shows you at every
# moment which arrays it keeps for that; a checkpoint keeps fewer of them and computes the others again.**
#
# Needs: nothing. Minutes: 5.
#
# This lesson is a program in cells. Run it whole (`python lessons/00_tour.py`), or cell by cell in VS Code or Jupyter.
# It shows each tool once, so that you have seen it; the lessons after it explain.
#
# ## A network of six layers
#
# `x` is data: five rows of four numbers. Each layer multiplies by a matrix of weights and takes the tanh of every
# number. `requires_grad=True` says which arrays you want a gradient for. The loss is one number: here, the sum.

# %%
import _drawings
import _pictures as pictures
import numpy as np

import minigrad as mg

rng = np.random.default_rng(0)
x = mg.tensor(rng.standard_normal((5, 4)), name="x")
weights = [mg.tensor(rng.standard_normal((4, 4)) / 2, requires_grad=True, name=f"w{i}") for i in range(1, 7)]


def layers(h, weights):
    for w in weights:
        h = mg.tanh(h @ w)
    return h


# %% [markdown]
# ## The tape
#
# While the network runs, minigrad writes a list, the **tape**: one line for each op, called a **node**. The data and
# the weights are nodes too; no op has made them, and they are called **leaves**. `mg.tape(loss)` is that list. Its
# column *reads* says which earlier lines a node was computed from, and *holds* how many bytes the tape keeps there.
#
# Going backward, minigrad needs some of the arrays again. The slope of tanh can be had from tanh's own output. The
# gradient of a weight in `h @ w` needs `h`. Nobody needs what a matmul has put out.
#
# The `mg.Tracer` around it counts, at every step, the arrays that the tape holds. They are called **live activations**.
# The data `x` is one of them. The weights are not counted, as they are there anyway: in the line of a weight, *holds*
# is the size of the weight itself.
#
# *Before you run the next cell: which lines of the tape will hold an array for backward? How many are they, without
# the weights?*

# %%
with mg.Tracer() as plain:
    loss = layers(x, weights).sum()
    print(mg.tape(loss))
    held_after_forward = plain.live_activations
    loss.backward()

plain_gradients = [w.grad for w in weights]
print(f"\nlive activations at the end of forward: {held_after_forward}; of backward: {plain.live_activations}")
print(f"the most at any step: {plain.peak_activations}")

# %% [markdown]
# The matmuls hold nothing (a dash). The data and the outputs of the six tanhs are held, and backward has let all of
# them go again. It has left a gradient at each weight: how much the loss rises when that number does. You can check
# that with one number by hand: raise it a little, and look at what the loss does. (Inside `mg.no_grad()` nothing is
# written on the tape.)

# %%
with mg.no_grad():
    raised = np.array(weights[0].data)
    raised[0, 0] += 1e-6
    moved = layers(x, [mg.tensor(raised), *weights[1:]]).sum()

measured_slope = (moved.item() - loss.item()) / 1e-6
print(f"slope for w1[0, 0]: by hand {measured_slope:.6f}, by backward {weights[0].grad.data[0, 0]:.6f}")

# %% [markdown]
# ## A checkpoint
#
# `mg.checkpoint(fn, …)` calls `fn`, and keeps only what goes in and what comes out. When backward comes to it, the ops
# inside are run again: the **replay**. Put the first three layers into one.
#
# *Before you run the next cell: what will the most live activations be now? And how many ops will have to run again?*

# %%
for w in weights:
    w.grad = None  # or the new gradients would be added to the old ones

with mg.Tracer() as checkpointed:
    h = mg.checkpoint(layers, x, weights[:3], name="first three")
    loss = layers(h, weights[3:]).sum()
    loss.backward()

for name, tracer in [("plain", plain), ("one checkpoint", checkpointed)]:
    print(f"{name:15} peak {tracer.peak_activations} activations, {tracer.replayed_ops} ops replayed")
same = all(np.array_equal(w.grad.data, g.data) for w, g in zip(weights, plain_gradients, strict=True))
print("gradients the same to the last bit:", same)

# %% [markdown]
# These are the two numbers that the whole course is about: how much is kept, and how much is done again for it.
#
# Inside the checkpoint two tanh outputs are dropped; the third is what comes out, and the fourth layer needs it. The
# replay brings the two back when those of the last three layers are gone, so there are never as many as before. It
# runs the first two layers, a matmul and a tanh each. The third layer's output is still there, so it need not run.
#
# ## A picture
#
# `mg.draw(loss)` shows the tape as a graph (in a notebook you see it at once), and `mg.render` makes a file of it.
#
# ![Six layers in a column, the first three in a frame. Beside the weights, only what goes into the frame, what comes
# out of it, and the tanh outputs below it are filled: the tape holds those](pictures/00-tour.svg)

# %%
loss = layers(mg.checkpoint(layers, x, weights[:3], name="first three"), weights[3:]).sum()
picture = mg.render(loss, pictures.path("00-tour.svg"))
_drawings.renumber(picture)  # the numbers of nodes depend on what ran before; the file shall not
mg.draw(loss)

# %% [markdown]
# ## Backward, step by step
#
# `loss.backward()` is a loop over `mg.steps(loss)`: one step for each node, from the end of the tape to its
# beginning. You can take the steps yourself. Each one has a `kind`, the `node` where it was (the name of its op is
# `step.node.op.name`), and in `freed` how many bytes the tape let go of. When a step is printed, *dropped* says that
# the tape holds no output of this node, or no longer.
#
# *Before you run the next cell: which op comes first, and which of these three steps frees an array?*

# %%
for w in weights:
    w.grad = None

walk = mg.steps(loss)
first_three = [next(walk) for _ in range(3)]
for step in first_three:
    print(step)
print("gradient of w6 so far:", weights[5].grad)

others = list(walk)
print("kinds of the other steps:", *[step.kind for step in others])
print("gradient of w6 now has shape", weights[5].grad.shape)

# %% [markdown]
# Gradients are handed to the weights at the very end, all together. In between, the step of kind "replay" is where
# the checkpoint ran its ops again; the "op" steps after it walk through what it made. Each "leaf" step hands
# one weight its gradient; no op has made a leaf, so its node has no op.
#
# ## Broken and repaired
#
# The walk has freed what it passed. So a second one cannot work, and minigrad says so:

# %%
try:
    loss.backward()
except mg.GraphFreedError as error:
    second_backward = str(error)
    print("GraphFreedError:", second_backward)

# %% [markdown]
# The message names the node where the walk stopped, which is the very first one, and both repairs. One of them: the
# walk frees nothing if you say that another one will come. (`mg.saved(loss)` lists the arrays that the tape holds for
# a backward.)

# %%
loss = layers(x, weights).sum()
loss.backward(retain_graph=True)
held_for_another = len(mg.saved(loss))
loss.backward()
print("arrays on the tape between the two:", held_for_another, "and after the second:", len(mg.saved(loss)))

# %% [markdown]
# ## Three commands for the terminal
#
# They work on any script, this one too.
#
#     python -m minigrad step lessons/00_tour.py
#     python -m minigrad play --passes 2 lessons/00_tour.py
#     python -m minigrad plan --layers 100 --schedule sqrt
#
# `step` stops in the script's first backward and asks what to do: type `next`, `values`, `help`. It is for looking at
# gradients. `play` writes a page for your browser in which you go back and forth through a run; with two passes, it
# has this network without and with the checkpoint beside each other. It is for watching arrays come and go. `plan`
# runs nothing: it counts what checkpoints on a chain of layers would cost. It is for choosing.
#
# ## In PyTorch and in JAX this is called
#
# In PyTorch the tape is the autograd graph, and `loss.grad_fn` its last node. The checkpoint is
# `torch.utils.checkpoint.checkpoint(fn, *args, use_reentrant=False)`; a second backward over a freed graph is a
# RuntimeError that names `retain_graph=True` too. In JAX you ask `jax.grad(fn)` for a function that gives gradients,
# and wrap a part of `fn` in `jax.checkpoint`, also called `jax.remat`.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex00_tour.py`, three functions. `make check N=00` tells you how they are doing.
#
# 1. `two_numbers`: peak and replayed ops of any network.
# 2. `half_checkpointed`: a chain of layers, of which the first half is a checkpoint.
# 3. `freed_by`: which op let go of how many bytes.
#
# ## Questions
#
# 1. Why does the tape hold what tanh puts out, and not what a matmul puts out?
# 2. What does a checkpoint keep, and what does it cost in backward?
# 3. Why did the second `loss.backward()` fail, and which two repairs are there?
