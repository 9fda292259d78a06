# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 08 What it costs
#
# **Checkpoints cost almost one more forward; a backward usually costs about two, so that is at most a third more time:
# less where backward is dearer, more where it is cheap or where the ops are tiny.**
#
# Needs: 06, 07. Minutes: 20.
#
# You will often read that checkpointing makes training 20 to 30 % slower. Chen and others report 30 % in the paper
# that brought it to deep learning, and OpenAI's package for TensorFlow advertised 20 %. Where do these numbers come
# from, and will they be true for *your* network? Two measurements are enough to know.

# %%
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: with one thread, times are steadier

import time
import warnings

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import nn, schedules
from minigrad.view import canvas

LAYERS = 25
mg.manual_seed(8)
exact = time.get_clock_info("process_time").resolution < 1e-6
clock = time.process_time if exact else time.perf_counter

# %% [markdown]
# ## Count first
#
# Time is a sum: one forward F, one backward B, and what is replayed. If all layers are alike and R of L layers run
# again, the replays take R/L of a forward. So, as a multiple of storing all,
#
#     factor  =  (F + B + R/L · F) / (F + B)
#
# Under √L the layers of the last segment do not run again, and neither does the last layer of any other segment
# (lesson 06). All the rest do. `plan.extra_forwards` is that number R. `plan.time_factor` is the factor for a backward
# that takes two forwards.
#
# Before you run the next cell: 100 layers in ten segments replay 81. If a backward takes twice as long as a forward,
# how much longer does training take? And what does the factor tend to as networks get deeper?


# %%
def predicted_factor(share, ratio):
    """The time factor when `share` of a forward runs again, and a backward takes `ratio` forwards."""
    return (1 + ratio + share) / (1 + ratio)


shares = {}
for layers in (9, 25, 100, 400, 10_000):
    plan = schedules.sqrt().plan(layers)
    shares[layers] = plan.extra_forwards / layers
    print(f"{layers:6} layers: {plan.extra_forwards:5} run again, {shares[layers]:.2f} of a forward: "
          f"factor {predicted_factor(shares[layers], 2):.2f}; plan.time_factor {plan.time_factor:.2f}")  # fmt: skip

# %% [markdown]
# Almost one more forward beside three is almost a third. Why should a backward take two forwards? Look at the product
# y = x @ w. Its forward is one product. Its backward is two of the same size: g @ w.T for x, and x.T @ g for w. In a
# network that spends its time in products, backward spends twice that time.
#
# ## Turn it around
#
# The formula also says which ratio stands behind a factor that somebody reports.
#
# Before you run the next cell: someone measures 1.20 on 100 layers. Was their backward dearer or cheaper than two
# forwards?


# %%
def ratio_behind(factor, share):
    """How many forwards a backward takes, if `share` of a forward run again gives this time factor."""
    return share / (factor - 1) - 1


behind = {factor: ratio_behind(factor, shares[100]) for factor in (1.2, 1.25, 1.3)}
for factor, ratio in behind.items():
    print(f"a factor of {factor:.2f} on 100 layers means that a backward takes {ratio:.2f} forwards")


def draw_factors(path):
    """The time factor over the ratio, for three depths under √L and for a full forward more."""
    title = "Up to a third more time, if a backward takes two forwards"
    facts = "under √L; dots: a backward of two forwards; grey: the 20 to 30 % that one reads of"
    figure, (axes,) = canvas.page(title, facts)
    ratios = np.linspace(0.25, 5, 96)
    axes.axhspan(1.2, 1.3, color=canvas.PALE, zorder=0)
    axes.text(4.95, 1.265, "20 to 30 %", ha="right", va="center", color=canvas.GREY)
    lines = [(f"{layers} layers", shares[layers]) for layers in (9, 25, 100)] + [("a whole forward more", 1)]
    for (name, share), (colour, dash) in zip(lines, canvas.STYLES, strict=False):
        axes.plot(ratios, predicted_factor(share, ratios), color=colour, linestyle=dash, label=name)
        axes.plot(2, predicted_factor(share, 2), "o", color=colour)
    axes.set(xlabel="time of a backward, in forwards", ylabel="time, as a multiple of storing all", ylim=(1, 1.85))
    axes.legend(frameon=False, labelcolor=canvas.INK)
    canvas.saved(figure, path)


draw_factors(pictures.path("08-factor.svg"))

# %% [markdown]
# ![Time factor against the ratio of backward to forward: falling curves, one for each depth; that of 100 layers
# crosses the band from 20 to 30 percent where a backward takes two to three forwards](pictures/08-factor.svg)
#
# The grey band is the "20 to 30 %" that one reads of. The curve of 100 layers crosses it where a backward takes about
# two to three forwards. You will measure that networks of products and of convolutions do. To the left, where
# backward is cheap, a replay weighs more.
#
# ## Measure
#
# Now real networks. The cell below times the parts of a pass: forward, the replays, and the rest of backward. The
# loop over `mg.steps` makes that easy, as a replay is a step of its own. The clock counts only the time in which this
# program computes (`time.process_time`, where it is exact enough). Storing all and √L take turns, and the fastest of
# several runs counts: whatever else the machine does can only add time.


# %%
def parts(chain, x, schedule):
    """Seconds of (forward, replays, the rest of backward) in one pass."""
    for layer in chain:  # gradients of the pass before: adding to them would take time too
        if isinstance(layer, nn.Module):
            layer.zero_grad()
    start = clock()
    loss = mg.checkpoint_sequential(chain, schedule, x).sum()
    last = clock()
    forward, replays, rest = last - start, 0.0, 0.0
    for step in mg.steps(loss):
        now = clock()
        if step.kind == "replay":
            replays += now - last
        else:
            rest += now - last
        last = now
    return forward, replays, rest


def compare(chain, x, schedule, seconds=0.3):
    """{"plain": parts when storing all, "checkpoints": parts under the schedule}, of the fastest of 2 runs or more."""
    runs = {"plain": [], "checkpoints": []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(runs["plain"]) < 2:
        runs["plain"].append(parts(chain, x, schedules.store_all()))
        runs["checkpoints"].append(parts(chain, x, schedule))
    return {name: min(some, key=sum) for name, some in runs.items()}


def report(name, chain, x, schedule):
    """Measure, print one line, and return (backward in forwards, factor predicted, factor measured, all parts)."""
    found = compare(chain, x, schedule)
    (forward, _, backward), checkpoints = found["plain"], found["checkpoints"]
    share, ratio = schedule.plan(len(chain)).extra_forwards / len(chain), backward / forward
    predicted, measured = predicted_factor(share, ratio), sum(checkpoints) / (forward + backward)
    print(f"time: {name:22} backward {ratio:5.2f} forwards   replayed {share:5.2f} forwards   "
          f"predicted {predicted:5.2f}   measured {measured:5.2f}")  # fmt: skip
    return ratio, predicted, measured, found


# %% [markdown]
# Three networks of 25 layers, in five segments of five:
#
# - **products**: `relu(linear(h))` on 384 rows of 256 numbers. Nearly all of its time goes into products.
# - **convolutions**: `relu(conv2d(h))` with 3 × 3 filters on 16 channels.
# - **tiny ops**: `tanh(h * a + b)` on 4 rows of 8 numbers. Three ops a layer, and next to nothing to compute in any
#   of them.
#
# The same 16 of 25 layers run again in each of them; the counts do not depend on what a layer does. (The peaks are
# one more than planned, as the last layer's relu or tanh keeps its own output. A plan counts layers that keep their
# input alone.)
#
# Before you run the next cell: for which network is the prediction good? For which one will the measured factor be
# far from it, and in which direction?


# %%
class Gate(nn.Module):
    """tanh(h * a + b), element by element."""

    def __init__(self, width):
        self.a, self.b = nn.Parameter(np.ones(width, np.float32)), nn.Parameter(np.full(width, 0.1, np.float32))

    def forward(self, h):
        return mg.tanh(h * self.a + self.b)


networks = {
    "products": ([nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(LAYERS)], mg.randn(384, 256)),
    "convolutions": (
        [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()) for _ in range(LAYERS)],
        mg.randn(4, 16, 16, 16),
    ),
    "tiny ops": ([Gate(8) for _ in range(LAYERS)], mg.randn(4, 8)),
}


def count(chain, x, schedule):
    """The tracer of one pass, on a small batch of inputs like x: the counts do not depend on its size."""
    x = mg.randn(2, *x.shape[1:])
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(chain, schedule, x).sum().backward()
    return tracer


counts = {}
for name, (chain, x) in networks.items():
    plain, checkpoints = count(chain, x, schedules.store_all()), count(chain, x, schedules.sqrt())
    counts[name] = plain.peak_activations, checkpoints.peak_activations, checkpoints.replayed_ops
    print(f"{name:14} {counts[name][0]:3} live activations become {counts[name][1]:2}; {counts[name][2]} ops replayed")

times = {name: report(name, chain, x, schedules.sqrt()) for name, (chain, x) in networks.items()}

# %% [markdown]
# **Products.** A backward takes about two forwards, as counted, and the measured factor is near the predicted one.
#
# **Convolutions.** A forward cuts the image into windows and makes one product. A backward makes two products, cuts
# the windows once more for the filter's gradient, and adds overlapping windows up for the image's, which takes longer
# than cutting. So it is dearer than two forwards, and the same replay weighs less. This is the end of the range from
# which "20 %" comes. (The measured factor can be a little above the predicted one. Part of that is overhead, which the
# third network shows in the large.)
#
# **Tiny ops.** Far more than predicted. The formula takes it for granted that a replay costs what a forward costs.
# That is true of arithmetic, but there is next to none here: what takes time is the engine's bookkeeping in Python,
# and that is not the same in all phases. The parts show it.

# %%
found = times["tiny ops"][3]
(plain_forward, _, plain_backward), (forward, replays, rest) = found["plain"], found["checkpoints"]
again = schedules.sqrt().plan(LAYERS).extra_forwards / LAYERS
print(f"time: forward        {plain_forward * 1e3:5.2f} ms plain, {forward * 1e3:5.2f} ms with checkpoints")
print(f"time: replays        {plain_forward * again * 1e3:5.2f} ms expected, {replays * 1e3:5.2f} ms measured")
print(f"time: rest of it     {plain_backward * 1e3:5.2f} ms plain, {rest * 1e3:5.2f} ms with checkpoints")

# %% [markdown]
# Recording an op into a body takes longer than recording it on the tape: the engine looks for the boundary and works
# out what a replay will need. A replay does that work per op as well, before it runs anything. A GPU has the same
# trouble with its kernel launches: below some size, time is overhead, and it does not follow a formula about
# arithmetic.
#
# The overhead is the same for each op, however large its arrays. So give the ops something to do.
#
# Before you run the next cell: same network, same 16 layers replayed, more rows. Where does the factor go?

# %%
by_rows = {}
for rows in (4, 256, 2048):
    by_rows[rows] = report(f"tiny ops, {rows} rows", networks["tiny ops"][0], mg.randn(rows, 8), schedules.sqrt())

# %% [markdown]
# It comes down towards the prediction. Real layers, with thousands of numbers in each op, are where the formula
# holds.
#
# ## When it is more
#
# **A cheap backward.** The op below solves y + y³ = x for y, by twelve Newton steps. Its gradient needs none of them:
# by the implicit function theorem the slope is 1 / (1 + 3y²). Layers that iterate, sort or solve are like that: much
# work forward, little work back.


# %%
@mg.op
def solve_cubic(x):
    """The y with y + y³ = x, for each element."""
    y = x / (1 + abs(x))
    for _ in range(12):
        y = y - (y + y * y * y - x) / (1 + 3 * y * y)
    return y


@solve_cubic.vjp("x")
def solve_cubic_wrt_x(g, out):
    return g / (1 + 3 * out * out)


print("gradcheck:", mg.gradcheck(solve_cubic, [mg.randn(5, dtype="float64", requires_grad=True)]))
start = mg.randn(128, 64, requires_grad=True)
cheap_backward = report("a cheap backward", [solve_cubic] * LAYERS, start, schedules.sqrt())

# %% [markdown]
# The replays are as dear as ever, and there is little backward beside them to make them look small.
#
# **More than one replay per layer.** The least memory of all has the schedule `from_input`. The last layer is taped, as
# always. Of all the others it keeps the network's input and nothing else, and for the backward of each of them it
# starts again from there.
#
# Before you run the next cell: twelve layers. How many layers does it replay, and what is the factor if a backward
# takes two forwards?

# %%
chain, x = networks["products"]
least_memory = schedules.from_input()
least_plan, least_counted = least_memory.plan(12), count(chain[:12], x, least_memory)
print(repr(least_plan))
print(least_counted.replayed_ops, "ops replayed,", least_counted.peak_activations, "live activations at the peak")
from_input_times = report("from_input, 12 layers", chain[:12], x, least_memory)
for layers in (12, 25, 100):
    plan = least_memory.plan(layers)
    print(f"from_input on {layers:3} layers: {plan.extra_forwards / layers:4.1f} forwards replayed")

# %% [markdown]
# Its replays grow with the square of the depth: (L - 1)(L - 2)/2. √L does not save the most, but under √L no layer
# runs more than twice, however deep the network.
#
# ## Break it: paying for nothing
#
# A checkpoint can cost its full price and save nothing at all. Put the whole network into one. (`uniform(1)` would tape
# it, as the last segment; `keep_last=False` makes a checkpoint of the last segment too.)
#
# Before you run the next cell: the tape then keeps one buffer at the end of forward. What is live at the peak?

# %%
whole = schedules.uniform(1, keep_last=False)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tracer = count(chain, x, whole)
whole_counted = tracer.peak_activations, tracer.replayed_ops
kept_after_forward = len(mg.saved(mg.checkpoint_sequential(chain, whole, mg.randn(2, 256)).sum()))
print("kept at the end of forward:", kept_after_forward)
print(f"at the peak {whole_counted[0]} live activations, where storing all has {counts['products'][0]}; "
      f"{whole_counted[1]} ops replayed")  # fmt: skip
print(caught[0].category.__name__ + ":", caught[0].message)

# %% [markdown]
# One buffer at the end of forward looks like the best of all schedules. Then the first step of backward replays
# everything, and everything is there at once, as if there had been no checkpoint, and it has cost another forward. (The
# one more is what the replay has in hand: the last product's output, until the last relu has read it.) So look at the
# *peak* of a pass, never at the end of forward alone. The warning says what to do, and the repair is what you have used
# all along:

# %%
repaired = count(chain, x, schedules.sqrt())
print(repr(schedules.sqrt().plan(LAYERS)))
print(f"at the peak {repaired.peak_activations} live activations; {repaired.replayed_ops} ops replayed")

# %% [markdown]
# ## In PyTorch and in JAX
#
# - The counting is the same everywhere. PyTorch calls the function of a checkpoint again, but with
#   `use_reentrant=False` it stops as soon as it has all that backward needs
#   (`torch.utils.checkpoint.set_checkpoint_early_stop`), so the end of each segment is not computed twice there
#   either. If every block of a network is a checkpoint, as `model.gradient_checkpointing_enable()` of Hugging Face
#   Transformers does it, almost all of the forward runs again.
# - On a GPU the call that starts a computation returns before it is done. Wait before you look at the clock:
#   `torch.cuda.synchronize()`, or `jax.block_until_ready(result)`. And leave out the first run, which compiles and
#   warms up.
# - Under `jax.jit` the compiler fuses elementwise ops; one that is replayed inside a fused loop may cost next to
#   nothing. Lesson 11 makes use of that: keep what is dear, recompute what is cheap.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex08_costs.py`; `make check N=08` says how far you are.
#
# 1. `time_factor`: from seconds and counts to the factor.
# 2. `backward_in_forwards`: from a measured factor back to the ratio.
# 3. `fewest_replays`: of all numbers of segments that fit, the one that costs the least.
#
# ## Questions
#
# 1. You freeze all weights of a network and train its input only. What happens to the ratio of backward to forward,
#    and to the factor?
# 2. A colleague measures a factor of 1.6 with √L. Give two explanations that one can tell apart by measuring.
# 3. Why does a long segment at the end, taped in full, make training faster?
