# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 05 Where the memory goes
#
# **The tape keeps a buffer because a vjp that backward will run names it; so what a backward costs in memory is
# written in the signatures of the vjps.**
#
# Needs: 02, 03. Minutes: 20.
#
# A forward pass computes many arrays. Some of them must wait until backward comes back to them, and training needs so
# much more memory than prediction because they wait. In this lesson you find out for every buffer who keeps it and
# why, you see how many wait at each moment, and you make an op that keeps less.

# %%
import inspect

import _pictures as pictures
import numpy as np

import minigrad as mg

BATCH, WIDTH = 32, 8
rng = np.random.default_rng(5)


def parameter(name):
    """A square matrix of small random numbers, as a leaf that requires a gradient."""
    return mg.tensor(0.3 * rng.standard_normal((WIDTH, WIDTH)).astype("float32"), requires_grad=True, name=name)


def data(batch=BATCH):
    """A batch of inputs: plain data, through which no gradient flows."""
    return mg.tensor(rng.standard_normal((batch, WIDTH)).astype("float32"), name="x")


# %% [markdown]
# ## Four ops, and what they leave behind
#
# One matrix product, a tanh, a bias, a sum. The tape has a node for each, and a node has room for one buffer, its
# `out`: the value that it computed. `mg.saved(loss)` lists the buffers that the tape holds now, and for whom.
#
# Before you run the next cell: there are five values on the way, `x`, `h`, `y`, `z` and the loss. Which of them will
# backward read again?

# %%
x, w = data(), parameter("w")
b = mg.zeros(WIDTH, requires_grad=True, name="b")

h = x @ w
y = mg.tanh(h)
z = y + b
loss = z.sum()
first_saved = mg.saved(loss)
print(first_saved)

# %% [markdown]
# Two rows. `h`, `z` and the loss are not there: your variables still hold their arrays, but the tape does not, and in
# a function those variables would be gone by now. Each row says for which node the buffer is kept: the input `x` for
# the product, the output of tanh for tanh itself. (The last line speaks of parameters: backward will not read the
# matrix `w` either. You will see why.)
#
# ## The signature is a contract
#
# Why these two? An op brings a function for each of its inputs, its *vjp*. It takes `g`, the gradient that has
# arrived at the op's output, and gives the gradient of that input. After `g` it may name what else it needs: an
# input, the output as `out`, a setting, or the mere shape of an input as `b_shape`, which costs nothing. Here are two
# of them, as they stand in the engine.

# %%
print(inspect.getsource(mg.tanh.vjps["x"]))
print(inspect.getsource(mg.add.vjps["a"]))


# %% [markdown]
# The engine reads these signatures, and nothing else, when it decides what to keep. So you can read them too.


# %%
def contract(op):
    """For each input of an op: what its vjp names, the arriving gradient aside."""
    return {name: list(inspect.signature(vjp).parameters)[1:] for name, vjp in op.vjps.items()}


contracts = {op.name: contract(op) for op in (mg.tanh, mg.matmul, mg.add, mg.exp, mg.relu, mg.log, mg.gelu)}
for name, reads in contracts.items():
    for key, named in reads.items():
        print(f"{name:7} the gradient of {key} reads {', '.join(named) or 'nothing'}")

# %% [markdown]
# tanh keeps its output, because its slope is 1 - out². A product keeps its inputs, each for the gradient of the
# other. A sum of two arrays passes `g` on as it is and keeps nothing.
#
# ## Only vjps that will run
#
# A vjp that nobody needs makes no claim. The contract of matmul calls its inputs `a` and `b`; in `x @ w` they are `x`
# and `w`. `x` is data: no gradient flows there, so the vjp of `a` will not run, and it does not matter that it reads
# the matrix. Now freeze the matrix as well. `w.detach()` has the same numbers and no history.
#
# Before you run the next cell: only the bias `b` is still to get a gradient. How many buffers does the tape keep?

# %%
frozen_loss = (mg.tanh(x @ w.detach()) + b).sum()
frozen_saved = mg.saved(frozen_loss)
print(len(frozen_saved), "buffers kept when only b is trained")

# %% [markdown]
# None. Backward goes from the loss through `sum` and `+` to `b`, and reads nothing on that way. So fine-tuning only the
# last layers of a network is cheap in memory: below the lowest trained layer no vjp will run.
#
# ## Who else keeps it?
#
# A buffer is kept once, on the node that made it, however many vjps will read it. So what an op costs depends on its
# neighbours. Put an activation function between two products. The second product keeps its input anyway, for the
# gradient of its matrix, and that input *is* the output of the activation function.
#
# Before you run the next cell: for which of these five functions does the tape keep one buffer more? Their contracts
# are printed above.


# %%
def between_two_products(f):
    """What the tape keeps of x @ w1, then f, then @ w2; all numbers are positive, so that log has nothing to fear."""
    w1, w2 = (mg.full((WIDTH, WIDTH), 0.5, requires_grad=True) for _ in range(2))
    return mg.saved((f(mg.ones(BATCH, WIDTH) @ w1) @ w2).sum())


kept_between = {f.name: len(between_two_products(f)) for f in (mg.tanh, mg.relu, mg.exp, mg.log, mg.gelu)}
for name, count in kept_between.items():
    print(f"{name:5} {count} buffers")
print(between_two_products(mg.exp))
print(between_two_products(mg.log))

# %% [markdown]
# With tanh, relu and exp there are two rows: the input, and one buffer with two readers. log reads its *input*, which
# nobody else wants, and so there is a third. gelu does too: its curve dips and comes back, so an output does not tell
# which input it came from. In a network of a hundred layers, that is the difference between one buffer a layer and
# two. `lessons/ops.md` lists for each op what its gradient reads.
#
# ## The triangle
#
# Now watch the buffers come and go. A *tracer* counts the arrays that are really alive. What it calls live
# activations are the buffers that the tape holds, parameters and gradients aside. `mg.steps(loss)` is backward as a
# loop, one node at a time.
#
# Before you run the next cell: 20 layers, each a product and a tanh, which makes 40 ops. How many live activations
# are there at the end of forward? And after half of backward?

# %%
LAYERS = 20
weights = [parameter(f"w{i}") for i in range(LAYERS)]


def network(x):
    """Twenty layers of tanh(x @ w)."""
    for w in weights:
        x = mg.tanh(x @ w)
    return x


x = data()
climb, descent = [], []
with mg.Tracer() as tracer:
    h = x
    for w in weights:
        h = mg.tanh(h @ w)
        climb.append(tracer.live_activations)
    loss = h.sum()
    for step in mg.steps(loss):
        if step.kind == "op" and step.node.op is mg.tanh:
            descent.append(tracer.live_activations)
peak = tracer.peak_activations
print("after each layer of forward: ", climb)
print("after each layer of backward:", descent)
print("at the peak:", peak)
tracer.plot(pictures.path("05-triangle.svg"))

# %% [markdown]
# One buffer a layer, and the input: a layer's tanh output serves its own tanh and the next layer's product. The count
# climbs through forward and goes down again through backward, because the sweep lets go of a buffer as it passes the
# node. The most activations are live where forward ends and backward begins.
#
# ![Live bytes over a forward and a backward: the activations climb in steps to where forward ends, and fall again;
# below them a strip of parameters, above them the gradients that backward makes](pictures/05-triangle.svg)
#
# The picture shows bytes. The blue triangle, with the green strip of the input `x` under it, is what you have just
# counted. Gradients come on top of it in backward, and the parameters lie below. (Their strip rises at first because
# the tracer counts a parameter from the moment an op reads it.) Grey is what only a variable holds, and not the tape:
# in forward a product until its tanh has run, in backward the last output, which is still called `h`.
#
# The corner of this triangle is what makes training expensive. It is as high as the network is deep, and as heavy as
# the batch is large.
#
# Before you run the next cell: what does a batch eight times as large do to the activations, and what to the
# parameters?

# %%
activation_bytes = {}
for batch in (BATCH, 8 * BATCH):
    with mg.Tracer() as tracer:
        network(data(batch)).sum().backward()
    activation_bytes[batch] = tracer.peak_activation_bytes
    print(f"batch of {batch:3}: {tracer.peak_activation_bytes:9,} bytes of activations, "
          f"{tracer.peak('parameter'):7,} of parameters")  # fmt: skip


# %% [markdown]
# ## An op that keeps less
#
# The contract is yours to write. `@mg.op` makes an op of a function on arrays, `@name.vjp("input")` declares a
# gradient. This one does a whole layer. Its vjps name its inputs only, and compute the tanh again from them.
# (`mg.tanh` of an array is an array.)


# %%
@mg.op
def tanh_linear(x, w):
    """tanh(x @ w) as one op that keeps its inputs, not its output."""
    return np.tanh(x @ w)


@tanh_linear.vjp("x")
def tanh_linear_wrt_x(g, x, w):
    t = mg.tanh(x @ w)
    return (g * (1 - t * t)) @ w.T


@tanh_linear.vjp("w")
def tanh_linear_wrt_w(g, x, w):
    t = mg.tanh(x @ w)
    return x.T @ (g * (1 - t * t))


def two_ops(x, w):
    return mg.tanh(x @ w)


# %% [markdown]
# We try it in two networks of ten layers. A plain one replaces x by the layer's result, a residual one adds the
# result to x, as transformers do.
#
# Before you run the next cell: by how much does the fused op lower the number of kept buffers, in the plain network
# and in the residual one? Go through the readers of each buffer.


# %%
def run(layer, residual):
    """(buffers kept at the end of forward, gradients of the weights) of ten layers."""
    h = x
    for w in weights[:10]:
        w.grad = None
        h = h + layer(h, w) if residual else layer(h, w)
    loss = h.sum()
    count = len(mg.saved(loss))
    loss.backward()
    return count, [w.grad.numpy() for w in weights[:10]]


fused_table, same_gradients = {}, {}
for kind, residual in (("plain", False), ("residual", True)):
    (plain_count, plain_gradients), (fused_count, fused_gradients) = run(two_ops, residual), run(tanh_linear, residual)
    pairs = zip(plain_gradients, fused_gradients, strict=True)
    fused_table[kind], same_gradients[kind] = (plain_count, fused_count), all(np.array_equal(a, b) for a, b in pairs)
    print(f"{kind:8} two ops keep {plain_count}, the fused op keeps {fused_count}; "
          f"gradients the same to the last bit: {same_gradients[kind]}")  # fmt: skip

# %% [markdown]
# In the plain network the fused op saves one buffer, the last layer's output. All the other outputs stay, as the next
# layer's input. In the residual network nobody but tanh wanted the tanh outputs: `h + ...` reads nothing. There the
# fused op halves what is kept.
#
# The price is in the vjps: each of them runs the layer's forward once more. That is a checkpoint, written by hand for
# one op. The next lesson gets the same for any stretch of a network, and you do not write any vjp for it.
#
# ## Break it: a vjp that names too much
#
# A hard tanh cuts off at -1 and 1. Its slope is 1 where the cut changed nothing. So this vjp suggests itself, and it
# is right.


# %%
@mg.op
def hard_tanh(x):
    """x, cut off at -1 and 1."""
    return np.clip(x, -1, 1)


@hard_tanh.vjp("x")
def hard_tanh_from_both(g, x, out):
    return g * (out == x)


def kept_in_chain(activation):
    """(buffers, bytes) that the tape keeps of ten products, each with this activation behind it."""
    h = x
    for w in weights[:10]:
        h = activation(h @ w)
    found = mg.saved(h.sum())
    return len(found), found.nbytes


some_numbers = mg.tensor(rng.standard_normal(50), requires_grad=True)
wasteful_is_right = mg.gradcheck(hard_tanh, [some_numbers])
wasteful, with_tanh = kept_in_chain(hard_tanh), kept_in_chain(mg.tanh)
print("gradcheck:", wasteful_is_right)
print(f"hard_tanh keeps {wasteful[0]} buffers, {wasteful[1]:,} bytes; tanh {with_tanh[0]}, {with_tanh[1]:,} bytes")
print(between_two_products(hard_tanh))

# %% [markdown]
# The gradients are right, and so no gradient check will ever complain. But the tape keeps nearly twice as much as
# with tanh. The table shows why, for one hard_tanh between two products: the vjp names `x`, and the buffer in the
# second row has no other reader.
#
# The repair is in the signature. Where the output lies strictly between -1 and 1, nothing was cut off; so `out` alone
# will do, and `out` is there anyway, for the next product. Declaring a vjp again replaces the one before.


# %%
@hard_tanh.vjp("x")
def hard_tanh_from_output(g, out):
    return g * (abs(out) < 1)


repaired_is_right = mg.gradcheck(hard_tanh, [some_numbers])
repaired = kept_in_chain(hard_tanh)
print("gradcheck:", repaired_is_right)
print(f"hard_tanh keeps {repaired[0]} buffers, {repaired[1]:,} bytes")

# %% [markdown]
# ## In PyTorch and in JAX
#
# - In PyTorch an op of your own is a `torch.autograd.Function`, and what it keeps is what its forward hands to
#   `ctx.save_for_backward`. The built-in ops make the same choices as here: `torch.tanh` and `torch.exp` save their
#   result, `torch.log` its input. `y.grad_fn` shows them as attributes, such as `_saved_result` and `_saved_self`.
#   `torch.autograd.graph.saved_tensors_hooks` sees each tensor that is saved.
# - In JAX what waits for backward is called *residuals*. `jax.ad_checkpoint.print_saved_residuals(f, *args)` prints
#   them with the source line of each, as `mg.saved` does. With `jax.custom_vjp`, the forward rule returns the output
#   and the residuals that the backward rule will be given.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex05_contract.py`; `make check N=05` says how far you are.
#
# 1. `buffers_kept`: the number of kept buffers, from the contracts alone.
# 2. `make_softsign`: an op whose gradient reads its output and nothing else.
# 3. `make_gate`: x · tanh(x) as one op, which keeps half as much as two.
#
# ## Questions
#
# 1. A layer is `gelu(x @ w)`, and you have ten of them in a row. How many buffers does the tape keep, and which?
# 2. Why can a gradient check not find a vjp that keeps too much? What can?
# 3. Someone fuses tanh and product into one op and finds that the peak has hardly changed. What does their network
#    look like?
