"""Runs minigrad on the stand-in for CuPy and on the CPU, and compares; prints counts and failures as JSON.

`test_gpu_stand_in.py` starts it in a process of its own, since a `cupy` in sys.modules changes where arrays live.
"""

import json
import sys
import traceback

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad import schedules as s
from tests import fake_cupy
from tests.op_samples import SAMPLES
from tests.test_ops import OURS, tensors

fake_cupy.install()


def moved(value, device):
    if not isinstance(value, mg.Tensor):
        return value
    there = value.to(device).detach()
    there.requires_grad = value.requires_grad
    return there


def outputs(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def derivatives(op, sample, name, device):
    """Values, first and second derivatives of one sample on a device, as NumPy arrays."""
    args = [moved(a, device) for a in tensors(name, sample)]
    outs = [o for o in outputs(op(*args, **sample.settings)) if isinstance(o, mg.Tensor)]
    found = list(outs)
    wanted = [a for a in args if isinstance(a, mg.Tensor) and a.requires_grad]
    smooth = [o for o in outs if o.requires_grad]
    if wanted and smooth:
        first = mg.grad(sum((o * o).sum() for o in smooth), wanted, create_graph=True)
        found += first
        again = [g for g in first if g.requires_grad]
        if again:
            found += mg.grad(sum((g * g).sum() for g in again), wanted, allow_unused=True)
    places = {t.device for t in found if t is not None}
    if places - {device}:
        raise AssertionError(f"results on {places} for inputs on {device}")
    return [None if t is None else np.array(t.numpy()) for t in found]


def same(left, right):
    if len(left) != len(right):
        raise AssertionError(f"{len(left)} results and {len(right)}")
    for a, b in zip(left, right, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype, (a.dtype, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def every_op():
    for name in OURS:
        if name == "to":  # its samples name the device themselves
            continue
        for sample in SAMPLES.get(name, ()):
            inputs = [x for x in sample.inputs if isinstance(x, np.ndarray)]
            if not inputs:
                continue
            yield f"{name}({sample})", lambda n=name, s=sample: same(
                derivatives(OURS[n], s, n, "cpu"), derivatives(OURS[n], s, n, "cuda:0"))


def chain_of(device, depth=6):
    mg.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(depth)]).to(device)


def trained(device, optimizer, run):
    model = chain_of(device)
    x = mg.tensor(np.random.default_rng(1).standard_normal((3, 4)).astype("float32"), device=device)
    steps = optimizer(model.parameters())
    for _ in range(3):
        steps.zero_grad()
        out = run(model, x)
        (out * out).sum().backward()
        steps.step()
    return [np.array(p.numpy()) for p in model.parameters()]


OPTIMIZERS = {"SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "Adam": lambda p: optim.Adam(p, lr=0.1),
              "RMSprop": lambda p: optim.RMSprop(p, lr=0.01), "AdamW": lambda p: optim.AdamW(p, lr=0.1)}
SCHEDULES = {"store_all": s.store_all, "uniform": lambda: 3, "bisection": lambda: s.bisection(),
             "binomial": lambda: s.binomial(2)}
RUNS = {
    "plain": lambda model, x: model(x),
    "verify": lambda model, x: mg.checkpoint(model, x, verify=True),
    "offload": lambda model, x: mg.checkpoint_sequential([lambda t, m=m: mg.checkpoint(m, t, offload=True)
                                                          for m in model], s.store_all(), x),
}
for _name, _schedule in SCHEDULES.items():
    RUNS[_name] = lambda model, x, schedule=_schedule: mg.checkpoint_sequential(model, schedule(), x)


def training():
    for name, make in OPTIMIZERS.items():
        for how, run in RUNS.items():
            yield f"train {name} {how}", lambda m=make, r=run: same(trained("cpu", m, r), trained("cuda:0", m, r))


def profiled():
    x = mg.tensor(np.ones((3, 4), "float32"), device="cuda:0", requires_grad=True)
    assert len(mg.profile(chain_of("cuda:0"), x).layers) == 6


def hook_writes():
    """A hook that writes into g.data changes no other branch."""
    x = mg.tensor(np.ones(3), device="cuda:0", requires_grad=True)
    left, right = x.reshape(3), x.reshape(3)
    called = []
    left.register_hook(lambda g: called.append(g.data.fill(0)))
    (left + right).sum().backward()
    assert called and x.grad.numpy().tolist() == [2, 2, 2], x.grad


@mg.op
def times_constant(x, c):
    return x * c


@times_constant.vjp("x")
def times_constant_wrt_x(g, c):
    return c  # for a gradient of ones: the tape's own array


def gradient_is_a_constant():
    """Writing into `.grad` does not change the constant that a vjp returned."""
    x = mg.tensor(np.ones(3), device="cuda:0", requires_grad=True)
    c = mg.tensor(np.full(3, 2.0), device="cuda:0")
    times_constant(x, c).backward(sys.modules["cupy"].ones(3))
    x.grad.data[0] = 99.0
    assert c.numpy().tolist() == [2, 2, 2], c


def mixed_devices():
    try:
        mg.tensor(np.ones(3), device="cuda:0") + mg.tensor(np.ones(3))
    except mg.DeviceError as error:
        assert "cpu" in str(error) and "cuda:0" in str(error), error
    else:
        raise AssertionError("no error")


def main():
    cases = [("op", n, f) for n, f in every_op()] + [("train", n, f) for n, f in training()]
    cases += [("one", f.__name__, f) for f in (profiled, hook_writes, gradient_is_a_constant, mixed_devices)]
    counts, failures = {}, []
    for kind, name, case in cases:
        counts[kind] = counts.get(kind, 0) + 1
        try:
            case()
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]} ({place.filename}:{place.lineno})")
    json.dump({"counts": counts, "failures": failures}, sys.stdout)


if __name__ == "__main__":
    main()
