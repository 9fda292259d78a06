"""`mg.checkpoint_sequential`: a chain of layers under a schedule."""

import functools

from ..engine.checkpoint import record_stretch
from ..engine.modes import local
from ..engine.replay import Manner
from ..errors import ArgumentError
from ..retention.checkpoint import data_in
from ..retention.offload import Offload
from ..schedules import as_schedule

OF_A_CHAIN = Manner(memory=Offload)


def checkpoint_sequential(layers, schedule, x):
    """Run `layers[-1](… layers[0](x))` under a schedule that says which stretches become checkpoints.

    layers    a sequence of functions or modules of one value each (an nn.Sequential will do). With
              `mg.schedules.online` it may be any iterable, also one whose end nobody knows
    schedule  a Schedule of mg.schedules, or an int: that many equal segments, longer ones first, the last
              of them taped in full
    x         the input of the first layer: a tensor, or a tuple, list or dict with tensors, which a layer may pass
              on (a skip connection, say)

    Source of the segments: Chen et al. 2016, arXiv:1604.06174.
    """
    schedule = as_schedule(schedule)
    if hasattr(schedule, "keeper"):
        return record_online(layers, schedule, x)
    layers = list(layers)
    if not layers:
        raise ArgumentError("checkpoint_sequential needs at least one layer")
    first = 0
    for length, inner in schedule.parts(len(layers)):
        stretch = functools.partial(run_layers, layers, first, first + length, x, marked=inner is not None)
        x = stretch() if inner is None else record_stretch(stretch, manner_of(inner, x))
        first += length
    return x


def manner_of(schedule, x):
    """How a stretch under this schedule is kept, which is given `x`."""
    manner = OF_A_CHAIN.under(schedule)
    return manner if manner.slow is None else manner._replace(given=data_in(x))


def run_layers(layers, start, stop, x, marked):
    """Layers start..stop-1 in order; in a region of their own, mark in its body where each layer ends."""
    region = local.context.region if marked else None
    for i in range(start, stop):
        x = run_layer(layers[i], i, x)
        if region is not None:
            region.cuts.append(len(region.lines))
    return x


def run_layer(layer, i, x):
    """Layer number `i` of a chain, by which number the tape will know it."""
    context = local.context
    outer_layer = context.layer
    context.layer = f"{outer_layer}.{i}" if outer_layer else str(i)
    try:
        return layer(x)
    finally:
        context.layer = outer_layer


def record_online(layers, schedule, x):
    """Run layers until there are no more, and keep the states that `schedule` wants kept at any time.

    All of it is one region, whose lines keep no buffers. The states that are kept when it ends become the
    boundaries of its checkpoints.
    """
    if not local.context.grad:
        for i, layer in enumerate(layers):
            x = run_layer(layer, i, x)
        return x
    return record_stretch(functools.partial(run_online, layers, schedule, x), OF_A_CHAIN.under(schedule))


def run_online(layers, schedule, x):
    region, keeper = local.context.region, schedule.keeper()
    for i, layer in enumerate(layers):
        dropped, store = keeper.step(i)
        for step in dropped:
            region.forget_state(step)
        if store:
            region.keep_state(i, x)
        x = run_layer(layer, i, x)
        region.cuts.append(len(region.lines))
    return x
