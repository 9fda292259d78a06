# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 07 Why √L
#
# **With k segments, a chain of L layers holds k boundaries and the inside of one segment of L/k layers, and that sum
# is smallest where k and L/k are equal, at k = √L.**
#
# Needs: 05, 06. Minutes: 15.
#
# Lesson 06 put a checkpoint at every tenth of a hundred layers, and 100 live activations became 19. Why ten? Here you
# count what k segments hold, find the best k by calculus, and then measure every k there is.

# %%
import warnings

import _pictures as pictures
import numpy as np
from tqdm import tqdm

import minigrad as mg
from minigrad import schedules
from minigrad.view import curves

LAYERS = 100
warnings.simplefilter("ignore", mg.CheckpointWarning)  # a segment of one layer saves nothing; here some are made


class Layer:
    """h @ w, with an orthogonal matrix."""

    def __init__(self, rng, width):
        square, _ = np.linalg.qr(rng.standard_normal((width, width)))
        self.w = mg.tensor(square.astype("float32"), requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def make_chain(layers, width=4):
    """(a chain of layers, a batch for it)"""
    rng = np.random.default_rng(7)
    x = mg.tensor(rng.standard_normal((8, width)).astype("float32"), name="x")
    return [Layer(rng, width) for _ in range(layers)], x


def measure(chain, x, schedule):
    """The tracer of one forward and backward."""
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(chain, schedule, x).sum().backward()
    return tracer


# %% [markdown]
# ## Count
#
# Cut L layers into k segments of L/k layers. Each layer keeps its input. Alive at once are
#
# - the k boundaries: the input of each segment, the input of the whole network among them, and
# - the inside of the one segment that is taped or replayed at the moment: the inputs of its other L/k - 1 layers.
#
# Together, k + L/k - 1. Few segments are long and have much inside; many segments have many boundaries.
#
# Before you run the next cell: for L = 100, what do k = 1, k = 10 and k = 100 give? Which of the three is the best?


# %%
def formula(k, layers=LAYERS):
    """Live activations at the peak with k segments, if k divides the number of layers."""
    return k + layers / k - 1


for k in (1, 2, 4, 5, 10, 20, 25, 50, 100):
    print(f"k = {k:3}: {k:3} boundaries + {LAYERS // k - 1:2} inside a segment = {formula(k):.0f}")

# %% [markdown]
# ## The derivative
#
# As k grows by one, the first term grows by one and the second shrinks by about L/k². The sum is smallest where the two
# are equal:
#
#     d/dk (k + L/k - 1)  =  1 - L/k²  =  0        so  k = √L,  and the peak is  √L + √L - 1
#
# There k and L/k are equal: there are as many boundaries as a segment has layers.
#
# You have an autograd at hand, so let it find that zero. Newton's method divides the slope by the slope of the slope,
# and takes the result off k, again and again. (`create_graph=True` records the backward itself on the tape, so that
# you can go backward through it; that is lesson 14.)


# %%
def slopes(k):
    """(first, second derivative of the formula at k), by backward through backward."""
    k = mg.tensor(k, dtype="float64", requires_grad=True)
    (slope,) = mg.grad(formula(k), k, create_graph=True)
    (curvature,) = mg.grad(slope, k)
    return slope.item(), curvature.item()


best_k = 4.0
for _ in range(8):
    slope, curvature = slopes(best_k)
    print(f"k = {best_k:9.6f}   slope {slope:+.6f}")
    best_k -= slope / curvature
best_formula = formula(best_k)
print(f"the smallest is at k = {best_k:.6f}, where the formula gives {best_formula:.6f}")

# %% [markdown]
# ## The whole sweep
#
# A formula says what should be. `schedule.plan(n)` counts what a schedule will cost without running anything, and the
# tracer counts real buffers in a real run. So we take *every* k from 1 to 100. Most of them do not divide 100; then
# `uniform(k)` makes segments as equal as can be, the longer ones first.
#
# Before you run the next cell: will plan and tracer agree for all hundred? And how flat is the bottom: would 8
# segments be much worse than 10?

# %%
chain, x = make_chain(LAYERS)
sweep, planned = {}, {}
for k in tqdm(range(1, LAYERS + 1), desc="every k", leave=False, disable=None):
    schedule = schedules.uniform(k)
    plan, tracer = schedule.plan(LAYERS), measure(chain, x, schedule)
    planned[k] = plan.peak, plan.extra_forwards
    sweep[k] = tracer.peak_activations, tracer.replayed_ops

print("measured peak for k = 1, 2, ..., 100:")
for first in range(1, LAYERS, 20):
    print(f"  from {first:2}:", *(f"{sweep[k][0]:3}" for k in range(first, first + 20)))
lowest = min(peak for peak, _ in sweep.values())
as_good = [k for k, (peak, _) in sweep.items() if peak == lowest]
print("storing all:", sweep[1][0], "live activations")
print("the best:", lowest, "live activations, with k =", *as_good)
print("planned and measured agree for every k:", sweep == planned)
curves.sweep(LAYERS, pictures.path("07-sweep.svg"), measured=sweep)

# %% [markdown]
# ![Live activations at the peak against the number of segments: from 100 down to 19 at ten segments and up to 100
# again; below, the layers replayed](pictures/07-sweep.svg)
#
# The line is planned, the rings are measured. The bottom is flat: several k beside √L give the same peak. So there is
# room to choose. Is one of them cheaper than the others? The lower curve shows the price: the number of layers that
# run again. (What they cost in time, which the picture's second line says too, is lesson 08.)
#
# Before you run the next cell: add the peak and the number of replayed layers of a run, for k = 1, k = 10, k = 50.
# What do you find?

# %%
sums = {peak + replayed for peak, replayed in sweep.values()}
for k in (1, 2, 10, 50, 100):
    print(f"k = {k:3}: peak {sweep[k][0]:3} + {sweep[k][1]:2} layers replayed")
print("over all hundred k, these sums occur:", *sums)

# %% [markdown]
# The peak is what is live at the end of forward, and that need not be computed again. Everything else is computed
# once more. So with one replay per layer, what you save in memory is what you pay in replays, one for one, and never
# more than a second forward. And numbers of segments with the same peak have the same price.
#
# ## Longer segments first
#
# What if k does not divide L? Some segments have to be longer. Which ones? While segment number j is replayed, the
# boundaries of later segments are gone, and only j are left. So at most j + (its layers) - 1 are live then, and the
# first segment has the most room. A remainder belongs in front. (`uniform` puts it there; `torch_compatible`, another
# schedule of the library, puts it in the last segment.)
#
# Before you run the next cell: 103 layers in ten segments. What is the peak if the three layers too many go to the
# first three segments? And if they all go to the last?


# %%
def peak_of(lengths):
    """The peak of segments of these lengths, the last taped: the fullest of the moments in which one is replayed."""
    return max(boundaries + length - 1 for boundaries, length in enumerate(lengths, start=1))


def lengths_of(schedule, layers):
    """How long the segments are."""
    return [length for length, _ in schedule.split(layers)]


chain_103, x_103 = make_chain(103)
remainder = {}
for name, schedule in (("first", schedules.uniform(10)), ("last", schedules.torch_compatible(10))):
    lengths = lengths_of(schedule, 103)
    remainder[name] = peak_of(lengths), measure(chain_103, x_103, schedule).peak_activations
    print(f"remainder {name:5} {lengths}: by the formula {remainder[name][0]}, measured {remainder[name][1]}")

# %% [markdown]
# ## Break it: the remainder in the last segment
#
# A tempting rule for the lengths: L // k layers each, and the last segment takes what is left. Here it is as a
# schedule of your own. A schedule says for each part of a chain how long it is, and how a replay splits it again;
# `None` means taped in full.
#
# Before you run the next cell: nine layers in five segments. 9 // 5 is 1.


# %%
class RemainderLast(mg.Schedule):
    """k segments of n // k layers; the last takes the rest."""

    def __init__(self, k):
        self.k = k

    def lengths(self, n):
        length = n // self.k
        return [length] * (self.k - 1) + [n - length * (self.k - 1)]

    def split(self, n):
        parts = [(length, schedules.store_all()) for length in self.lengths(n)]
        return [*parts[:-1], (parts[-1][0], None)]


chain_9, x_9 = make_chain(9)
broken_lengths = RemainderLast(5).lengths(9)
broken_peak = measure(chain_9, x_9, RemainderLast(5)).peak_activations
print("remainder last: ", broken_lengths, "peak", broken_peak, "- and storing all has", len(chain_9))

# %% [markdown]
# Five boundaries, and on top of them the inside of a segment of five layers: that is all there is, and nothing was
# saved. A segment of one layer has no inside that could be dropped.
#
# The repair deals the remainder out from the front, one layer each.


# %%
class RemainderFirst(RemainderLast):
    """k segments of n // k layers, and one more in each of the first n % k."""

    def lengths(self, n):
        length, rest = divmod(n, self.k)
        return [length + 1] * rest + [length] * (self.k - rest)


repaired_lengths = RemainderFirst(5).lengths(9)
repaired_peak = measure(chain_9, x_9, RemainderFirst(5)).peak_activations
print("remainder first:", repaired_lengths, "peak", repaired_peak)
print("the library's own:", lengths_of(schedules.uniform(5), 9))

# %% [markdown]
# ## Deeper
#
# √L is a statement about growth. If the peak is about 2√L, then four times the layers need twice the memory, and in a
# picture with both axes logarithmic, the peaks lie on a line of slope 1/2. Storing all has slope 1.
#
# Before you run the next cell: how many activations are live for 1,024 layers? (`schedules.sqrt()` takes the best k.)

# %%
growth = {}
for layers in (16, 32, 64, 128, 256, 512, 1024):
    chain, x = make_chain(layers, width=2)
    growth[layers] = measure(chain, x, schedules.sqrt()).peak_activations
    print(f"{layers:5} layers: {growth[layers]:3} live, 2√L - 1 is {2 * layers**0.5 - 1:5.1f}")

slope, _ = np.polyfit(np.log(list(growth)), np.log(list(growth.values())), 1)
print(f"slope: {slope:.2f}")

# %% [markdown]
# What a replay costs in time is the next lesson. And lesson 09 asks whether equal segments are the best that one
# replay per layer can buy. You have seen already that the first segment has the most room.
#
# ## In PyTorch and in JAX
#
# - In PyTorch, `torch.utils.checkpoint.checkpoint_sequential(functions, segments, x, use_reentrant=False)` cuts a
#   chain into `segments` segments; you choose the number. It uses the rule that was broken above: `len(functions) //
#   segments` each, and the last one, which is not checkpointed, takes the rest (pytorch/pytorch#68423 is about that).
#   Choose a number that divides the length. `schedules.torch_compatible(k)` plans exactly these segments.
# - JAX has no function that cuts a chain for you. One wraps each stretch in `jax.checkpoint`, or nests two
#   `jax.lax.scan` loops and puts the inner one into a checkpoint; then √L is the length of each.
# - The result is from Chen, Xu, Zhang and Guestrin, *Training Deep Nets with Sublinear Memory Cost*, 2016.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex07_segments.py`; `make check N=07` says how far you are.
#
# 1. `best_number`: the k with the smallest peak, for any number of layers.
# 2. `equal_lengths`: segments as equal as can be, the longer ones first.
# 3. `longest_lengths`: the most layers that fit under a given peak, if segments need not be equal.
#
# ## Questions
#
# 1. A chain has 400 layers. How many segments are best, and how many activations are live?
# 2. Your layers' activations are twice as large. What happens to the best k?
# 3. Under some schedule no layer runs more than twice, and of 100 activations 30 are live at the end of forward. How
#    many layers are replayed?
