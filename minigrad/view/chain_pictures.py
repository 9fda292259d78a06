"""The pictures of what checkpoints cost, all of one chain of layers that is really run: `write(folder)`.

It is the reference chain: layers `h @ W` from plain data, then a sum. Each ring in the pictures is a run of it that a
tracer has counted.
"""

import warnings
from pathlib import Path

from .. import schedules as make
from ..chain.sequential import checkpoint_sequential
from ..errors import CheckpointWarning
from ..ops.create import eye, ones
from ..schedules.schedule import whole_number
from ..trace.recorder import Tracer
from . import curves, sweeps, tradeoff

WIDTH, BATCH = 64, 500
NAMES = ("memory-run", "memory-runs", "sweep", "pareto", "growth")


class Layer:
    """h @ W, which keeps its input."""

    def __init__(self):
        self.weight = eye(WIDTH, requires_grad=True)

    def __call__(self, h):
        return h @ self.weight


def run(schedule, layers=100, batch=1) -> Tracer:
    """The tracer of one forward and backward of the reference chain.

    >>> run(make.uniform(10)).peak_activations
    19
    """
    chain, x = [Layer() for _ in range(layers)], ones(batch, WIDTH)
    with warnings.catch_warnings(), Tracer() as tracer:
        warnings.simplefilter("ignore", CheckpointWarning)  # 100 segments save nothing, and a picture shows that
        loss = checkpoint_sequential(chain, schedule, x).sum()
        loss.backward()
    return tracer


def write(folder, layers=100) -> list:
    """Write five pictures for so many layers, always the same bytes; returns their paths.

    memory-run.svg   all that was alive in one run under sqrt(), stacked by role
    memory-runs.svg  live activations under store_all(), sqrt() and triangular()
    sweep.svg        peak and replays over the number of segments
    pareto.svg       all schedules, memory against replays
    growth.svg       the peak over the number of layers

    Raises BudgetError for fewer than 10 layers.
    """
    layers, folder = whole_number(layers, "the number of layers", 10), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.svg" for name in NAMES]
    compared = {str(schedule): schedule for schedule in (make.store_all(), make.sqrt(), make.triangular())}
    runs = {name: run(schedule, layers, BATCH) for name, schedule in compared.items()}
    curves.plot_run(runs["sqrt()"], paths[0])
    curves.plot_runs(runs, paths[1])
    curves.sweep(layers, paths[2], {k: run(make.uniform(k), layers) for k in divisors(layers)})
    named = tradeoff.usual_schedules(layers)
    curves.pareto(layers, named, paths[3], {name: run(schedule, layers) for name, schedule in named.items()})
    lengths = [layers // 10, layers // 5, layers // 2, layers]
    measured = {name: measure(schedule, lengths) for name, schedule in sweeps.usual_schedules().items()}
    curves.growth([*lengths, 2 * layers, 5 * layers, 10 * layers], path=paths[4], measured=measured)
    return paths


def measure(schedule, lengths) -> dict:
    """layers -> Tracer of a run, for each length."""
    return {n: run(schedule, n) for n in lengths}


def divisors(n) -> list:
    return [k for k in range(1, n + 1) if n % k == 0]
