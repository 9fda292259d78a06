"""What mg.fit says that a deep network will hold and take, and what it does: two networks on real data.

A transformer of 24 blocks on the text of README.md, and 50 convolutions on handwritten digits. For a budget of 50 %
and 30 % of what storing everything holds, and for the least possible one: bytes by the tracer, seconds as the median
of some runs, each in turn with the run that stores everything, so that a machine that slows down slows both.

The program starts itself again with MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ set. With them glibc keeps the
memory of freed arrays. Without them it gives them back to the system, and every array that is made again costs page
faults: by far more than the difference between two schedules, and more or less of them by chance.

    python tests/bench/fit_deep_networks.py [--net transformer|convolutions] [--runs 5]
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.data import load_digits
from minigrad.table import bytes_text, table

README = Path(__file__).resolve().parents[2] / "README.md"


class Residual(nn.Module):
    """x + f(x): a convolution, batch norm, relu."""

    def __init__(self, channels):
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + mg.relu(self.norm(self.convolution(x)))


def transformer(blocks=24, width=96, context=96, batch=6):
    """(layers, x, loss): predict the next character."""
    text = README.read_text("utf-8")
    letters = sorted(set(text))
    ids = np.array([letters.index(letter) for letter in text])
    starts = np.random.default_rng(0).integers(0, len(ids) - context, batch)
    places = starts[:, None] + np.arange(context)
    embedding, head = nn.Embedding(len(letters), width), nn.Linear(width, len(letters))
    layers = [nn.TransformerBlock(width, 4) for _ in range(blocks)]

    def loss(h):
        return mg.cross_entropy(head(h).reshape(-1, len(letters)), mg.tensor(ids[places + 1].reshape(-1)))

    with mg.no_grad():
        x = embedding(mg.tensor(ids[places]))
    return layers, x, loss


def convolutions(depth=50, channels=16, batch=128):
    """(layers, x, loss): which digit is it?"""
    images, labels = load_digits()
    head = nn.Linear(channels, 10)
    layers = [nn.Conv2d(1, channels, 3, padding=1)] + [Residual(channels) for _ in range(depth - 1)]

    def loss(h):
        return mg.cross_entropy(head(h.mean(axis=(2, 3))), mg.tensor(labels[:batch]))

    return layers, mg.tensor(images[:batch].reshape(-1, 1, 8, 8)), loss


NETS = {"transformer": transformer, "convolutions": convolutions}


def run(layers, schedule, x, loss):
    """Seconds of forward and backward through the layers; the loss on top is not theirs."""
    start = time.perf_counter()
    h = mg.checkpoint_sequential(layers, schedule, x)
    forward = time.perf_counter() - start
    top = mg.tensor(h.data, requires_grad=True)
    (gradient,) = mg.grad(loss(top), top)
    start = time.perf_counter()
    h.backward(gradient)
    seconds = forward + time.perf_counter() - start
    for layer in layers:
        layer.zero_grad()
    return seconds


def held(layers, schedule, x):
    """Peak bytes of activations by the tracer."""
    with mg.Tracer() as tracer:
        h = mg.checkpoint_sequential(layers, schedule, x)
        h.backward(mg.ones(h.shape))
    for layer in layers:
        layer.zero_grad()
    return tracer.peak_activation_bytes


def budgets(measured, x):
    """50 % and 30 % of what storing everything holds, and the least possible."""
    everything = measured.forecast(mg.schedules.store_all()).peak_activation_bytes
    try:
        mg.fit(measured, x, 0)
    except mg.BudgetError as error:
        least = int(str(error).split(" bytes")[0].split("(")[-1].replace(",", ""))
    return {"50 %": everything // 2, "30 %": everything * 3 // 10, "least": least}


def report(name, runs):
    mg.manual_seed(0)
    layers, x, loss = NETS[name]()
    measured = mg.profile(layers, x)
    fitted = {"all": mg.fit(measured, x, "1TB")}
    fitted |= {label: mg.fit(measured, x, budget) for label, budget in budgets(measured, x).items()}
    seconds = {label: [] for label in fitted}
    for _ in range(runs):
        for label, schedule in fitted.items():
            seconds[label].append(run(layers, schedule, x, loss))
    rows = []
    for label, schedule in fitted.items():
        took, said = statistics.median(seconds[label]), schedule.predicted_seconds
        peak = held(layers, schedule, x)
        rows.append(
            (
                label, bytes_text(schedule.budget) if label != "all" else "", bytes_text(schedule.predicted_bytes),
                bytes_text(peak), f"{peak / schedule.predicted_bytes:.3f}", f"{said:.3f}", f"{took:.3f}",
                f"{took / said:.2f}", f"{took / statistics.median(seconds['all']):.2f}", str(schedule.schedule)[:20],
            )
        )  # fmt: skip
    headers = ("budget", "bytes", "said", "held", "ratio", "said s", "took s", "ratio", "x all", "schedule")
    print(f"\n{name}, {len(layers)} layers")
    print(table(headers, rows, right=(1, 2, 3, 4, 5, 6, 7, 8)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", choices=NETS, help="one of the two only")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        kept = {"MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_MMAP_THRESHOLD_": str(2**40)}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **kept})
    for name in [options.net] if options.net else NETS:
        report(name, options.runs)


if __name__ == "__main__":
    main()
