# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 17 To PyTorch and JAX
#
# **A plan is a tree of numbers and belongs to no framework: PyTorch and JAX can put their checkpoints into the same
# tree, give the same gradients and run as many layers again; what differs is what a replay calls, and what it checks.**
#
# Needs: 07, 09, 11, 13. Minutes: 20.
#
# You have learned checkpoints on a small engine. Your next network may not run on it. In this lesson you take a plan
# and a set of weights along, run both in the two frameworks, and count there what you have counted here.
#
# The lesson runs without either of them: then cells say that they are skipped, and the text tells what they would have
# shown. `pip install torch jax` brings both.

# %%
import functools
import importlib

import _pictures as pictures
import numpy as np

import minigrad as mg
from minigrad import nn, schedules
from minigrad.view import spacetime


def imported(name):
    """A module if it is installed, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: cells that need it are skipped")
        return None


torch, jax = imported("torch"), imported("jax")
LAYERS, ROWS, WIDTH = 12, 6, 8

# %% [markdown]
# ## The tree, and the program
#
# `schedules.binomial(4)` on twelve layers makes checkpoints within checkpoints. `plan.tree()` prints them for people.
#
# Before you run the next cell: what of this does another framework have to know, so that it can do the same?

# %%
schedule = schedules.binomial(4)
plan = schedule.plan(LAYERS)
print(repr(plan))
print(plan.tree())

# %% [markdown]
# Lengths, and which stretch is inside of which. That is a list of numbers and lists: a number stands for so many layers
# in order, and a list for a checkpoint around what is in it. `plan.torch_code()` writes such a list into a program,
# with a few lines that walk it. Here is all of it but the example at its end.

# %%
program = plan.torch_code()
print(program.partition("\n\nif __name__")[0])


# %% [markdown]
# You would save it as a file and import `run` from it. Here `exec` does the same.
#
# ## Weights travel as arrays
#
# A state dict maps the path of each parameter to a NumPy array. minigrad's layers have the names and the layouts of
# PyTorch's, so their state dicts go from one to the other as they are. JAX has no layers of its own; there weights are
# arrays that you hand to your function.


# %%
class Layer(nn.Module):
    """sin(linear(h)). It counts how often its code is called."""

    def __init__(self):
        self.linear, self.calls = nn.Linear(WIDTH, WIDTH, bias=False), 0
        self.linear.weight.assign_(2.5 * self.linear.weight)  # so that numbers do not fade from layer to layer

    def forward(self, h):
        self.calls += 1
        return mg.sin(self.linear(h))


mg.manual_seed(17)
net = nn.Sequential(*[Layer() for _ in range(LAYERS)])
state = net.state_dict()
inputs = mg.randn(ROWS, WIDTH).numpy()
print("a state dict:", ", ".join(list(state)[:2]), "...", f"each {state['0.linear.weight'].shape}")

# %% [markdown]
# ### Break it: the layout
#
# Write the same network for arrays, as you would for JAX: `sin(h @ w)`, layer after layer. NumPy is enough to try it.
#
# Before you run the next cell: the shapes fit, since all matrices are square. Is the result that of the network?


# %%
def with_arrays(matrices):
    h = inputs
    for w in matrices:
        h = np.sin(h @ w)
    return h


with mg.no_grad():
    expected = net(mg.tensor(inputs)).numpy()
broken = with_arrays([state[f"{i}.linear.weight"] for i in range(LAYERS)])
print("h @ w:   the network's result:", np.allclose(broken, expected, atol=1e-5))
repaired = with_arrays([state[f"{i}.linear.weight"].T for i in range(LAYERS)])
print("h @ w.T: the network's result:", np.allclose(repaired, expected, atol=1e-5))

# %% [markdown]
# A `Linear` keeps its weight as (outputs, inputs), in PyTorch as in minigrad, and multiplies by its transpose. Nothing
# but a comparison of numbers finds this out. So when you have moved a network, compare one output and one gradient
# before you train.
#
# ## Here
#
# First in minigrad: gradients, how often each layer's code was called, and how many sines were computed. A layer reads
# what the sine before it has put out, so that sine has to run again. (The last layer of a stretch is not replayed as a
# whole, as in lesson 06. Its sine's gradient reads its product, so the product runs again, and the sine does not.)
#
# Before you run the next cell: the plan says how many runs of layers there are in all. How often is a layer's *code*
# called?

# %%
for layer in net:
    layer.calls = 0
with mg.Tracer() as tracer:
    mg.checkpoint_sequential(list(net), schedule, mg.tensor(inputs)).sum().backward()
gradients = {name: parameter.grad.numpy() for name, parameter in net.named_parameters()}
sines = sum(event.op == "sin" for event in tracer.events if event.kind in ("op", "replayed"))
found = {"minigrad": ([layer.calls for layer in net], sines)}
print("planned:", plan.total_forwards, "runs of layers")
print("minigrad:", sines, "sines computed; calls of each layer's code:", *found["minigrad"][0])

# %% [markdown]
# ## In PyTorch
#
# The same tree, the same weights. `TorchDispatchMode` shows each operation that PyTorch executes, below autograd, so
# that replays are seen too.
#
# Before you run the next cell: PyTorch's checkpoint calls your function again. How often will the first layer's code be
# called, if it stands within two checkpoints?


# %%
def torch_net():
    """The network in PyTorch, with the same names, and weights from the state dict."""

    class TorchLayer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.calls = torch.nn.Linear(WIDTH, WIDTH, bias=False), 0

        def forward(self, h):
            self.calls += 1
            return torch.sin(self.linear(h))

    layers = torch.nn.Sequential(*[TorchLayer() for _ in range(LAYERS)])
    layers.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return layers


def sines_of_torch(function):
    """How many sines PyTorch computes while a function runs."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        sines = 0

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            self.sines += operation is torch.ops.aten.sin.default
            return operation(*args, **(kwargs or {}))

    with Count() as count:
        function()
    return count.sines


def agree(theirs):
    """Whether gradients of another framework are ours, up to rounding."""
    return all(np.allclose(theirs[name], gradients[name], rtol=1e-4, atol=1e-6) for name in gradients)


same_in_torch = None
if torch is None:
    print("skipped: no PyTorch")
else:
    namespace = {"__name__": "plan"}
    exec(program, namespace)
    theirs = torch_net()
    sines = sines_of_torch(lambda: namespace["run"](list(theirs), torch.tensor(inputs)).sum().backward())
    found["PyTorch"] = [layer.calls for layer in theirs], sines
    same_in_torch = agree({name: parameter.grad.numpy() for name, parameter in theirs.named_parameters()})
    print("gradients as in minigrad:", same_in_torch)
    print("PyTorch:", sines, "sines computed; calls of each layer's code:", *found["PyTorch"][0])

# %% [markdown]
# The same gradients, and as many sines as planned: the tree means the same there. But the code of a layer is called
# once, and once more for each checkpoint around it. (A replay *enters* the last layer of a stretch, too, and ends as
# soon as it has all that backward needs. That is called early stop; `set_checkpoint_early_stop(False)` turns it off.)
#
# ## In JAX
#
# `plan.jax_code()` writes the same list for `jax.checkpoint`. JAX calls your code to trace it, and what is
# differentiated, and replayed, is the traced program. So the sines can be counted in that program.
#
# Before you run the next cell: how often will a layer's code be called in one trace?


# %%
def jax_layer(index, weights, h):
    jax_calls[index] += 1
    return jax.numpy.sin(h @ weights[index].T)


def jax_loss(weights, x):
    layers = [functools.partial(jax_layer, index, weights) for index in range(LAYERS)]
    return jax_namespace["run"](layers, x).sum()


same_in_jax = None
if jax is None:
    print("skipped: no JAX")
else:
    jax_namespace, jax_calls = {"__name__": "plan"}, [0] * LAYERS
    exec(plan.jax_code(), jax_namespace)
    matrices = [jax.numpy.asarray(state[f"{i}.linear.weight"]) for i in range(LAYERS)]
    traced = jax.make_jaxpr(jax.grad(jax_loss))(matrices, jax.numpy.asarray(inputs))
    found["JAX"] = list(jax_calls), str(traced).count("= sin ")
    in_jax = jax.grad(jax_loss)(matrices, jax.numpy.asarray(inputs))
    same_in_jax = agree(dict(zip(state, map(np.asarray, in_jax), strict=True)))
    print("gradients as in minigrad:", same_in_jax)
    print("JAX:", found["JAX"][1], "sines in the traced program; calls of each layer's code:", *found["JAX"][0])
    compiled = jax.jit(jax.grad(jax_loss)).lower(matrices, inputs).compile().as_text()
    print("JAX:", compiled.count(" sine("), "sines in the program that is compiled for", jax.default_backend())

# %% [markdown]
# The same gradients, as many sines again, and each layer's code is called once. But the traced program is not the end:
# under `jax.jit` a compiler works on it, and it may find that a replay computes what has been computed before, and
# merge the two (common subexpression elimination, CSE). Then nothing has been saved. `prevent_cse=True`, the default,
# is there to keep it from that. Compare the two numbers of sines to see what it did on your device. On a CPU, version
# `0.10.2` of JAX merged them all: no sine of a replay was left. And ask the compiled function for its
# `memory_analysis()`.
#
# ## A real block
#
# The names fit for larger layers as well. `nn.TransformerBlock` is PyTorch's `TransformerEncoderLayer` with
# `norm_first=True`. The cell compares the gradients of the two, PyTorch's under a checkpoint; they are the same, up to
# rounding.

# %%
block = nn.TransformerBlock(16, 2, activation="relu")
block_inputs = mg.randn(2, 5, 16).numpy()
block_out = block(mg.tensor(block_inputs))
(block_out * block_out).sum().backward()
names = [name for name, _ in block.named_parameters()]
print(len(names), "parameters:", ", ".join(names[:3]), "...")
same_block = None
if torch is None:
    print("skipped: no PyTorch")
else:
    from torch.utils.checkpoint import checkpoint

    theirs = torch.nn.TransformerEncoderLayer(16, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
    theirs.load_state_dict({name: torch.tensor(array) for name, array in block.state_dict().items()})
    out = checkpoint(theirs, torch.tensor(block_inputs), use_reentrant=False)
    (out * out).sum().backward()
    ours = [parameter.grad.numpy() for parameter in block.parameters()]
    in_order = [dict(theirs.named_parameters())[name].grad.numpy() for name in names]
    same_block = all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(in_order, ours, strict=True))
    print("gradients of a checkpointed block as in minigrad:", same_block)

# %% [markdown]
# ## What is not the same: a replay that calls your code
#
# In lesson 13 a naive checkpoint called its function again, and got other values when something had changed. PyTorch's
# calls it again too, and takes care of some of it: the state of its own random generator is put back before the replay
# (`preserve_rng_state`), and shapes are compared. Two things that it cannot see:
#
# - *dice of NumPy's*, thrown inside the function;
# - *a weight that is updated* between forward and backward.
#
# Before you run the next cell: what does minigrad do in these two cases? (One is an error, one is right.)


# %%
def half_of(h, dice):
    """1 or 0 for each element, by NumPy's dice."""
    return (dice.random(h.shape) < 0.5).astype("float64")


w = mg.tensor(np.eye(3) / 2, requires_grad=True, name="w")
data = np.arange(6.0).reshape(2, 3)


def gradient_with_dice(call):
    """The gradient of w through a function that throws NumPy's dice."""
    dice = np.random.default_rng(0)
    loss = call(lambda h: mg.tanh(mg.tanh(h @ w) * half_of(h, dice)), mg.tensor(data)).sum()
    (gradient,) = mg.grad(loss, w)
    return gradient.numpy()


def plain(fn, x):
    return fn(x)


right_with_dice = np.array_equal(gradient_with_dice(mg.checkpoint), gradient_with_dice(plain))
print("minigrad, NumPy's dice: the gradient of a plain call:", right_with_dice)

loss = mg.checkpoint(lambda h: mg.tanh(h @ w) @ w, mg.tensor(data)).sum()
w.assign_(w.numpy() * 2)
try:
    loss.backward()
except mg.OverwrittenError as error:
    overwritten = str(error)
    print("minigrad, updated weight: OverwrittenError:", overwritten)


# %% [markdown]
# And PyTorch, on the same numbers:


# %%
def torch_call(fn, x, checkpointed):
    from torch.utils.checkpoint import checkpoint

    return checkpoint(fn, x, use_reentrant=False) if checkpointed else fn(x)


def torch_with_dice(checkpointed):
    """The gradient of the same function with the same dice."""
    w = torch.tensor(np.eye(3) / 2, requires_grad=True)
    dice = np.random.default_rng(0)

    def fn(h):
        return torch.tanh(torch.tanh(h @ w) * torch.tensor(half_of(h, dice)))

    torch_call(fn, torch.tensor(data), checkpointed).sum().backward()
    return w.grad.numpy()


def torch_with_update(checkpointed, update=True):
    """The gradient, or the error, if w is doubled before backward."""
    w = torch.tensor(np.eye(3) / 2, requires_grad=True)
    loss = torch_call(lambda h: torch.tanh(h @ w) @ w, torch.tensor(data), checkpointed).sum()
    if update:
        with torch.no_grad():
            w.mul_(2)
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error)
    return w.grad.numpy()


in_torch = {}
if torch is None:
    print("skipped: no PyTorch")
else:
    in_torch["dice"] = np.array_equal(torch_with_dice(True), torch_with_dice(False))
    in_torch["update, plain"] = torch_with_update(False)
    in_torch["update"] = np.array_equal(torch_with_update(True), torch_with_update(True, update=False))
    print("PyTorch, NumPy's dice: the gradient of a plain call:", in_torch["dice"])
    print("PyTorch, updated weight, no checkpoint: RuntimeError:", in_torch["update, plain"][:88], "...")
    print("PyTorch, updated weight, checkpoint: the gradient of the forward that ran:", in_torch["update"])

# %% [markdown]
# Under a checkpoint both of PyTorch's gradients are wrong, and there is no message. Without one it notices the update,
# because its graph has noted which version of the weight it will read. Inside of a checkpoint nothing was noted, and
# the replay reads the weight as it is. So throw no NumPy dice in a checkpointed function there, and take no optimizer
# step between forward and backward.
#
# ## What is not the same: the remainder
#
# `checkpoint_sequential` of PyTorch takes a number of segments, as minigrad's does. If that does not divide the number
# of layers, the two cut in different places (lesson 07).
#
# Before you run the next cell: 23 layers in five segments. Which one gets the three layers that are left over, in
# minigrad and in PyTorch?


# %%
def lengths(schedule, layers):
    return [length for length, _ in schedule.split(layers)]


cuts = {"uniform(5)": schedules.uniform(5), "torch_compatible(5)": schedules.torch_compatible(5)}
remainder = {name: (lengths(each, 23), each.plan(23).peak) for name, each in cuts.items()}
for name, (found_lengths, peak) in remainder.items():
    print(f"{name:20} {found_lengths}: peak {peak}")
spacetime.compare({name: each.plan(23) for name, each in cuts.items()}, pictures.path("17-remainder.svg"))

# %% [markdown]
# ![Two space-time pictures of 23 layers: equal segments with a low curve of live activations, and PyTorch's rule, whose
# last long segment lies on top of all boundaries and makes the peak](pictures/17-remainder.svg)
#
# PyTorch's long segment is the last one, where all boundaries are alive. The repair is the first part of this lesson:
# give PyTorch the tree of `uniform(5)`, by `plan.torch_code()`, or a number of segments that divides the layers.
#
# ## In PyTorch and in JAX this is called
#
# | minigrad | PyTorch | JAX |
# |---|---|---|
# | `checkpoint(fn, x)` | `checkpoint(fn, x, use_reentrant=False)` | `jax.checkpoint(fn)(x)`, or `jax.remat` |
# | `checkpoint_sequential(layers, k, x)` | the same name, another remainder | - |
# | `policy=…` | `context_fn=…`, of `create_selective_checkpoint_contexts` | `policy=…` |
# | `save_nothing()` | `PREFER_RECOMPUTE` for every op | `nothing_saveable` |
# | `save_everything()` | `MUST_SAVE` for every op (keeps more) | `everything_saveable` |
# | `save_ops("matmul")` | a list of ops | `dots_saveable` |
# | `save_named("*.attn")`, layers | - | `save_only_these_names`, values |
# | `any_of(a, b)` | - | `save_from_both_policies` |
# | `within("1MB")` | `activation_memory_budget`, a share, compiled | - |
# | `offload=True` | `save_on_cpu`, `MUST_CPU_OFFLOAD` | `save_and_offload_only_these_names` |
# | `verify=True` | `determinism_check`, of shapes and dtypes | - |
# | `mg.saved(loss)` | `saved_tensors_hooks` | `print_saved_residuals` |
# | `tracer.peak_bytes` | `torch.cuda.max_memory_allocated()` | `device.memory_stats()` |
# | `mg.fit`, `mg.memory_budget` | - | - |
#
# PyTorch's are in `torch.utils.checkpoint` (its policies in `CheckpointPolicy`), in `torch.autograd.graph`
# (`save_on_cpu`, `saved_tensors_hooks`) and in `torch._functorch.config`; JAX's in `jax.checkpoint_policies` and
# `jax.ad_checkpoint`.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex17_trees.py`; `make check N=17` says how far you are.
#
# 1. `as_lists`: the tree of any schedule as the lists that the programs walk.
# 2. `calls_of_code`: how often each layer's code is called in PyTorch, from such lists.
# 3. `torch_lengths`: how PyTorch's `checkpoint_sequential` cuts.
#
# ## Questions
#
# 1. The sines are as many in all frameworks, and the calls of a layer's code are not. Why?
# 2. You move a network of `Linear` layers to JAX, all shapes fit, and the loss is wrong. What do you look at first?
# 3. Why does PyTorch notice an updated weight without a checkpoint, and not within one?
