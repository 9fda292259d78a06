"""`make demo`: a hundred layers, a hundred live activations, and nineteen with checkpoints. On real data.

A network of 100 layers reads handwritten digits. Layers 1 to 99 are `tanh(h) @ W.T + b`, one op each that
keeps nothing but its input; layer 100 is the loss. So the tape holds x_0 ... x_99, one activation a layer.
The program trains it twice from the same seed, storing everything and with a checkpoint every ten layers,
compares the two to the last bit, and then measures one forward and backward under many schedules. Every
figure that it prints is measured while it runs.
"""

import argparse
import functools
import pathlib
import sys
import time
import warnings

import numpy as np

import minigrad as mg
from minigrad import nn, optim, schedules
from minigrad.data import load_digits
from minigrad.table import table

LAYERS, WIDTH, CLASSES = 100, 64, 10
EPOCHS, BATCH, TRAINING = 10, 100, 1500
MEASURED = 500  # digits in the batch on which memory and time are measured
SEGMENTS = (1, 2, 4, 5, 10, 20, 25, 50, 100)
STORE_ALL = schedules.store_all()


# ---- The network -------------------------------------------------------------------------------------


@mg.op
def tanh_linear(h, w, b):
    """tanh(h) @ w.T + b. Keeps its input h alone: the tanh is cheap, and each vjp computes it again."""
    return np.tanh(h) @ w.T + b


@tanh_linear.vjp("h")
def tanh_linear_wrt_h(g, h, w):
    t = mg.tanh(h)
    return (g @ w) * (1 - t * t)


@tanh_linear.vjp("w")
def tanh_linear_wrt_w(g, h):
    return g.T @ mg.tanh(h)


@tanh_linear.vjp("b")
def tanh_linear_wrt_b(g):
    return g


class TanhLinear(nn.Module):
    """One layer. An orthogonal matrix keeps signals and gradients at their size through 99 of them."""

    def __init__(self, inputs, outputs, rng):
        square, _ = np.linalg.qr(rng.standard_normal((inputs, inputs)))
        self.weight = nn.Parameter((1.05 * square[:outputs]).astype(np.float32))
        self.bias = nn.Parameter(np.zeros(outputs, np.float32))

    def forward(self, h):
        return tanh_linear(h, self.weight, self.bias)


def make_network(seed=0):
    rng = np.random.default_rng(seed)
    widths = [WIDTH] * (LAYERS - 1) + [CLASSES]
    return nn.Sequential(*[TanhLinear(a, b, rng) for a, b in zip(widths, widths[1:], strict=False)])


def loss_of(network, images, labels, schedule):
    """The hundred layers on one batch: the network's 99, and the loss as the last."""
    loss_layer = functools.partial(mg.cross_entropy, target=labels)
    return mg.checkpoint_sequential([*network, loss_layer], schedule, images)


# ---- Training ----------------------------------------------------------------------------------------


def digits(seed=0):
    """((images, labels) for training, (images, labels) for testing); pixels from -1 to 1."""
    images, labels = load_digits()
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = images[order] * 2 - 1, labels[order]
    return (images[:TRAINING], labels[:TRAINING]), (images[TRAINING:], labels[TRAINING:])


def train(schedule, data, progress, epochs=EPOCHS):
    """Train a fresh network; returns it with the loss of every step."""
    images, labels = data
    network, rng = make_network(), np.random.default_rng(1)
    optimizer = optim.Adam(network.parameters(), lr=5e-4)
    steps, losses = epochs * -(-len(images) // BATCH), []
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images), BATCH):
            batch = order[start : start + BATCH]
            optimizer.param_groups[0]["lr"] = learning_rate(len(losses) / steps)
            loss = loss_of(network, mg.tensor(images[batch]), mg.tensor(labels[batch]), schedule)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress.update()
    return network, losses


def learning_rate(done):
    """A short climb, then half a cosine down, as `done` goes from 0 to 1."""
    return 5e-4 * min(1, done * 10 + 0.01) * 0.5 * (1 + np.cos(np.pi * done))


def accuracy(network, data):
    """The share of digits that the network reads rightly."""
    images, labels = data
    with mg.no_grad():
        return float((network(mg.tensor(images)).numpy().argmax(axis=1) == labels).mean())


# ---- Measuring ---------------------------------------------------------------------------------------


def measure(network, data, schedule, repeats, progress):
    """(tracer of one forward and backward, its time as a multiple of storing all: the fastest of runs in turn)."""
    images, labels = mg.tensor(data[0][:MEASURED]), mg.tensor(data[1][:MEASURED])

    def once(how):
        for parameter in network.parameters():
            parameter.grad = None
        start = time.perf_counter()
        loss_of(network, images, labels, how).backward()
        return time.perf_counter() - start

    with mg.Tracer(ignore=[labels]) as tracer:
        once(schedule)
    seconds = {schedule: [], STORE_ALL: []}
    for repeat in range(repeats):
        for how in (schedule, STORE_ALL)[:: 1 if repeat % 2 else -1]:
            seconds[how].append(once(how))
        progress.update()
    return tracer, min(seconds[schedule]) / min(seconds[STORE_ALL])


def table_row(name, schedule, tracer, ratio):
    plan = schedule.plan(LAYERS)
    peak = f"{tracer.peak_bytes / 1e6:.2f}"
    return name, plan.peak, tracer.peak_activations, plan.extra_forwards, tracer.replayed_ops, peak, f"{ratio:.2f}"


def draw(network, data, runs, folder):
    """The two pictures: the network with its checkpoints, and the two memory curves."""
    images, labels = mg.tensor(data[0][:MEASURED], name="digits"), mg.tensor(data[1][:MEASURED], name="labels")
    loss = loss_of(network, images, labels, schedules.uniform(10))
    mg.render(loss, folder / "network.svg", level="layer")
    mg.view.curves.plot_runs(runs, folder / "memory.svg")


# ---- The program -------------------------------------------------------------------------------------


def main(arguments=None):
    """Run the demonstration; returns the exit status: 1 if anything measured is not as planned."""
    parser = argparse.ArgumentParser(prog="python -m minigrad demo", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for the pictures")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"rounds of training (default {EPOCHS})")
    parser.add_argument("--repeats", type=int, default=10, help="timed runs of each schedule (default 10)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    named = {f"{k} segments" if k > 1 else "1 segment": schedules.uniform(k) for k in SEGMENTS}
    named["triangular"] = schedules.triangular()
    batches = -(-TRAINING // BATCH)
    with progress_bar(2 * options.epochs * batches + options.repeats * len(named)) as progress:
        return run(options, named, progress)


def run(options, named, progress):
    training, testing = digits()
    say = functools.partial(progress.write, file=sys.stdout)
    say(f"A network of {LAYERS} layers on {len(training[0])} handwritten digits of {WIDTH} pixels; "
        f"{len(testing[0])} more to test it.\n")  # fmt: skip

    progress.set_description("training, storing all")
    network, losses = train(STORE_ALL, training, progress, options.epochs)
    progress.set_description("training, a checkpoint every 10")
    twin, twin_losses = train(schedules.every(10), training, progress, options.epochs)
    same = losses == twin_losses and all(
        np.array_equal(a.data, b.data) for a, b in zip(network.parameters(), twin.parameters(), strict=True)
    )
    right = accuracy(network, testing)
    say(f"trained twice from one seed: loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps, "
        f"test accuracy {right:.1%}")  # fmt: skip
    say(f"  storing all against a checkpoint every 10 layers: all {len(losses)} losses and all weights "
        f"{'the same to the last bit' if same else 'DIFFER'}\n")  # fmt: skip

    rows, tracers = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.CheckpointWarning)  # 100 segments save nothing, and the row says so
        for name, schedule in named.items():
            progress.set_description(f"measuring {name}")
            tracers[name], ratio = measure(network, training, schedule, options.repeats, progress)
            rows.append(table_row(name, schedule, tracers[name], ratio))
    headers = ("schedule", "planned", "measured", "to replay", "replayed", "peak MB", "time")
    say(table(headers, rows, right=range(1, 7)))
    say("\nplanned, measured: live activations at the peak, k + 100/k - 1 for k segments. to replay, replayed:"
        "\nlayers run again, by the plan and in the run. peak MB: all buffers, weights and gradients too."
        "\ntime: one forward and backward, as a multiple of storing all, with which it alternates; the best"
        f"\nof {options.repeats} runs each.\n")  # fmt: skip

    progress.set_description("drawing")
    runs = {"store all": tracers["1 segment"], "a checkpoint every 10 layers": tracers["10 segments"]}
    draw(network, training, runs, options.out)
    as_planned = same and all(row[1] == row[2] and row[3] == row[4] for row in rows)
    say(conclusion(rows, right, same, as_planned, options.out))
    return 0 if as_planned else 1


def conclusion(rows, right, same, as_planned, folder):
    """What was shown, in words; the numbers are those of the table."""
    (_, _, all_kept, _, _, all_mb, _), ten, best = rows[0], rows[SEGMENTS.index(10)], rows[-1]
    inner = LAYERS // 10 - 1
    return "\n".join(
        [
            "What this showed",
            f"  A backward through {LAYERS} layers needs {all_kept} activations. With a checkpoint every 10 layers "
            f"{ten[2]} are alive",
            f"  at once: {ten[2] - inner} boundaries and {inner} within one segment. {all_mb} MB became {ten[5]} MB.",
            f"  The price: {ten[4]} of the {LAYERS} layers ran once more, and a pass took {ten[6]} times as long.",
            f"  Segments that get shorter towards the end (triangular) need only {best[2]}, for {best[4]} layers.",
            f"  Nothing else changed: {'the same losses and weights to the last bit' if same else 'NOT TRUE HERE'}, "
            f"and {right:.1%} of unseen digits read.",
            f"  Planned and measured {'agree in every row' if as_planned else 'DO NOT AGREE'}.",
            f"Look at {folder / 'network.svg'} (checkpoints as clusters) and {folder / 'memory.svg'} (both climbs).",
        ]
    )


def progress_bar(total):
    """tqdm's bar, on stderr; none where that is not a terminal."""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise SystemExit('the demo needs a few packages more: pip install "minigrad[demo]"') from error
    return tqdm(total=total, unit="step", leave=False, dynamic_ncols=True, disable=None)
