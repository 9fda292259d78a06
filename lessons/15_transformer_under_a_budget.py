# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 15 A transformer under a budget
#
# **Say how many bytes the activations of a network may take: `mg.fit` measures its layers and finds the fastest
# schedule that fits, and training under it takes more time and changes nothing else, not one bit of one loss.**
#
# Needs: 04, 08, 10, 11. Minutes: 25.
#
# In this lesson all of it comes together. A character-level transformer learns a real text, the README of this
# repository. You see where its bytes are, train it in three tenths of them, ask for a budget that cannot be met, and
# repair that. At the end you compare two ways to save: whole blocks that are replayed, and single ops inside of them.

# %%
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: with one thread, times are steadier

import collections
import itertools
import time
import warnings

import _pictures as pictures
import numpy as np
from char_transformer import CharTransformer, batches, losses_without_context, make_optimizer, read_text, write
from tqdm import tqdm

import minigrad as mg
from minigrad import optim, policies, schedules
from minigrad.view import canvas, columns, placing

STEPS, FIRST, BATCH, CONTEXT = 150, 15, 6, 64
warnings.simplefilter("ignore", mg.CheckpointWarning)  # a checkpoint of one op saves nothing; `fit` may make some

letters, ids = read_text()
print(f"{len(ids)} characters, {len(letters)} different ones")


# %% [markdown]
# ## The network as a chain
#
# `lessons/char_transformer.py` is a program of its own; read its class `CharTransformer` beside this lesson. The model
# adds up what a character is and where it stands, runs that through *blocks*, and gives a number for each character
# that could come next. A block is `x + attention(norm(x))`, and then `x + MLP(norm(x))`. Here there are six blocks,
# with dropout in each.
#
# A schedule works on a list of layers. So put the model into a list: what comes before the blocks, each block, what
# comes after them, and the loss. The loss belongs in there too, as it holds an array of all probabilities.


# %%
def new_model():
    """The model as it is before training: the same weights, and then the same dropout, each time."""
    mg.manual_seed(15)
    return CharTransformer(len(letters), width=48, blocks=6, dropout=0.1)


def as_chain(model, targets):
    """The model and its loss on these targets as a list of layers."""

    def embed(ids):
        return model.token(ids) + model.place(mg.arange(ids.shape[1]))

    def head(h):
        return model.head(model.norm(h))

    def loss(logits):
        return mg.cross_entropy(logits.reshape(-1, len(letters)), mg.tensor(targets).reshape(-1))

    return [embed, *model.blocks, head, loss]


def one_step(layers, x, schedule):
    """(the tracer of one forward and backward, the loss); from the same seed, so with the same dropout each time."""
    mg.manual_seed(1)
    model.zero_grad()
    with mg.Tracer() as tracer:
        loss = mg.checkpoint_sequential(layers, schedule, x)
        loss.backward()
    return tracer, loss.item()


model = new_model()
inputs, targets = next(batches(ids, 1, batch=BATCH))
layers, x = as_chain(model, targets), mg.tensor(inputs)
print(f"{len(layers)} layers, {sum(p.size for p in model.parameters())} parameters")

# %% [markdown]
# ## Where the bytes are
#
# A batch is six stretches of 64 characters, and the model is 48 numbers wide. What goes from block to block has
# 6 × 64 × 48 numbers. Inside a block are larger things. Attention with four heads gives each pair of places in a
# stretch a probability: 6 × 4 × 64 × 64. The MLP is four times as wide as the model: 6 × 64 × 192.
#
# Before you run the next cell: which of the three has the most numbers? And does the tape keep it once?

# %%
mg.manual_seed(1)
kept = collections.Counter()
for row in mg.saved(mg.checkpoint_sequential(layers, schedules.store_all(), x)):
    if row.node.layer.startswith("blocks.0"):
        kept[row.node.op.name, row.node.shape] += row.nbytes
print("kept of the first block:")
for (op, shape), nbytes in kept.most_common():
    print(f"  {op:12} {str(shape):18} {nbytes:9,} bytes")

of_pairs = sum(nbytes for (_, shape), nbytes in kept.items() if shape[-2:] == (CONTEXT, CONTEXT))
share_of_pairs = of_pairs / kept.total()
print(f"arrays with a number for each pair of places: {share_of_pairs:.0%} of the block's bytes")

everything, plain_loss = one_step(layers, x, schedules.store_all())
whole = everything.peak_activation_bytes
print(f"one step holds {everything.peak_activations} activations, {whole:,} bytes")

# %% [markdown]
# Dropout draws its mask again when it is needed, so the mask costs nothing. But the softmax keeps its output for its
# own gradient, and the product with the values keeps what dropout has made of it. So the probabilities are there twice.
# (A row adds up all arrays of one op and one shape. There are two norms in a block, for example.)
#
# ## Measure, and ask
#
# `mg.profile` measures each layer. Give the result to `mg.fit` with a number of bytes: it forecasts many schedules, and
# takes the fastest that fits. First ask for half of the bytes, then for three tenths.
#
# Before you run the next cell: how many of the six blocks can stay on the tape with half of the bytes? (At the end of
# forward, what is there beside them?) How much more time will a step take, with half and with three tenths?

# %%
measured = mg.profile(layers, x)
for line in str(measured).splitlines():
    print("time:", line)

shares = {"half": 0.5, "three tenths": 0.3}
fitted = {name: mg.fit(measured, x, budget=int(share * whole)) for name, share in shares.items()}
steps, step_losses = {"storing all": everything}, {"storing all": plain_loss}
for name, schedule in fitted.items():
    steps[name], step_losses[name] = one_step(layers, x, schedule)
    for line in str(schedule).splitlines():
        print("time:", line)
    held = steps[name].peak_activation_bytes
    print(f"{name}: within the budget: {held <= schedule.budget}; as predicted: {held == schedule.predicted_bytes}; "
          f"the same loss: {step_losses[name] == plain_loss}")  # fmt: skip

# %% [markdown]
# Half of the bytes is as much as three blocks hold, and a little more. But head and loss need room as well, more than
# this little. So two blocks can stay on the tape, and not three. As a block is taped as a whole or not at all, some of
# the budget may be left over. Print `fitted["half"].plan(len(layers)).tree()` to see which blocks it tapes. (It counts
# layers from 1, so the blocks are 2 to 7. Which schedule is the fastest depends on times, and it may be another one on
# your machine. That it fits is true on all.)
#
# ## Bit for bit
#
# One step is not training. Errors that are small in a step grow over many. So train from the same weights three times,
# and compare all losses, and all weights after the last step. Dropout is on, in forward and in every replay. Each batch
# has a chain of its own, with its own targets. A schedule is made for layers of certain sizes, and these are the same
# for all batches, so you need only one.
#
# Before you run the next cell: in which digit will the losses begin to differ?


# %%
def train(model, schedule, steps):
    """Train for the first `steps` of STEPS steps, and give the loss of each as it comes."""
    optimizer, rates = make_optimizer(model, STEPS)
    for inputs, targets in itertools.islice(batches(ids, STEPS, batch=BATCH), steps):
        loss = mg.checkpoint_sequential(as_chain(model, targets), schedule, mg.tensor(inputs))
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        yield loss.item()


first_losses, first_states = {}, {}
for name, schedule in {"storing all": schedules.store_all(), **fitted}.items():
    model, start = new_model(), time.perf_counter()
    first_losses[name] = list(train(model, schedule, FIRST))
    seconds = time.perf_counter() - start
    first_states[name] = model.state_dict()
    print(f"time: {name:12} {seconds / FIRST * 1e3:6.1f} ms a step")

reference = first_states["storing all"]
same_losses = all(losses == first_losses["storing all"] for losses in first_losses.values())
same_weights = all(
    np.array_equal(state[key], reference[key]) for state in first_states.values() for key in reference
)  # fmt: skip
print(f"losses of {FIRST} steps, all three ways the same bits: {same_losses}; weights: {same_weights}")

# %% [markdown]
# In none. A replay runs the recorded ops on the same numbers, and draws dropout's masks from the same keys. So there is
# no error to grow.
#
# ## Train in three tenths
#
# A model that knows nothing has a loss of log(characters). One that knows how frequent each character is, and nothing
# of their order, has the mean of -log(share of the character), which is called the entropy. What is below that has been
# learnt from the order.

# %%
model = new_model()
progress = tqdm(train(model, fitted["three tenths"], STEPS), total=STEPS, desc="steps", leave=False, disable=None)
losses = list(progress)
knows_nothing, knows_shares = losses_without_context(ids)
last = float(np.mean(losses[-10:]))
print(f"loss if one knows nothing {knows_nothing:.2f}, if one knows each character's share {knows_shares:.2f}")
for step in range(0, STEPS, 25):
    print(f"  steps {step:3} to {step + 24:3}: {np.mean(losses[step : step + 25]):.2f}")
print("it began as the three have begun:", losses[:FIRST] == first_losses["storing all"])

model.eval()
text = write(model, letters, start="A ", length=160)
print("it writes:", repr(text))

# %% [markdown]
# No sentences yet: it has begun to see which characters follow which. A larger model, and some thousand steps more,
# would go on from there. What matters here is that the loss has come down exactly as it would have without any
# checkpoint, as each step is the same.
#
# ## Break it: a budget that cannot be met
#
# Ask for less and less, and there is an end. Before you run the next cell, which asks for 15 %: which buffers must be
# there together at some moment, whatever the schedule? (Think of the moment when backward comes to a block.)

# %%
model = new_model()  # untrained again, so that losses can be compared with the one above
layers = as_chain(model, targets)
too_little = int(0.15 * whole)
refused = None
try:
    mg.fit(measured, x, budget=too_little)
except mg.BudgetError as error:
    refused = str(error)
    print("BudgetError:", refused)
most_of_a_layer = max(layer.kept_bytes for layer in measured.layers)
print(f"what the tape keeps of the largest layer: {most_of_a_layer:,} bytes; the budget: {too_little:,}")

# %% [markdown]
# A schedule decides about layers. When backward comes to a block, all that the tape keeps of this block has to be there
# at once, whatever else has been dropped. No schedule can do with less.
#
# The message names two ways out. Here is the second one: split the largest layer. A block makes two sums, one after the
# other, so it can be cut behind the first. The ops are the same as before, in the same order.


# %%
def halves(block):
    """A block as two layers: its attention and its MLP, each with the sum that comes after it."""

    def attention(x):
        attended, _ = block.self_attn(block.norm1(x), is_causal=block.causal)
        return x + block.dropout1(attended)

    def mlp(x):
        hidden = block.dropout(mg.relu(block.linear1(block.norm2(x))))
        return x + block.dropout2(block.linear2(hidden))

    return [attention, mlp]


embed, *blocks, head, loss = layers
finer = [embed, *itertools.chain.from_iterable(map(halves, blocks)), head, loss]
repaired = mg.fit(finer, x, budget=too_little)
finer_step, finer_loss = one_step(finer, x, repaired)
for line in str(repaired).splitlines():
    print("time:", line)
most_of_a_finer_layer = max(layer.kept_bytes for layer in repaired.profile.layers)
print(f"what the tape keeps of the largest layer now: {most_of_a_finer_layer:,} bytes")
print(f"{len(finer)} layers: within the budget: {finer_step.peak_activation_bytes <= too_little}; "
      f"the same loss: {finer_loss == plain_loss}")  # fmt: skip

# %% [markdown]
# Now half a block is the most that must be there. The other way out, a smaller batch, is an exercise: two batches of
# three stretches each, whose gradients are put together.
#
# ## Inside the blocks
#
# Until now a block was taped or replayed as a whole. A *policy* (lesson 11) is the other way: each block is a
# checkpoint, always, and the policy says which values inside of it stay. `attention_core()` keeps all but the
# probabilities and what leads to them. `within(bytes)` keeps so many bytes in each block, and chooses for itself.
#
# Before you run the next cell: you know the share of the arrays of pairs. What will be left with `attention_core()`?
# And how many products of matrices will run again?


# %%
def with_policy(layers, policy):
    """The chain with each block as a checkpoint of its own, which keeps inside what the policy wants."""
    embed, *blocks, head, loss = layers

    def in_checkpoint(block):
        def run(h):
            return mg.checkpoint(block, h, policy=policy)

        return run

    return [embed, *map(in_checkpoint, blocks), head, loss]


inside = {}
for policy in (policies.attention_core(), policies.within("600 kB"), policies.save_nothing()):
    tracer, loss = one_step(with_policy(layers, policy), x, schedules.store_all())
    inside[repr(policy)] = tracer
    print(f"{policy!r:20} {tracer.peak_activation_bytes / whole:4.0%} of the bytes; {tracer.replayed_ops:3} ops run "
          f"again; the same loss: {loss == plain_loss}")  # fmt: skip

core = inside["attention_core()"]
again = collections.Counter(event.op for event in core.events if event.kind == "replayed")
print("run again by attention_core():", ", ".join(f"{count} {op}" for op, count in again.items()))


# %% [markdown]
# `attention_core()` leaves more than the share of the pairs would say, because the block that is being replayed has its
# arrays of pairs back. It runs few ops again. One of them in each block is a product of matrices, the one that makes
# the scores. How good the bargain is depends on the context: the arrays of pairs grow with the square of its length,
# everything else with the length itself. With one this short they are under half of the block.
#
# `save_nothing()` is the plain checkpoint around each block, which you could have written down without measuring
# anything. It holds less than three tenths, and replays every block in every step, also those for which there would
# have been room. Here is the difference that `fit` makes: it spends the bytes that you allow, and saves time with them.
#
# ## What one sees


# %%
def held_by_step(tracer):
    """(steps, bytes of activations held after each)."""
    found = columns.columns(tracer, "bytes", hide=("parameter", "gradient", "value", "workspace"), most=10**6)
    return [column.step for column in found], [column.total for column in found]


def draw(runs, budgets, path):
    """What each run held, step by step, and the budgets as dotted lines."""
    title = f"{whole / 1e6:.1f} MB to store everything; within a budget, the same losses and some steps more"
    figure, (axes,) = canvas.page(title, "bytes of activations held over one forward and backward; dotted: the budgets")
    lines, labels = [], []
    for (name, tracer), (colour, dash) in zip(runs.items(), canvas.STYLES, strict=False):
        over, held = held_by_step(tracer)
        points = [(step, size / 1e6) for step, size in zip(over, held, strict=True)]
        axes.plot(*zip(*points, strict=True), color=colour, linestyle=dash, linewidth=1.8, drawstyle="steps-post")
        tops = [point for point in points if point[1] == max(held) / 1e6]
        labels.append(placing.Label(tops, f"{name}: {max(held) / 1e6:.1f} MB", colour))
        lines.append(points)
        if name in budgets:
            axes.axhline(budgets[name] / 1e6, color=colour, linestyle=(0, (2, 3)), linewidth=1)
    axes.set(xlabel="steps: ops run, ops replayed, nodes swept", ylabel="MB")
    axes.set(xlim=(0, None), ylim=(0, 1.1 * whole / 1e6))
    placing.place_labels(axes, labels, lines)
    canvas.saved(figure, path)


budgets = {name: schedule.budget for name, schedule in fitted.items()}
draw({**steps, "attention_core()": core}, budgets, pictures.path("15-budgets-measured.svg"))

# %% [markdown]
# ![Megabytes held over the steps of one forward and backward: storing everything climbs to the top and comes down; half
# and three tenths of it are rows of teeth below dotted lines; attention_core is a lower mountain
# in between](pictures/15-budgets-measured.svg)
#
# Storing everything is the mountain of lesson 05. Under `attention_core()` it is the same mountain, only lower: every
# block holds less. Under a budget the way up is nearly flat where blocks are dropped, and each replayed block is a
# tooth on the way down. A block that is taped raises all that comes between its forward and its backward.
#
# ## In PyTorch and in JAX
#
# - No public function of PyTorch or JAX fits layers into a number of bytes. Under `torch.compile` there is
#   `torch._functorch.config.activation_memory_budget`: 1.0 is what the compiler would keep by default, 0.0 what a
#   checkpoint around the compiled region keeps, and in between a knapsack solver chooses the ops to run again. That is
#   `policies.within`, for a whole graph.
# - Checkpoints with policies are `torch.utils.checkpoint.create_selective_checkpoint_contexts` there, and in JAX
#   `jax.checkpoint(f, policy=…)`. Megatron-LM calls the recomputation of attention's core "selective".
# - Attention need not hold the arrays of pairs at all: FlashAttention computes it in blocks, in forward and again in
#   backward. `torch.nn.functional.scaled_dot_product_attention` and `jax.nn.dot_product_attention` can use such a
#   kernel, where the device has one. In minigrad it is `mg.scaled_dot_product_attention`, which layers use when
#   attention has no dropout; then `attention_core()` has nothing left to save.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex15_budget.py`; `make check N=15` says how far you are.
#
# 1. `gradients_in_parts`: the gradients of a batch from smaller batches, one after the other.
# 2. `in_three`: cut a block into three layers, finer than the lesson does.
# 3. `least_share`: down to which share of the bytes can a chain go?
#
# ## Questions
#
# 1. Why are the losses the same to the last bit, although dropout draws random numbers in forward and in each replay?
# 2. What sets the least budget for a chain of layers, and why does it fall when you cut the blocks in two?
# 3. You double the context. Which share of a block's bytes grows, and which of the two ways to save gains by it?
