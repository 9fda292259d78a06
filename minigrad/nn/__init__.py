"""Layers, and the tree of modules that they form. Names, shapes and layouts are torch's."""

from .attention import MultiheadAttention, TransformerBlock
from .containers import ModuleDict, ModuleList, Sequential
from .conv import AvgPool2d, Conv1d, Conv2d, MaxPool2d
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
from .norm import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm
from .rnn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

__all__ = [
    "Module",
    "Parameter",
    "Sequential",
    "ModuleList",
    "ModuleDict",
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
    "Conv1d",
    "Conv2d",
    "MaxPool2d",
    "AvgPool2d",
    "LayerNorm",
    "GroupNorm",
    "RMSNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "MultiheadAttention",
    "TransformerBlock",
    "RNN",
    "LSTM",
    "GRU",
    "RNNCell",
    "LSTMCell",
    "GRUCell",
]
