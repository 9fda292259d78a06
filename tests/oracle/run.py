"""`make oracle`: minigrad against PyTorch, op by op, layer by layer.

Every op on the samples of the test suite (tests/op_samples.py), forward and backward with random cotangents, the same
for both, in float32 and float64; every function that is not simply an op, as torch calls it; every layer, with the
same state dict loaded into both; optimizers and learning rates over 20 steps; the programs that schedules' plans write
for torch; and the first 50 losses of the character transformer of the lessons.

Prints a table of the largest differences, and lists: what differs on purpose, and what torch does not have. Exit
status 1 if a difference is beyond its limit, or if anything has no counterpart here and is on no list.
"""

import argparse
import platform
import sys
import time
import warnings

import numpy as np
import torch

import minigrad as mg
from minigrad.engine.op import registry
from minigrad.table import table
from tests.op_samples import SAMPLES
from tests.oracle import char_transformer, functions, layers, on_purpose, schedules, training
from tests.oracle.compare import DTYPES, Row, compare
from tests.oracle.twins import LABELS, TORCH_HAS_NOT, TWINS

HEADERS = ("", "in torch", "samples", "f32 fwd", "f32 bwd", "f64 fwd", "f64 bwd")


def op_row(name):
    """All samples of one op."""
    row = Row(name, LABELS[name])
    for sample in SAMPLES[name]:

        def run(dtype, sample=sample):
            settings = {key: np.dtype(dtype) if key == "dtype" else v for key, v in sample.settings.items()}
            return compare(registry[name], TWINS[name], sample.inputs, dtype, settings, settings)

        row.run(sample, run)
    return row


def tables(only):
    """(title, rows, names that have no counterpart) of each part."""
    ops = [name for name, op in registry.items() if op.forward.__module__.startswith("minigrad.")]
    yield "ops", map(op_row, only(TWINS)), set(ops) ^ (set(TWINS) | set(TORCH_HAS_NOT))
    for title, module in (("functions", functions), ("layers", layers), ("optimizers and learning rates", training)):
        yield title, module.rows(only), module.missing()
    yield "checkpoints as torch's, on a chain of matrix products", schedules.rows(only), schedules.missing()
    yield "the character transformer, 50 losses", char_transformer.rows(only), set()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="make oracle", description=__doc__.split("\n")[0])
    parser.add_argument("-k", metavar="TEXT", default="", help="only what has this text in its name")
    options = parser.parse_args(arguments)
    start, problems, rows = time.perf_counter(), [], []
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, NumPy {np.__version__}, Python {platform.python_version()}\n")

    def only(names):
        return [name for name in names if options.k in name]

    for title, found, missing in tables(only):
        found = list(found)
        rows += found
        if found:
            print(f"{title}\n\n{table(HEADERS, [row.cells() for row in found], right=range(2, 7))}\n", flush=True)
        problems += [problem for row in found for problem in row.problems]
        problems += [f"{name}: in {title}, and nothing to compare it with" for name in sorted(missing)]
    print("differs on purpose\n")
    for name, reason, differs in on_purpose.DIFFERENCES:
        print(f"  {name}: {reason}")
        if not differs():
            problems.append(f"{name}: is said to differ on purpose, and does not")
    print("\ntorch does not have\n")
    for name, reason in TORCH_HAS_NOT.items():
        print(f"  {name}: {reason}")
    print("\n" + summary(rows, problems, time.perf_counter() - start))
    return 1 if problems else 0


def summary(rows, problems, seconds) -> str:
    lines = [f"{len(rows)} rows, {sum(row.samples for row in rows)} samples, {seconds:.0f} s"]
    for dtype in DTYPES:
        for kind in ("forward", "backward"):
            worst = max(rows, key=lambda row: getattr(row, kind).get(dtype, -1.0))  # noqa: B023
            figure, limit = getattr(worst, kind).get(dtype, 0.0), worst.limits[dtype]
            lines.append(f"  {dtype} {kind:8}  {figure:.1e} at most, in {worst.name}; its limit is {limit:.0e}")
    if problems:
        lines += ["", f"{len(problems)} PROBLEMS", *[f"  {problem}" for problem in problems]]
    else:
        lines.append("Everything agrees with torch.")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    mg.manual_seed(0)
    sys.exit(main())
