"""Convolution and pooling: as torch calls them, what they keep, and that they agree with torch where it is.

That each of the ops computes what its definition says, and has the right first and second derivatives, is shown in
test_ops.py from the samples in op_samples_nn.py.
"""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.ops import conv, window
from tests.against_torch import compare, compare_modules
from tests.op_samples_nn import conv2d as by_definition

rng = np.random.default_rng(3)


def real(*shape):
    return rng.standard_normal(shape)


def leaves(*shapes, dtype="float64"):
    return [mg.tensor(real(*shape), dtype=dtype, requires_grad=True) for shape in shapes]


def close(ours, expected):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=1e-11, atol=1e-12)


# ---- As torch calls it -------------------------------------------------------------------------------


def test_ints_are_pairs():
    x, w, b = leaves((2, 4, 7, 6), (6, 2, 3, 2), (6,))
    out = mg.conv2d(x, w, b, stride=2, padding=1, dilation=2, groups=2)
    close(out, mg.conv2d(x, w, b, (2, 2), (1, 1), (2, 2), 2))
    close(out, by_definition(x.data, w.data, b.data, 2, stride=(2, 2), padding=((1, 1), (1, 1)), dilation=(2, 2)))


@pytest.mark.parametrize("kernel, dilation", [((3, 3), 1), ((2, 4), 1), ((3, 2), (2, 3)), ((1, 1), 1)])
def test_same_keeps_the_size_and_valid_pads_nothing(kernel, dilation):
    x, w = leaves((1, 2, 9, 8), (2, 2, *kernel))
    assert mg.conv2d(x, w, padding="same", dilation=dilation).shape == x.shape
    close(mg.conv2d(x, w, padding="valid", dilation=dilation), mg.conv2d(x, w, dilation=dilation))


def test_an_odd_zero_of_same_padding_comes_at_the_end():
    assert mg.conv1d(mg.tensor([[1.0, 2.0, 3.0]]), mg.tensor([[[1.0, 10.0]]]), padding="same").tolist() == [[21, 32, 3]]


@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2}, {"padding": 2, "dilation": 3}, {"padding": "same"}, {"stride": (3,)}]
)
def test_conv1d_is_a_sum_along_one_axis(settings):
    x, w, b = leaves((2, 3, 11), (4, 3, 3), (4,))
    given = {k: v[0] if isinstance(v, tuple) else v for k, v in settings.items()}
    stride, dilation = given.get("stride", 1), given.get("dilation", 1)
    padding = dilation if given.get("padding") == "same" else given.get("padding", 0)
    padded = np.pad(x.data, ((0, 0), (0, 0), (padding, padding)))
    count = (padded.shape[2] - 2 * dilation - 1) // stride + 1
    expected = np.zeros((2, 4, count)) + b.data[:, None]
    for place in range(count):
        for i in range(3):
            expected[:, :, place] += padded[:, :, place * stride + i * dilation] @ w.data[:, :, i].T
    close(mg.conv1d(x, w, b, **settings), expected)


def test_one_image_needs_no_batch():
    x, w = leaves((3, 6, 5), (2, 3, 2, 2))
    close(mg.conv2d(x, w), mg.conv2d(x.unsqueeze(0), w)[0])
    close(mg.conv1d(x[:, 0], w[:, :, 0]), mg.conv1d(x[None, :, 0], w[:, :, 0])[0])
    y = mg.tensor(real(2, 5, 4))
    close(mg.conv_transpose2d(y, w), mg.conv_transpose2d(y.unsqueeze(0), w)[0])


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
def test_any_stride_may_leave_a_remainder(stride):
    for size in (5, 6, 7, 8):
        x, w = leaves((1, 1, size, size + 1), (1, 1, 3, 2))
        mg.conv2d(x, w, stride=stride).sum().backward()
        expected = np.zeros(x.shape)
        for r in range(0, size - 2, stride):
            for c in range(0, size, stride):
                expected[0, 0, r : r + 3, c : c + 2] += w.data[0, 0]
        close(x.grad, expected)


SETTINGS = [
    {}, {"stride": 2}, {"stride": 3, "padding": 1}, {"padding": (1, 2), "dilation": 2},
    {"groups": 2, "stride": (2, 1)}, {"stride": 2, "padding": 1, "dilation": (2, 1), "groups": 2},
]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_transposed_convolution_is_the_adjoint_of_the_convolution(settings):
    """<conv(x), y> = <x, transposed(y)>, with the output_padding that brings back the size of x."""
    x, w = leaves((2, 4, 8, 9), (6, 4 // settings.get("groups", 1), 3, 2))
    out = mg.conv2d(x, w, **settings)
    y = mg.tensor(real(*out.shape))
    smallest = mg.conv_transpose2d(y, w, **settings)
    more = tuple(np.subtract(x.shape, smallest.shape)[2:])
    back = mg.conv_transpose2d(y, w, output_padding=more, **settings)
    assert back.shape == x.shape
    close((out * y).sum(), (x * back).sum())


def test_public_functions_have_first_and_second_derivatives():
    x, w, b = leaves((2, 2, 5, 6), (2, 1, 2, 3), (2,))

    def both(x, w, b):
        up = mg.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2)
        return mg.conv2d(up, w, b, stride=(3, 2), padding=1, dilation=(1, 2), groups=2)

    assert mg.gradcheck(both, [x, w, b], per_element=True)
    assert mg.gradgradcheck(both, [x, w, b])
    flat = leaves((2, 2, 9), (3, 2, 2), (3,))
    assert mg.gradcheck(lambda *xs: mg.conv1d(*xs, stride=2, padding=1), flat)
    assert mg.gradgradcheck(lambda *xs: mg.conv1d(*xs, stride=2, padding=1), flat)


def test_plain_arrays_give_plain_arrays():
    out = mg.conv2d(real(1, 2, 4, 4), real(3, 2, 2, 2), real(3), padding=1)
    assert type(out) is np.ndarray and out.shape == (1, 3, 5, 5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, w: mg.conv2d(x, w, groups=2), "groups=2"),
        (lambda x, w: mg.conv2d(x, w, stride=0), "stride must be at least 1"),
        (lambda x, w: mg.conv2d(x, w, padding=-1), "padding must not be negative"),
        (lambda x, w: mg.conv2d(x, w, padding="full"), '"same", "valid"'),
        (lambda x, w: mg.conv2d(x, w, padding="same", stride=2), "stride 1"),
        (lambda x, w: mg.conv2d(x, w, dilation=9), "does not fit"),
        (lambda x, w: mg.conv2d(x, w, w.reshape(-1)), r"bias of shape \(2,\)"),
        (lambda x, w: mg.conv2d(x, w, stride=(1, 2, 3)), "pair"),
        (lambda x, w: mg.conv2d(x, w[0]), "4 axes"),
        (lambda x, w: mg.conv_transpose2d(x[:, :2], w, output_padding=1), "output_padding"),
        (lambda x, w: mg.max_pool2d(x, 3, padding=2), "half the kernel"),
        (lambda x, w: mg.max_pool2d(x, 9), "does not fit"),
        (lambda x, w: mg.avg_pool2d(x[0, 0], 2), "takes images"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(call, message):
    x, w = leaves((1, 3, 5, 5), (2, 3, 2, 2))
    with pytest.raises(mg.MinigradError, match=message):
        call(x, w)


# ---- Memory ------------------------------------------------------------------------------------------


def test_the_tape_keeps_no_columns():
    """Two buffers: x, and the hidden layer, which is the second convolution's input. Weights are parameters."""
    x = mg.tensor(real(4, 3, 16, 16), dtype="float32")
    w1, w2 = leaves((8, 3, 3, 3), (8, 8, 3, 3), dtype="float32")
    with mg.Tracer() as tracer:
        out = mg.conv2d(mg.conv2d(x, w1), w2)
        assert tracer.live_activations == 2
        assert tracer.live("activation") == 4 * 8 * 14 * 14 * 4
    assert out.shape == (4, 8, 12, 12)


def test_the_columns_of_a_large_batch_are_never_there_at_once():
    x, w = leaves((16, 8, 48, 48), (8, 8, 3, 3), dtype="float32")
    columns = 9 * x.nbytes
    with mg.Tracer(workspace=True) as tracer:
        mg.conv2d(x, w, padding=1).sum().backward()
    assert tracer.peak("workspace") < 2.5 * conv.WORKSPACE < columns


@pytest.mark.parametrize("workspace", [1, 3000, 20000])
def test_pieces_fit_together(workspace, monkeypatch):
    """One row, a few rows, a few images at a time."""
    arrays = real(5, 4, 9, 7), real(6, 2, 3, 2)
    settings = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}

    def results():
        x, w = [mg.tensor(array, requires_grad=True) for array in arrays]
        out = mg.conv2d(x, w, **settings)
        (out * out).sum().backward()
        return out.data, x.grad.data, w.grad.data

    whole = results()
    monkeypatch.setattr(conv, "WORKSPACE", workspace)
    assert len(list(conv.pieces(whole[0], 2 * 2 * 3 * 2))) > 1
    for ours, expected in zip(results(), whole, strict=True):
        close(ours, expected)


def test_max_pool_keeps_a_byte_for_each_window_and_avg_pool_nothing():
    x = mg.tensor(real(2, 3, 8, 8), requires_grad=True)
    for pool, kept in ((mg.max_pool2d, 2 * 3 * 4 * 4), (mg.avg_pool2d, 0)):
        with mg.Tracer() as tracer:
            out = pool(x + 0, 2)
            assert tracer.live("activation") + tracer.live("input") == kept
        out.sum().backward()


# ---- Pooling -----------------------------------------------------------------------------------------


def test_of_equal_values_the_first_receives_the_gradient():
    x = mg.ones(1, 1, 4, 4, requires_grad=True)
    mg.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4]]]


def test_windows_that_overlap_add_their_gradients():
    x = mg.tensor([[[0.0, 3.0, 1.0, 2.0]]], requires_grad=True)
    mg.max_pool1d(x, 2, stride=1).sum().backward()
    assert x.grad.tolist() == [[[0, 2, 0, 1]]]


def test_a_nan_is_not_lost():
    x = mg.tensor([[[1.0, np.nan, 2.0, 0.0]]], requires_grad=True)
    out = mg.max_pool1d(x, 2)
    assert np.isnan(out.data[0, 0, 0]) and out.data[0, 0, 1] == 2


def test_where_all_is_minus_infinity_no_gradient_goes_into_the_padding():
    x = mg.full((1, 1, 2, 2), -np.inf, requires_grad=True)
    mg.max_pool2d(x, 2, padding=1).sum().backward()
    assert x.grad.tolist() == [[[[1, 1], [1, 1]]]]


def test_integers_pool_too():
    x = mg.arange(16).reshape(1, 4, 4)
    assert mg.max_pool2d(x, 2, padding=1).tolist() == [[[0, 2, 3], [8, 10, 11], [12, 14, 15]]]


def test_ceil_mode_gives_the_remainder_a_window():
    x = mg.arange(25, dtype="float64").reshape(1, 5, 5)
    assert mg.max_pool2d(x, 2, ceil_mode=True).tolist() == [[[6, 8, 9], [16, 18, 19], [21, 23, 24]]]
    assert mg.avg_pool2d(x, 2, ceil_mode=True).tolist() == [[[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]]
    assert mg.max_pool1d(x[0], 2, stride=4, ceil_mode=True).shape == (5, 2)
    assert mg.max_pool1d(x[0, :, :4], 2, stride=4, ceil_mode=True).shape == (5, 1)  # it would begin after the end


def test_padding_counts_in_the_mean_or_not():
    x = mg.ones(1, 2, 2)
    assert mg.avg_pool2d(x, 2, padding=1).tolist() == [[[0.25, 0.25], [0.25, 0.25]]]
    assert mg.avg_pool2d(x, 2, padding=1, count_include_pad=False).tolist() == [[[1, 1], [1, 1]]]


def test_float16_means_do_not_overflow():
    x = mg.full((1, 8, 8), 6e4, dtype="float16")
    assert mg.avg_pool2d(x, 8).tolist() == [[[6e4]]]


def test_pooling_has_first_and_second_derivatives():
    (x,) = leaves((2, 2, 7, 6))

    def pools(x):
        return mg.avg_pool2d(mg.max_pool2d(x, (3, 2), stride=2, padding=1), 2, stride=1, padding=1) ** 2

    assert mg.gradcheck(pools, x, eps=1e-6, rtol=1e-4)
    assert mg.gradgradcheck(pools, x, eps=1e-6, rtol=1e-4)


def test_what_meets_is_found():
    """Against every output tried by itself."""
    for size, offset, stride in itertools.product(range(1, 9), range(-9, 11), range(1, 5)):
        outs, ins = window.meet(offset, stride, 4, size)
        met = [(r, offset + r * stride) for r in range(4) if 0 <= offset + r * stride < size]
        assert list(zip(range(4)[outs], range(size)[ins], strict=True)) == met


# ---- Layers ------------------------------------------------------------------------------------------


def small_network(checkpoint=None):
    mg.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2, bias=False),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, 3), checkpoint=checkpoint,
    )  # fmt: skip


def test_layers_have_torchs_names_shapes_and_beginnings():
    network = small_network()
    shapes = {name: array.shape for name, array in network.state_dict().items()}
    assert shapes == {
        "0.weight": (4, 1, 3, 3), "0.bias": (4,), "3.weight": (6, 4, 3, 3), "6.weight": (3, 6), "6.bias": (3,),
    }  # fmt: skip
    wide = nn.Conv1d(50, 20, 2, groups=5)
    bound = 1 / np.sqrt(10 * 2)
    for value in (wide.weight.data, wide.bias.data):
        assert 0.8 * bound < np.abs(value).max() <= bound
    assert wide.weight.shape == (20, 10, 2)
    assert repr(nn.Conv2d(1, 4, 3, padding=1)) == "Conv2d(1, 4, kernel_size=(3, 3), stride=1, padding=1)"


@pytest.mark.parametrize("checkpoint", [1, 3, 7])
def test_a_convolutional_network_in_checkpoints_has_the_same_gradients(checkpoint, same_bits):
    x = mg.tensor(real(2, 1, 11, 10), dtype="float32")
    found = []
    for schedule in (None, checkpoint):
        network = small_network(schedule)
        (network(x) ** 2).sum().backward()
        found.append([p.grad.numpy() for p in network.parameters()])
    same_bits(*found)


def test_a_convolutional_network_learns():
    x, target = mg.tensor(real(12, 1, 11, 10), dtype="float32"), mg.tensor(np.arange(12) % 3)
    network = small_network()
    optimizer = mg.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = mg.cross_entropy(network(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


# ---- Torch -------------------------------------------------------------------------------------------

both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@both_dtypes
@pytest.mark.parametrize("settings", [*SETTINGS, {"padding": "same"}])
def test_convolution_agrees_with_torch(settings, dtype):
    f = pytest.importorskip("torch").nn.functional
    groups = settings.get("groups", 1)
    compare(mg.conv2d, f.conv2d, [real(3, 4, 11, 10), real(6, 4 // groups, 3, 2), real(6)], dtype, **settings)
    flat = {k: v[1] if isinstance(v, tuple) else v for k, v in settings.items()}
    compare(mg.conv1d, f.conv1d, [real(3, 4, 13), real(6, 4 // groups, 3), real(6)], dtype, **flat)
    if "padding" not in settings or settings["padding"] != "same":
        arrays = [real(3, 6, 5, 4), real(6, 4 // groups, 3, 2), real(4)]
        compare(mg.conv_transpose2d, f.conv_transpose2d, arrays, dtype, **settings)


@pytest.mark.oracle
@both_dtypes
def test_pooling_agrees_with_torch(dtype):
    f = pytest.importorskip("torch").nn.functional
    x, ties = real(2, 3, 11, 9), rng.integers(0, 3, (2, 3, 11, 9)).astype(float)
    for settings in (
        {}, {"stride": 1}, {"stride": (3, 2), "padding": 1}, {"ceil_mode": True}, {"ceil_mode": True, "stride": 4},
        {"ceil_mode": True, "padding": 1},
    ):  # fmt: skip
        for array in (x, ties):
            compare(mg.max_pool2d, f.max_pool2d, [array], dtype, kernel_size=(3, 2), **settings)
        flat = {k: v[0] if isinstance(v, tuple) else v for k, v in settings.items()}
        compare(mg.max_pool1d, f.max_pool1d, [x[0]], dtype, kernel_size=2, **flat)
        for count_include_pad in (True, False):
            more = {"kernel_size": (3, 2), "count_include_pad": count_include_pad}
            compare(mg.avg_pool2d, f.avg_pool2d, [x], dtype, **more, **settings)
    compare(mg.max_pool2d, f.max_pool2d, [x], dtype, kernel_size=3, dilation=(2, 3), stride=2)


@pytest.mark.oracle
@both_dtypes
def test_a_network_with_torchs_weights_agrees_with_torch(dtype):
    tnn = pytest.importorskip("torch").nn
    theirs = tnn.Sequential(
        tnn.Conv2d(1, 4, 3, padding=1), tnn.ReLU(), tnn.MaxPool2d(2), tnn.Conv2d(4, 6, 3, stride=2, bias=False),
        tnn.AvgPool2d(2), tnn.Flatten(), tnn.Linear(6, 3),
    )  # fmt: skip
    compare_modules(small_network(), theirs, [real(2, 1, 11, 10)], dtype)
