# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 11 Keep the dear, recompute the cheap
#
# **A checkpoint need not drop everything: keep the values that are dear for their bytes, and compute the cheap ones
# again; in a layer of a large transformer, the core of attention is 70 % of the bytes and 2 % of the operations.**
#
# Needs: 06, 08. Minutes: 20.
#
# So far a checkpoint kept its boundary and nothing else, and its replay made all that backward reads. But ops differ. A
# product of matrices takes many operations for each number that it puts out, an addition a few. A *policy* tells a
# checkpoint which outputs to keep all the same.

# %%
import warnings

import _pictures as pictures
from tqdm import tqdm

import minigrad as mg
from minigrad import nn, policies
from minigrad.ops.cost import flops, transformer_layer_bytes
from minigrad.view import canvas

SEQUENCE, HIDDEN, HEADS, BLOCKS = 64, 32, 8, 4
mg.manual_seed(11)

# %% [markdown]
# ## A layer with everything in it
#
# A layer of a transformer, written in plain ops. In attention each row of a sequence looks at every row, with a score,
# and a softmax of the scores says how large a share of that row's values it takes. The scores, and what is made of them
# up to the shares, have a number for each *pair* of rows and each head: this stretch is the *core* of attention.


# %%
class Attention(nn.Module):
    """Attention with several heads; rows by features in and out."""

    def __init__(self):
        self.q, self.k, self.v, self.out = [nn.Linear(HIDDEN, HIDDEN) for _ in range(4)]

    def heads(self, x):
        return x.reshape(len(x), HEADS, HIDDEN // HEADS).swapaxes(0, 1)

    def forward(self, x):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        scores = q @ k.swapaxes(1, 2) * (HIDDEN // HEADS) ** -0.5
        shares = mg.dropout(mg.softmax(scores), 0.1)
        return self.out((shares @ v).swapaxes(0, 1).reshape(*x.shape))


class Block(nn.Module):
    """Attention, then two wide layers, each beside a path that goes straight on."""

    def __init__(self):
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(HIDDEN), Attention(), nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        x = x + mg.dropout(self.attention(self.norm1(x)), 0.1)
        return x + mg.dropout(self.down(mg.gelu(self.up(self.norm2(x)), approximate="tanh")), 0.1)


blocks = [Block() for _ in range(BLOCKS)]
x = mg.randn(SEQUENCE, HIDDEN)

# %% [markdown]
# ## Operations per byte
#
# `minigrad.ops.cost.flops(node)` counts what an op costs, from its shapes: a multiplication with its addition is one
# operation, an element that is read or written is one, an exponential is eight.
#
# Before you run the next cell: a product with inner length n, in which each number is a sum of n terms, takes n
# operations for each number that it puts out, and a number has four bytes. Two kinds of products are in this layer:
# `linear` has an inner length of the whole width; the scores have an inner length of one head's share. What are their
# operations per byte?

# %%
nodes = [node for node in mg.tape(blocks[0](x)) if node.op is not None]
forward_operations = sum(map(flops, nodes))
print("op           layer          bytes  operations  per byte")
for node in nodes:
    if cost := flops(node):
        print(f"{node.op.name:12} {node.layer:12} {node.nbytes:7,}  {cost:10,}  {cost / node.nbytes:8.2f}")
everything = mg.saved(blocks[0](x)).nbytes
print(f"the tape keeps {everything:,} bytes for one layer")

# %% [markdown]
# (Reshaping and swapping axes cost nothing, and are left out.) The four arrays of the core are by far the largest, and
# cheap for their bytes. The product of shares and values, behind it, takes as many operations as the one of the scores,
# and has a small result.
#
# ## A policy
#
# `mg.checkpoint(block, x, policy=…)` asks the policy about each op, when it has run. The next cell puts a checkpoint
# around each of four layers and tries some policies. It measures the bytes that the tape keeps for one layer at the end
# of forward, the peak over all four, and the operations that replays run, as a share of a forward.
#
# Before you run it: `save_ops("linear")` keeps the outputs of all `linear`. Which ops will then run again? And what
# changes with `save_ops("linear", "matmul")`, which keeps *all* products?

# %%
PLAIN = "no checkpoint"


def measure(policy):
    """(bytes kept for a layer, peak, operations run again as a share of a forward, names of the ops run again)."""
    with mg.Tracer() as tracer:
        h = x
        for block in blocks:
            h = block(h) if policy == PLAIN else mg.checkpoint(block, h, policy=policy)
        loss = h.sum()
        kept = mg.saved(loss).nbytes // BLOCKS
        bodies = [node.body.lines for node in mg.tape(loss) if node.body is not None]
        costs = {line.number: flops(line) for lines in bodies for line in lines}
        loss.backward()
    again = [event for event in tracer.events if event.kind == "replayed"]
    share = sum(costs[event.number] for event in again) / (BLOCKS * forward_operations)
    return kept, tracer.peak_activation_bytes, share, {event.op for event in again}


results = {}


def try_out(policy, name=None):
    """Measure one policy, print it, and remember it."""
    name = name or str(policy)
    kept, peak, share, ops = results[name] = measure(policy)
    print(f"{name:28} keeps {kept:7,} bytes a layer, peak {peak:9,}; {share:.2f} of a forward runs again")
    return ops


try_out(PLAIN)
try_out(policies.save_nothing())
for policy in (policies.save_ops("linear"), policies.save_ops("linear", "matmul")):
    again = try_out(policy)
    print("    run again:", *sorted(again - {"reshape", "swapaxes"}))

# %% [markdown]
# With the outputs of `linear` at hand, no `linear` runs again, and the replay is about a third shorter. "Keep all
# products" is a tempting rule. But the scores are a product too, and for their bytes one of the cheapest: the second
# policy keeps far more, for little.
#
# ## Ask for the price
#
# `by_cost(4)` keeps what costs at least four operations per byte, whatever it is called. `within(budget)` goes further:
# it looks at all ops of the checkpoint and keeps, in so many bytes, those values with which the replay costs the least.
# (To look at all, it has to wait for the last one, and holds all outputs until then. That is why each layer here has a
# checkpoint of its own.)
#
# The next cell also tries two rules with a name: `attention_core()`, which the next section is about, and
# `every_other_matmul()`, which keeps every second product of each kind.
#
# Before you run it: which of all these policies will `within` beat, given the same bytes?

# %%
try_out(policies.by_cost(4))
try_out(policies.attention_core())
try_out(policies.every_other_matmul(), "every_other_matmul()")
boundary = results["save_nothing()"][0]
curve = {}
for budget in tqdm(range(0, everything, boundary), desc="budgets", leave=False, disable=None):
    kept, _, share, _ = measure(policies.within(budget))
    curve[kept] = min(share, curve.get(kept, share))
in_as_many_bytes = {}
for name, (kept, *_) in results.items():
    if name not in (PLAIN, "save_nothing()"):
        in_as_many_bytes[name] = measure(policies.within(kept - boundary))[2]  # beside the boundary
        print(f"in the bytes of {name:28} within() runs {in_as_many_bytes[name]:.2f} of a forward again")


def draw(path):
    """Bytes kept against operations run again."""
    figure, (axes,) = canvas.page(
        "To keep all products is too much: the scores are large, and cheap",
        "line: within(budget), for many budgets; points: other policies; all measured",
    )
    line = [(kept / 1e3, share) for kept, share in sorted(curve.items())]
    axes.plot(*zip(*line, strict=True), color=canvas.STYLES[0][0], marker=".", drawstyle="steps-post")
    for name, (kept, _, share, _) in results.items():
        axes.plot(kept / 1e3, share, "o", color=canvas.STYLES[1][0])
        is_left_of_line = name == "by_cost(4)"
        axes.annotate(
            name, (kept / 1e3, share), xytext=(-8, -5) if is_left_of_line else (8, 5), textcoords="offset points",
            ha="right" if is_left_of_line else "left", va="top" if is_left_of_line else "bottom", fontsize=9.5,
        )  # fmt: skip
    axes.set(xlabel="kB kept for a layer at the end of forward", ylabel="share of a forward that runs again")
    axes.set(xlim=(0, 1.2 * everything / 1e3), ylim=(-0.03, 1))
    canvas.saved(figure, path)


draw(pictures.path("11-policies.svg"))

# %% [markdown]
# ![Share of a forward that runs again over kilobytes kept: within(budget) falls in steps; attention_core lies on the
# line, keeping all products lies far above it](pictures/11-policies.svg)
#
# One policy with a name lies on the line without having searched: `attention_core()`.
#
# ## The core of attention
#
# It keeps everything except the core: scores, scaling, softmax and dropout run again. Korthikanti and others (2022)
# counted what a layer of a transformer holds in half precision, for a sequence s, batch b, width h and a heads:
#
#     s b h (34 + 5 a s / h)   bytes, of which the second part is the core
#
# Before you run the next cell: with the sizes of GPT-3 the two parts are 34 and 80. Our layer is tiny, but its a s / h
# is the same. What share of *its* bytes is the core, in single precision?

# %%
gpt3 = {"sequence": 2048, "batch": 1, "hidden": 12288, "heads": 96}
whole, without_core = transformer_layer_bytes(**gpt3), transformer_layer_bytes(**gpt3, recompute="attention")
saved_by_formula = 1 - without_core / whole
kept_plain, kept_core = results[PLAIN][0], results["attention_core()"][0]
saved_measured = 1 - kept_core / kept_plain
row = SEQUENCE * HIDDEN
print(f"a s / h: GPT-3 {gpt3['heads'] * gpt3['sequence'] // gpt3['hidden']}, here {HEADS * SEQUENCE // HIDDEN}")
print(f"by the formula, GPT-3: {whole / 1e6:,.0f} MB a layer, without the core {without_core / 1e6:,.0f} MB: "
      f"{saved_by_formula:.0%} saved")  # fmt: skip
print(f"measured, our layer: {kept_plain / row:.0f} s h bytes, without the core {kept_core / row:.0f} s h: "
      f"{saved_measured:.0%} saved")  # fmt: skip

# %% [markdown]
# Nearly the same share, from other parts. A number has four bytes here and not two. And a dropout keeps no mask here: a
# replay, and a vjp, draw it again from its key.
#
# And the price? Of our tiny layer the core is nearly half of the operations. But operations grow differently. The
# products with weights go with s h², the two products of attention with s² h, and the rest of the core with a s². The
# next cell writes that down, checks it on our layer, and then puts in GPT-3.
#
# Before you run it: h is much larger than s there. Will the share go up or down?


# %%
def operations(sequence, hidden, heads):
    """(of a whole layer's forward, of the core of its attention), as flops counts them."""
    pairs = heads * sequence**2
    elementwise = 24 * pairs  # a scaling 2, a softmax 12, a dropout 10
    weights = 12 * sequence * hidden**2
    rest = 89 * sequence * hidden  # norms, additions, biases, two dropouts, gelu
    return weights + 2 * sequence**2 * hidden + elementwise + rest, sequence**2 * hidden + elementwise


ours, ours_core = operations(SEQUENCE, HIDDEN, HEADS)
print("the formula counts what flops counts:", ours == forward_operations)
print(f"the core of our layer: {ours_core / ours:.2f} of a forward; measured: {results['attention_core()'][2]:.2f}")
theirs, theirs_core = operations(gpt3["sequence"], gpt3["hidden"], gpt3["heads"])
print(f"the core of a layer of GPT-3: {theirs_core / theirs:.1%} of a forward")

# %% [markdown]
# 70 % of the bytes for less than two hundredths of a forward: that is what "selective" recomputation is known for.
# (There is a further way. `mg.scaled_dot_product_attention` is a single op that computes attention in blocks, and never
# holds all pairs at once. Its vjps make them again, block by block.)
#
# ## Everything is not everything
#
# `save_everything()` keeps all. That ought to be the same as no checkpoint. Is it? The layer above has run more than
# twenty ops, and each has an output.
#
# Before you run the next cell: how do the bytes of *all outputs* compare to what plain taping keeps?

# %%
all_outputs = sum(node.nbytes for node in nodes if flops(node))
try_out(policies.save_everything())
print(f"all outputs of a layer: {all_outputs:,} bytes; plain taping keeps {everything:,}")

# %% [markdown]
# A gradient reads some outputs and not others: that of an addition reads neither input nor output. So to save each
# output is *worse* than no checkpoint. In PyTorch a policy that says "save" for every op does save every output. Here a
# policy is a wish: of what it wants, the checkpoint keeps what backward or a replay would read, and prunes the rest.
#
# ## Break it: the wrong thing
#
# Pruning has its limits. A recurrent network makes each state of two products: of the input, and of the state before.
#
# Before you run the next cell: products are dear, so keep them. How many values of each step will the checkpoint keep?
# And how many would plain taping keep?

# %%
STEPS, STRETCH, BATCH, WIDTH = 24, 6, 8, 16
w_input, w_state = [mg.randn(WIDTH, WIDTH, requires_grad=True) for _ in range(2)]
inputs = [mg.randn(BATCH, WIDTH) for _ in range(STEPS)]


def states(h, inputs):
    """The state after these inputs."""
    for x in inputs:
        h = mg.tanh(x @ w_input + h @ w_state)
    return h


def run_recurrent(policy):
    """(bytes kept at the end of forward, peak, ops replayed, warnings), a checkpoint for each six steps."""
    with mg.Tracer() as tracer, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        h = mg.zeros(BATCH, WIDTH)
        for first in range(0, STEPS, STRETCH):
            stretch = inputs[first : first + STRETCH]
            h = states(h, stretch) if policy == PLAIN else mg.checkpoint(states, h, stretch, policy=policy)
        loss = h.sum()
        kept = mg.saved(loss).nbytes
        loss.backward()
    return kept, tracer.peak_activation_bytes, tracer.replayed_ops, [str(warning.message) for warning in caught]


recurrent = {}
for policy in (PLAIN, policies.save_ops("matmul")):
    kept, peak, replayed, told = recurrent[str(policy)] = run_recurrent(policy)
    print(f"{policy!s:20} keeps {kept:6,} bytes, peak {peak:6,}; {replayed} ops replayed")
print("CheckpointWarning:", told[0])

# %% [markdown]
# More memory than without any checkpoint, and replays on top. Two products a step are kept, and plain taping keeps one
# state: the output of tanh, which the slope of tanh and the next step's product read. (The inputs of all steps are in
# both numbers; the gradient of `w_input` reads them.) No gradient reads a product here, but the replay does, which
# makes the state of the two. So nothing can be pruned. The warning says what came of it.
#
# The mistake is in the price. What an op costs by itself is not what keeping its output saves. Who keeps the tanh need
# run neither tanh nor addition nor *either* product: all four, for the bytes of one. `within` reckons like that: the
# worth of a value is all that need not run because it is there. So the repair is to let it choose. `by_cost(4)`, which
# prices each op by itself, stands beside it for comparison.
#
# Before you run the next cell: which op's outputs will `within` keep?

# %%
budget = STRETCH // 2 * BATCH * WIDTH * 4  # the bytes of three states
for policy in (policies.by_cost(4), policies.within(budget)):
    kept, peak, replayed, told = recurrent[str(policy)] = run_recurrent(policy)
    print(f"{policy!s:20} keeps {kept:6,} bytes, peak {peak:6,}; {replayed} ops replayed, {len(told)} warnings")
one_stretch = mg.checkpoint(states, mg.zeros(BATCH, WIDTH), inputs[:STRETCH], policy=policies.within(budget))
kept_ops = [row.node.op.name for row in mg.saved(one_stretch) if row.node.op is not None]
print("within keeps the outputs of:", *kept_ops)

# %% [markdown]
# ## In PyTorch and in JAX
#
# - In PyTorch, `torch.utils.checkpoint.create_selective_checkpoint_contexts` takes a list of ops, or a function that
#   answers `CheckpointPolicy.MUST_SAVE` or `PREFER_RECOMPUTE` for each op; what it gives is the `context_fn` of
#   `checkpoint`. Under `torch.compile`, `torch._functorch.config.activation_memory_budget` solves a knapsack, as
#   `within` does.
# - In JAX it is the `policy` of `jax.checkpoint`. `jax.checkpoint_policies.dots_saveable` keeps all products;
#   `dots_with_no_batch_dims_saveable` leaves out those with a batch axis, and so the scores of attention.
#   `save_only_these_names` keeps values that you have named with `checkpoint_name`.
# - Megatron-LM calls what `attention_core()` does the recompute granularity "selective".
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex11_policies.py`; `make check N=11` says how far you are.
#
# 1. `products_from`: a policy of your own, which keeps large products and leaves the scores alone.
# 2. `runs_again`: which ops a replay runs when some values are kept.
# 3. `best_to_keep`: what to keep in so many bytes, by trying everything.
#
# ## Questions
#
# 1. Why are the scores cheap for their bytes, though they are a product, and how does that change with more heads?
# 2. When does a checkpoint with a policy hold more than no checkpoint? Why does `save_everything()` never do so here?
# 3. In a checkpoint stand `a = x @ w`, `b = a + 1`, `c = exp(b)` and `d = c * c`. Which one value would you keep, and
#    which ops need not run because it is there?
