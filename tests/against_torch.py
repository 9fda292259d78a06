"""Run a function of ours and its namesake in PyTorch on the same arrays, and compare values and gradients.

    difference = compare(mg.conv2d, torch.nn.functional.conv2d, [x, w], "float32", stride=2)

The difference is the largest of all elements, relative to the largest element of the array that it is in. Tests that
use this have the marker `oracle`, and are skipped where torch is not installed.
"""

import numpy as np

import minigrad as mg

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


def relative(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    if not ours.size:
        return 0.0
    assert np.array_equal(np.isfinite(ours), np.isfinite(theirs))
    ours, theirs = [np.where(np.isfinite(x), x, 0) for x in (ours, theirs)]
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def compare(ours, theirs, arrays, dtype, our_settings=None, **settings):
    """The largest relative difference in value and in gradients of all floating inputs; asserts that it is small."""
    import torch

    ours_in, theirs_in = [], []
    for array in arrays:
        if array.dtype.kind == "f":
            array = array.astype(dtype)
        ours_in.append(mg.tensor(array, requires_grad=array.dtype.kind == "f"))
        theirs_in.append(torch.tensor(array, requires_grad=array.dtype.kind == "f"))
    out = ours(*ours_in, **(settings if our_settings is None else our_settings))
    expected = theirs(*theirs_in, **settings)
    cotangent = np.random.default_rng(5).standard_normal(out.shape).astype(dtype)
    out.backward(cotangent)
    expected.backward(torch.tensor(cotangent))
    found = {"value": relative(out.data, expected.detach().numpy())}
    for i, (a, b) in enumerate(zip(ours_in, theirs_in, strict=True)):
        if a.requires_grad:
            found[f"gradient {i}"] = relative(a.grad.data, b.grad.numpy())
    return checked(found, dtype)


def compare_modules(ours, theirs, arrays, dtype, run_ours=None, run_theirs=None):
    """The same for layers: ours gets the state dict of theirs, and parameters' gradients are compared too."""
    import torch

    theirs, ours = theirs.to(getattr(torch, dtype)), in_dtype(ours, dtype)
    theirs.zero_grad()
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    arrays = [array.astype(dtype) for array in arrays]
    xs = [mg.tensor(array, requires_grad=True) for array in arrays]
    ys = [torch.tensor(array, requires_grad=True) for array in arrays]
    outs = flat((run_ours or ours)(*xs))
    expected = flat((run_theirs or theirs)(*ys))
    rng = np.random.default_rng(5)
    cotangents = [rng.standard_normal(out.shape).astype(dtype) for out in outs]
    sum([(out * mg.tensor(v)).sum() for out, v in zip(outs, cotangents, strict=True)]).backward()
    sum([(out * torch.tensor(v)).sum() for out, v in zip(expected, cotangents, strict=True)]).backward()
    found = {}
    for i, (a, b) in enumerate(zip(outs, expected, strict=True)):
        found[f"value {i}"] = relative(a.data, b.detach().numpy())
    for i, (a, b) in enumerate(zip(xs, ys, strict=True)):
        found[f"gradient {i}"] = relative(a.grad.data, b.grad.numpy())
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    for name, p in ours.named_parameters():
        found[name] = relative(p.grad.data, gradients[name].numpy())
    for name, buffer in theirs.named_buffers():
        found[name] = relative(dict(ours.named_buffers())[name].data, buffer.numpy())
    return checked(found, dtype)


def in_dtype(module, dtype):
    """A module of ours, with parameters and buffers of another dtype."""
    for owner in module.modules():
        for name, value in list(vars(owner).items()):
            if isinstance(value, mg.nn.Parameter):
                setattr(owner, name, mg.nn.Parameter(value.data.astype(dtype)))
            elif isinstance(value, mg.Tensor) and value.dtype.kind == "f":
                setattr(owner, name, mg.tensor(value.data.astype(dtype)))
    return module


def flat(result):
    """The tensors in nested tuples."""
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part)]
    return [result]


def checked(found, dtype):
    where = max(found, key=found.get)
    print(f"{found[where]:.1e} in {where}, {dtype}")
    assert found[where] <= TOLERANCE[dtype], f"{where} differs by {found[where]:.1e}"
    return found[where]
