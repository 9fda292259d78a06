# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 04 Layers and digits
#
# **A layer is a function together with the arrays that it learns; training is one step over and over, a forward, a
# backward and a small move of these arrays against their gradients; and of a step nothing may stay behind but the
# moved arrays.**
#
# Needs: 02, 03. Minutes: 20.
#
# So far you have differentiated functions of arrays. Here a network learns to read handwritten digits, in a second or
# two. Then you break its training in two ways that do not raise any error: one leaves gradients behind, the other
# leaves whole graphs behind, and that one costs memory.

# %%
import _pictures as pictures
import numpy as np
from tqdm import tqdm

import minigrad as mg
from minigrad import nn, optim
from minigrad.data import load_digits
from minigrad.view import canvas, curves

# %% [markdown]
# ## The data
#
# A picture is 64 numbers, 8 rows of 8, each the share of ink from 0 to 1. A label is the digit that was written.
# Most of the pictures are for training. The others are held out: the network never sees them while it learns, so they
# show whether it has learned to read, or only to repeat.

# %%
TRAINING, BATCH, EPOCHS = 1500, 50, 20

images, labels = load_digits()
order = np.random.default_rng(1).permutation(len(images))
images, labels = images[order], labels[order]
training, held_out = (images[:TRAINING], labels[:TRAINING]), (images[TRAINING:], labels[TRAINING:])


def as_text(picture):
    """A picture in letters: the more ink, the darker."""
    return "\n".join("".join(2 * " .+*#"[int(4 * ink)] for ink in row) for row in picture.reshape(8, 8))


print(len(training[0]), "pictures to learn from,", len(held_out[0]), "held out")
print(f"the first of them, a {training[1][0]}:\n{as_text(training[0][0])}")

# %% [markdown]
# ## A layer
#
# Ten outputs are to come out of 64 pixels, each a sum of all pixels with weights of its own, and a bias: x @ W.T + b.
# The ops for that exist. A *layer* is these ops and the arrays W and b, in one object. You make a class of `nn.Module`,
# set what is to be learned as an `nn.Parameter`, and write the function as `forward`.
#
# *Before you run the next cell: how many numbers does this layer learn?*


# %%
class Affine(nn.Module):
    """x @ weight.T + bias."""

    def __init__(self, inputs, outputs):
        self.weight = nn.Parameter(mg.randn(outputs, inputs) / inputs**0.5)  # so that a sum of inputs is not too large
        self.bias = nn.Parameter(mg.zeros(outputs))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def learned(network):
    """How many numbers a network learns."""
    return sum(parameter.data.size for parameter in network.parameters())


layer = Affine(64, 10)
for name, parameter in layer.named_parameters():
    print(f"{name:6} {parameter.shape}")
print("numbers to learn:", learned(layer))
print("ten pictures give outputs of shape", layer(mg.tensor(training[0][:10])).shape)

# %% [markdown]
# Nobody has listed the parameters. `parameters()` looks at the attributes of the object: what is a `Parameter` is one,
# and what is a module is looked into in turn. `nn.Linear(64, 10)` is the same layer, as a single op.
#
# ## Layers in layers
#
# One affine layer draws straight borders between the digits. Two with something bent between them can do more. The
# next network has three; `relu` bends. A module that holds modules is a module.


# %%
class Reader(nn.Module):
    """64 pixels in, ten scores out."""

    def __init__(self):
        self.first, self.second, self.last = nn.Linear(64, 128), nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.last(mg.relu(self.second(mg.relu(self.first(x)))))


def make_network():
    """A fresh network, the same each time."""
    mg.manual_seed(4)
    return Reader()


network = make_network()
print(network)
print("parameters:", *[name for name, _ in network.named_parameters()])
print("numbers to learn:", learned(network))

# %% [markdown]
# Each parameter has a path, the way down to it. You will meet these paths in tables, pictures and errors. For layers
# in a row you need no class: `nn.Sequential(nn.Linear(64, 128), nn.ReLU(), …)` calls one after the other.
#
# Attributes are looked at, and not what is inside of lists.
#
# *Before you run the next cell: how many parameters are found in this one?*


# %%
class Hidden(nn.Module):
    """Keeps its layers in a plain list."""

    def __init__(self):
        self.layers = [nn.Linear(64, 128), nn.Linear(128, 10)]


hidden = Hidden()
print("in a list:", learned(hidden))
hidden.layers = nn.ModuleList(hidden.layers)
print("in an nn.ModuleList:", learned(hidden))

# %% [markdown]
# ## How wrong it is
#
# The ten outputs are scores. Softmax makes shares of them that add up to one: exp(score) over the sum of all ten. The
# loss of a picture is minus the logarithm of the share that the right digit got, and the loss of a batch is the mean.
# That is `mg.cross_entropy`.
#
# *Before you run the next cell: an untrained network has no reason to prefer any digit. What is its loss, about?*

# %%
x, y = mg.tensor(training[0][:BATCH]), mg.tensor(training[1][:BATCH])
scores = network(x)
first_loss = mg.cross_entropy(scores, y)

exponentials = np.exp(scores.numpy())
shares = exponentials / exponentials.sum(axis=1, keepdims=True)
by_hand = -np.log(shares[np.arange(BATCH), training[1][:BATCH]]).mean()
print(f"mg.cross_entropy: {first_loss.item():.4f}; by hand: {by_hand:.4f}; logarithm of ten: {np.log(10):.4f}")

# %% [markdown]
# The shares of all ten are about a tenth, and minus the logarithm of a tenth is the logarithm of ten.
#
# ## One step
#
# Backward leaves at each parameter a gradient: how fast the loss rises if that number does. So move all numbers a
# little way in the other direction. `assign_` puts a new array into a parameter.

# %%
RATE = 0.3

first_loss.backward()
for parameter in network.parameters():
    parameter.assign_(parameter.data - RATE * parameter.grad.data)
second_loss = mg.cross_entropy(network(x), y)
print(f"loss of these pictures before the step {first_loss.item():.4f}, after it {second_loss.item():.4f}")

# %% [markdown]
# An optimizer does the same for all parameters that it was given. `optim.SGD` is this very formula (stochastic gradient
# descent). `optim.Adam` also divides each gradient by its usual size, so that small ones count as well.

# %%
twin = make_network()
optimizer = optim.SGD(twin.parameters(), lr=RATE)
mg.cross_entropy(twin(x), y).backward()
optimizer.step()
pairs = zip(network.parameters(), twin.parameters(), strict=True)
same_step = all(np.array_equal(a.data, b.data) for a, b in pairs)
print("SGD's step is the one by hand, to the last bit:", same_step)

# %% [markdown]
# ## Many steps
#
# An epoch goes once through all pictures, in batches, in another order each time. Each batch makes a step. All of
# training is what the inner loop of `train` does: forward, forget the old gradients, backward, step.
#
# *Before you run the next cell: how many of the pictures that it has never seen will the network read rightly?* Chance
# gives one in ten.


# %%
def batches(rng):
    """Batches of training pictures with their labels, in a fresh order."""
    shuffled = rng.permutation(TRAINING)
    for start in range(0, TRAINING, BATCH):
        rows = shuffled[start : start + BATCH]
        yield mg.tensor(training[0][rows]), mg.tensor(training[1][rows])


def train(network, optimizer, epochs=EPOCHS, forget=True):
    """The loss of each step. `forget` the gradients of the step before, which is as it should be."""
    rng, losses = np.random.default_rng(0), []
    for _ in tqdm(range(epochs), desc="epochs", leave=False, disable=None):
        for x, y in batches(rng):
            loss = mg.cross_entropy(network(x), y)
            if forget:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def digits_read(network, images):
    """The digit with the highest score, for each picture."""
    with mg.no_grad():
        return network(mg.tensor(images)).numpy().argmax(axis=1)


def accuracy(network, images, labels):
    """The share of pictures that are read rightly."""
    return float((digits_read(network, images) == labels).mean())


networks, losses, accuracies = {}, {}, {}
for name, kind, rate in (("SGD", optim.SGD, RATE), ("Adam", optim.Adam, 0.002)):
    network = networks[name] = make_network()
    losses[name] = train(network, kind(network.parameters(), lr=rate))
    accuracies[name] = accuracy(network, *training), accuracy(network, *held_out)
    print(f"{name:4} loss {losses[name][0]:.2f} at first, {np.mean(losses[name][-30:]):.3f} in the last epoch; reads "
          f"{accuracies[name][0]:.1%} of the training pictures, {accuracies[name][1]:.1%} of the others")  # fmt: skip

# %% [markdown]
# More than 95 of 100 pictures that it has never seen.
#
# ## Without a tape
#
# `digits_read` ran the network under `mg.no_grad()`. Nothing is recorded there, so nothing is kept. To look at
# pictures, and not to learn from them, is what most networks do for most of their life.
#
# An array that the tape holds for backward is called a **buffer**; the weights do not count, as in lesson 00.
#
# *Before you run the next cell: how many buffers does the tape keep for one forward of this network with recording,
# and how many without?*

# %%
x, y = mg.tensor(held_out[0]), mg.tensor(held_out[1])
trained = networks["Adam"]
with mg.Tracer() as recorded:
    loss_recorded = mg.cross_entropy(trained(x), y)
with mg.Tracer() as unrecorded, mg.no_grad():
    mg.cross_entropy(trained(x), y)
print(f"recorded:     {recorded.live_activations} live, {recorded.live_activation_bytes:,} bytes")
print(f"with no_grad: {unrecorded.peak_activations} live, {unrecorded.peak_activation_bytes:,} bytes")
print(mg.saved(loss_recorded))

# %% [markdown]
# Lesson 05 explains these rows one by one.
#
# ## Break it: gradients that pile up
#
# Backward *adds* to `.grad`. That is right within one backward, where a parameter that is used twice gets the sum. It
# is right across backwards only if you mean it.
#
# *Before you run the next cell: compute the loss of the same pictures twice, each time with a backward. What is the
# gradient then? And where does a training end that never calls `zero_grad`?*

# %%
network = make_network()
bias = network.last.bias
x, y = next(batches(np.random.default_rng(0)))
once = np.array(mg.grad(mg.cross_entropy(network(x), y), bias)[0].data)  # returned, and not added to .grad
for _ in range(2):
    mg.cross_entropy(network(x), y).backward()
piled_up = np.allclose(bias.grad.data, 2 * once)
print("after two backwards the gradient is twice that of one:", piled_up)

name = "SGD without zero_grad"
network = networks[name] = make_network()
losses[name] = train(network, optim.SGD(network.parameters(), lr=RATE), forget=False)
accuracies[name] = accuracy(network, *training), accuracy(network, *held_out)
print(f"{name}: loss {np.mean(losses[name][-30:]):.2f} in the last epoch, reads {accuracies[name][1]:.1%} of the "
      f"held-out pictures; with it: {accuracies['SGD'][1]:.1%}")  # fmt: skip

# %% [markdown]
# No error, and no warning. Each step goes along the sum of all gradients since the beginning, and so it rolls on past
# every valley. The repair is the line that you have seen: `optimizer.zero_grad()` once in each step, anywhere before
# `backward`.
#
# The next cell draws the picture below it. You can pass over its code.


# %%
def draw(path, network, wrong):
    """The losses, each the mean of an epoch, and some pictures that a network has read wrongly."""
    figure, (axes,) = canvas.page(
        f"{accuracy(network, *held_out):.1%} of unseen digits are read",
        "left: the loss of each epoch; right: digits that the network trained with Adam gets wrong",
    )
    left, bottom, width, height = axes.get_position().bounds
    axes.set_position((left, bottom, 0.56 * width, height))
    for (name, values), (colour, dash) in zip(losses.items(), canvas.STYLES, strict=False):
        means = np.reshape(values, (EPOCHS, -1)).mean(axis=1)
        axes.plot(range(1, EPOCHS + 1), means, color=colour, linestyle=dash, label=name)
    axes.set(xlabel="epoch", ylabel="loss, mean of the epoch", xticks=range(0, EPOCHS + 1, 5), yscale="log")
    axes.legend(frameon=False)
    read = digits_read(network, held_out[0])
    for place, number in enumerate(wrong[:9]):
        across, down = place % 3, place // 3
        corner = left + (0.64 + 0.125 * across) * width, bottom + height * (0.73 - 0.355 * down)
        cell = figure.add_axes((*corner, 0.11 * width, 0.25 * height))
        cell.imshow(held_out[0][number].reshape(8, 8), cmap="Greys")
        cell.set(xticks=[], yticks=[])
        cell.set_title(f"a {held_out[1][number]}, read as {read[number]}", fontsize=9)
    canvas.saved(figure, path)


wrong = np.flatnonzero(digits_read(trained, held_out[0]) != held_out[1])
print(len(wrong), "of", len(held_out[0]), "held-out pictures are read wrongly by the network trained with Adam")
draw(pictures.path("04-digits-measured.svg"), trained, wrong)

# %% [markdown]
# ![Left: losses fall towards nothing with SGD and with Adam, and rise where gradients were not forgotten; right:
# handwritten digits that were read wrongly](pictures/04-digits-measured.svg)
#
# ## Break it: graphs that pile up
#
# You would like to know the loss of all held-out pictures. Go through them in batches, add the losses up, divide.
# Harmless?
#
# *Before you run the next cell: a forward keeps as many buffers as you have counted above. How many are alive after
# eight batches?*


# %%
def held_out_batches():
    """The held-out pictures in eight batches."""
    for rows in np.array_split(np.arange(len(held_out[0])), 8):
        yield mg.tensor(held_out[0][rows]), mg.tensor(held_out[1][rows])


def total_of_tensors(tracer, live):
    """The sum of all losses, as a tensor; notes in `live` how many activations are alive after each batch."""
    total = 0
    for x, y in held_out_batches():
        total = total + mg.cross_entropy(trained(x), y) * len(x)
        live.append(tracer.live_activations)
    return total


def total_of_values(tracer, live):
    """The same as a number."""
    total = 0.0
    for x, y in held_out_batches():
        total += mg.cross_entropy(trained(x), y).item() * len(x)
        live.append(tracer.live_activations)
    return total


runs, live_after = {}, {}
for name, total_of in (("the sum of tensors", total_of_tensors), ("the sum of values", total_of_values)):
    live_after[name] = []
    with mg.Tracer() as tracer:
        mean_loss = float(total_of(tracer, live_after[name])) / len(held_out[0])
    runs[name] = tracer
    print(f"{name:18}: loss {mean_loss:.4f}, live after each batch {live_after[name]}, peak {tracer.peak_activations}")
curves.plot_runs(runs, pictures.path("04-graphs.svg"))

live_after["no_grad"] = []
with mg.Tracer() as tracer, mg.no_grad():
    total_of_tensors(tracer, live_after["no_grad"])
print(f"tensors in no_grad: live after each batch {live_after['no_grad']}, peak {tracer.peak_activations}")

# %% [markdown]
# ![Live activations over the evaluation of eight batches: the sum of tensors climbs batch by batch, the sum of values
# falls back after each](pictures/04-graphs.svg)
#
# The losses agree, and nothing is wrong with either sum. But a loss is a tensor, and a tensor leads to its node, which
# leads to all nodes before it, with what they keep. `total` is one graph over all batches, ready for a backward that
# will never come. `.item()` takes the number, and the graph goes. Within `mg.no_grad()` there is no graph to begin
# with, and then even tensors can be added up: that is the better repair, when you do not train.
#
# And in the training loop? There, backward frees the buffers of each graph, so a sum of losses would not keep those.
#
# *Before you run the next cell: what does it still keep?*

# %%
network, total = make_network(), 0
optimizer = optim.SGD(network.parameters(), lr=RATE)
with mg.Tracer() as tracer:
    for x, y in batches(np.random.default_rng(0)):
        loss = mg.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + loss
lines_of_loss, lines_of_total = len(mg.tape(loss)), len(mg.tape(total))
print(f"{tracer.live_activations} activations; but behind one loss there are {lines_of_loss} lines of tape, behind the "
      f"sum over an epoch {lines_of_total}")  # fmt: skip

# %% [markdown]
# The lines stay: small objects, but more of them with every step, for as long as the sum is alive. `train` above adds
# `loss.item()` to its list, and so keeps numbers.
#
# ## In PyTorch and in JAX
#
# - The names are PyTorch's: `torch.nn.Module`, `nn.Linear` (weights of the same layout), `nn.Sequential`,
#   `nn.ModuleList`, `torch.nn.functional.cross_entropy`, `torch.optim.SGD`, `optimizer.zero_grad()`,
#   `torch.no_grad()`. Both breaks happen there in the same way; its FAQ warns of sums of losses that keep history.
# - In JAX a gradient is what a function returns, so nothing piles up by itself. Parameters are plain nested dicts or
#   lists of arrays, layers come from libraries such as Flax or Equinox, optimizers from Optax.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex04_training.py`; `make check N=04` says how far you are.
#
# 1. `cross_entropy`: the loss out of simpler ops, also for very large scores.
# 2. `momentum_step`: one step of SGD with momentum, by hand.
# 3. `backward_in_parts`: the gradient of a large batch, with the memory of a small one. Here gradients pile up on
#    purpose.
#
# ## Questions
#
# 1. How does an optimizer come to know of the weights of a layer inside of a layer?
# 2. Someone's training needs more memory with every epoch, and its losses look right. Where do you look first, and
#    which number do you watch?
# 3. Why is the loss of an untrained network for ten classes near 2.3, and what would it be for a hundred classes?
