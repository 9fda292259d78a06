# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 06 The checkpoint
#
# **A checkpoint drops what a stretch of layers has computed, keeps what went into the stretch, and replays the
# recorded ops when backward comes to it.**
#
# Needs: 05. Minutes: 20.
#
# Lesson 05 ended with an op that keeps less because its vjps compute again what they need. Here the engine does that
# for any stretch of a network. You will follow one activation through all of it: dropped in forward, computed again
# from the nearest checkpoint in backward, read, dropped for good.

# %%
import io
import sys
import warnings
from collections import Counter

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import schedules

LAYERS, EVERY, WIDTH = 100, 10, 8
rng = np.random.default_rng(6)


class Layer:
    """h @ w, with an orthogonal matrix, so that numbers keep their size through a hundred layers."""

    def __init__(self, number):
        square, _ = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))
        self.w = mg.tensor(square.astype("float32"), requires_grad=True, name=f"w{number}")

    def __call__(self, h):
        return h @ self.w


layers = [Layer(number) for number in range(LAYERS)]
x = mg.tensor(rng.standard_normal((32, WIDTH)).astype("float32"), name="x")

# %% [markdown]
# A layer is one matrix product here, so one layer is one op that keeps one buffer, its input. That makes counting
# easy. Layers are numbered from 0, as on the tape.
#
# ## One stretch
#
# `mg.checkpoint(fn, x)` calls `fn(x)` and gives its result. While `fn` runs, the ops are recorded, but their buffers
# are not kept. What the stretch reads from outside is its *boundary*: the argument `x`, and ten matrices. The record
# is the checkpoint's *body*.
#
# Before you run the next cell: how many buffers does the tape keep for ten plain layers, and how many for the
# checkpoint? (Parameters are not counted: they are there anyway.)


# %%
def first_ten(h):
    """Layers 0 to 9."""
    for layer in layers[:10]:
        h = layer(h)
    return h


plain, checkpointed = first_ten(x), mg.checkpoint(first_ten, x)
one_stretch = len(mg.saved(plain)), len(mg.saved(checkpointed))
print("plain keeps", one_stretch[0], "buffers, the checkpoint", one_stretch[1])
print("the same values:", np.array_equal(plain.data, checkpointed.data))

body = checkpointed.node.body
print(checkpointed.node)
print(body)
print("the first three lines of the body:", *body.lines[:3], sep="\n  ")

# %% [markdown]
# On the tape there is one node, the checkpoint. Its body has ten lines that say which op to run on what, and every
# one of them is marked *dropped*: a program without buffers. What is kept is `x`.
#
# ## A hundred layers, a checkpoint every ten
#
# `checkpoint_sequential` cuts a chain of layers into such stretches, called segments. The schedule says where:
# `schedules.every(10)` begins a checkpoint at layers 0, 10, 20, ... The last segment is taped in full, because
# backward begins there: it would be replayed at once.
#
# Before you run the next cell: how many buffers are kept at the end of forward? Count the boundaries, and the inputs
# inside the last segment.


# %%
def forward(schedule):
    """The loss of all the layers under a schedule."""
    return mg.checkpoint_sequential(layers, schedule, x).sum()


kept_storing_all = len(mg.saved(forward(schedules.store_all())))
loss = forward(schedules.every(EVERY))
print("storing all keeps", kept_storing_all)
kept_checkpointed = mg.saved(loss)
print(kept_checkpointed)

# %% [markdown]
# Read the column "kept for". `x` and nine outputs of checkpoints are the boundaries, each of them kept for the
# segment that begins there. (`index=0` is the first of a checkpoint's results, and here the only one.) The others are
# the inputs of layers 91 to 99. (The column "layer" names the layer that made a buffer; the one after it reads it.)
#
# ## Backward, one step at a time
#
# When the sweep comes to a checkpoint node, there are no vjps to call. It replays the body: it runs the ops again
# from the boundary, and writes fresh nodes on the tape, which take over the gradient. They are the youngest nodes of
# all, so they are next. In the loop below a tracer notes which layers each replay has run.
#
# Before you run it: layer 55 needs its input again, the output of layer 54. Which layers have to run for it, and from
# which buffer? And for layer 15?

# %%
replays = []
with mg.Tracer() as tracer:
    loss = forward(schedules.every(EVERY))
    seen = len(tracer.events)
    for step in mg.steps(loss):
        if step.kind == "replay":
            ran = [int(event.layer) for event in tracer.events[seen:] if event.kind == "replayed"]
            replays.append(ran)
            print(f"replay from checkpoint {ran[0]:2}: layers {ran[0]} to {ran[-1]} ran again, "
                  f"{tracer.live_activations} activations are live")  # fmt: skip
        seen = len(tracer.events)
peak, replayed = tracer.peak_activations, tracer.replayed_ops

came_from = {}
for layer in (15, 55):
    ran = next(ran for ran in replays if layer - 1 in ran)
    came_from[layer] = ran[0]
    print(f"the input of layer {layer} came from checkpoint {ran[0]}, by way of layers {ran[0]} to {layer - 1}")
tracer.spacetime(pictures.path("06-spacetime.svg"))

# %% [markdown]
# ![The run from top to bottom, the layers from left to right: a diagonal of forward, then segment by segment from the
# right a short diagonal of replay and its way back](pictures/06-spacetime.svg)
#
# The picture shows the same run. (It counts layers from 1, as plans do, where the tape counts from 0.) Each row is a
# moment, each column a layer. Forward goes down the long diagonal; what it leaves behind are the columns of the
# boundaries. Then backward takes the segments from the right to the left: a replay fills one segment, and the sweep
# empties it.
#
# As backward goes on, fewer activations are live after each replay, because the boundaries to the right are gone.
#
# ## The same in the stepper
#
# `mg.debug(loss)` is backward at a prompt. The next cell types the commands for you. `until 60` goes on to the step
# that differentiates layer 60, the last one before the sweep comes to a checkpoint node; `next` takes one step;
# `tape` shows the tape of that moment. Call `mg.debug(loss)` yourself in a terminal and look around: `help` lists the
# commands.


# %%
def stepper_session(loss, *commands):
    """Type these commands at the prompt of mg.debug(loss)."""
    keyboard, sys.stdin = sys.stdin, io.StringIO("\n".join(commands) + "\n")
    try:
        mg.debug(loss)
    finally:
        sys.stdin = keyboard


stepper_session(forward(schedules.every(EVERY)), "until 60", "next", "tape", "until 55", "until 15", "quit")

# %% [markdown]
# Look at the tape first: four of the five checkpoints that are still to come (the oldest is not shown), the one that
# was replayed, and ten fresh nodes, of which nine hold their buffers. Their first, layer 50, reads the checkpoint
# before. Then look at `live` on the lines of the steps. The replay brings nine activations back, and the steps that
# follow let go of one each. `quit` gives up the walk, and no `.grad` has been touched.
#
# ## What runs again, and what does not
#
# Before you run the next cell: a hundred layers in ten segments. How many layers run a second time? Is it 100, 90 or
# fewer?

# %%
times_again = Counter(layer for ran in replays for layer in ran)
only_once = [layer for layer in range(LAYERS) if layer not in times_again]
print("storing all: ", kept_storing_all, "live at the peak, none runs again")
print("checkpointed:", peak, "live at the peak,", replayed, "layers run again, none of them twice:",
      set(times_again.values()) == {1})  # fmt: skip
print("layers that run only once:", only_once)

# %% [markdown]
# The last segment was taped, so none of its layers is replayed. And no replay ever runs the last layer of its
# segment: that layer's *output* is the next boundary, whose readers have all been differentiated by then. Its
# gradient reads its *input*. A replay runs what backward will read, and nothing else.
#
# ## Nothing else changes
#
# A replay runs recorded ops, never your function. So a print does not repeat, and no counter counts twice. A random
# op, such as the dropout below, which sets about half of the numbers to 0, records the key that it drew its random
# numbers with, and with the same key it draws the same numbers again.


# %%
calls = []
w1, w2 = layers[0].w, layers[1].w


def noisy_block(h):
    """A function that prints, counts its calls, and throws dice."""
    calls.append("noisy_block")
    print("  noisy_block runs")
    h = mg.dropout(mg.tanh(h @ w1), 0.5)
    return mg.tanh(h @ w2)


def gradients_of(call):
    """(the gradients of w1 and w2, ops replayed) with the same dice each time."""
    mg.manual_seed(0)
    w1.grad = w2.grad = None
    with mg.Tracer() as tracer:
        (call(noisy_block, call(noisy_block, x))).sum().backward()
    return (w1.grad.numpy(), w2.grad.numpy()), tracer.replayed_ops


def plain_call(function, h):
    return function(h)


print("plain:")
plain_gradients, _ = gradients_of(plain_call)
print("with checkpoints:")
checkpoint_gradients, noisy_replayed = gradients_of(mg.checkpoint)
same_bits = all(np.array_equal(a, b) for a, b in zip(plain_gradients, checkpoint_gradients, strict=True))
print(noisy_replayed, "ops were replayed, and the function was called", len(calls), "times in the two runs together")
print("gradients the same to the last bit:", same_bits)

# %% [markdown]
# Two calls of the function in each run, whatever was replayed. (Of the ten recorded ops two need not run again. The
# first block's output is still there when that block is replayed, because the second block has kept it as its boundary.
# So the tanh that made it does not run, and neither does the product that only this tanh reads.)
#
# ## A checkpoint that saves nothing
#
# A checkpoint keeps its boundary. Around one op that keeps its input, the boundary *is* that input, and nothing is
# won. minigrad notices, and warns.
#
# Before you run the next cell: what is the peak if each of the hundred layers is a checkpoint of its own?

# %%
with warnings.catch_warnings(record=True) as caught, mg.Tracer() as tracer:
    warnings.simplefilter("always")
    h = x
    for layer in layers:
        h = mg.checkpoint(layer, h)
    h.sum().backward()
peak_of_single_ops = tracer.peak_activations
print("peak:", peak_of_single_ops, "live activations;", len(caught), "warnings, the first of them:")
print(caught[0].category.__name__ + ":", caught[0].message)


# %% [markdown]
# ## Break it: smuggling
#
# Suppose that you want a penalty on the size of an activation in the middle of a block. It is at hand, so you put it
# into a list on the way. Without a checkpoint that works. With one, the tensor has left by a side door: it was not
# returned, so the checkpoint node has no way to take a gradient for it back in.


# %%
aside = []


def block(h):
    """Two products with a tanh between them; the tanh's output is put aside."""
    middle = mg.tanh(h @ w1)
    aside.append(middle)
    return middle @ w2


h = mg.tanh(x @ layers[2].w)
out = mg.checkpoint(block, h)
smuggled = None
try:
    penalty = (aside[0] * aside[0]).mean()
except mg.CheckpointError as error:
    smuggled = error
    print("CheckpointError:", error)

# %% [markdown]
# The first use outside is an error; a silently missing gradient would be worse. The message names the tensor, the
# checkpoint and the way out: return it. A checkpoint may return any nesting of tuples, lists and dicts.


# %%
def honest_block(h):
    """The same, with the tanh's output among its results."""
    middle = mg.tanh(h @ w1)
    return middle @ w2, middle


def gradient_with_penalty(call):
    """The gradient of w1, penalty included."""
    w1.grad = None
    out, middle = call(honest_block, mg.tanh(x @ layers[2].w))
    (out.sum() + (middle * middle).mean()).backward()
    return w1.grad.numpy()


repaired = np.array_equal(gradient_with_penalty(mg.checkpoint), gradient_with_penalty(plain_call))
print("repaired; the gradient is that of a plain call, to the last bit:", repaired)

# %% [markdown]
# ## In PyTorch and in JAX
#
# - In PyTorch it is `torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=False)`, and `checkpoint_sequential` for
#   a chain; the docs speak of *activation checkpointing* too. There backward calls `fn` itself once more. So prints
#   repeat, batch-norm statistics are updated twice, and the state of the random generator is saved and restored
#   around the call (`preserve_rng_state`).
# - In JAX it is `jax.checkpoint`, also called `jax.remat`, for *rematerialisation*. JAX replays a traced program, as
#   minigrad replays a recorded one, and expects functions without side effects anyway.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex06_replay.py`; `make check N=06` says how far you are.
#
# 1. `runs_before`: which layers a replay has to run before a given layer can be differentiated.
# 2. `times_run`: how often each layer runs in one forward and backward.
# 3. `gradients`: backward with checkpoints in plain NumPy, without minigrad.
#
# ## Questions
#
# 1. Why does no replay run layer 59? Why does none run layer 95?
# 2. You put a whole network into a single checkpoint. What is live at the peak of backward, and what have you paid?
# 3. A block prints the norm of its input. How often does it print in one training step with `mg.checkpoint`, and how
#    often if backward called the block again, as PyTorch does?
