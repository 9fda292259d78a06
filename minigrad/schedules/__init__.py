"""Schedules: which stretches of a chain of layers become checkpoints. Integers only: no arrays, no engine.

A schedule answers one question. For a stretch of n layers, which parts are taped in full, and which become
smaller checkpoints, with what schedule for each?

    schedule.split(n) -> [(length, None), (length, Schedule), ...]      lengths add up to n

None means taped in full. A part with a Schedule is a checkpoint; when it is replayed, that schedule is
asked how to split it again. Forward and replay both ask, so a schedule is a tree that is unfolded as it is
walked, and `schedule.plan(n)` can count what it will cost before anything runs.

Conventions for counting (`Plan`) are those of the reference chain of `h @ W` layers: a layer reads its
input, x_0 counts, the last output does not; while a replay runs a layer, its input and its output both do.
"""

from .plan import Plan
from .schedule import Schedule
from .segments import as_schedule, every, from_input, sqrt, store_all, torch_compatible, triangular, uniform
from .nested import bisection, nested
from .binomial import binomial, mixed, optimal
from .online import online
from .tiers import h_revolve, multistage, offloaded
from .layer_costs import LayerCosts
from .hetero import hetero
from .exhaustive import exhaustive_optimum
from .reading import from_json

__all__ = [
    "Schedule", "Plan", "store_all", "from_input", "uniform", "every", "torch_compatible", "sqrt", "triangular",
    "nested", "bisection", "binomial", "optimal", "mixed", "online", "offloaded", "multistage", "h_revolve",
    "as_schedule", "from_json",
    "LayerCosts", "hetero", "exhaustive_optimum",
]  # fmt: skip
