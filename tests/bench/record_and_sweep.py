"""What the engine costs: 100 layers of tanh(h @ W + b) in float32, forward and backward, as ratios in one process.

Small layers (8 x 8) show what minigrad does for each op, large ones (256 x 256, a batch of 256) what is left of that
beside the arithmetic. Beside it runs the same arithmetic written by hand in NumPy, and PyTorch's where it is installed.
A round runs all of them, one after the other; a ratio is the median of the ratios within a round. So whatever else the
machine is doing falls on all. All run on one thread.

    python tests/bench/record_and_sweep.py [--runs 200]

"Ten checkpoints" are ten stretches of ten layers, each of them replayed. Then: what an op costs in the backward of one
checkpoint around a long body, the bytes that an op of a plain chain holds, and which part of recording goes into
remembering the source line and the layer of each op.
"""

import argparse
import inspect
import os
import statistics
import textwrap
import time
import tracemalloc
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad.engine.op import Op  # noqa: E402
from minigrad.table import table  # noqa: E402

try:
    import torch
    from torch.utils.checkpoint import checkpoint as torch_checkpoint
except ImportError:
    torch = None

LAYERS, STRETCH = 100, 10
SIZES = {"8 x 8": (8, 8, 1), "256 x 256, batch 256": (256, 256, 10)}  # name -> width, batch, so many fewer rounds
AIMS = {
    ("8 x 8", "minigrad"): 3.3, ("8 x 8", "minigrad, ten checkpoints"): 1.8,
    ("256 x 256, batch 256", "minigrad"): 1.0, ("256 x 256, batch 256", "minigrad, ten checkpoints"): 1.35,
}  # fmt: skip
BODIES = (1_000, 8_000, 64_000)
CHAIN = 300_000


# ---- The same arithmetic, three ways -----------------------------------------------------------------


def problem(width, batch):
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((width, width)) / width**0.5).astype(np.float32) for _ in range(LAYERS)]
    biases = [np.zeros(width, np.float32) for _ in range(LAYERS)]
    return rng.standard_normal((batch, width)).astype(np.float32), weights, biases


def by_hand(x, weights, biases):
    """Gradients of sum(tanh(... tanh(x @ W1 + b1) ...)) in plain NumPy."""
    outputs, h = [x], x
    for w, b in zip(weights, biases, strict=True):
        h = np.tanh(h @ w + b)
        outputs.append(h)
    h.sum()
    g = np.ones_like(h)
    gradients = []
    for i in range(LAYERS - 1, -1, -1):
        out = outputs[i + 1]
        d = g * (1 - out * out)
        gradients.append((outputs[i].T @ d, d.sum(axis=0)))
        g = d @ weights[i].T
    return gradients


def chain(tanh, weights, biases):
    """The layers as one function."""

    def forward(h):
        for w, b in zip(weights, biases, strict=True):
            h = tanh(h @ w + b)
        return h

    return forward


def passes(tanh, checkpoint, x, weights, biases):
    """(a pass that stores everything, a pass with ten checkpoints) of minigrad or of PyTorch."""
    parameters = weights + biases
    whole = chain(tanh, weights, biases)
    starts = range(0, LAYERS, STRETCH)
    stretches = [chain(tanh, weights[i : i + STRETCH], biases[i : i + STRETCH]) for i in starts]

    def in_checkpoints(h):
        for stretch in stretches:
            h = checkpoint(stretch, h)
        return h

    def one_pass(forward):
        for parameter in parameters:
            parameter.grad = None
        forward(x).sum().backward()

    return lambda: one_pass(whole), lambda: one_pass(in_checkpoints)


def of_minigrad(x, weights, biases):
    weights, biases = [[mg.tensor(a, requires_grad=True) for a in arrays] for arrays in (weights, biases)]
    return passes(mg.tanh, mg.checkpoint, mg.tensor(x), weights, biases)


def of_torch(x, weights, biases):
    torch.set_num_threads(1)
    weights, biases = [[torch.tensor(a, requires_grad=True) for a in arrays] for arrays in (weights, biases)]

    def checkpoint(function, h):
        return torch_checkpoint(function, h, use_reentrant=False)

    return passes(torch.tanh, checkpoint, torch.tensor(x), weights, biases)


# ---- Measuring ---------------------------------------------------------------------------------------


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def rounds(functions, runs):
    """name -> seconds of each round; a round runs all functions once, in turn. A few rounds warm up."""
    found = {name: [] for name in functions}
    for i in range(runs + 3):
        for name, function in functions.items():
            took = seconds(function)
            if i >= 3:
                found[name].append(took)
    return found


def ratio(first, second):
    """The median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(first, second, strict=True))


def against_numpy(size, runs):
    """A row for each way: microseconds per op, times NumPy, times its own store-all, the aim."""
    width, batch, fewer = SIZES[size]
    arrays = problem(width, batch)
    functions = {"NumPy by hand": lambda: by_hand(*arrays)}
    for library, make in {"minigrad": of_minigrad, "PyTorch": of_torch if torch else None}.items():
        if make is not None:
            functions[library], functions[f"{library}, ten checkpoints"] = make(*arrays)
    found = rounds(functions, max(5, runs // fewer))
    rows = []
    for name, took in found.items():
        library, _, in_checkpoints = name.partition(", ")
        own = f"{ratio(took, found[library]):.2f}" if in_checkpoints else ""
        per_op = f"{1e6 * statistics.median(took) / (3 * LAYERS):.2f}"
        rows.append((size, name, per_op, f"{ratio(took, found['NumPy by hand']):.2f}", own, AIMS.get((size, name), "")))
    return rows


def long_bodies(runs=3):
    """For each length, the microseconds per op in the backward of one checkpoint around so many ops."""
    x = mg.tensor(np.ones(8, np.float32), requires_grad=True)
    found = {length: [] for length in BODIES}
    for _ in range(runs):
        for length in BODIES:

            def body(h, length=length):
                for _ in range(length):
                    h = mg.tanh(h)
                return h

            loss = mg.checkpoint(body, x).sum()
            found[length].append(1e6 * seconds(loss.backward) / length)
            x.grad = None
    return {length: statistics.median(each) for length, each in found.items()}


def bytes_per_op():
    """What a plain chain of tanh of 8 numbers holds at the end of forward, by tracemalloc: arrays, nodes and all."""
    h = mg.tensor(np.ones(8, np.float32), requires_grad=True)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(CHAIN):
            h = mg.tanh(h)
        return (tracemalloc.get_traced_memory()[0] - before) / CHAIN
    finally:
        tracemalloc.stop()


# ---- What recording consists of ----------------------------------------------------------------------


WITHOUT_PLACE = (
    ("code = frame.f_code\n", "code = None\n"),
    ("frame = get_frame(1)", "frame = None"),
    ("while code.co_filename in ENGINE_FILES and frame.f_back is not None:", "while False:"),
    ("frame.f_lasti", "0"),
    ("context.layer", '""'),
)


def without(function, *parts):
    """`function` with some of its own lines left out: what it would cost without them. None if it has changed."""
    source = textwrap.dedent(inspect.getsource(function))
    for part, instead in parts:
        if part not in source:
            return None
        source = source.replace(part, instead)
    names = {}
    exec(compile(source, function.__code__.co_filename, "exec"), function.__globals__, names)
    return names[function.__name__]


def share_of_places(runs):
    """How much faster recording is, as a share, when Op.__call__ does without the source line and the layer."""
    x, weights, biases = problem(8, 8)
    weights, biases = [[mg.tensor(a, requires_grad=True) for a in arrays] for arrays in (weights, biases)]
    forward, x = chain(mg.tanh, weights, biases), mg.tensor(x)
    whole, lean = Op.__call__, without(Op.__call__, *WITHOUT_PLACE)
    if lean is None:
        return "not measured: Op.__call__ has no longer the lines that are left out here"

    def record_lean():
        Op.__call__ = lean
        try:
            forward(x)
        finally:
            Op.__call__ = whole

    found = rounds({"lean": record_lean, "whole": lambda: forward(x)}, runs)
    return f"{1 - ratio(found['lean'], found['whole']):.1%}    the aim: under 10 %"


# ---- The program -------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="counted rounds of the small layers (default 200)")
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore", mg.CheckpointWarning)  # a checkpoint around everything is what is measured here
    print(f"{LAYERS} layers of tanh(h @ W + b), float32, forward and backward: medians of rounds that run all in turn")
    rows = [row for size in SIZES for row in against_numpy(size, runs)]
    headers = ("layers", "", "us per op", "x NumPy", "x storing all", "at most")
    print(table(headers, rows, right=(2, 3, 4, 5)))
    if torch is None:
        print("PyTorch is not installed here; with it there are two rows more for each size.")
    print("\none checkpoint around a long body: us per op of its backward (the aim: the same for all)")
    for length, each in long_bodies().items():
        print(f"  {length:6,} ops  {each:8.2f}")
    print(f"\na plain chain of {CHAIN:,} tanh of 8 numbers: {bytes_per_op():.0f} bytes an op (the aim: at most 460)")
    print(f"\nplace and layer, as a share of recording: {share_of_places(runs)}")


if __name__ == "__main__":
    main()
