# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 12 Without a plan
#
# **Under a memory budget nobody plans: what does not fit is evicted, and its recorded op runs again when it is read;
# that costs little more than the best plan if the choice of what goes counts the gaps around a value, and far more if
# it goes by the time of last use alone.**
#
# Needs: 06, 07. Minutes: 20.
#
# A schedule says beforehand where the checkpoints are. For that, somebody has to know the layers, their order and
# their sizes. Here nobody knows anything. You give a number of bytes, the program runs, and when a buffer does not
# fit any more, another one has to go. Which one? You will see five answers on a chain that you know, one of them as
# good as the best plan, and find out what the others miss.

# %%
from collections import Counter

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import nn, schedules
from minigrad.view import spacetime

LAYERS, WIDTH, ROOM = 100, 4, 20
rng = np.random.default_rng(12)


class Layer:
    """h @ w, with an orthogonal matrix."""

    def __init__(self):
        square, _ = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))
        self.w = mg.tensor(square.astype("float32"), requires_grad=True)

    def __call__(self, h):
        return h @ self.w


chain = [Layer() for _ in range(LAYERS)]
x = mg.tensor(rng.standard_normal((8, WIDTH)).astype("float32"), name="x")


def forward():
    """The loss of all layers, none of them in a checkpoint."""
    return mg.checkpoint_sequential(chain, schedules.store_all(), x).sum()


# %% [markdown]
# This is the chain of lessons 06 and 07: a layer is one product and keeps its input. (`store_all` makes no
# checkpoint; it numbers the layers, so that they can be drawn.)
#
# ## A number of bytes
#
# `with mg.memory_budget(limit):` is all. Forward and backward go into the block. In it, the tape holds at most that
# many bytes of activations, the input included; parameters and gradients do not count. Before the tape takes one more
# buffer, others are *evicted* until it fits: a node lets go of its `out`, and stays where it is. When the sweep reads
# a value that has been evicted, its recorded op runs again, and before it those whose values it needs. That is a
# replay as in lesson 06, of a stretch that nobody has marked.
#
# A hundred activations are wanted, and we make room for twenty.
#
# Before you run the next cell: lesson 07's best equal segments hold 19 activations and replay 81 layers. Guess how
# many layers run again here.


# %%
def run_under(room, evict="dtr"):
    """(tracer, budget, gradients) of a forward and backward with room for that many activations."""
    for layer in chain:
        layer.w.grad = None
    with mg.Tracer() as tracer, mg.memory_budget(room * x.nbytes, evict=evict) as budget:
        forward().backward()
    return tracer, budget, [layer.w.grad.numpy() for layer in chain]


_, _, plain_gradients = run_under(LAYERS)
tracer, budget, gradients = run_under(ROOM)
same_bits = all(np.array_equal(a, b) for a, b in zip(gradients, plain_gradients, strict=True))
print(budget)
print("a tracer sees:", tracer.peak_activations, "live at the peak,", tracer.replayed_ops, "layers run again")
print("gradients the same to the last bit:", same_bits)

# %% [markdown]
# The budget was never exceeded, and the price is as low as that of a plan.
#
# ## Who goes?
#
# Everything depends on the choice. `evict=` names a *heuristic*, a rule that gives each buffer a score; the lowest
# goes. Here are five.
#
# - `"lru"`: least recently used. What has not been read for the longest time goes. Caches of all kinds do this.
# - `"size"`: the largest goes; of several as large, the one that comes first on the tape.
# - `"random"`: any.
# - `"local"`: cost / (bytes × staleness). *Cost* is the work of running the op again, counted from shapes; what is
#   cheap may go. *Bytes*: a large buffer makes much room. *Staleness* is the time since the value was last read, and
#   this clock moves by the cost of each op that runs; what is stale will perhaps not be needed soon.
# - `"dtr"`: (cost + neighbourhood) / (bytes × staleness). The *neighbourhood* is the cost of all evicted values that
#   would have to be computed before this one, and of all that would have to be computed from it. Between two gaps, a
#   value is dear: without it they become one long gap.
#
# Before you run the next cell: on this chain all costs and all sizes are equal. Which two of the five must then do
# exactly the same? And where will `"random"` end up?

# %%
heuristics = ("dtr", "random", "lru", "local", "size")
traced = {name: run_under(ROOM, name)[0] for name in heuristics}
replayed = {name: traced[name].replayed_ops for name in heuristics}
planned = schedules.optimal(ROOM).plan(LAYERS).extra_forwards
for name in heuristics:
    print(f"{name:6} {traced[name].peak_activations} live at the peak, {replayed[name]:3} layers run again")
print("the best plan with this peak:", planned, "layers run again")
spacetime.compare({name: traced[name] for name in ("dtr", "lru")}, pictures.path("12-eviction.svg"))

# %% [markdown]
# `"local"` is `"lru"` here, since nothing but staleness differs. Both do worse than throwing dice. `"dtr"` does
# as well as `schedules.optimal`, the best plan there is for a given peak.
#
# ## Why LRU fails
#
# ![Two runs, layers from left to right, steps from top to bottom. Under dtr, forward leaves a comb of columns behind,
# and backward fills the gaps between them one after another. Under lru it leaves the first column and a block at the
# end, and backward starts again from the first column, over and over](pictures/12-eviction.svg)
#
# Each column is a layer with the input that it keeps. Forward is the long diagonal, and what hangs down from it is
# still held: a comb under `"dtr"`, a block that moves along under `"lru"`. (The short bar below a block is the value
# that was read last. Nobody will read it again, but the tape lets go of a value only when the sweep has passed the op
# that made it. Long before that, the next block needs the room, and the value is evicted.)
#
# Before you run the next cell: under `"lru"`, which inputs are held at the end of forward? When backward has used
# them up, where does it have to begin, and how often will that happen?


# %%
def held_after_forward(evict):
    """The layers, counted from 1, whose inputs the tape holds at the end of forward."""
    with mg.memory_budget(ROOM * x.nbytes, evict=evict):
        return [int(kept.readers[0].layer) + 1 for kept in mg.saved(forward())]


def times_again(tracer):
    """How many layers ran again 0 times, once, twice, ...: {times: number of layers}."""
    by_layer = Counter(event.layer for event in tracer.events if event.kind == "replayed")
    return dict(sorted(Counter(by_layer[str(layer)] for layer in range(LAYERS)).items()))


held = {name: held_after_forward(name) for name in ("dtr", "lru")}
again = {name: times_again(traced[name]) for name in ("dtr", "lru")}
for name in ("dtr", "lru"):
    print(f"{name} holds the inputs of layers", *held[name])
    print(f"{name}: layers that ran again", ", ".join(f"{times} times: {n}" for times, n in again[name].items()))

# %% [markdown]
# LRU keeps what was read last. Backward reads that first, so the guess is not bad at all; for a while nothing has to
# run. But everything in between is gone. For one value, the whole way from the input has to run again; on that way
# LRU keeps, again, only the last few; and so on until backward has come down. The early layers run again each time.
#
# So a value's worth is not only how soon it will be read. It is a place to start from. The first eviction in a
# stretch costs one op to undo. The last one costs the whole stretch, since by then there is nothing in it to start
# from. That is what the neighbourhood counts, and why the comb appears by itself: the wider the gaps around a value,
# the dearer it is to evict. And a comb is what √L plans.
#
# ## A simulator
#
# None of this needs arrays. Here is the whole mechanism for a chain, with the numbers of activations alone. Activation
# i is the input of layer i + 1. Activation 0 is data and cannot be evicted. Read it in three parts: `make_room` evicts,
# the first loop is forward, the second backward.


# %%
def simulate(layers, room, score):
    """How many layers run again on a chain, with room for that many activations; the lowest score goes."""
    held, evicted, clock, runs = {0: 0}, set(), 0, 0  # held: activation -> the clock when it was last used

    def make_room(in_use=None):
        while len(held) == room:
            candidates = [i for i in held if i not in (0, in_use)]
            victim = min(candidates, key=lambda i: (score(i, clock - held[i], evicted), i))
            del held[victim]
            evicted.add(victim)

    for layer in range(1, layers + 1):  # forward: a layer has run, and the tape keeps its input
        clock += 1
        if layer > 1:
            make_room()
            held[layer - 1] = clock
    for layer in range(layers, 0, -1):  # backward reads the input of this layer
        start = max(i for i in held if i < layer)
        for i in range(start + 1, layer):  # what is missing runs again
            clock, runs = clock + 1, runs + 1
            make_room(in_use=i - 1)
            evicted.discard(i)
            held[i] = clock
        held[layer - 1] = clock
        held.pop(layer, None)  # the sweep has passed what the layer has made
        evicted.discard(layer)
    return runs


# %% [markdown]
# A score is a function of the activation, its staleness, and the set of what is evicted. Every cost and every size is
# 1 here.
#
# Before you run the next cell: will thirty lines that know of no engine give the engine's counts, for any room?


# %%
def neighbourhood(i, evicted):
    """How many evicted activations lie beside activation i without a gap."""
    found = 0
    for step in (-1, 1):
        place = i + step
        while place in evicted:
            found, place = found + 1, place + step
    return found


def dtr(i, staleness, evicted):
    return (1 + neighbourhood(i, evicted)) / max(1, staleness)


def lru(i, staleness, evicted):
    return 1 / max(1, staleness)


def oldest(i, staleness, evicted):
    return i


scores = {"dtr": dtr, "lru": lru, "size": oldest}
counts = {}
print("layers that run again, by the engine / by the simulator")
for room in (6, 10, 14, 19, 20, 40):
    for name, score in scores.items():
        counts[room, name] = run_under(room, name)[1].rematerialised, simulate(LAYERS, room, score)
    found = "   ".join(f"{name} {counts[room, name][0]:4} / {counts[room, name][1]:4}" for name in scores)
    print(f"room for {room:2}   best plan {schedules.optimal(room).plan(LAYERS).extra_forwards:3}   {found}")

# %% [markdown]
# They agree, number for number. So you have the mechanism before you in full, and the two scores differ by one term.
# Take `neighbourhood` out of `dtr`, and you have `lru`.
#
# `dtr` is greedy: it decides when it must, and never looks ahead. With less room it pays more than the best plan, up
# to a third more in this table.
#
# ## Any graph
#
# A chain is where a plan is easy. The next network is a small U-net: on the way down each level puts its result aside
# for the same level on the way up. At the bottom it does something that no plan can know: it repeats one layer until
# all values are small. How often depends on the image.

# %%
mg.manual_seed(12)
down = [nn.Conv2d(channels, 8, 3, padding=1, bias=False) for channels in (1, 8, 8)]
bottom = nn.Conv2d(8, 8, 3, padding=1, bias=False)
up = [nn.Conv2d(16, 8, 3, padding=1, bias=False) for _ in down]
parameters = [p for layer in (*down, bottom, *up) for p in layer.parameters()]
images = {"faint": 0.3 * mg.randn(2, 1, 16, 16), "bright": 10 * mg.randn(2, 1, 16, 16)}


def twice_as_large(h):
    """Each pixel four times."""
    n, c, rows, columns = h.shape
    return h.reshape(n, c, rows, 1, columns, 1).broadcast_to(n, c, rows, 2, columns, 2).reshape(n, c, rows * 2, -1)


def u_net(h):
    """(loss, how often the bottom layer ran)"""
    aside, times = [], 0
    for layer in down:
        h = mg.tanh(layer(h))
        aside.append(h)
        h = mg.avg_pool2d(h, 2)
    while abs(h).max() > 0.0005:
        h, times = mg.tanh(bottom(h)), times + 1
    for layer in up:
        h = mg.tanh(layer(mg.cat([twice_as_large(h), aside.pop()], axis=1)))
    return (h * h).mean(), times


# %% [markdown]
# Its buffers differ in size and its ops in cost, so cost and bytes have a say now.
#
# Before you run the next cell: will the gradients still be the same to the last bit? What has to be true of the ops
# for that?


# %%
def u_net_under(limit, evict="dtr", image="faint"):
    """(budget, gradients, how often the bottom layer ran) of a forward and backward within that many bytes."""
    for p in parameters:
        p.grad = None
    with mg.memory_budget(limit, evict=evict) as budget:
        loss, times = u_net(images[image])
        loss.backward()
    return budget, [p.grad.numpy() for p in parameters], times


u_net_figures, wanted, all_same = {}, {}, True
for image in images:
    free, expected, times = u_net_under("1 GB", image=image)
    wanted[image] = free.peak_bytes
    print(f"{image} image: the bottom layer ran {times} times; {wanted[image]:,} bytes are wanted")
    for evict in heuristics:
        budget, found, _ = u_net_under(wanted[image] * 3 // 4, evict, image)
        all_same &= all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        u_net_figures[image, evict] = budget.limit, budget.peak_bytes, budget.rematerialised
        print(f"   at most {budget.limit:,}, {evict:6} held {budget.peak_bytes:,}, {budget.rematerialised:2} ops again")
print("gradients the same to the last bit, every time:", all_same)
print(u_net_under(wanted["bright"] * 3 // 4, image="bright")[0].report())

# %% [markdown]
# Three quarters of the memory, whatever the image does, and nobody has planned anything. The ops need to be pure for
# the bits to agree: the same inputs and settings, the same result. All of minigrad's are.
#
# The report, of `"dtr"` on the bright image, says which ops paid. Their number is not their cost: a reshape moves
# nothing and is counted as free, and the convolution is the dearest of these ops. And dice are dice: on one image they
# beat all the others, on the other one they lose to all of them.
#
# ## Break it: too small a budget
#
# Some budgets cannot be met. What an op reads and what it makes must be there at the same time, and data that no op
# has made cannot be computed again.
#
# Before you run the next cell: what is the least room for the chain? Think of one layer that runs again, while the
# input is held.

# %%
try:
    run_under(1)
except mg.BudgetError as error:
    chain_error = str(error)
    print("BudgetError:", chain_error)

# %% [markdown]
# The message names the op, the line and the bytes, and the bytes are in `error.least` as well. Why "found so far"? The
# run ended there, and what would have come later has not been seen. So a repair is a loop.


# %%
def error_of(run, limit):
    """The BudgetError of run(limit), or None."""
    try:
        run(limit)
    except mg.BudgetError as error:
        return error


def asked_for(run, limit):
    """The limits that one tries when one takes what the errors ask for; with the last, run(limit) gets through."""
    tried = [limit]
    while error := error_of(run, tried[-1]):
        tried.append(error.least)
    return tried


chain_tried = asked_for(lambda limit: run_under(limit // x.nbytes), x.nbytes)
print("chain, in activations:", *[limit // x.nbytes for limit in chain_tried])
runs_with_least = run_under(chain_tried[-1] // x.nbytes)[1].rematerialised
print(f"with that, {runs_with_least:,} layers run again")
u_net_tried = asked_for(u_net_under, wanted["faint"] // 5)
print("U-net, in bytes:", *[f"{limit:,}" for limit in u_net_tried], f"- of {wanted['faint']:,}")
steps = range(u_net_tried[-2], u_net_tried[-1], 2048)
u_net_least = next(limit for limit in steps if error_of(u_net_under, limit) is None)
print(f"in small steps from the last that failed: {u_net_least:,} is enough")

# %% [markdown]
# The chain needs its input, and one layer's input and output; with that little, thousands of layers run.
#
# The U-net shows what `error.least` is not: the least of all. It is what that op needed at that moment, when it had
# to run again and others were in use. Between the budget that failed and the one that it asked for there are some
# with which another value stays, and the op need not run again at all.
#
# ## A plan or a budget
#
# When is a plan better? When you know the layers, `mg.fit` (lesson 10) finds the fastest schedule for a number of
# bytes; a replay then runs a stretch in one go, and no time is spent on scores. Choosing what goes takes time itself:
# each eviction looks at all candidates. A budget is for graphs that nobody knows, and as a seat belt.
#
# ## In PyTorch and in JAX
#
# - The idea is *dynamic tensor rematerialization*, DTR: Kirisame and others, 2021. Their prototype was built into
#   PyTorch; PyTorch itself has nothing like it. With `torch.compile` there is
#   `torch._functorch.config.activation_memory_budget`, a number from 0 to 1 from which a plan is made before anything
#   runs.
# - MegEngine has it: `megengine.dtr.eviction_threshold = "2GB"` and `megengine.dtr.enable()`.
# - JAX decides nothing at run time. Under `jax.jit`, XLA plans the whole program's memory when it compiles.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex12_eviction.py`; `make check N=12` says how far you are.
#
# 1. `lru_runs`: how many layers LRU runs again on a chain, without simulating it.
# 2. `score`: a heuristic of your own for `mg.memory_budget(evict=score)`: the paper's.
# 3. `neighbourhood`: the evicted neighbourhood in a graph that is no chain.
#
# ## Questions
#
# 1. At the end of forward, LRU holds exactly the values that backward reads first. Why is that the wrong choice?
# 2. Which of cost, bytes, staleness and neighbourhood can tell two values of the chain of a hundred layers apart?
# 3. You set a budget to the number that a BudgetError has named. Is it certain now that the program runs? And that
#    it would not with less?
