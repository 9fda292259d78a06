"""The engine stands alone: with the ops, and nothing else of minigrad, it trains a network with checkpoints."""

import ast
import pathlib
import subprocess
import sys

import numpy as np

import minigrad as mg
from minigrad.engine.tracer import Tracer

PACKAGE = pathlib.Path(mg.__file__).parent

ALONE = """
import importlib.abc, sys, types

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        parts = name.split(".")
        if parts[0] == "minigrad" and len(parts) > 1 and parts[1] not in ("engine", "ops", "errors", "table"):
            raise ImportError(f"{name} is another room")

sys.meta_path.insert(0, Refuse())
package = types.ModuleType("minigrad")  # without its __init__, which would import every room
package.__path__ = [PACKAGE]
sys.modules["minigrad"] = package

import numpy as np
from minigrad.engine.checkpoint import record_stretch
from minigrad.engine.replay import PLAIN
from minigrad.engine.sweep import grad, steps
from minigrad.engine.tracer import Tracer
from minigrad import ops
from minigrad.engine.tensor import Tensor

rng = np.random.default_rng(0)
weights = [Tensor(rng.standard_normal((4, 4)) * 0.5).requires_grad_() for _ in range(12)]
x, y = Tensor(rng.standard_normal((16, 4))), Tensor(rng.standard_normal((16, 4)))

def stretch(h, first):
    for w in weights[first : first + 4]:
        h = ops.tanh(h @ w)
    return h

def loss(checkpointed):
    h = x
    for first in (0, 4, 8):
        h = record_stretch(lambda h=h, first=first: stretch(h, first), PLAIN) if checkpointed else stretch(h, first)
    return ((h - y) * (h - y)).mean()

losses, peaks = [], []
for checkpointed in (False, True):
    with Tracer() as tracer:
        value = loss(checkpointed)
        found = grad(value, weights)
    peaks.append(tracer.peak_activations)
    losses.append([g.tolist() for g in found])
assert losses[0] == losses[1]
assert peaks[1] < peaks[0], peaks
before = loss(True).item()
for _ in range(20):
    for step in steps(loss(True)):
        pass
    for w in weights:
        w.assign_(w.data - 0.5 * w.grad.data)
        w.grad = None
assert loss(True).item() < before
assert sorted({name.split(".")[1] for name in sys.modules if name.startswith("minigrad.")}) == [
    "engine", "errors", "ops", "table"]
print("alone", *peaks)
"""


def test_the_engine_and_the_ops_train_a_network_without_the_other_rooms():
    program = ALONE.replace("PACKAGE", repr(str(PACKAGE)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("alone"), done.stderr


def test_the_engine_imports_only_errors_and_table():
    for file in sorted((PACKAGE / "engine").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level >= 2:
                assert node.module in ("errors", "table"), f"{file.name}:{node.lineno} imports {node.module}"
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert not node.module.startswith("minigrad")


# ---- The seams, as engine/__init__.py shows them -----------------------------------------------------


def test_a_tracer_of_ones_own_hears_what_runs():
    class Largest(Tracer):
        largest = 0

        def ran(self, op, args, arrays, out):
            super().ran(op, args, arrays, out)
            self.largest = max(self.largest, out.nbytes)

    with Largest() as largest:
        mg.ones(10, dtype="float64") * mg.ones((3, 1), dtype="float64")
    assert largest.largest == 240


def test_a_cache_on_disk_is_a_keeper(tmp_path):
    class OnDisk:
        def put(self, node, path):
            np.save(path, node.out)
            node.out, node.keeper, self.path = None, self, path

        def bring_back(self, node, reader):
            return np.load(self.path)

    x = mg.tensor([0.5, 0.25], requires_grad=True)
    y = mg.tanh(x)
    (y * y).sum().backward()
    expected, x.grad = x.grad, None
    y = mg.tanh(x)
    loss = (y * y).sum()
    OnDisk().put(y.node, tmp_path / "value.npy")
    assert y.node.out is None
    loss.backward()
    assert x.grad.tolist() == expected.tolist()


def test_digests_of_ones_own_hear_both_runs():
    class Counting:
        def __init__(self):
            self.first, self.again = [], []

        def note(self, line, out):
            self.first.append(line.op.name)

        def compare(self, line, out):
            self.again.append(line.op.name)

        def for_a_checkpoint_inside(self):
            return self

    from minigrad.engine.checkpoint import record_stretch
    from minigrad.engine.replay import Manner

    x, digests = mg.tensor([0.5], requires_grad=True), Counting()
    record_stretch(lambda: mg.cos(mg.exp(mg.sin(x))), Manner(digests=digests)).sum().backward()
    assert digests.first == ["sin", "exp", "cos"] and digests.again == ["sin", "exp"]


