"""Layers, and the tree of modules that they form. Names, shapes and layouts are torch's."""

from .containers import ModuleList, Sequential
from .layers import (
    GELU,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    Linear,
    ReLU,
    Sigmoid,
    SiLU,
    Tanh,
)
from .module import Module, Parameter

__all__ = [
    "Module",
    "Parameter",
    "Sequential",
    "ModuleList",
    "Linear",
    "Embedding",
    "Dropout",
    "Flatten",
    "Identity",
    "Tanh",
    "ReLU",
    "Sigmoid",
    "GELU",
    "SiLU",
]
