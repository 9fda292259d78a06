"""Recurrent layers: against loops in NumPy, difference quotients, cells, checkpoints, and torch."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn.rnn import steps_of
from tests.against_torch import compare_modules

rng = np.random.default_rng(8)
KINDS = ["RNN", "LSTM", "GRU"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def real(*shape):
    return rng.standard_normal(shape)


def leaf(*shape, dtype="float64"):
    return mg.tensor(real(*shape), dtype=dtype, requires_grad=True)


def close(ours, expected):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=1e-11, atol=1e-12)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(kind, x, state, p):
    """One step by the formulas of torch's documentation."""
    from_x, from_h = x @ p["weight_ih"].T + p["bias_ih"], state[0] @ p["weight_hh"].T + p["bias_hh"]
    if kind == "RNN":
        return (np.tanh(from_x + from_h),)
    if kind == "LSTM":
        i, f, g, o = np.split(from_x + from_h, 4, axis=-1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (ir, iz, inew), (hr, hz, hnew) = np.split(from_x, 3, axis=-1), np.split(from_h, 3, axis=-1)
    r, z = sigmoid(ir + hr), sigmoid(iz + hz)
    return ((1 - z) * np.tanh(inew + r * hnew) + z * state[0],)


def reference(kind, layer, x, states):
    """All layers and directions over x (T, N, features); states (layers * directions, N, hidden)."""
    ends, directions = [], 2 if layer.bidirectional else 1
    for number in range(layer.num_layers):
        outputs = []
        for direction in range(directions):
            suffix = f"_l{number}" + "_reverse" * direction
            p = {name.removesuffix(suffix): q.data for name, q in layer.named_parameters() if name.endswith(suffix)}
            state, hs = tuple([s[len(ends)] for s in states]), []
            for t in reversed(range(len(x))) if direction else range(len(x)):
                state = reference_step(kind, x[t], state, p)
                hs.append(state[0])
            outputs.append(np.stack(hs[::-1] if direction else hs))
            ends.append(state)
        x = np.concatenate(outputs, -1)
    return x, [np.stack(end) for end in zip(*ends, strict=True)]


def make(kind, *args, **settings):
    return getattr(nn, kind)(*args, dtype="float64", **settings)


def as_tuple(state):
    return state if isinstance(state, tuple) else (state,)


@each_kind
@pytest.mark.parametrize("settings", [{}, {"num_layers": 3}, {"num_layers": 2, "bidirectional": True}])
def test_sequences_follow_the_formulas(kind, settings):
    layer = make(kind, 3, 4, **settings)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    x, states = leaf(6, 2, 3), [leaf(count, 2, 4) for _ in range(layer.states)]
    output, end = layer(x, tuple(states) if kind == "LSTM" else states[0])
    expected, ends = reference(kind, layer, x.data, [s.data for s in states])
    close(output, expected)
    for ours, theirs in zip(as_tuple(end), ends, strict=True):
        close(ours, theirs)
    zero = [np.zeros((count, 2, 4))] * layer.states
    close(layer(x)[0], reference(kind, layer, x.data, zero)[0])


@each_kind
def test_axes_may_come_in_torchs_other_orders(kind):
    layer, x = make(kind, 3, 4), leaf(5, 2, 3)
    output, end = layer(x)
    layer.batch_first = True
    swapped, same_end = layer(x.swapaxes(0, 1))
    close(swapped.swapaxes(0, 1), output)
    close(as_tuple(same_end)[0], as_tuple(end)[0])
    alone, end_alone = layer(x[:, 0])
    close(alone, output[:, 0])
    assert as_tuple(end_alone)[0].shape == (1, 4)
    close(layer(x[:, 0], end_alone)[0], layer(x[:, :1].swapaxes(0, 1), as_batch(end_alone))[0][0])


def as_batch(state):
    return tuple([s.unsqueeze(1) for s in state]) if isinstance(state, tuple) else state.unsqueeze(1)


@each_kind
def test_a_cell_is_one_step_of_a_sequence(kind):
    layer, cell = make(kind, 3, 4), make(kind + "Cell", 3, 4)
    cell.load_state_dict({name.removesuffix("_l0"): array for name, array in layer.state_dict().items()})
    x, state = leaf(4, 2, 3), None
    for t in range(4):
        state = cell(x[t], state)
    output, end = layer(x)
    close(as_tuple(state)[0], output[-1])
    close(as_tuple(state)[-1], as_tuple(end)[-1][0])
    assert as_tuple(cell(x[0, 0]))[0].shape == (4,)


@each_kind
def test_first_and_second_derivatives_are_those_of_difference_quotients(kind):
    layer = make(kind, 2, 3, num_layers=2)
    x, states = leaf(3, 2, 2), [leaf(2, 2, 3) for _ in range(layer.states)]
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def run(x, *states):
        output, end = layer(x, states)
        return output, *as_tuple(end)

    assert mg.gradcheck(run, [x, *states])
    assert mg.gradgradcheck(run, [x, *states])

    def of_parameters(*values):
        for name, value in zip(names, values, strict=True):
            vars(layer)[name] = value
        return layer(x)[0]

    assert mg.gradcheck(of_parameters, parameters)


@each_kind
def test_a_checkpoint_gives_the_same_bits(kind, same_bits):
    layer, found = getattr(nn, kind)(3, 4, num_layers=2, dropout=0.3), []
    x = leaf(6, 2, 3, dtype="float32")
    for wrap in (lambda run, x: run(x), mg.checkpoint):
        mg.manual_seed(5)
        layer.zero_grad()
        output, end = wrap(layer, x)
        (output.sum() + as_tuple(end)[-1].sum()).backward()
        found.append([p.grad.numpy() for p in layer.parameters()])
    same_bits(*found)


def test_an_rnn_may_have_relus():
    layer = make("RNN", 2, 3, nonlinearity="relu")
    x = leaf(1, 1, 2)
    total = x.data @ layer.weight_ih_l0.data.T + layer.bias_ih_l0.data + layer.bias_hh_l0.data
    close(layer(x)[0], np.maximum(total, 0))


@each_kind
def test_names_shapes_and_beginnings_are_torchs(kind):
    layer = getattr(nn, kind)(3, 25, num_layers=2, bidirectional=True)
    names = [f"{name}_l{n}{end}" for n in (0, 1) for end in ("", "_reverse")
             for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]  # fmt: skip
    assert list(layer.state_dict()) == names
    rows = 25 * layer.gates
    assert layer.weight_ih_l0.shape == (rows, 3) and layer.weight_ih_l1_reverse.shape == (rows, 50)
    assert all(0.15 < np.abs(p.data).max() <= 0.2 for p in layer.parameters())
    assert list(getattr(nn, kind)(3, 4, bias=False).state_dict()) == ["weight_ih_l0", "weight_hh_l0"]
    assert getattr(nn, kind)(3, 4, bias=False)(leaf(2, 1, 3, dtype="float32"))[0].shape == (2, 1, 4)


def one_by_one(x):
    return [x[i] for i in range(len(x))]


def gradient_bytes(length, cut):
    """The bytes of all gradients that backward makes on its way from the steps of a sequence to the sequence."""
    x = mg.tensor(real(length, 4), requires_grad=True)
    with mg.Tracer() as tracer:
        sum([step.sum() for step in cut(x * 1)]).backward()
    return sum([event.nbytes for event in tracer.events if event.kind == "new" and event.role == "gradient"])


def test_cutting_a_sequence_into_steps_does_not_cost_the_square_of_its_length():
    assert [step.tolist() for step in steps_of(mg.arange(5))] == [0, 1, 2, 3, 4]
    assert gradient_bytes(256, steps_of) < 6 * gradient_bytes(64, steps_of)
    assert gradient_bytes(256, one_by_one) > 12 * gradient_bytes(64, one_by_one)


@each_kind
def test_what_cannot_be_is_refused_with_a_reason(kind):
    layer = getattr(nn, kind)(3, 4)
    for call, message in (
        (lambda: layer(mg.ones(5, 2, 4)), "3 features"),
        (lambda: layer(mg.ones(0, 2, 3)), "at least one step"),
        (lambda: layer(mg.ones(5, 2, 3), mg.ones(1, 2, 5)), "begins with"),
        (lambda: getattr(nn, kind + "Cell")(3, 4)(mg.ones(4)), "3 features"),
        (lambda: getattr(nn, kind)(3, 4, num_layers=0), "num_layers"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), "nonlinearity"),
    ):
        with pytest.raises(mg.MinigradError, match=message):
            call()


def test_a_sequence_learns_to_remember():
    """Whether the first number of a sequence was positive, told at its end."""
    mg.manual_seed(0)
    x = mg.tensor(real(8, 32, 1), dtype="float32")
    target = mg.tensor((x.data[0, :, 0] > 0).astype(int))
    model, head = nn.GRU(1, 8), nn.Linear(8, 2)
    optimizer = mg.optim.Adam([*model.parameters(), *head.parameters()], lr=0.03)
    for _ in range(80):
        loss = mg.cross_entropy(head(model(x)[1][0]), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def with_states(layer):
    """The layer as a function of x and one or two states."""
    return lambda x, *states: layer(x, states if len(states) > 1 else states[0])


@pytest.mark.oracle
@each_kind
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sequences_and_cells_agree_with_torch(kind, dtype):
    tnn = pytest.importorskip("torch").nn
    for settings in (
        {}, {"num_layers": 2, "bidirectional": True, "batch_first": True}, {"num_layers": 3, "bias": False},
    ):  # fmt: skip
        ours, theirs = getattr(nn, kind)(3, 5, **settings), getattr(tnn, kind)(3, 5, **settings)
        compare_modules(ours, theirs, [real(4, 6, 3)], dtype)
        count = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
        batch = 4 if settings.get("batch_first") else 6
        states = [real(count, batch, 5) for _ in range(ours.states)]

        arrays = [real(4, 6, 3), *states]
        compare_modules(ours, theirs, arrays, dtype, with_states(ours), with_states(theirs))
    ours, theirs = getattr(nn, kind + "Cell")(3, 5), getattr(tnn, kind + "Cell")(3, 5)
    compare_modules(ours, theirs, [real(4, 3)], dtype)


@pytest.mark.parametrize("states", [1, 3])
def test_an_lstm_begins_with_two_states(states):
    with pytest.raises(mg.ShapeError, match="begins with"):
        nn.LSTM(3, 4)(mg.ones((2, 1, 3)), [mg.zeros((1, 1, 4))] * states)
