"""Optimizers and learning rates over 20 steps: the same parameters, the same gradients, and how far apart they end.

What counts are the parameters after each step, relative to the largest of them; for schedules the rates.
"""

import numpy as np
import torch

import minigrad as mg
from minigrad import optim
from minigrad.optim import lr_scheduler
from tests.oracle.compare import Row, relative

STEPS = 20
ADAM = [
    {"lr": 0.1}, {"lr": 0.1, "betas": (0.5, 0.7), "eps": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "betas": (0.5, 0.7), "amsgrad": True},
    {"lr": 0.1, "amsgrad": True, "maximize": True, "weight_decay": 0.3},
]  # fmt: skip
OPTIMIZERS = {
    "SGD": [
        {"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.2}, {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1, "maximize": True},
    ],
    "Adam": ADAM,
    "AdamW": ADAM,
    "RMSprop": [
        {"lr": 0.1}, {"lr": 0.1, "alpha": 0.7, "eps": 0.1, "weight_decay": 0.3}, {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "alpha": 0.8, "momentum": 0.9, "centered": True, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "centered": True, "weight_decay": 0.1, "maximize": True},
    ],
}  # fmt: skip


CLIPS = {
    "clip_grad_norm_": [
        {"max_norm": 0.5}, {"max_norm": 2.0, "norm_type": 1.0}, {"max_norm": 0.1, "norm_type": float("inf")},
    ],
    "clip_grad_value_": [{"clip_value": 0.5}, {"clip_value": 0}, {"clip_value": 3}],
}  # fmt: skip


def falling(t):
    return 0.9**t


SCHEDULES = {
    "StepLR": [{"step_size": 4}, {"step_size": 1, "gamma": 0.8}],
    "ExponentialLR": [{"gamma": 0.8}, {"gamma": 1.1}],
    "CosineAnnealingLR": [{"T_max": 20}, {"T_max": 6, "eta_min": 0.01}],
    "LinearLR": [{}, {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 9}],
    "LambdaLR": [{"lr_lambda": falling}],
    "SequentialLR": [{"milestones": [5]}, {"milestones": [3]}],
}


def problem(dtype):
    """Two parameters, and for each step a gradient for each, of sizes from 1e-3 to 10."""
    rng = np.random.default_rng(3)
    shapes = [(5, 4), (7,)]
    start = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    size = 10 ** rng.uniform(-3, 1, STEPS)
    return start, [[(s * rng.standard_normal(shape)).astype(dtype) for shape in shapes] for s in size]


def both(dtype, make):
    """Parameters and an optimizer of ours, and of torch's; `make(module, parameters)` makes the optimizer."""
    start, gradients = problem(dtype)
    ours = [mg.tensor(p, requires_grad=True) for p in start]
    theirs = [torch.nn.Parameter(torch.tensor(p)) for p in start]
    return (ours, make(optim, ours)), (theirs, make(torch.optim, theirs)), gradients


def compare_optimizers(name, settings, dtype, clip=None, function="clip_grad_norm_"):
    (ours, optimizer), (theirs, their_optimizer), gradients = both(
        dtype, lambda module, parameters: getattr(module, name)(parameters, **settings)
    )
    worst = 0.0
    for step in gradients:
        for p, q, gradient in zip(ours, theirs, step, strict=True):
            p.grad, q.grad = mg.tensor(gradient), torch.tensor(gradient)
        if clip is not None:
            norm, their_norm = getattr(optim, function)(ours, **clip), getattr(torch.nn.utils, function)(theirs, **clip)
            worst = max(worst, 0.0 if norm is None else relative(norm.data, their_norm.numpy()))
        optimizer.step(), their_optimizer.step()
        worst = max(worst, *[relative(p.data, q.detach().numpy()) for p, q in zip(ours, theirs, strict=True)])
    return worst, None


def scheduled(module, name, optimizer, settings):
    if name != "SequentialLR":
        return getattr(module, name)(optimizer, **settings)
    parts = [module.LinearLR(optimizer, start_factor=0.1, total_iters=5), module.CosineAnnealingLR(optimizer, T_max=15)]
    return module.SequentialLR(optimizer, parts, **settings)


def compare_schedules(name, settings, dtype):
    """Rates, and the parameters that AdamW makes with them."""
    (ours, optimizer), (theirs, their_optimizer), gradients = both(
        dtype, lambda module, parameters: module.AdamW(parameters, lr=0.3)
    )
    schedule = scheduled(lr_scheduler, name, optimizer, settings)
    their_schedule = scheduled(torch.optim.lr_scheduler, name, their_optimizer, settings)
    worst = 0.0
    for step in gradients:
        for p, q, gradient in zip(ours, theirs, step, strict=True):
            p.grad, q.grad = mg.tensor(gradient), torch.tensor(gradient)
        worst = max(worst, relative(schedule.get_last_lr(), np.array(their_schedule.get_last_lr(), float)))
        for part in (optimizer, schedule, their_optimizer, their_schedule):
            part.step()
        worst = max(worst, *[relative(p.data, q.detach().numpy()) for p, q in zip(ours, theirs, strict=True)])
    return worst, None


def rows(only):
    for name in only(OPTIMIZERS):
        row = Row(name, f"optim.{name}")
        for settings in OPTIMIZERS[name]:
            row.run(settings, lambda dtype: compare_optimizers(name, settings, dtype))  # noqa: B023
        yield row
    for name in only(CLIPS):
        row = Row(name, f"nn.utils.{name}")
        for clip in CLIPS[name]:
            row.run(clip, lambda dtype: compare_optimizers("SGD", {"lr": 0.1}, dtype, clip, name))  # noqa: B023
        yield row
    for name in only(SCHEDULES):
        row = Row(name, f"lr_scheduler.{name}")
        for settings in SCHEDULES[name]:
            row.run(settings, lambda dtype: compare_schedules(name, settings, dtype))  # noqa: B023
        yield row


def missing() -> set:
    public = {*optim.__all__, *lr_scheduler.__all__} - {"Optimizer", "OptimizerError", "LRScheduler", "lr_scheduler"}
    return public - set(OPTIMIZERS) - set(SCHEDULES) - set(CLIPS)
