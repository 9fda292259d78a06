"""Recurrent layers: RNN, LSTM and GRU, for whole sequences and as cells. Names, shapes and gate orders are torch's.

All of them are ordinary ops, step after step; backward through time needs nothing of its own. What the inputs
contribute to the gates is computed for all steps in one product, before the steps begin.

Sources: Elman 1990; Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; Cho et al. 2014,
arXiv:1406.1078.
"""

from .. import ops
from ..engine.tensor import Tensor
from ..errors import ArgumentError, ShapeError
from ..ops.create import zeros
from . import init
from .module import Module, Parameter

# ---- One step ----------------------------------------------------------------------------------------
#
# A step takes what the input contributes to the gates, (N, gates * hidden), and the state, a tuple of (N, hidden).
# It gives the new state, whose first tensor is also the output.


class Plain:
    """h = tanh(from input + W h + b)."""

    gates, states, nonlinearity = 1, 1, "tanh"

    def step(self, from_x, state, weight, bias):
        total = from_x + linear(state[0], weight, bias)
        return (ops.tanh(total) if self.nonlinearity == "tanh" else ops.relu(total),)


class LongShortTerm:
    """The cell c is kept as far as the forget gate lets it, and written as far as the input gate lets it."""

    gates, states = 4, 2

    def step(self, from_x, state, weight, bias):
        h, c = state
        i, f, g, o = ops.split(from_x + linear(h, weight, bias), h.shape[-1], axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class Gated:
    """The new state lies between the old one and a candidate, for which the reset gate hides part of the old one."""

    gates, states = 3, 1

    def step(self, from_x, state, weight, bias):
        (h,) = state
        r, z, n = ops.split(from_x, h.shape[-1], axis=-1)
        from_r, from_z, from_n = ops.split(linear(h, weight, bias), h.shape[-1], axis=-1)
        candidate = ops.tanh(n + ops.sigmoid(r + from_r) * from_n)
        return (candidate + ops.sigmoid(z + from_z) * (h - candidate),)


def linear(x, weight, bias):
    return ops.linear(x, weight) if bias is None else ops.linear(x, weight, bias)


# ---- Sequences ---------------------------------------------------------------------------------------


class Recurrent(Module):
    """Layers of steps along a sequence.

    input_size, hidden_size   features of a step's input, and of the state
    num_layers     each layer's outputs are the next one's inputs
    batch_first    False: x and output are (T, N, features); True: (N, T, features). States are always
                   (layers * directions, N, hidden)
    dropout        between the layers, in training
    bidirectional  a second direction, from the end, whose outputs stand beside the first one's

    weight_ih_l0, weight_hh_l0   (gates * hidden, input) and (gates * hidden, hidden) of layer 0; bias_ih_l0,
    bias_hh_l0 (gates * hidden,). Other layers have other numbers, the second direction the suffix _reverse. All
    begin uniform in +-1/sqrt(hidden).
    """

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        dtype=None, device=None,
    ):  # fmt: skip
        if num_layers < 1:
            raise ArgumentError(f"num_layers must be at least 1, not {num_layers}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            inputs = hidden_size * directions if layer else input_size
            for direction in range(directions):
                suffix = name_of(layer, direction)
                make_parameters(self, inputs, bias, suffix, dtype, device)

    def forward(self, x, state=None):
        """(output, state at the end): output has the last layer's h of every step. LSTM's states are pairs (h, c)."""
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ShapeError(f"{type(self).__name__} takes sequences of {self.input_size} features, not {x.shape}")
        alone = x.ndim == 2  # one sequence, no batch
        time = 1 if self.batch_first and not alone else 0
        if x.shape[time] == 0:
            raise ShapeError(f"{type(self).__name__} needs at least one step, and x has shape {x.shape}")
        x = x.unsqueeze(1) if alone else x.swapaxes(0, time)
        begin = self.initial(state, x, alone)
        ends = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            if layer:
                x = ops.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in range(directions):
                output, end = self.run(x, begin[len(ends)], layer, direction)
                outputs.append(output)
                ends.append(end)
            x = ops.cat(outputs, axis=-1) if self.bidirectional else outputs[0]
        ends = [ops.stack(states) for states in zip(*ends, strict=True)]
        if alone:
            x, ends = x.squeeze(1), [end.squeeze(1) for end in ends]
        return x.swapaxes(0, time), tuple(ends) if self.states > 1 else ends[0]

    def run(self, x, state, layer, direction):
        """One direction of one layer over x (T, N, features): (outputs of all steps, the state at the end)."""
        w_ih, w_hh, b_ih, b_hh = parameters_of(self, name_of(layer, direction))
        steps = steps_of(linear(x, w_ih, b_ih))
        outputs = []
        for from_x in reversed(steps) if direction else steps:
            state = self.step(from_x, state, w_hh, b_hh)
            outputs.append(state[0])
        return ops.stack(outputs[::-1] if direction else outputs), state

    def initial(self, state, x, alone):
        """For each layer and direction the state to begin with, a tuple of (N, hidden); zeros if None."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            return [(zeros_for(x, self.hidden_size),) * self.states] * count
        states = (state,) if isinstance(state, Tensor) else tuple(state)
        shape = (count, self.hidden_size) if alone else (count, x.shape[1], self.hidden_size)
        if len(states) != self.states or any(s.shape != shape for s in states):
            shapes = [s.shape for s in states]
            raise ShapeError(f"{type(self).__name__} begins with {self.states} x {shape}, not {shapes}")
        if alone:
            states = [s.unsqueeze(1) for s in states]
        return [tuple([s[i] for s in states]) for i in range(count)]

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (("num_layers", 1), ("batch_first", False), ("bidirectional", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


def steps_of(x):
    """x[0], x[1], … along the first axis, by cutting it in halves, and these again.

    The gradient of x[t] is zeros of x's size around that of the step. T times that would be T² in all; the halves
    of halves come to T log T.
    """
    if len(x) == 1:
        return [x[0]]
    half = len(x) // 2
    return steps_of(x[:half]) + steps_of(x[half:])


def zeros_for(x, hidden_size):
    return zeros(x.shape[-2], hidden_size, dtype=x.dtype, device=x.device)


def name_of(layer, direction):
    return f"_l{layer}" + ("_reverse" if direction else "")


def make_parameters(module, inputs, bias, suffix, dtype, device):
    """weight_ih, weight_hh, bias_ih and bias_hh, with a suffix, as attributes of the module."""
    hidden, rows = module.hidden_size, module.hidden_size * module.gates
    for name, shape in (("weight_ih", (rows, inputs)), ("weight_hh", (rows, hidden))):
        setattr(module, name + suffix, Parameter(init.uniform(shape, hidden, dtype, device)))
    for name in ("bias_ih", "bias_hh"):
        value = Parameter(init.uniform((rows,), hidden, dtype, device)) if bias else None
        setattr(module, name + suffix, value)


def parameters_of(module, suffix):
    return [getattr(module, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


class RNN(Plain, Recurrent):
    """Steps h = tanh(W_ih x + b_ih + W_hh h + b_hh) along a sequence; see Recurrent for the arguments.

    nonlinearity  "tanh" or "relu"

    >>> import minigrad as mg
    >>> output, state = mg.nn.RNN(3, 5)(mg.zeros(7, 2, 3))
    >>> output.shape, state.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(
        self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, dtype=None, device=None,
    ):  # fmt: skip
        self.nonlinearity = checked_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype, device)


class LSTM(LongShortTerm, Recurrent):
    """Steps with a cell c beside the state h along a sequence; see Recurrent for the arguments.

    The gates are in the order input, forget, cell, output. The state is a pair (h, c).

    >>> import minigrad as mg
    >>> output, (h, c) = mg.nn.LSTM(3, 5)(mg.zeros(7, 2, 3))
    >>> output.shape, h.shape, c.shape
    ((7, 2, 5), (1, 2, 5), (1, 2, 5))
    """


class GRU(Gated, Recurrent):
    """Gated steps along a sequence; see Recurrent for the arguments. The gates are in the order reset, update, new.

    >>> import minigrad as mg
    >>> output, state = mg.nn.GRU(3, 5, batch_first=True)(mg.zeros(2, 7, 3))
    >>> output.shape, state.shape
    ((2, 7, 5), (1, 2, 5))
    """


# ---- Cells -------------------------------------------------------------------------------------------


class Cell(Module):
    """One step as a layer: (x, state) gives the new state. x is (N, input_size) or (input_size,).

    weight_ih, weight_hh, bias_ih, bias_hh   as those of a sequence's layer
    """

    def __init__(self, input_size, hidden_size, bias=True, dtype=None, device=None):
        self.input_size, self.hidden_size = input_size, hidden_size
        make_parameters(self, input_size, bias, "", dtype, device)

    def forward(self, x, state=None):
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(f"{type(self).__name__} takes {self.input_size} features, not shape {x.shape}")
        w_ih, w_hh, b_ih, b_hh = parameters_of(self, "")
        if state is None:
            zero = zeros(*x.shape[:-1], self.hidden_size, dtype=x.dtype, device=x.device)
            states = (zero,) * self.states
        else:
            states = (state,) if isinstance(state, Tensor) else tuple(state)
            shape = (*x.shape[:-1], self.hidden_size)
            if len(states) != self.states or any(s.shape != shape for s in states):
                shapes = [s.shape for s in states]
                raise ShapeError(f"{type(self).__name__} goes on from {self.states} x {shape}, not {shapes}")
        new = self.step(linear(x, w_ih, b_ih), states, w_hh, b_hh)
        return new if self.states > 1 else new[0]

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(Plain, Cell):
    """One step of an RNN; see Cell."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=None, device=None):
        self.nonlinearity = checked_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype, device)


class LSTMCell(LongShortTerm, Cell):
    """One step of an LSTM; see Cell. The state is a pair (h, c)."""


class GRUCell(Gated, Cell):
    """One step of a GRU; see Cell."""


def checked_nonlinearity(name):
    if name not in ("tanh", "relu"):
        raise ArgumentError(f'nonlinearity is "tanh" or "relu", not {name!r}')
    return name
