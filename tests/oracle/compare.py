"""The same computation in minigrad and in PyTorch, on the same numbers: how far apart values and gradients are.

A difference is the largest of all elements, divided by the largest element of torch's array: 1e-6 means that no
element is further from torch's than a millionth of the largest. Infinities and nans must stand in the same places.
"""

import numpy as np
import torch

import minigrad as mg

DTYPES = ("float32", "float64")
LIMITS = {"float32": 1e-5, "float64": 1e-10}


class Mismatch(Exception):
    """Ours and theirs cannot be compared: different shapes, dtypes, or places of nan."""


class Row:
    """A line of the table: the largest differences, by dtype, of values and of gradients."""

    def __init__(self, name, label="", limits=LIMITS):
        self.name, self.label, self.samples, self.limits = name, label, 0, limits
        self.forward, self.backward, self.problems = {}, {}, []

    def run(self, what, compare):
        """Do `compare(dtype)`, which gives (forward, backward or None), in all dtypes; note what goes wrong."""
        self.samples += 1
        for dtype in DTYPES:
            try:
                forward, backward = compare(dtype)
            except Exception as error:
                self.problems.append(f"{self.name}({what}) in {dtype}: {type(error).__name__}: {error}")
                continue
            self.forward[dtype] = max(self.forward.get(dtype, 0.0), forward)
            if backward is not None:
                self.backward[dtype] = max(self.backward.get(dtype, 0.0), backward)
            worst = max(forward, backward or 0.0)
            if not worst <= self.limits[dtype]:
                self.problems.append(f"{self.name}({what}) in {dtype}: differs by {worst:.1e}")

    def cells(self):
        parts = [self.forward, self.backward]
        figures = [f"{part[dtype]:.0e}" if dtype in part else "-" for dtype in DTYPES for part in parts]
        return self.name, self.label, self.samples, *figures


def relative(ours, theirs) -> float:
    """How far an array of ours is from one of torch's."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        raise Mismatch(f"shape {ours.shape}, and torch has {theirs.shape}")
    if ours.dtype.kind != theirs.dtype.kind and {ours.dtype.kind, theirs.dtype.kind} != {"i", "u"}:
        raise Mismatch(f"dtype {ours.dtype}, and torch has {theirs.dtype}")
    if ours.dtype.kind != "f":
        return float(not np.array_equal(ours, theirs))
    if ours.dtype != theirs.dtype:
        raise Mismatch(f"dtype {ours.dtype}, and torch has {theirs.dtype}")
    finite = np.isfinite(ours)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True) or not np.isfinite(theirs[finite]).all():
        raise Mismatch("nan or infinity in other places than torch")
    if not finite.any():
        return 0.0
    distance, size = np.abs(ours[finite] - theirs[finite]).max(), np.abs(theirs[finite]).max()
    return float(distance / size) if size else float(distance)


def largest(pairs) -> float:
    return max([relative(ours, theirs) for ours, theirs in pairs], default=0.0)


def pair_of_leaves(x, dtype):
    """A sample's input for minigrad and for torch: floating arrays as leaves of `dtype`, other arrays as constants."""
    if not isinstance(x, np.ndarray):
        return x, x
    is_float = x.dtype.kind == "f"
    x = np.array(x, dtype=dtype if is_float else x.dtype)
    return mg.tensor(x, requires_grad=is_float), torch.tensor(x, requires_grad=is_float)


def flat(result) -> list:
    """The tensors in nested tuples, without None."""
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part)]
    return [] if result is None else [result]


def compare(ours, theirs, inputs, dtype, our_settings, their_settings):
    """(forward, backward): the differences of what two functions give, and of the gradients of all their inputs."""
    pairs = [pair_of_leaves(x, dtype) for x in inputs]
    outs = flat(ours(*[a for a, _ in pairs], **our_settings))
    expected = flat(theirs(*[b for _, b in pairs], **their_settings))
    leaves = [pair for pair in pairs if isinstance(pair[0], mg.Tensor) and pair[0].requires_grad]
    return compare_outputs(outs, expected, leaves, dtype)


def compare_outputs(outs, expected, leaves, dtype, seed=5):
    """The same for what has been computed already; `leaves` are pairs (ours, theirs)."""
    if len(outs) != len(expected):
        raise Mismatch(f"{len(outs)} results, and torch has {len(expected)}")
    forward = largest([(a.data, b.detach().numpy()) for a, b in zip(outs, expected, strict=True)])
    if [a.requires_grad for a in outs] != [b.requires_grad for b in expected]:
        raise Mismatch("a result has a gradient in one of the two, and none in the other")
    rng = np.random.default_rng(seed)
    total = their_total = None
    for a, b in zip(outs, expected, strict=True):
        cotangent = np.asarray(rng.standard_normal(a.shape), dtype)
        if a.requires_grad:
            part, their_part = (a * mg.tensor(cotangent)).sum(), (b * torch.tensor(cotangent)).sum()
            total, their_total = (part, their_part) if total is None else (total + part, their_total + their_part)
    if total is None:
        return forward, None
    gradients = mg.grad(total, [a for a, _ in leaves], allow_unused=True)
    their_gradients = torch.autograd.grad(their_total, [b for _, b in leaves], allow_unused=True)
    return forward, largest(map(arrays_of_gradients, gradients, their_gradients, leaves))


def arrays_of_gradients(ours, theirs, leaf):
    """Two gradients as arrays. None, which says that the leaf takes no part, is as good as zeros."""
    zeros = np.zeros(leaf[0].shape, leaf[0].dtype)
    return zeros if ours is None else ours.data, zeros if theirs is None else theirs.numpy()
