"""minigrad: a small reverse-mode autograd whose subject is gradient checkpointing.

    import minigrad as mg

    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = mg.checkpoint(lambda t: mg.tanh(t) * t, x).sum()
    y.backward()
    x.grad
"""

__version__ = "0.1.0"

from . import schedules
from .retention.checkpoint import checkpoint
from .chain.sequential import checkpoint_sequential
from .trace.saved import saved, tape  # before the ops: mg.trace is an op, whatever the package is called
from .ops.create import *  # noqa: F403
from .errors import (
    ArgumentError,
    BudgetError,
    CheckpointError,
    CheckpointWarning,
    DeviceError,
    DtypeError,
    GraphFreedError,
    IndexingError,
    MinigradError,
    NoGradientError,
    OutOfMemoryError,
    OverwrittenError,
    ShapeError,
)
from .ops.gradcheck import GradientMismatch, gradcheck, gradgradcheck
from .ops.interop import from_dlpack
from .engine.modes import detect_anomaly, enable_grad, is_grad_enabled, no_grad
from .engine.op import op
from .ops import *  # noqa: F403
from .ops.keys import manual_seed
from .schedules import Schedule
from .engine.sweep import Step, grad, steps
from .trace.listing import Tape
from .engine.tensor import Tensor
from .trace.recorder import Tracer


_LATER = {
    "profile": "chain.profiling", "Profile": "chain.profiling", "fit": "chain.fitting", "debug": "view.stepper",
    "memory_budget": "budget.memory_budget",
    "draw": "view", "render": "view", "save": "nn.files", "load": "nn.files", "FileError": "nn.files",
}  # fmt: skip
_LATER_MODULES = {"nn": "nn", "optim": "optim", "policies": "retention.policies", "view": "view"}


def __getattr__(name):
    """Layers, optimizers, pictures and files are imported when they are first asked for."""
    from importlib import import_module

    if name in _LATER_MODULES:
        return import_module(f".{_LATER_MODULES[name]}", __name__)
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
