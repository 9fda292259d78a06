# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 10 Real layers are not equal
#
# **Layers differ in bytes and in time, so count bytes and not activations: measure each layer, ask for the fastest
# schedule within a budget, and what it predicts is what is then held, to the byte.**
#
# Needs: 08, 09. Minutes: 25.
#
# Until now all layers were alike, and to count activations was to count memory. In a real network the first layers hold
# large images, and the last ones small ones. Here you see what equal segments do to such a network, and let `mg.fit`
# do better. At the end stands a small chain on which even the best schedule of this kind is beaten.

# %%
import dataclasses
import warnings

import _pictures as pictures
from tqdm import tqdm

import minigrad as mg
from minigrad import nn, schedules
from minigrad.data import load_digits
from minigrad.ops.cost import flops
from minigrad.view import canvas

mg.manual_seed(10)


class Conv(nn.Module):
    """relu(conv2d(x)) with filters of 3 x 3."""

    def __init__(self, inputs, outputs):
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)

    def forward(self, x):
        return mg.relu(self.conv(x))


def stage(inputs, outputs):
    """Four convolutions; the first of them changes the number of channels."""
    return [Conv(inputs, outputs), *[Conv(outputs, outputs) for _ in range(3)]]


layers = [*stage(1, 8), nn.MaxPool2d(2), *stage(8, 16), nn.MaxPool2d(2), *stage(16, 32)]
LAYERS = len(layers)
digits = load_digits()[0].reshape(-1, 1, 8, 8)
x = mg.tensor(digits[:4])

# %% [markdown]
# Four digits go through three stages of four convolutions. Between two stages, pooling halves both sides of the image,
# and the next stage has twice the channels. So the images have a quarter of the pixels and twice the channels: half of
# the bytes. (The ten scores of a classifier would hold next to nothing. They are left out.)
#
# ## Measure
#
# `mg.profile(layers, x)` runs each layer once, and measures what it returns, what the tape would keep of it beside its
# input, and how long it takes forward and backward. Bytes are exact. Times differ from run to run; so this lesson also
# counts *operations* (most of them a multiplication and an addition), which follow from shapes alone.
#
# Before you run the next cell: in the second stage each image has half the bytes of the first. Does a convolution there
# have half the operations, too? (Each output number is a sum over 3 × 3 pixels and all channels.)

# %%
measured = mg.profile(layers, x)
lines, cuts = measured.body.lines, [0, *measured.body.cuts]
operations = [sum(map(flops, lines[start:stop])) for start, stop in zip(cuts, cuts[1:], strict=False)]
print("layer          returns     keeps   operations")
for layer, count in zip(measured.layers, operations, strict=True):
    print(f"{layer.name:12} {layer.output_bytes:9,} {layer.kept_bytes:9,} {count:12,}")
for layer in measured.layers[:5]:
    print(f"time: {layer.name:12} forward {layer.forward_seconds * 1e3:.2f} ms, "
          f"backward {layer.backward_seconds * 1e3:.2f} ms")  # fmt: skip

# %% [markdown]
# (Pooling keeps more than it returns: the place of each largest number too, a byte each.)
#
# The bytes halve and the operations do not: half of the numbers, each a sum over twice as many channels. So an
# activation of the last stage is small, and as dear to compute as one of the first. It is worth keeping. One of the
# first stage is large for what it cost.
#
# ## Equal segments
#
# Before you run the next cell: `uniform(3)` makes three equal segments, `uniform(5)` makes five. If one of them has
# fewer activations alive at the peak, has it fewer bytes, too?


# %%
def run(schedule, x=x):
    """The tracer of one forward and backward."""
    with mg.Tracer() as tracer, warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.CheckpointWarning)  # of checkpoints of a single layer, which may be right
        mg.checkpoint_sequential(layers, schedule, x).sum().backward()
    return tracer


def run_again(forecast):
    """Operations that replays run, as a share of those of a forward."""
    return sum(map(flops, forecast.lines_run)) / sum(operations)


everything = run(schedules.store_all()).peak_activation_bytes
print(f"storing all: {everything:,} bytes")
equal = {}
for k in (2, 3, 4, 5, 6, 7):
    tracer, forecast = run(schedules.uniform(k)), measured.forecast(schedules.uniform(k))
    equal[k] = tracer.peak_activations, tracer.peak_activation_bytes, run_again(forecast)
    print(f"uniform({k}): {tracer.peak_activations:2} activations, {tracer.peak_activation_bytes:9,} bytes; "
          f"{equal[k][2]:.2f} of a forward runs again; forecast {forecast.peak_activation_bytes:9,} bytes")  # fmt: skip

# %% [markdown]
# Few activations can be many bytes. And look at the last column: `measured.forecast(schedule)` walks through forward
# and backward without any arrays, and its bytes are those of the real run.
#
# ## A budget in bytes
#
# `schedules.hetero(costs, budget)` looks for the *fastest* schedule that holds no more than `budget` bytes. It cuts a
# stretch in two at a boundary, as lesson 09 did, with bytes for slots and times for runs. For each stretch of layers
# and each amount of memory it tries to tape the first layer, and tries every place for the next boundary, and takes
# what is fastest.
#
# `measured.costs` has sizes and seconds. The next cell puts operations in the place of the seconds, twice as many for a
# backward, so that the result is the same on each machine.
#
# Before you run the next cell: with half of the bytes of storing all, which layers will it tape, and where will it put
# its boundaries?

# %%
seconds = measured.costs
counted = dataclasses.replace(
    seconds,
    forward=operations,
    backward=[2 * count for count in operations],
    # of the last layer of a replay: nothing, where all that its backward reads is held anyway
    last_forward=[count if again else 0 for count, again in zip(operations, seconds.last_forward, strict=True)],
)
half = schedules.hetero(counted, everything // 2)
half_run, half_forecast = run(half), measured.forecast(half)
print(half.plan(LAYERS).tree())
print(f"budget {everything // 2:,}, predicted {half.predicted_bytes:,}, measured {half_run.peak_activation_bytes:,} "
      f"bytes; {run_again(half_forecast):.2f} of a forward runs again")  # fmt: skip


def draw_cuts(named, path):
    """What the tape keeps of each layer, and below it what each of some schedules does with the layer."""
    figure, (axes, rows) = canvas.page(
        "The optimum tapes what is small and dear, and replays what is large",
        "bars: bytes that the tape keeps of each layer; below, what two schedules do with it",
        heights=(3, 1.2),
    )
    axes.bar(range(LAYERS), [layer.kept_bytes / 1e3 for layer in measured.layers], color=canvas.ROLE_COLOURS["value"])
    axes.set(ylabel="kB", xlim=(-2.6, LAYERS - 0.4))
    axes.tick_params(labelbottom=False)
    for row, (name, schedule) in enumerate(named.items()):
        rows.text(-0.7, -row, name, ha="right", va="center", fontsize=10)
        first = 0
        for length, inner in schedule.split(LAYERS):
            for layer in range(first, first + length):
                role = "activation" if inner is None else "boundary" if layer == first else "value"
                rows.bar(layer, 0.7, bottom=-row - 0.35, width=0.9, color=canvas.ROLE_COLOURS[role])
            first += length
    rows.set(xticks=range(LAYERS), yticks=[], ylim=(0.5 - len(named), 0.5))
    rows.set_xticklabels([layer.name.replace(" ", "\n") for layer in measured.layers], fontsize=8)
    rows.spines["left"].set_visible(False)
    words = {"activation": "taped", "boundary": "its input is a boundary", "value": "inside a checkpoint"}
    canvas.legend(figure, "right", [(canvas.ROLE_COLOURS[role], text) for role, text in words.items()])
    canvas.saved(figure, path)


draw_cuts({"uniform(5)": schedules.uniform(5), "half the bytes": half}, pictures.path("10-cuts.svg"))

# %% [markdown]
# ![Bars that get lower from stage to stage; below them two rows of cells: equal segments with boundaries at every third
# layer, and the optimum, with two checkpoints over the first half and the other layers taped](pictures/10-cuts.svg)
#
# (The tree counts layers from 1; the picture, as the tape, from 0.)
#
# Nobody has told it about stages. But what it tapes are the layers at the end, where a byte is dear to compute again.
# The large images at the beginning go into checkpoints (which are split again when they are replayed, as the tree
# shows). `uniform(5)` knows nothing of that. It has checkpoints in the last stages too, which pay with operations for
# bytes of which there are few, and so it holds more *and* takes longer.
#
# ## All budgets
#
# Before you run the next cell: what does the curve of the best time over the budget look like, from the least budget
# that is possible to storing all? Can a point of `uniform(k)` lie below it?

# %%
least = half.least_budget
budgets = [least + (everything - least) * step // 40 for step in range(41)]
best = {}
for budget in tqdm(budgets, desc="budgets", leave=False, disable=None):
    schedule = schedules.hetero(counted, budget)
    best[budget] = schedule.predicted_bytes, run_again(measured.forecast(schedule))
checked = {}
for budget in budgets[::8]:
    schedule = schedules.hetero(counted, budget)
    tracer = run(schedule)
    checked[budget] = schedule.predicted_bytes, tracer.peak_activation_bytes
    print(f"budget {budget:9,}: predicted {checked[budget][0]:9,}, measured {checked[budget][1]:9,} bytes; "
          f"{best[budget][1]:.2f} of a forward runs again")  # fmt: skip


def draw_budgets(path):
    """The optimum over the budget, and equal segments."""
    figure, (axes,) = canvas.page(
        f"{least / everything:.0%} of the bytes for {best[least][1]:.0%} of a forward more, if the cuts are right",
        "line: the fastest schedule for each budget, rings: measured; squares: equal segments",
    )
    sizes, shares = zip(*best.values(), strict=True)
    line = [(size / 1e3, share) for size, share in zip(sizes, shares, strict=True)]
    axes.plot(*zip(*line, strict=True), color=canvas.STYLES[0][0], marker=".", drawstyle="steps-post")
    points = [(size / 1e3, best[budget][1]) for budget, (_, size) in checked.items()]
    axes.plot(*zip(*points, strict=True), **canvas.RING)
    at_place = {}
    for k, (_, size, share) in equal.items():
        at_place.setdefault((size / 1e3, round(share, 2)), []).append(f"uniform({k})")
    for place, names in at_place.items():
        axes.plot(*place, "s", color=canvas.GREY)
        axes.annotate(", ".join(names), place, xytext=(8, 5), textcoords="offset points", fontsize=9.5)
    axes.set(xlabel="kB of activations at the peak", ylabel="share of a forward that runs again")
    axes.set_ylim(0, 0.8)
    canvas.saved(figure, path)


draw_budgets(pictures.path("10-budgets.svg"))

# %% [markdown]
# ![Share of a forward that runs again over kilobytes at the peak: a line that falls to nothing at storing all; the
# squares of equal segments lie above it](pictures/10-budgets.svg)
#
# No square lies below the line: equal segments are among the schedules that `hetero` has tried. And predicted and
# measured are the same number. (In general `predicted_bytes` may be a little too high: it is added up
# layer by layer, and what two layers share counts twice. A forecast goes op by op, and is exact.)
#
# And there is an end on the left: the least budget. At some moment a replay runs a convolution of the first stage. Then
# the network's input, that of the convolution, its output and that of its relu are all there.
#
# ## In one call
#
# `mg.fit(layers, x, budget=…)` does all of this: it profiles, asks `hetero` with *measured seconds*, tries equal and
# shrinking segments too, forecasts each, and gives the fastest that fits. Which one that is depends on the machine, but
# it fits on all.
#
# Before you run the next cell: what will it say if the budget is one byte too small?

# %%
budget_of_four = everything // 2  # half of what the four images in x need
fitted = mg.fit(layers, x, budget=budget_of_four)
fitted_run = run(fitted)
for line in str(fitted).splitlines():
    print("time:", line)
print("it keeps to the budget:", fitted_run.peak_activation_bytes <= budget_of_four)
print("predicted and measured bytes are the same:", fitted.predicted_bytes == fitted_run.peak_activation_bytes)
print("predicted and measured replays are the same:", fitted.replayed_ops == fitted_run.replayed_ops)

try:
    mg.fit(measured, x, budget=least - 1)
except mg.BudgetError as error:
    refused = str(error)
    print("BudgetError:", refused)
with_the_least = mg.fit(measured, x, budget=least)
print("with one byte more it fits:", with_the_least.predicted_bytes == least)

# %% [markdown]
# ## Break it: measured on another batch
#
# Profiles take time, so why not profile on a single image, and train on four? Both have the same layers.
#
# Before you run the next cell: the budget is half of what the four need with everything stored. What will `fit` choose
# when it looks at one image? And what will the four then hold?

# %%
one_image = mg.tensor(digits[:1])
wrong = mg.fit(layers, one_image, budget=budget_of_four)
broken_bytes = run(wrong).peak_activation_bytes
print(f"made for one image: {wrong.schedule}, predicted {wrong.predicted_bytes:,} bytes")
print(f"run on four images: measured {broken_bytes:,} bytes, budget {budget_of_four:,}")

# %% [markdown]
# It chose to store everything, as one image fits easily. A schedule is made for sizes, and sizes come from the batch.
# No error tells you: a schedule is about layers, and has no way to see how many images come. The repair is to profile
# with what you will train with. A profile needs the memory of one layer at a time, so it can be made for a batch that
# would not fit with everything stored.

# %%
right = mg.fit(layers, x, budget=budget_of_four)
repaired_bytes = run(right).peak_activation_bytes
print("made for four images, run on four images; it keeps to the budget:", repaired_bytes <= budget_of_four)

# %% [markdown]
# ## Eight against seven
#
# So is `hetero` the optimum? It is, among schedules that are *persistent*: what they hold, they hold until backward has
# used it. All schedules up to here are of this kind. In lesson 09 nothing was better. But there a layer needed its
# input and nothing else. Backward of `tanh(h @ w)` reads the layer's input *and* its output. Then it can be faster to
# let go of something, and to make it again.
#
# A small example: three such layers, each of size 1, of time 1 forward and of time 1 backward, and behind them a loss
# that costs nothing. There are four units of memory. All that is there counts: the input, the outputs that are held,
# a running layer's input and output in the first forward too (`count_first_run`), and one unit for the gradient.
#
# Before you run the next cell: storing all takes 6 units of time. How many will the persistent optimum take, and can
# you beat it? Take a sheet of paper.

# %%
small = schedules.LayerCosts(
    input_bytes=1, output_bytes=(1, 1, 1, 0), kept_bytes=(1, 1, 1, 0),
    forward=(1, 1, 1, 0), backward=(1, 1, 1, 0), gradient_bytes=(1, 1, 1, 0),
)  # fmt: skip
persistent = schedules.hetero(small, 4, count_first_run=True)
optimum = schedules.exhaustive_optimum(small, 4)
print("persistent:", persistent.predicted_time, "units of time")
print(persistent.plan(4).tree())
print("everything tried:", optimum.time, "units of time")
print(*[f"  {move}" for move in optimum.moves], sep="\n")

# %% [markdown]
# (The tree counts layers from 1, the moves from 0. A layer that is *run* leaves its output for the next one; one that
# is *taped* is run, too, and leaves what its backward reads.) The persistent schedule has room to tape one of the three
# layers. It puts the other two into a checkpoint, and replays both. The optimum tapes layer 1 as well, and then lets go
# of the *output of layer 0*, which was layer 1's input. Backward will want that again, so this is not persistent. But
# to make it again takes one run, of layer 0, and layer 1 need not run a second time.
#
# To search all such moves takes too long for real chains; in general the problem is NP-hard. Lesson 12 goes another
# way: no plan at all, and eviction at run time.
#
# ## In PyTorch and in JAX
#
# - Neither has this built in. The solver is known as *rotor* (Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova,
#   2019), a package for PyTorch. Under `torch.compile` there is `torch._functorch.config.activation_memory_budget`, a
#   share from 0 to 1 of what would be kept.
# - `plan.torch_code()` and `plan.jax_code()` print the checkpoints of a plan as a program for either.
# - To measure there: `torch.cuda.max_memory_allocated()`, which counts parameters and workspace too, and
#   `memory_analysis()` of a compiled function in JAX.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex10_budgets.py`; `make check N=10` says how far you are.
#
# 1. `peak_bytes`: what segments hold, if activations have different sizes.
# 2. `best_cut`: where to cut such a chain in two.
# 3. `largest_batch`: how many rows fit into a budget, with the best schedule for each number.
#
# ## Questions
#
# 1. Two schedules have the same peak in activations. Why can one of them need twice the bytes of the other?
# 2. Which layers of your own network would you tape, and which put into checkpoints? Which columns of a profile tell?
# 3. What does "persistent" forbid, and how does the optimum for three layers make use of what is forbidden?
