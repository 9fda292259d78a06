# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 13 What goes wrong
#
# **A checkpoint that calls your function a second time gets other values if anything has changed since, and mostly it
# does not notice; a checkpoint that replays the recorded ops gets the same values, or can say why not.**
#
# Needs: 06, 08. Minutes: 25.
#
# The shortest way to write a checkpoint is to call the function again in backward. You will do that in ten lines, and
# then break it in eleven ways that happen in real programs: chance, counters, flags, caches, loops, updates. Each
# time a number says how wrong the gradient is. Beside it stands what minigrad does, and in the end what PyTorch and
# JAX do.

# %%
import warnings

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.view import canvas

WIDTH = 6
rng = np.random.default_rng(13)


def parameter(name):
    return mg.tensor(rng.standard_normal((WIDTH, WIDTH)) / 2, requires_grad=True, name=name)


weights = first, w1, w2, w3 = [parameter(name) for name in ("first", "w1", "w2", "w3")]
start = [w.numpy() for w in weights]
data = mg.tensor(rng.standard_normal((8, WIDTH)), name="data")


# %% [markdown]
# ## Ten lines
#
# `call_again` is an op that has a function for a setting. Forward calls it with recording off (`mg.no_grad`), so that
# nothing is kept but the input. The vjp calls it once more, records, and goes backward through that, beginning with
# `g` where a loss begins with 1. This inner backward leaves the gradients of weights at the weights, and the gradient
# of the input is handed on.


# %%
@mg.op
def call_again(x, fn=None):
    with mg.no_grad():
        return fn(mg.tensor(x)).numpy()


@call_again.vjp("x")
def call_again_wrt_x(g, x, fn):
    with mg.enable_grad():
        x = mg.tensor(x, requires_grad=True)
        fn(x).backward(mg.tensor(g))
    return x.grad.numpy()


def naive(fn, x):
    """A checkpoint that calls `fn` in forward, and once more in backward."""
    return call_again(x, fn=fn)


def plain(fn, x):
    """No checkpoint."""
    return fn(x)


# %% [markdown]
# Each *case* below is a small program with a stretch that is run by `call`: by `plain`, by `naive` or by
# `mg.checkpoint`. A case is a generator that yields its output. What stands behind the `yield` happens between forward
# and backward.
#
# `examine` compares gradients. The right one is that of the forward that ran: a plain run, in which nothing happens
# between forward and backward. How far off means: the length of the difference, as a share of the right one's length.
#
# Before you run the next cell: for a function that does the same each time, will the naive checkpoint be right?


# %%
def gradient(case, call, undisturbed=False):
    """The gradients of all weights, in one array, after a forward and backward of a case."""
    mg.manual_seed(0)
    np.random.seed(0)
    for w, values in zip(weights, start, strict=True):
        w.assign_(values)
        w.grad = None
    program = case(call, mg.tanh(data @ first))
    out = next(program)
    loss = (out * out).sum()
    if not undisturbed:
        next(program, None)
    loss.backward()
    return np.concatenate([np.zeros(w.size) if w.grad is None else w.grad.numpy().ravel() for w in weights])


def examine(case):
    """What the two checkpoints make of a case: how far the gradient is off, or what the error says."""
    right, found = gradient(case, plain, undisturbed=True), {}
    for call in (naive, mg.checkpoint):
        try:
            off = np.linalg.norm(gradient(case, call) - right) / np.linalg.norm(right)
            found[call.__name__] = off
            print(f"{case.__name__:13} {call.__name__:10} gradient off by {off:.0%}")
        except mg.MinigradError as error:
            found[call.__name__] = f"{type(error).__name__}: {error}"
            print(f"{case.__name__:13} {call.__name__:10} {found[call.__name__]}")
    return found


def pure(call, h):
    yield call(lambda t: mg.tanh(t @ w1) @ w2, h)


results = {"pure": examine(pure)}

# %% [markdown]
# It is, to the last bit. A test with such a function would have been green.
#
# ## Chance
#
# Before you run the next cell: dropout draws a mask. Which mask does backward see, if the function is called again?
# Does it matter whether the dice are minigrad's or NumPy's?


# %%
def dropout(call, h):
    yield call(lambda t: mg.dropout(mg.tanh(t @ w1), 0.5) @ w2, h)


def numpy_dice(call, h):
    yield call(lambda t: (mg.tanh(t @ w1) * (np.random.random(t.shape) < 0.5)) @ w2, h)


def kept_by(case):
    """What the tape keeps of a case with mg.checkpoint."""
    out = next(case(mg.checkpoint, mg.tanh(data @ first)))
    return mg.saved((out * out).sum())


results |= {case.__name__: examine(case) for case in (dropout, numpy_dice)}
kept = {case.__name__: len(kept_by(case)) for case in (dropout, numpy_dice)}
print("buffers that the tape keeps:", kept)

# %% [markdown]
# The naive checkpoint throws the dice again. What it gives is the gradient of another function, one that never ran.
#
# `mg.dropout` is an op with a key among its settings. The key is recorded, and the same key gives the same mask. So
# the replay is right and no mask is kept. NumPy's numbers come from outside: for the record they are an array that the
# function has read, and so they belong to the boundary. The replay is right too, and the tape keeps one buffer more.
#
# ## State
#
# A batch norm moves its running mean, which it will use in evaluation, with each call. A flag, such as `training`, may
# change before backward comes. A cache, here a list of earlier results, grows with each call.
#
# Before you run the next cell: one of these three leaves the gradient right, and something else wrong. Which one?

# %%
norms = {}


def batch_norm(call, h):
    norm = norms[call.__name__] = nn.BatchNorm1d(WIDTH, dtype="float64")
    yield call(lambda t: mg.tanh(norm(t @ w1)) @ w2, h)


def flag(call, h):
    training = True

    def fn(t):
        h = mg.tanh(t @ w1)
        return (h * 2 if training else h) @ w2

    yield call(fn, h)
    training = False  # somebody evaluates before backward


def cache(call, h):
    keys = []

    def fn(t):
        keys.append(mg.tanh(t @ w1))
        return mg.tanh(t @ w2) * sum(keys)

    yield call(fn, h)


results |= {case.__name__: examine(case) for case in (batch_norm, flag, cache)}
means = {name: norm.running_mean.numpy() for name, norm in norms.items()}
batches = {name: norm.num_batches_tracked.item() for name, norm in norms.items()}
for name in norms:
    print(f"running mean with {name:10} after {batches[name]} updates:", means[name].round(4)[:4])

# %% [markdown]
# The batch norm normalises with the batch's own mean, so the gradient is right. But its running mean has moved twice,
# and you will not notice before the network is evaluated.
#
# What moves the mean, reads the flag and fills the cache is Python, and none of it an op that backward has to pass. So
# it is not on the record, and a replay does not do it.
#
# ## Names
#
# A function looks up the names in it when it runs. If it runs in backward, it finds what they mean by then.
#
# Before you run the next cell: three layers in a loop, each a checkpoint of `lambda t: mg.tanh(t @ w)`. Which weights
# will the naive checkpoint use in backward?


# %%
def loop(call, h):
    for w in (w1, w2, w3):
        h = call(lambda t: mg.tanh(t @ w), h)  # noqa: B023
    yield h


results["loop"] = examine(loop)
gradient(loop, naive)
print("weights that got a gradient:", *[w.name for w in weights[1:] if w.grad is not None])

# %% [markdown]
# The last one, three times. Two weights got nothing, and no message says so. With `lambda t, w=w: ...` each function
# would hold its own `w`. minigrad has recorded which matrix each product has read.
#
# ## Overwriting
#
# What if the numbers themselves change before backward? `scale` is a tensor that is changed in place, `mask` an array
# of NumPy's, and `update` is an optimizer step that comes too early.
#
# Before you run the next cell: in which of these is a number that backward needs gone for good?


# %%
def scale(call, h):
    factor = mg.ones(WIDTH, dtype="float64")
    yield call(lambda t: (mg.tanh(t @ w1) * factor) @ w2, h)
    factor *= 2


def mask(call, h):
    chosen = np.random.random(h.shape) < 0.5
    yield call(lambda t: (mg.tanh(t @ w1) * chosen) @ w2, h)
    chosen[:] = np.random.random(h.shape) < 0.5  # the same array serves the next batch


def update(call, h):
    yield call(lambda t: mg.tanh(t @ w1) @ w2, h)
    w2.assign_(w2.numpy() * 0.5)


results |= {case.__name__: examine(case) for case in (scale, mask, update)}

# %% [markdown]
# Arrays on the tape never change. `factor *= 2` makes a new array and moves your variable to it; the record still has
# the old one. NumPy arrays are copied when a tensor is made of them.
#
# An update of a parameter is another matter. It puts new numbers into the leaf itself, which the record reads, and the
# old ones are gone: to keep a copy of all parameters would be too dear. So minigrad looks whether a parameter has been
# updated since the op read it, and refuses, naming parameter, op and line. It does so without a checkpoint too.
#
# ## The border
#
# Two more, about what crosses the border of the stretch. `aside` lets a tensor out by a side door. `only_data` is the
# first stretch of a network: its input is data and needs no gradient.
#
# Before you run the next cell: the naive vjp is `call_again.vjp("x")`. When does a vjp run at all?


# %%
def aside(call, h):
    side = []

    def fn(t):
        middle = mg.tanh(t @ w1)
        side.append(middle)
        return middle @ w2

    out = call(fn, h)
    yield mg.cat([out, side[0]])  # the penalty on an activation, say


def only_data(call, h):
    yield call(lambda t: mg.tanh(mg.tanh(t @ w1) @ w3), data) @ w2


results |= {case.__name__: examine(case) for case in (aside, only_data)}

# %% [markdown]
# `side[0]` was computed with recording off, so the penalty reaches no weight. minigrad makes it an error at the first
# use and names the line where the tensor was made; lesson 06 shows the repair.
#
# And a vjp runs only if its input needs a gradient. The data needs none, so nobody calls the function again, and the
# weights inside get nothing at all.
#
# The next cell draws all this; there is nothing new in it.


# %%
def draw(off_by, path):
    """Bars: how far the naive checkpoint is off in each case; rings: mg.checkpoint; a cross: it refuses."""
    title = "Calling the function again gives other gradients; replaying what was recorded does not"
    facts = "how far off; bars: the function is called again; rings: mg.checkpoint; crosses: it refuses"
    figure, (axes,) = canvas.page(title, facts)
    axes.set_position([0.19, 0.1, 0.77, 0.74])
    for place, found in enumerate(off_by.values()):
        axes.barh(place, found["naive"], color=canvas.ROLE_COLOURS["boundary"], height=0.55)
        axes.annotate(f"{found['naive']:.0%}", (found["naive"], place), (7, -4), textcoords="offset points")
        ring = dict(markersize=9, color="#1F5F8B", clip_on=False, zorder=4)
        if isinstance(found["checkpoint"], str):
            axes.plot(0, place, "X", **ring)
        else:
            axes.plot(found["checkpoint"], place, "o", markerfacecolor="white", **ring)
    axes.set_yticks(range(len(off_by)), off_by)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.85)
    axes.set_xticks([0, 0.5, 1, 1.5], ["0", "50%", "100%", "150%"])
    canvas.saved(figure, path)


mean_off = {name: np.linalg.norm(means[name] - means["plain"]) / np.linalg.norm(means["plain"]) for name in means}
off_by = {name.replace("_", " "): found for name, found in results.items() if name != "batch_norm"}
off_by["batch norm's mean"] = mean_off
draw(off_by, pictures.path("13-wrong.svg"))

# %% [markdown]
# ![For each case a bar: how far the gradient of the naive checkpoint is off, 0 for the pure function alone, up to more
# than its size. Every ring, for mg.checkpoint, is at 0; two are crosses, where it refuses](pictures/13-wrong.svg)
#
# (The last bar is of the running mean, as the batch norm's gradient is right.) In all these cases the output and the
# gradients had the right shapes. A check that compares these would have caught none.
#
# ## A checkpoint that saves nothing
#
# The gradients are right, and the memory is as before. Nothing is to be seen, unless somebody counts.
#
# Before you run the next cell: a layer is one product, `t @ w`, and each layer is a checkpoint. What does each keep?

# %%
peaks = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for call in (plain, mg.checkpoint):
        with mg.Tracer() as tracer:
            h = data
            for w in (w1, w2, w3):
                h = call(lambda t, w=w: t @ w, h)
            h.sum().backward()
        peaks[call.__name__] = tracer.peak_activations
print("live activations at the peak:", peaks)
saves_nothing = [str(warning.message) for warning in caught]
print(len(saves_nothing), "warnings, such as:", saves_nothing[0])

# %% [markdown]
# Each keeps its input, and that is all that the tape would have kept. The naive checkpoint would cost as much and save
# as little, without a word. (The other way to save nothing is the whole network in one checkpoint; see lesson 08.)
#
# ## Break it: an op that is not pure
#
# So a replay is exact. But only because an op, given the same arrays and settings, gives the same result. All of
# minigrad's ops do. One of your own need not, and nobody can see that from outside.


# %%
@mg.op
def noise(x):
    """Half of x, by dice that the op throws itself."""
    return x * (np.random.random(x.shape) < 0.5)


@noise.vjp("x")
def noise_wrt_x(g, out):
    return g * (out != 0)


def impure(call, h):
    yield call(lambda t: noise(mg.tanh(t @ w1)) @ w2, h)


def verified(fn, x):
    return mg.checkpoint(fn, x, verify=True)


impure_found = examine(impure)
try:
    gradient(impure, verified)
except mg.CheckpointError as error:
    verify_error = str(error)
    print("verify=True:", verify_error)


# %% [markdown]
# Now minigrad is as wrong as the naive checkpoint, and as silent. With `verify=True` forward takes a hash of each
# value, and the replay compares. The error names the first op that differs, with its line. A hash takes time, so turn
# it on when you have written an op, and off again.
#
# The repair is the one of `mg.dropout`: the dice become a setting. They are thrown once, when the function is called,
# and the op is a function of its inputs and settings again. (The naive checkpoint stays wrong: its second call throws
# another key.)


# %%
@mg.op
def keyed_noise(x, key=0):
    """Half of x, by the dice of this key."""
    return x * (np.random.default_rng(key).random(x.shape) < 0.5)


@keyed_noise.vjp("x")
def keyed_noise_wrt_x(g, out):
    return g * (out != 0)


def repaired(call, h):
    yield call(lambda t: keyed_noise(mg.tanh(t @ w1), key=int(np.random.randint(1000))) @ w2, h)


repaired_found = examine(repaired)
verified_off = np.linalg.norm(gradient(repaired, verified) - gradient(repaired, plain))
print("and verify=True has no objection; difference to a plain run:", verified_off)

# %% [markdown]
# ## In PyTorch and in JAX
#
# These cases were run with PyTorch 2.13 and JAX 0.10. `torch.utils.checkpoint.checkpoint` calls the function again, in
# one of two ways. `use_reentrant=True` is the older one, and does what the ten lines above do: from `flag` to
# `only_data` its gradients were off by the same percentages. `False` is the recommended one: it notes which tensors
# are saved, and fills them in from the second call.
#
# - **Chance**: `preserve_rng_state=True`, the default, puts PyTorch's own generators back for the second call, so
#   dropout is right. NumPy's is not among them: the gradient is wrong, silently.
# - **State**: batch-norm statistics move twice. The flag and the cache are silently wrong in both ways. With `False`,
#   `determinism_check="default"` compares shape, dtype and device of the saved tensors, but not their values.
# - **Names**: the loop is wrong. With `True` two weights get no gradient; with `False` all of them get one, and two
#   are wrong. No message in either.
# - **Overwriting**: without a checkpoint, `scale` and `update` are errors ("modified by an inplace operation"). With
#   one, of either kind, they are not noticed, and the gradient is wrong.
# - **The border**: `aside` is right with `use_reentrant=False`, and silently wrong with `True`. `only_data` is right
#   with `False`; `True` warns that "None of the inputs have requires_grad=True".
# - JAX does not call your function a second time. It traces it once and replays the trace, so the flag, the loop and
#   NumPy's dice are right (under `jax.jit` those dice stay the same from then on). Its arrays cannot be changed in
#   place, its random functions take a key, and a tensor that leaves by a side door is an `UnexpectedTracerError`.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex13_repairs.py`; `make check N=13` says how far you are.
#
# 1. `same_dice`: make a function throw NumPy's dice the same way in its second call, as `preserve_rng_state` does.
# 2. `layers_in_a_loop`: the loop above, right for any checkpoint.
# 3. `first_difference`: what `verify=True` compares.
#
# ## Questions
#
# 1. Why does a replay of recorded ops not update the batch norm's running mean a second time, though that update is
#    computed with arrays as well?
# 2. A colleague's checkpoint compares the shape of its output in both runs. Which cases of this lesson does it catch?
#    Which if it counts the ops of both runs as well?
# 3. An optimizer step before backward is an error, and a change of the tensor `factor` in place is not. What is the
#    difference for the tape?
