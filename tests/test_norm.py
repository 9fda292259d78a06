"""Normalisation: what it keeps, what BatchNorm's statistics do and when, and that it agrees with torch.

That each of the ops computes what its definition says, and has the right first and second derivatives, is shown in
test_ops.py from the samples in op_samples_nn.py.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests.against_torch import compare, compare_modules
from tests.op_samples_nn import batch_norm, layer_norm, rms_norm

rng = np.random.default_rng(4)


def real(*shape):
    return rng.standard_normal(shape)


def leaves(*shapes, dtype="float64"):
    return [mg.tensor(real(*shape), dtype=dtype, requires_grad=True) for shape in shapes]


def close(ours, expected, rtol=1e-11):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=rtol, atol=1e-12)


# ---- As torch calls it -------------------------------------------------------------------------------


def test_shapes_are_given_as_torch_gives_them():
    x, w, b = leaves((2, 3, 4), (3, 4), (3, 4))
    close(mg.layer_norm(x, (3, 4), w, b, eps=0.1), layer_norm(x.data, w.data, b.data, (1, 2), 0.1))
    close(mg.layer_norm(x, 4), layer_norm(x.data))
    close(mg.rms_norm(x, [3, 4], w), rms_norm(x.data, w.data, (1, 2), np.finfo("float64").eps))
    close(mg.batch_norm(x, None, None, w[:, 0], b[:, 0], training=True), batch_norm(x.data, w.data[:, 0], b.data[:, 0]))


def test_a_bias_needs_no_weight():
    x, b = leaves((2, 3), (3,))
    close(mg.layer_norm(x, 3, bias=b), layer_norm(x.data, 1.0, b.data))
    close(mg.batch_norm(x, bias=b, training=True), batch_norm(x.data, 1.0, b.data))
    assert mg.gradcheck(lambda x, b: mg.batch_norm(x, bias=b, training=True), [x, b])


def test_public_functions_have_first_and_second_derivatives():
    x, w, b, v = leaves((4, 3, 2), (3,), (3,), (3,))
    mean, var = mg.tensor(real(3)), mg.tensor(real(3) ** 2 + 0.5)

    def evaluation(x, w, b):
        return mg.batch_norm(x, mean, var, w, b)

    def stack(x, w, b, v):
        x = mg.batch_norm(x, None, None, w, b, training=True)
        return mg.rms_norm(mg.layer_norm(x.swapaxes(1, 2), 3, v, b), 3, w, eps=1e-3)

    for run, inputs in ((evaluation, (x, w, b)), (stack, (x, w, b, v))):
        assert mg.gradcheck(run, inputs)
        assert mg.gradgradcheck(run, inputs)


def test_evaluation_uses_the_running_values():
    x, w, b = leaves((4, 3, 2, 2), (3,), (3,))
    mean, var = mg.tensor(real(3)), mg.tensor(real(3) ** 2)

    def each(p):
        return np.reshape(p, (3, 1, 1))

    expected = (x.data - each(mean)) / np.sqrt(each(var) + 1e-5) * each(w.data) + each(b.data)
    close(mg.batch_norm(x, mean, var, w, b), expected)


def test_equal_values_give_zero_and_large_ones_lose_nothing():
    assert mg.layer_norm(mg.full((2, 4), 7.0), 4).tolist() == [[0.0] * 4] * 2
    x = real(4, 8)
    for norm in (mg.layer_norm, mg.rms_norm):
        close(norm(mg.tensor(x * 1e4), 8), norm(mg.tensor(x), 8), rtol=1e-4)
        half = norm(mg.tensor(x * 1e4, dtype="float16"), 8)
        assert half.dtype == "float16" and np.isfinite(half.data).all()
        close(half, norm(mg.tensor(x), 8), rtol=1e-2)


def test_what_cannot_be_is_refused_with_a_reason():
    x, w = mg.tensor(real(4, 3)), mg.ones(4)
    for call, message in (
        (lambda: mg.layer_norm(x, 4), "last axes"),
        (lambda: mg.layer_norm(x, 3, w), r"shape \(3,\)"),
        (lambda: mg.rms_norm(x, (4, 4, 3)), "last axes"),
        (lambda: mg.batch_norm(x), "running_mean"),
        (lambda: mg.batch_norm(x, training=True, weight=w), "for each channel"),
        (lambda: mg.batch_norm(x[:1], training=True), "more than one value"),
        (lambda: nn.BatchNorm2d(3)(x), "takes 4 axes"),
        (lambda: nn.BatchNorm1d(4)(x), "of length 4"),
    ):
        with pytest.raises(mg.MinigradError, match=message):
            call()


# ---- Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [nn.LayerNorm(64), nn.RMSNorm(64), nn.BatchNorm1d(64)])
def test_only_the_input_is_kept(norm):
    x = mg.tensor(real(32, 64), dtype="float32", requires_grad=True)
    with mg.Tracer() as tracer:
        out = norm(x * 2)
        assert tracer.live_activations == 1
        assert tracer.live("activation") == x.nbytes
    out.sum().backward()


# ---- BatchNorm's statistics --------------------------------------------------------------------------


def in_training(norm, x, run=None):
    """The running values after one forward and backward."""
    out = (run or norm)(x)
    (out * out).sum().backward()
    return [norm.running_mean.numpy(), norm.running_var.numpy(), norm.num_batches_tracked.item()]


def test_running_values_move_towards_mean_and_unbiased_variance():
    x = real(5, 2, 3)
    norm = nn.BatchNorm1d(2, momentum=0.25, dtype="float64")
    mean, var, batches = in_training(norm, mg.tensor(x, requires_grad=True))
    close(mean, 0.25 * x.mean(axis=(0, 2)))
    close(var, 0.75 + 0.25 * x.var(axis=(0, 2), ddof=1))
    assert batches == 1


def nested(norm):
    return lambda x: mg.checkpoint(lambda x: mg.checkpoint(norm, x) * 2, x)


def in_a_sequence(norm):
    return nn.Sequential(norm, nn.Tanh(), nn.Tanh(), checkpoint=mg.schedules.sqrt())


@pytest.mark.parametrize(
    "wrap", [lambda norm: lambda x: mg.checkpoint(norm, x), nested, in_a_sequence], ids=["once", "nested", "schedule"]
)
def test_a_checkpoint_updates_them_exactly_once(wrap, same_bits):
    x = mg.tensor(real(6, 2), dtype="float32", requires_grad=True)
    plain, replayed = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    expected = in_training(plain, x)
    same_bits(in_training(replayed, x, wrap(replayed)), expected)


def test_a_checkpoint_gives_the_same_bits(same_bits):
    x = real(6, 3, 4, 4).astype("float32")
    found = []
    for wrap in (lambda run, x: run(x), mg.checkpoint):
        mg.manual_seed(2)
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LayerNorm(16))
        leaf = mg.tensor(x, requires_grad=True)
        (wrap(network, leaf) ** 3).sum().backward()
        found.append([leaf.grad.numpy(), *[p.grad.numpy() for p in network.parameters()]])
    same_bits(*found)


def test_statistics_that_move_between_forward_and_backward_change_no_gradient(same_bits):
    """A replay reads the running values that its forward read, also if training has gone on in between."""
    found = []
    for moves in (False, True):
        norm, x = nn.BatchNorm1d(2).eval(), mg.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        out = mg.checkpoint(lambda x, norm=norm: mg.tanh(norm(x)), x)
        if moves:
            norm.train()(x * 100)
        out.sum().backward()
        found.append([x.grad.numpy()])
    same_bits(*found)


def test_without_momentum_they_are_averages_over_all_batches():
    batches = [real(4, 2) for _ in range(3)]
    norm = nn.BatchNorm1d(2, momentum=None, dtype="float64")
    for batch in batches:
        norm(mg.tensor(batch))
    close(norm.running_mean, np.mean([batch.mean(axis=0) for batch in batches], axis=0))
    close(norm.running_var, np.mean([batch.var(axis=0, ddof=1) for batch in batches], axis=0))


def test_evaluation_moves_nothing_and_without_tracking_there_is_nothing_to_move():
    x = mg.tensor(real(4, 2), dtype="float32")
    norm = nn.BatchNorm1d(2).eval()
    norm(x)
    assert norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0
    loose = nn.BatchNorm1d(2, affine=False, track_running_stats=False).eval()
    assert loose.state_dict() == {} and loose.running_mean is None
    close(loose(x), batch_norm(x.data), rtol=1e-5)


def test_a_batch_that_is_refused_moves_nothing():
    norm = nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="more than one value"):
        norm(mg.ones(1, 2))
    assert norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0


def test_states_have_torchs_names_and_come_back():
    norm, x = nn.BatchNorm2d(2), mg.tensor(real(3, 2, 2, 2), dtype="float32")
    norm(x)
    state = norm.state_dict()
    assert list(state) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    other = nn.BatchNorm2d(2)
    other.load_state_dict(state)
    np.testing.assert_array_equal(norm.eval()(x).data, other.eval()(x).data)
    assert list(nn.LayerNorm(3).state_dict()) == ["weight", "bias"] and list(nn.RMSNorm(3).state_dict()) == ["weight"]
    assert nn.LayerNorm(3, bias=False).bias is None and not nn.LayerNorm(3, elementwise_affine=False).state_dict()


# ---- Torch -------------------------------------------------------------------------------------------

both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.oracle
@both_dtypes
def test_functions_agree_with_torch(dtype):
    f = pytest.importorskip("torch").nn.functional
    x, w, b = real(5, 3, 4), real(3, 4), real(3, 4)
    compare(mg.layer_norm, f.layer_norm, [x], dtype, normalized_shape=(3, 4))
    compare(
        lambda x, w, b: mg.layer_norm(x, (3, 4), w, b, 1e-3), lambda x, w, b: f.layer_norm(x, (3, 4), w, b, 1e-3),
        [x, w, b], dtype,
    )  # fmt: skip
    for eps in (None, 1e-3):
        compare(
            lambda x, w, eps=eps: mg.rms_norm(x, (3, 4), w, eps), lambda x, w, eps=eps: f.rms_norm(x, (3, 4), w, eps),
            [x, w], dtype,
        )  # fmt: skip
    compare(
        lambda x, w, b: mg.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: f.batch_norm(x, None, None, w, b, training=True),
        [x, w[:, 0], b[:, 0]], dtype,
    )  # fmt: skip


@pytest.mark.oracle
@both_dtypes
def test_layers_agree_with_torch(dtype):
    tnn = pytest.importorskip("torch").nn
    compare_modules(nn.LayerNorm((3, 4)), tnn.LayerNorm((3, 4)), [real(5, 3, 4)], dtype)
    compare_modules(nn.RMSNorm(4), tnn.RMSNorm(4), [real(5, 3, 4)], dtype)
    for kind, shape in (("BatchNorm1d", (5, 3)), ("BatchNorm1d", (5, 3, 4)), ("BatchNorm2d", (5, 3, 4, 2))):
        for settings in ({}, {"momentum": None}, {"affine": False}, {"eps": 0.1, "momentum": 0.7}):
            ours, theirs = getattr(nn, kind)(3, **settings), getattr(tnn, kind)(3, **settings)
            for _ in range(2):
                compare_modules(ours, theirs, [real(*shape)], dtype)
            compare_modules(ours.eval(), theirs.eval(), [real(*shape)], dtype)
