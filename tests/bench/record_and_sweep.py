"""What the engine costs per op: 100 layers of tanh(h @ W + b) on 8x8 float32, forward and backward.

Beside it, in the same process and in turn, runs the same arithmetic written by hand in NumPy. Prints
the median of the ratios of neighbouring runs, what recording alone costs, and how much of it goes into
remembering the source line and the layer of each op.

    python tests/bench/record_and_sweep.py [--runs 200]
"""

import argparse
import inspect
import statistics
import textwrap
import time

import numpy as np

import minigrad as mg
from minigrad.engine.op import Op

LAYERS, SIZE = 100, 8


def make_problem():
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((SIZE, SIZE)) / 3).astype(np.float32) for _ in range(LAYERS)]
    biases = [np.zeros(SIZE, np.float32) for _ in range(LAYERS)]
    return rng.standard_normal((SIZE, SIZE)).astype(np.float32), weights, biases


def by_hand(x, weights, biases):
    """Loss gradient of sum(tanh(... tanh(x @ W1 + b1) ...)) in plain NumPy."""
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


def forward(x, weights, biases):
    h = x
    for w, b in zip(weights, biases, strict=True):
        h = mg.tanh(h @ w + b)
    return h.sum()


def taped(x, weights, biases):
    for parameter in weights + biases:
        parameter.grad = None
    forward(x, weights, biases).backward()


def seconds(function, *args):
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def paired(runs, first, second):
    """Median seconds of each, and the median of the ratios of neighbouring runs; a few runs warm up."""
    pairs = [(seconds(*first), seconds(*second)) for _ in range(runs + 5)][5:]
    ratio = statistics.median(a / b for a, b in pairs)
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio


def without(function, *parts):
    """`function` with some of its own lines left out: what it would cost without them."""
    source = textwrap.dedent(inspect.getsource(function))
    for part, instead in parts:
        if part not in source:
            raise SystemExit(f"{function.__qualname__} has changed; this benchmark leaves out lines it no longer has")
        source = source.replace(part, instead)
    names = {}
    exec(compile(source, function.__code__.co_filename, "exec"), function.__globals__, names)
    return names[function.__name__]


WITHOUT_PLACE = (
    ("code = frame.f_code\n", "code = None\n"),
    ("frame = get_frame(1)", "frame = None"),
    ("while code.co_filename in ENGINE_FILES and frame.f_back is not None:", "while False:"),
    ("frame.f_lasti", "0"),
    ("context.layer", '""'),
)
WITHOUT_TRACER = (
    ("if tracer is not None:\n        tracer.ran(self, args, arrays, out)", "pass"),
    ("region, tracer = context.region, context.tracer", "region, tracer = context.region, None"),
)


def share(runs, problem, parts):
    """How much faster recording is, as a share, when Op.__call__ does without some of its lines."""
    whole, lean = Op.__call__, without(Op.__call__, *parts)

    def record_lean(*args):
        Op.__call__ = lean
        try:
            return forward(*args)
        finally:
            Op.__call__ = whole

    _, _, ratio = paired(runs, (record_lean, *problem), (forward, *problem))
    return 1 - ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="counted pairs of runs (default 200)")
    runs = parser.parse_args().runs
    x, weights, biases = make_problem()
    problem = mg.tensor(x), *([mg.tensor(a, requires_grad=True) for a in arrays] for arrays in (weights, biases))
    per_op = 1e6 / (3 * LAYERS)
    a, b, ratio = paired(runs, (taped, *problem), (by_hand, x, weights, biases))
    print(f"{LAYERS} layers of tanh(h @ W + b), {SIZE}x{SIZE} float32, forward and backward, median of {runs} runs")
    print(f"  taped              {a * per_op:6.2f} us per op")
    print(f"  by hand in NumPy   {b * per_op:6.2f} us per op")
    print(f"  ratio              {ratio:6.2f}    the aim: at most 3.5")
    print("of recording (forward alone)")
    print(f"  place and layer    {share(runs, problem, WITHOUT_PLACE):6.1%}   the aim: under 10 %")
    print(f"  tracer, when off   {share(runs, problem, WITHOUT_TRACER):6.1%}   the aim: within the noise")


if __name__ == "__main__":
    main()
