"""What a training step does with the gradients, and how its learning rate goes on. Names and formulas are torch's."""

from . import lr_scheduler
from .optimizers import SGD, Adam, AdamW, Optimizer, OptimizerError, RMSprop, clip_grad_norm_, clip_grad_value_

__all__ = [
    "Optimizer", "OptimizerError", "SGD", "Adam", "AdamW", "RMSprop", "clip_grad_norm_", "clip_grad_value_",
    "lr_scheduler",
]  # fmt: skip
