# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 16 On a GPU
#
# **An array computes where it is, so a program moves to a GPU by moving its arrays; and beside a GPU there is a second,
# larger and slower memory, in which a boundary can wait: then it has to be moved, and need not be computed again.**
#
# Needs: 07, 09. Minutes: 25.
#
# You need no GPU for this lesson. What it is about can be counted: what is in which memory, how much is moved, and when
# it comes back. Where there is a GPU, the same cells run on it. What only a clock on a GPU can tell stands at the end,
# and is not measured here.

# %%
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: with one thread, times are steadier

import time

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import schedules
from minigrad.view import canvas

LAYERS, ROWS, WIDTH = 36, 256, 64

# %% [markdown]
# ## Is there one?
#
# CuPy has NumPy's functions for arrays in the memory of a GPU. minigrad imports it when somebody asks for the device
# "cuda", and not before. So ask. If there is no CuPy, or no GPU behind it, that is a `DeviceError` that says which.


# %%
def find_device():
    """The name of a GPU if there is one that CuPy can use, otherwise "cpu", with the reason why."""
    try:
        return mg.zeros(1, device="cuda").device
    except mg.DeviceError as error:
        print("DeviceError:", error)
        return "cpu"


DEVICE = find_device()
print("this run is on", DEVICE)


# %% [markdown]
# ## A program moves when its arrays move
#
# There is no switch that says "now on the GPU", so there is none that can be set wrongly. An array is in some memory,
# and the op that reads it computes there. What comes out is there too, and so are its gradients.
#
# Before you run the next cell: in which places of this program does the device have to be named? (There are two.)


# %%
class Layer:
    """h @ w, with an orthogonal matrix."""

    def __init__(self, rng, device):
        square, _ = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))
        self.w = mg.tensor(square.astype("float32"), device=device, requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def make_chain(device):
    """(a chain of layers, a batch for it) on a device."""
    rng = np.random.default_rng(16)
    x = mg.tensor(rng.standard_normal((ROWS, WIDTH)).astype("float32"), device=device, name="x")
    return [Layer(rng, device) for _ in range(LAYERS)], x


chain, x = make_chain(DEVICE)
loss = mg.checkpoint_sequential(chain, schedules.store_all(), x).sum()
loss.backward()
devices = {x.device, chain[0].w.device, loss.device, chain[0].w.grad.device}
print("input, weights, loss and gradients are on", *devices)
print("to() gives the tensor itself if it is there already:", x.to(DEVICE) is x)

# %% [markdown]
# The weights, and the input. `model.to(device)` moves all parameters of an `nn.Module`, in place, so that an optimizer
# that has them goes on working. `t.to(device)` is an op: if it moves something, backward moves the gradient back.
#
# What if half of the arrays stay behind? Nothing is moved behind your back: a copy from one memory to another is slow,
# and one that you do not see would be made again in every step. An op on two devices is a `DeviceError`, which names
# the op, your line and both devices. The next cell tries it, if there is a second device.

# %%
mixed = None
if DEVICE == "cpu":
    print("there is no second device here to mix with")
else:
    try:
        mg.ones(ROWS, WIDTH) @ chain[0].w
    except mg.DeviceError as error:
        mixed = str(error)
        print("DeviceError:", mixed)


# %% [markdown]
# ## What stays the same
#
# A schedule is made of integers, and a tracer counts buffers. Neither asks where the buffers are. A dropout mask comes
# from its key, and the key's numbers are drawn on the CPU for every device, so a seed gives the same masks everywhere.
#
# Before you run the next cell: what are peak and replays of 36 layers in six segments of six, on whichever device?


# %%
def measure(schedule):
    """The tracer of one forward and backward of the chain."""
    with mg.Tracer() as tracer:
        mg.checkpoint_sequential(chain, schedule, x).sum().backward()
    return tracer


def gradients(schedule):
    """Those of all weights, as NumPy arrays."""
    for layer in chain:
        layer.w.grad = None
    measure(schedule)
    return [layer.w.grad.to("cpu").numpy() for layer in chain]


def mask(device):
    mg.manual_seed(16)
    return mg.dropout(mg.ones(1000, device=device), 0.5).to("cpu").numpy()


six, six_plan = measure(schedules.uniform(6)), schedules.uniform(6).plan(LAYERS)
print(f"planned: peak {six_plan.peak}, {six_plan.extra_forwards} layers replayed; "
      f"on {DEVICE}: peak {six.peak_activations}, {six.replayed_ops} replayed")  # fmt: skip
same_bits = all(map(np.array_equal, gradients(schedules.uniform(6)), gradients(schedules.store_all())))
print(f"gradients with and without checkpoints, both on {DEVICE}, are the same bits:", same_bits)
print(f"dropout's mask is the same on cpu and on {DEVICE}:", np.array_equal(mask("cpu"), mask(DEVICE)))

# %% [markdown]
# (A replay runs the same op on the same numbers. Whether that gives the same bits is the library's affair, NumPy's or
# CuPy's; so the cell compares on the device at hand. *Between* two devices gradients agree up to rounding, because they
# add in different orders.)
#
# ## A second memory
#
# A GPU's own memory is fast, and there is never enough of it. The computer that it sits in, the *host*, has more. To
# get there, an array has to be copied. So there is a third thing to do with an activation, beside keeping it and
# computing it again: to put it into slow memory, and to fetch it when backward comes.
#
# In minigrad boundaries can do that: `mg.checkpoint(fn, x, offload=True)`, or `schedules.offloaded(schedule)` for all
# outermost boundaries of a schedule, those that are not inside of another checkpoint. On NumPy there is only one
# memory, and a copy in it stands for what would be in the other one. The tracer gives it a role of its own,
# "offloaded", and does not count it among the live activations. So the count says what *fast* memory would hold. Copies
# to slow memory are counted as `tracer.writes`, copies back as `tracer.reads`.
#
# Before you run the next cell: six segments, the last of them taped. How many boundaries go to slow memory? What is the
# peak in fast memory then? And what if each layer's input goes there?


# %%
def compare(name, schedule):
    """Print what is measured, and whether it is as planned; gives the tracer."""
    plan, tracer = schedule.plan(LAYERS), measure(schedule)
    copies = tracer.peak("offloaded") // x.nbytes
    planned = plan.peak, plan.extra_forwards, plan.writes, plan.reads, plan.slow_peak
    counted = tracer.peak_activations, tracer.replayed_ops, tracer.writes, tracer.reads, copies
    print(f"{name:26} peak {counted[0]:2} in fast memory, {copies:2} in slow; {counted[1]:2} layers replayed; "
          f"{counted[2]:2} writes, {counted[3]:2} reads; as planned: {counted == planned}")  # fmt: skip
    return tracer


tracers = {
    "store_all": compare("store_all()", schedules.store_all()),
    "segments": compare("uniform(6)", schedules.uniform(6)),
    "moved segments": compare("offloaded(uniform(6))", schedules.offloaded(schedules.uniform(6))),
    "moved layers": compare("offloaded(every(1))", schedules.offloaded(schedules.every(1))),
}

# %% [markdown]
# Five boundaries are away, and six activations are left: the inside of one segment. As many layers are replayed as
# before; a copy replaces no replay here, it replaces room. In the last line each layer is a segment. Then nothing is
# left inside that would have to be replayed: everything is moved, nothing is computed again, and fast memory holds one
# activation at a time.
#
# ## The window
#
# A boundary that is fetched when its replay begins comes late: the replay has to wait for it. `window=2` has the next
# older boundary fetched as well, before it is needed. That costs room. (It is the second argument of `offloaded`. For a
# single checkpoint, write `offload=2` in place of `offload=True`.)
#
# Before you run the next cell: how many more activations will be live with `window=2`, and with 3? How often will each
# boundary be read?


# %%
def reads_when_replayed(window):
    """How many boundaries have come back, at the end of each replay."""
    with mg.Tracer() as tracer:
        loss = mg.checkpoint_sequential(chain, schedules.offloaded(schedules.uniform(6), window), x).sum()
        return [tracer.reads for step in mg.steps(loss) if step.kind == "replay"]


windows = {}
for window in (1, 2, 3):
    tracer = compare(f"offloaded(…, window={window})", schedules.offloaded(schedules.uniform(6), window))
    windows[window] = tracer.peak_activations, reads_when_replayed(window)
    print("  boundaries that are back at each replay:", *windows[window][1])

# %% [markdown]
# With a window of one, each replay has fetched one boundary. With two, the first replay has fetched two, and each later
# one finds its own there. One activation more is live. Nothing is fetched twice.
#
# Now look at both memories over one run, beside the same segments with everything in fast memory.


# %%
def levels(tracer):
    """(steps, live activations after each, boundaries in slow memory after each)."""
    steps, fast, slow, waiting = [0], [0], [0], 0
    for event in tracer.events:
        if event.role == "offloaded":
            waiting += (event.kind == "new") - (event.kind == "gone")
        if event.step != steps[-1]:
            steps.append(event.step)
            fast.append(0)
            slow.append(0)
        fast[-1], slow[-1] = max(fast[-1], event.live_activations), waiting
    return steps, fast, slow


def draw(here, moved, path):
    """Live activations of two runs, and below them the boundaries of the second that wait in slow memory."""
    steps, fast, _ = levels(here)
    moved_steps, moved_fast, moved_slow = levels(moved)
    figure, (above, below) = canvas.page(
        f"With its boundaries in slow memory, the run holds {max(moved_fast)} in fast memory instead of {max(fast)}",
        f"{LAYERS} layers in 6 segments, forward and backward, a window of 2; both runs replay the same layers",
        heights=(2, 1),
        gap=0.05,
    )
    (blue, _), (red, _) = canvas.STYLES[:2]
    above.step(steps, fast, where="post", color=blue, label="all boundaries in fast memory")
    above.step(moved_steps, moved_fast, where="post", color=red, label="boundaries in slow memory")
    above.set(ylabel="in fast memory", xlim=(0, len(steps)), ylim=(0, 1.15 * max(fast)))
    above.tick_params(labelbottom=False)
    below.fill_between(moved_steps, moved_slow, step="post", color=canvas.ROLE_COLOURS["offloaded"])
    below.set(xlabel="steps: ops run, ops replayed, nodes swept", ylabel="in slow memory")
    below.set_ylim(0, max(moved_slow) + 1)
    canvas.legend(figure, "right", above.get_lines())
    canvas.saved(figure, path)


with_window = measure(schedules.offloaded(schedules.uniform(6), 2))
draw(tracers["segments"], with_window, pictures.path("16-two-memories.svg"))

# %% [markdown]
# ![Above, live activations over a run: a saw-tooth on a staircase, and below it the same teeth, near the ground.
# Below, a staircase of boundaries in slow memory, up in forward and down in backward](pictures/16-two-memories.svg)
#
# The first tooth is the segment that is taped, the others are the replays; both runs have the same teeth. The staircase
# on which they stand has gone to the other memory, but for the one boundary that the window has fetched ahead.
#
# ## Break it: a boundary that does not move
#
# A first layer with a tanh, then a checkpoint with `offload=True`. Before you run the next cell: how many boundaries
# will go to slow memory? (Who else needs what the tanh has put out? Lesson 05 has printed it.)


# %%
def first(h):
    return mg.tanh(h @ chain[0].w)


def others(h):
    for layer in chain[1:6]:
        h = mg.tanh(layer(h))
    return h


with mg.Tracer() as stuck:
    mg.checkpoint(others, first(x), offload=True).sum().backward()
print("writes to slow memory:", stuck.writes)

# %% [markdown]
# None. The tape keeps tanh's output for tanh's own gradient, in fast memory, whatever the checkpoint does. To copy it
# as well would spare nothing, so it is not copied. What is on the tape stays there. The repair is to leave nothing on
# the tape: put the first layer into a checkpoint, too.

# %%
with mg.Tracer() as repaired:
    h = mg.checkpoint(first, x, offload=True)
    mg.checkpoint(others, h, offload=True).sum().backward()
print("writes to slow memory:", repaired.writes)

# %% [markdown]
# Two: the input, and what goes from one checkpoint to the next.
#
# ## Slots in two memories
#
# `offloaded` sends every outermost boundary away. Now suppose that fast memory has three slots for boundaries, and slow
# memory three more. Binomial checkpointing (lesson 09) with six slots says where boundaries should be; which of them go
# to slow memory?
#
# - `schedules.multistage(fast, slow)` counts how often each slot is written and read, and makes those that are used
#   most the fast ones. Replays are as few as if all slots were fast. What transfers cost is not asked.
# - `schedules.h_revolve(fast, slow, write_cost, read_cost)` counts transfers among the costs, in forwards of one layer,
#   and finds the least sum of both.
#
# Before you run the next cell: which of the two will replay more layers? Which will move more?

# %%
tiers = {
    "six fast slots": schedules.binomial(7),  # six boundaries, and the activation that is running
    "three fast slots": schedules.binomial(4),
    "multistage(3, 3)": schedules.multistage(3, 3),
    "h_revolve(3, 3)": schedules.h_revolve(3, 3),
}
tier_tracers = {name: compare(name, schedule) for name, schedule in tiers.items()}


def in_forwards(plan, write_cost=2, read_cost=2):
    """Replays and transfers of a plan, in forwards of one layer."""
    return plan.extra_forwards + write_cost * plan.writes + read_cost * plan.reads


for name, schedule in tiers.items():
    print(f"{name:18} replays and transfers, at 2 forwards each: {in_forwards(schedule.plan(LAYERS))}")

# %% [markdown]
# `multistage` replays as little as six fast slots do, and moves a lot for it. At two forwards a transfer, that takes
# longer than to do without slow memory. `h_revolve` replays some layers more and moves less. Of the three that have
# three fast slots, it takes the least time. So the right schedule depends on what a transfer costs. (A peak of two more
# than the fast slots is that of lesson 09: the activation that is running has no slot, and its output has none either
# if a layer is replayed for its output alone.)
#
# Before you run the next cell: what will `h_revolve` do if transfers are free? And if one takes as long as a hundred
# layers?

# %%
by_cost = {}
for cost in (0, 0.2, 2, 5, 100):
    plan = schedules.h_revolve(3, 3, cost, cost).plan(LAYERS)
    by_cost[cost] = plan.extra_forwards, plan.writes, plan.reads
    print(f"a transfer of {cost:3} forwards: {plan.extra_forwards:3} layers replayed, {plan.writes} writes, "
          f"{plan.reads} reads")  # fmt: skip


# %% [markdown]
# If transfers are free, it replays as little as with six fast slots. As they get dearer, it makes fewer. In the
# last line it leaves slow memory alone, and replays what three fast slots replay.
#
# ## What does a transfer cost here?
#
# That is a ratio of two times: of one copy, and of one layer's forward. Measure both on your machine. On NumPy the copy
# is a copy within the same memory. On a GPU it goes to the host, over the wires called *bus*, and there one has to be
# careful with the clock: a call that starts a computation may return before it is done. So `wait` waits.


# %%
def wait():
    """Until the GPU, if it is one, has done all that it was asked to do."""
    if DEVICE != "cpu":
        import cupy

        cupy.cuda.Device().synchronize()


def seconds(function, *arguments):
    """How long a call takes: the fastest of 50."""
    times = []
    for _ in range(50):
        wait()
        start = time.perf_counter()
        function(*arguments)
        wait()
        times.append(time.perf_counter() - start)
    return min(times)


def to_slow_memory(tensor):
    """A copy of its array as offload makes it."""
    return tensor.data.copy() if DEVICE == "cpu" else tensor.to("cpu")


with mg.no_grad():
    copy_time, layer_time = seconds(to_slow_memory, x), seconds(chain[0], x)
cost = copy_time / layer_time
plan = schedules.h_revolve(3, 3, cost, cost).plan(LAYERS)
print(f"time: a copy {copy_time * 1e6:.1f} µs, a layer {layer_time * 1e6:.1f} µs: a transfer of {cost:.2f} forwards")
print(f"time: h_revolve for that cost: {plan.extra_forwards} layers replayed, {plan.writes} writes, {plan.reads} reads")

# %% [markdown]
# A layer's forward grows with the square of its width, and a copy with the width. So wide layers make transfers cheap,
# on every device.
#
# ## What is different on a GPU, and not measured here
#
# - *Computing does not wait for Python.* A call puts work into a queue, a *stream*, and returns. Work in one stream is
#   done in order. A clock without `wait` measures how fast Python asks.
# - *Copies can run beside computing*, if they are in a stream of their own, from memory of the host that is *pinned*
#   (it will not be moved). Then a boundary that is fetched ahead can come while the replay before is running, and its
#   transfer costs next to nothing, as long as the bus keeps up. That is what a window is for.
# - *minigrad does not do that.* It starts no stream and pins no memory; a copy to the host is waited for. So a window
#   here shows what fetching ahead would have to hold, and makes nothing faster.
# - A GPU's memory is handed out by CuPy's pool, which keeps what is freed for later use. Tools that ask the driver see
#   the pool; the tracer sees the arrays.
#
# ## In PyTorch and in JAX
#
# - PyTorch: `t.to("cuda")`, `model.to("cuda")`, and a `RuntimeError` if devices are mixed. Whatever is saved for
#   backward inside of `with torch.autograd.graph.save_on_cpu(pin_memory=True)` goes to the host, and comes back when it
#   is needed; on a graph that is on the CPU it copies nothing. `CheckpointPolicy` has `MUST_CPU_OFFLOAD` beside
#   `MUST_SAVE`.
# - JAX: `jax.device_put(x, device)`. A policy such as
#   `jax.checkpoint_policies.save_and_offload_only_these_names(…, offload_src="device", offload_dst="pinned_host")` says
#   which values of a checkpoint wait on the host, and the compiler decides when they are moved.
# - Two memories with binomial checkpoints: Stumm and Walther 2009; Herrmann and Pallez 2020 (H-Revolve). There the slow
#   memory is often a disk.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex16_memories.py`; `make check N=16` says how far you are.
#
# 1. `in_slow_memory`: segments by hand, each boundary in slow memory.
# 2. `fast_peak`: what fast memory then holds, by counting.
# 3. `break_even`: at which cost of a transfer do moving and replaying take equally long?
#
# ## Questions
#
# 1. You move a model to a GPU and forget its input. What happens, and why is nothing moved for you?
# 2. `offloaded(every(1))` replays nothing. What is its price, and when would you rather take `uniform(6)`?
# 3. Why is one activation more live with `window=2`, although nothing is fetched twice?
