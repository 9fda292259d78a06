"""minigrad: a small reverse-mode autograd whose subject is gradient checkpointing.

    import minigrad as mg

    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = mg.checkpoint(lambda t: mg.tanh(t) * t, x).sum()
    y.backward()
    x.grad
"""

__version__ = "0.1.0"

from . import schedules
from .checkpoint import checkpoint, checkpoint_sequential
from .create import *  # noqa: F403
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
    OverwrittenError,
    ShapeError,
)
from .gradcheck import GradientMismatch, gradcheck, gradgradcheck
from .interop import from_dlpack
from .modes import detect_anomaly, enable_grad, is_grad_enabled, no_grad
from .op import op
from .ops import *  # noqa: F403
from .random import manual_seed
from .saved import saved, tape
from .schedules import Schedule
from .sweep import Step, grad, steps
from .tape import Tape
from .tensor import Tensor
from .tracer import Tracer


_LATER = {
    "profile": "profiling", "Profile": "profiling", "fit": "fitting", "debug": "view.stepper",
    "memory_budget": "budget",
    "draw": "view", "render": "view", "save": "files", "load": "files", "FileError": "files",
}  # fmt: skip
_LATER_MODULES = ("nn", "optim", "policies", "view")


def __getattr__(name):
    """Layers, optimizers, pictures and files are imported when they are first asked for."""
    from importlib import import_module

    if name in _LATER_MODULES:
        return import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
