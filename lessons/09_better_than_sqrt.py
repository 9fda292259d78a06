# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 09 Better than √L
#
# **Equal segments are not the end of it: shorter and shorter ones hold about √(2L) activations, segments within
# segments hold log L, the input alone will do if layers may run L times; and the fewest replays for a number of slots
# are counted by paths in Pascal's triangle.**
#
# Needs: 07, 08. Minutes: 25.
#
# In lesson 07 the best equal segments took a hundred layers from 100 live activations to 19, and no layer ran more
# than twice. Here you go further down in three ways, measure each, and then find out how far down one can go at all.

# %%
import itertools
from collections import Counter
from math import comb

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import schedules
from minigrad.view import canvas, curves

LAYERS = 100


class Layer:
    """h @ w, with an orthogonal matrix."""

    def __init__(self, rng, width):
        square, _ = np.linalg.qr(rng.standard_normal((width, width)))
        self.w = mg.tensor(square.astype("float32"), requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def measure(schedule, layers=LAYERS, width=2):
    """The tracer of one forward and backward of a chain under a schedule."""
    rng = np.random.default_rng(9)
    chain = [Layer(rng, width) for _ in range(layers)]
    x = mg.tensor(rng.standard_normal((4, width)).astype("float32"), name="x")
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(chain, schedule, x).sum().backward()
    return tracer


def compare(name, schedule, layers=LAYERS):
    """Print what was planned and what is measured; gives the latter: (peak, layers replayed)."""
    plan, tracer = schedule.plan(layers), measure(schedule, layers)
    print(f"{name:14} {layers:4} layers: planned peak {plan.peak}, {plan.extra_forwards} replayed; "
          f"measured peak {tracer.peak_activations}, {tracer.replayed_ops} replayed")  # fmt: skip
    return tracer.peak_activations, tracer.replayed_ops


measured = {"sqrt()": compare("sqrt()", schedules.sqrt())}

# %% [markdown]
# ## Shorter and shorter segments
#
# While segment j is replayed, j boundaries are alive: those of later segments are gone. Beside them there is the inside
# of the segment, one activation less than it has layers. So a segment may be the longer, the earlier it stands. If at
# most m activations may be alive, the first segment may have m layers, the second m - 1, and so on, down to one.
#
# Before you run the next cell: how many layers is that in all? And which m does one need for a hundred layers?

# %%
m = next(m for m in range(1, LAYERS + 1) if m * (m + 1) // 2 >= LAYERS)
print(f"{m - 1} activations would do for {(m - 1) * m // 2} layers, {m} for {m * (m + 1) // 2}")
print("the segments:", *[length for length, _ in schedules.triangular().split(LAYERS)])
measured["triangular()"] = compare("triangular()", schedules.triangular())

# %% [markdown]
# (There is room for a few more layers than a hundred; so some of the last segments are shorter than they might be.)
#
# m(m + 1)/2 is a triangle with m on each side, so m is about √(2L), where equal segments need 2√L. The price has hardly
# changed: still no layer runs more than twice.
#
# ## Break it: the same segments, the other way round
#
# The order is all there is to it. Before you run the next cell: which moment is the fullest, if the segments *grow*
# from front to back?


# %%
class Segments(mg.Schedule):
    """Segments of these lengths, the last one taped in full."""

    def __init__(self, lengths):
        self.lengths = lengths

    def split(self, n):
        parts = [(length, schedules.store_all() if length > 1 else None) for length in self.lengths]
        return [*parts[:-1], (self.lengths[-1], None)]


shrinking = [length for length, _ in schedules.triangular().split(LAYERS)]
broken_peak, broken_replays = compare("growing", Segments(shrinking[::-1]))
repaired_peak, repaired_replays = compare("shrinking", Segments(shrinking))

# %% [markdown]
# The longest segment now stands where all boundaries are alive, and the first ones, where there is room, are short.
# Turned round again, all is well.
#
# ## Segments within segments
#
# A replay is a forward pass of a shorter chain. So it can use checkpoints itself. `bisection()` makes a checkpoint of
# the first half of the layers, goes on with the second half in the same way, and each replay does the same again.
#
# Before you run the next cell: 64 layers can be halved six times. How many activations are alive at the peak? And how
# often does a layer run at most?


# %%
def runs_of_layers(tracer, layers):
    """How often each layer has run, replays included."""
    runs = Counter(event.layer for event in tracer.events if event.kind in ("op", "replayed"))
    return [runs[str(layer)] for layer in range(layers)]


print(schedules.bisection().plan(16).tree(), "\n")
compare("bisection()", schedules.bisection(), layers=64)
most_runs = max(runs_of_layers(measure(schedules.bisection(), 64), 64))
print("the layer that runs most often runs", most_runs, "times")
deep = {layers: compare("bisection()", schedules.bisection(), layers) for layers in (128, 256, 512, 1024)}

# %% [markdown]
# One boundary for each halving, and the activation that is running: log₂ L + 1. Twice the layers need one activation
# more. The price grows with each level: a layer runs up to once per level.
#
# Splitting into k parts instead of two is `nested(k)`: fewer levels, k - 1 boundaries on each. The equal segments of
# lesson 07 are the case of two levels. The replays can be counted: at each level, all parts but the last are run, which
# are k - 1 of every k layers; and L - 1 of all those runs are no replays, but the first forward.

# %%
nested = {}
for k, levels in ((2, 6), (4, 3), (8, 2)):
    formula = levels * (k - 1) + 1, levels * (k - 1) * k ** (levels - 1) - (k**levels - 1)
    nested[k] = formula, compare(f"nested({k})", schedules.nested(k), layers=64)
    print(f"{'':14} by the formula: peak {formula[0]}, {formula[1]} replayed")
for name, schedule in (("bisection()", schedules.bisection()), ("nested(4)", schedules.nested(4))):
    measured[name] = compare(name, schedule)

# %% [markdown]
# ## The input alone
#
# The other end: keep x₀ and nothing else. For each layer's backward, run again from the beginning to that layer.
#
# Before you run the next cell: does the peak grow with L? What happens to the replays when L doubles?

# %%
from_input = {layers: compare("from_input()", schedules.from_input(), layers) for layers in (10, 20, 40, 80, LAYERS)}
print("(L - 1)(L - 2) / 2:", *[(layers - 1) * (layers - 2) // 2 for layers in from_input])
measured["from_input()"] = from_input[LAYERS]

# %% [markdown]
# Three activations whatever the depth: x₀, and a running layer's input and output. Memory is O(1), time is O(L²).
#
# ## How far can one go?
#
# So there is a trade: fewer activations, more replays. You have found some points of it. Which points are possible at
# all? Ask the question the other way round. A stretch of layers is given s slots for boundaries, its own input's among
# them; beside them there is always room for the activation that is running. No layer may run more than t times.
# **How long can the stretch be?** Call it β(s, t).
#
# What has to run? Backward of a layer reads the layer's input. So for a stretch of *one* layer nothing has to run: its
# input is there. That is all that can be done if there is no run to spend. It is all, too, if there is no slot to
# spend: then the input is the activation that is running, and gone when the next one comes. So β(s, 0) = β(0, t) = 1.
#
# Otherwise put a boundary somewhere, and look at both sides of it:
#
# - *In front of it* all layers have just run, to get there. They have t - 1 runs left. When backward comes to them,
#   everything behind is done, and all s slots are theirs again. So there may be β(s, t - 1) of them.
# - *Behind it* nothing has run yet. But one slot is taken, by the input of the stretch. So there may be β(s - 1, t).
#
# Together:
#
#     β(s, t)  =  β(s, t - 1) + β(s - 1, t)
#
# That is the rule of Pascal's triangle. Now give each layer a word. Every time a boundary is put into a stretch, write
# R (it has run) for each layer in front of it, and B (a boundary was put before it) for each layer behind. Then go on
# with the two parts, until each is a single layer. The next cell does this, in order, from the first layer to the last.
#
# Before you run it: no word has more than t letters R, or more than s letters B. How many such words can there be?


# %%
def words(slots, runs):
    """The word of each layer of the longest stretch."""
    if slots == 0 or runs == 0:
        return [""]
    in_front = ["R" + word for word in words(slots, runs - 1)]
    behind = ["B" + word for word in words(slots - 1, runs)]
    return in_front + behind


def paths(slots, runs):
    """All arrangements of so many B and R, each as far as there is still a choice."""
    found = set()
    for places in itertools.combinations(range(slots + runs), slots):
        word = "".join("B" if place in places else "R" for place in range(slots + runs))
        found.add(word.rstrip(word[-1]))  # once a letter is used up, only the other one can follow
    return found


print("words for 2 slots, 3 runs:", *words(2, 3))
agree = True
for slots, runs in itertools.product(range(1, 7), repeat=2):
    agree &= set(words(slots, runs)) == paths(slots, runs) and len(words(slots, runs)) == comb(slots + runs, slots)
print("words are paths, and there are C(s + t, s) of them, for s and t up to 6:", agree)

# %% [markdown]
# A word is a path: it begins with s slots and t runs, each letter spends one of them, and it ends when one of the two
# is used up. Each layer has a path of its own, and each path has its layer. To choose a path, choose the places of s
# letters B among s + t letters. So there are
#
#     β(s, t)  =  C(s + t, s)
#
# ## Is it true of real runs?
#
# The word also says what the layer will do: it runs as often as its word has an R. `schedules.binomial(s + 1)` places
# its boundaries by this rule. (It counts s slots, and one for the activation that is running.)
#
# Before you run the next cell: is the number of R's what a tracer counts, layer by layer?

# %%
counted = {}
for slots, runs in ((2, 3), (3, 3), (4, 3), (3, 4), (13, 2)):
    layers = comb(slots + runs, slots)
    tracer = measure(schedules.binomial(slots + 1), layers)
    counted[slots, runs] = runs_of_layers(tracer, layers)
    letters = [word.count("R") for word in words(slots, runs)]
    same = counted[slots, runs][:-1] == letters[:-1]
    print(f"{slots:2} slots, {runs} runs: {layers:3} layers, peak {tracer.peak_activations:2}; "
          f"each has run as often as its word says: {same}")  # fmt: skip
print("2 slots, 3 runs:", *counted[2, 3])


def draw_words(slots, runs, path):
    """A column for each layer: its word from top to bottom; below it, how often it ran."""
    layers = words(slots, runs)
    figure, (axes,) = canvas.page(
        f"{len(layers)} layers, {len(layers)} paths: {slots} slots, and no layer runs more than {runs} times",
        "each column is a layer's word, read downwards; below it, how often a tracer has seen the layer run",
    )
    colours = {"R": canvas.ROLE_COLOURS["replayed"], "B": canvas.ROLE_COLOURS["boundary"]}
    for layer, word in enumerate(layers):
        for depth, letter in enumerate(word):
            axes.bar(layer, -0.94, bottom=-depth, width=0.92, color=colours[letter])
            axes.text(layer, -depth - 0.47, letter, ha="center", va="center", color="white", fontsize=10)
    axes.set(xticks=range(len(layers)), yticks=[], xlim=(-0.6, len(layers) - 0.4), ylim=(1 - slots - runs, 0))
    axes.set_xticklabels(counted[slots, runs])
    axes.set_xlabel("runs, measured")
    axes.spines[["left", "bottom"]].set_visible(False)
    canvas.legend(figure, "right", [(colours["R"], "R: has run"), (colours["B"], "B: a boundary was put before it")])
    canvas.saved(figure, path)


draw_words(3, 3, pictures.path("09-words.svg"))

# %% [markdown]
# ![Twenty columns of letters, one for each layer: all words with at most three R and three B; below each, how often the
# layer ran](pictures/09-words.svg)
#
# (The last layer of all is an exception: its word has no R, and it runs once, because its output is the result. The
# tracer's peak is s + 1, or one more if a replay runs a layer for its output alone. Then input and output are both
# there, and neither has a slot. With two runs, no replay does that.)
#
# Look at t = 2: C(s + 2, 2) = (s + 1)(s + 2)/2. That is the triangle from above, with m = s + 1. So the best segments
# with one replay per layer are those, and to go lower, some layer has to run three times.

# %%
slots_needed = {}
for runs in (1, 2, 3, 4, 5):
    slots = next(slots for slots in range(1, LAYERS) if comb(slots + runs, slots) >= LAYERS)
    slots_needed[runs] = slots
    print(f"t = {runs}: {LAYERS} layers need {slots} slots, and one activation that is running")
both = next(both for both in range(1, 100) if comb(2 * both, both) >= 1_000_000)
print(f"a million layers: s = t = {both}")

# %% [markdown]
# ## Nothing is better
#
# The argument assumed that boundaries are placed one after the other, and that each stays until backward has used it.
# Could something quite different do better? For tiny chains one can try *everything*: each order of running, keeping
# and letting go. `schedules.exhaustive_optimum` does, by Dijkstra's algorithm for shortest paths.
# `schedules.optimal(m)` places one boundary after the other, as above, and takes the best places for m live
# activations. Both count as the tracer does: the input and the output of a running layer are two activations.
#
# Before you run the next cell: will trying everything find fewer replays, for some number of layers and activations?

# %%
tried = {}
for layers in (4, 5, 6, 7):
    for slots in range(3, layers + 1):  # here all that is live, running layers included
        best = schedules.exhaustive_optimum(schedules.LayerCosts.unit(layers), slots)
        replays = best.time - 3 * layers  # a layer's forward takes 1, its backward 2
        tried[layers, slots] = replays, schedules.optimal(slots).plan(layers).extra_forwards
    row = [f"{slots}: {tried[layers, slots][0]}" for slots in range(3, layers + 1)]
    print(f"{layers} layers; fewest replays by live activations: {', '.join(row)}")
print("optimal(m) has as few, in all cases:", all(a == b for a, b in tried.values()))

# %% [markdown]
# For layers that are all alike, and keep their input and nothing else, this is the end of the story. Lesson 10 is about
# all the others.
#
# ## The whole trade
#
# Now put the schedules of this lesson beside the best that is possible for a hundred layers, and look at what they
# replay, and at what would have been enough in the memory that they use.

# %%
measured["optimal(7)"] = compare("optimal(7)", schedules.optimal(7))
enough = {name: schedules.optimal(peak).plan(LAYERS).extra_forwards for name, (peak, _) in measured.items()}
for name, (peak, replays) in sorted(measured.items(), key=lambda pair: pair[1]):
    print(f"{name:14} peak {peak:2}: {replays:4} replayed, {enough[name]:4} would be enough")
chosen = {
    "sqrt()": schedules.sqrt(), "triangular()": schedules.triangular(), "nested(4)": schedules.nested(4),
    "bisection()": schedules.bisection(), "optimal(7)": schedules.optimal(7), "from_input()": schedules.from_input(),
}  # fmt: skip
curves.pareto(LAYERS, chosen, pictures.path("09-pareto.svg"), measured=measured)

# %% [markdown]
# ![Live activations against layers replayed, both logarithmic: a thick line of the fewest replays, with triangular at
# its bend and √L on it, and bisection, nested and from_input above it or at its end](pictures/09-pareto.svg)
#
# √L lies *on* the line: for its memory, it replays as little as can be. It is only that the line falls so gently there
# that five activations fewer cost next to nothing. The bend is at `triangular()`. Left of it each activation less is
# dear. There bisection pays more than it would have to: it halves, whatever room there is. The first layers get an R at
# every halving, and when they run for the last time, most of the slots stand empty. And `from_input()` needs its three
# places only while a layer runs. While it goes backward through a layer, one of them is free; the input of the layer
# before could have stayed there, and every second run from the beginning would be spared.
#
# (Two more families in the picture: `mixed` is for frameworks whose replays run all their layers, `online` for loops
# whose length is not known before they end. Slow memory is the subject of lesson 16.)
#
# ## In PyTorch and in JAX
#
# - Neither has these schedules. But checkpoints nest in both: with `use_reentrant=False` in PyTorch, and
#   `jax.checkpoint` within `jax.checkpoint` in JAX, whose guide to it shows a `recursive_checkpoint` that halves.
#   `plan.torch_code()` and `plan.jax_code()` print a program with the checkpoints of any plan from here.
# - In the world of simulations this is old: Griewank 1992, and Griewank and Walther 2000 with the program `revolve`,
#   for reversing long loops of time steps. Their s counts snapshots, as β(s, t) does here; `plan.peak` counts one more.
# - Equinox, a library for JAX, has a `while` loop with checkpoints for loops whose length nobody knows before the end.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex09_schedules.py`; `make check N=09` says how far you are.
#
# 1. `halved`: bisection by hand, with `mg.checkpoint` and no schedule.
# 2. `most_layers`: the longest chain for so many slots and runs, and no binomials.
# 3. `fewest_replays`: the best there is, by trying every place for the next boundary.
#
# ## Questions
#
# 1. Why may the first segment be longer than the second, and by how much?
# 2. A layer's word is RRB. What has happened to it, and how often will it run?
# 3. You have room for eleven activations and a hundred layers. Which schedule do you take, and why not `nested(4)`?
