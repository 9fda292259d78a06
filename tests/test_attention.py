"""Attention in blocks is attention: the same values and derivatives as its plain twin, in linear memory.

That the op computes what its definition says, and has the right derivatives, is shown in test_ops.py from the samples
in op_samples_nn.py, which are smaller than a block. Here sequences are longer than blocks.
"""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.ops import attention, attention_plain
from tests.against_torch import compare, compare_modules

rng = np.random.default_rng(6)
INF = math.inf


def real(*shape):
    return rng.standard_normal(shape)


def leaf(array, dtype="float64"):
    return mg.tensor(array, dtype=dtype, requires_grad=True)


def close(ours, expected, tolerance=1e-11):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=tolerance, atol=tolerance)


def some_rows_see_nothing(rows, columns):
    mask = rng.random((rows, columns)) < 0.5
    mask[0] = mask[-1] = mask[rows // 2] = False
    return mask


def minus_infinity(mask):
    return np.where(mask, rng.standard_normal(mask.shape), -INF)


# query, key and value shapes; mask; settings
CASES = {
    "one head": ((11, 3), (11, 3), (11, 3), None, {}),
    "batch, heads": ((2, 3, 9, 4), (2, 3, 9, 4), (2, 3, 9, 2), None, {"scale": 0.3}),
    "longer keys": ((2, 5, 3), (2, 13, 3), (2, 13, 3), None, {}),
    "shorter keys": ((2, 13, 3), (2, 5, 3), (2, 5, 3), None, {}),
    "shared keys": ((2, 3, 9, 4), (2, 1, 9, 4), (9, 2), None, {}),
    "causal": ((2, 11, 3), (2, 11, 3), (2, 11, 3), None, {"is_causal": True}),
    "causal, longer keys": ((7, 3), (12, 3), (12, 3), None, {"is_causal": True}),
    "causal, shorter keys": ((12, 3), (7, 3), (7, 3), None, {"is_causal": True}),
    "boolean mask": ((2, 2, 9, 3), (2, 2, 10, 3), (2, 2, 10, 3), some_rows_see_nothing(9, 10), {}),
    "mask of each batch": ((2, 2, 9, 3), (2, 2, 10, 3), (2, 2, 10, 3), rng.random((2, 1, 1, 10)) < 0.5, {}),
    "mask of rows": ((2, 9, 3), (2, 10, 3), (2, 10, 3), rng.random((9, 1)) < 0.5, {}),
    "one-dimensional mask": ((9, 3), (10, 3), (10, 3), rng.random(10) < 0.5, {}),
    "mask and causal": ((2, 9, 3), (2, 9, 3), (2, 9, 3), some_rows_see_nothing(9, 9), {"is_causal": True}),
    "added": ((2, 2, 9, 3), (2, 2, 10, 3), (2, 2, 10, 3), real(2, 9, 10), {}),
    "added, broadcast": ((2, 2, 9, 3), (2, 2, 10, 3), (2, 2, 10, 3), real(2, 2, 1, 10), {}),
    "added, minus infinity": ((2, 9, 3), (2, 10, 3), (2, 10, 3), minus_infinity(some_rows_see_nothing(9, 10)), {}),
    "more batches in the mask": ((9, 3), (10, 3), (10, 3), real(2, 9, 10), {}),
}
each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(attention, "BLOCK", 4)


def inputs_of(case, dtype="float64"):
    """Leaves, among them the mask if it has numbers; and the call's settings."""
    *shapes, mask, settings = CASES[case]
    generator = np.random.default_rng(1)
    leaves = [leaf(generator.standard_normal(shape), dtype) for shape in shapes]
    if mask is not None:
        finite = mask.dtype == bool or np.isfinite(mask).all()
        leaves.append(mg.tensor(mask) if mask.dtype == bool else mg.tensor(mask, dtype=dtype, requires_grad=finite))
    return leaves, settings


def first_and_second(run, inputs, settings):
    """Value, gradients, and the gradients of a number made of the gradients."""
    out = run(*inputs, **settings)
    wanted = [x for x in inputs if x.requires_grad]
    weights = mg.tensor(np.random.default_rng(2).standard_normal(out.shape), dtype=out.dtype)
    first = mg.grad(out, wanted, weights)
    again = mg.grad(run(*inputs, **settings), wanted, weights, create_graph=True)
    second = mg.grad(sum([(g * g * g).sum() for g in again]), wanted)
    return [out, *first], [*again, *second]


@each_case
def test_blocks_give_what_the_plain_twin_gives(case, small_blocks):
    inputs, settings = inputs_of(case)
    plain, plain_second = first_and_second(attention_plain, inputs, settings)
    ours, ours_second = first_and_second(mg.scaled_dot_product_attention, inputs, settings)
    for a, b in zip(ours + ours_second, plain + plain_second, strict=True):
        assert np.isfinite(a.data).all()
        close(a, b)


@each_case
def test_gradients_that_can_be_differentiated_are_those_that_cannot(case, small_blocks):
    """The two ways through a vjp, for a gradient that reaches the last column of the op's output as well."""
    inputs, settings = inputs_of(case)
    out = mg.scaled_dot_product_attention(*inputs, **settings)
    op, scale = attention.scaled_dot_product_attention_, settings.get("scale", inputs[0].shape[-1] ** -0.5)
    inputs[3:] = [mask if mask.ndim > 1 else mask.reshape(1, -1) for mask in inputs[3:]]
    whole = op(*inputs, is_causal=settings.get("is_causal", False), scale=scale)
    close(whole[..., :-1], out)
    cotangent, wanted = mg.tensor(real(*whole.shape)), [x for x in inputs if x.requires_grad]
    once = mg.grad(whole, wanted, cotangent, retain_graph=True)
    again = mg.grad(whole, wanted, cotangent, create_graph=True)
    for a, b in zip(once, again, strict=True):
        close(a, b)


@each_case
def test_derivatives_are_those_of_difference_quotients(case, small_blocks):
    inputs, settings = inputs_of(case)

    def run(*inputs):
        return mg.scaled_dot_product_attention(*inputs, **settings)

    assert mg.gradcheck(run, inputs)
    if case in ("causal", "boolean mask", "added, broadcast", "shared keys"):
        assert mg.gradgradcheck(run, inputs)


@each_case
def test_a_checkpoint_gives_the_same_bits(case, small_blocks, same_bits):
    found = []
    for wrap in (lambda run, *xs: run(*xs), mg.checkpoint):
        inputs, settings = inputs_of(case, "float32")

        def run(q, *others, settings=settings):
            return mg.tanh(mg.scaled_dot_product_attention(q * 2, *others, **settings))

        wrap(run, *inputs).sum().backward()
        found.append([x.grad.numpy() for x in inputs if x.requires_grad])
    same_bits(*found)


def test_blocks_of_the_usual_size_meet_at_their_edges():
    q, k, v = [leaf(real(2, length, 8)) for length in (300, 257, 257)]
    for settings in ({}, {"is_causal": True}):
        ours, _ = first_and_second(mg.scaled_dot_product_attention, (q, k, v), settings)
        plain, _ = first_and_second(attention_plain, (q, k, v), settings)
        for a, b in zip(ours, plain, strict=True):
            close(a, b)


def test_a_row_that_may_look_at_nothing_gives_zero_and_receives_nothing():
    q, k, v = [leaf(real(3, 2)) for _ in range(3)]
    mask = mg.tensor([[True, False, True], [False] * 3, [True] * 3])
    for run in (mg.scaled_dot_product_attention, attention_plain):
        out = run(q, k, v, mask)
        assert out.tolist()[1] == [0, 0]
        assert mg.grad(out, q, mg.ones(3, 2, dtype="float64"))[0].tolist()[1] == [0, 0]


def test_scores_of_any_size_do_not_overflow(small_blocks):
    """The scores are ±1e6; a softmax that does not subtract the maximum of all blocks gives nan or inf."""
    q = leaf([[1e3], [-1e3]], "float32")
    k = leaf(np.linspace(-1e3, 1e3, 9)[:, None], "float32")
    v = leaf(np.arange(9.0)[:, None], "float32")
    out = mg.scaled_dot_product_attention(q, k, v)
    assert out.tolist() == [[8.0], [0.0]]
    out.sum().backward()
    assert all(np.isfinite(x.grad.data).all() for x in (q, k, v))


def test_float16_has_the_digits_that_float16_has():
    q, k, v = [leaf(array, "float16") for array in (real(40, 8) * 6, real(40, 8) * 6, real(40, 8))]
    out = mg.scaled_dot_product_attention(q, k, v, is_causal=True)
    exact = [leaf(x.data.astype("float64")) for x in (q, k, v)]
    expected = attention_plain(*exact, is_causal=True)
    assert out.dtype == "float16"
    close(out, expected, 4e-3)
    out.sum().backward()
    expected.sum().backward()
    for x, y in zip((q, k, v), exact, strict=True):
        assert x.grad.dtype == "float16"
        close(x.grad.data / np.abs(y.grad.data).max(), y.grad.data / np.abs(y.grad.data).max(), 2e-3)


def test_what_cannot_be_is_refused_with_a_reason():
    q, k = mg.ones(2, 5, 4), mg.ones(2, 3, 4)
    attend = mg.scaled_dot_product_attention
    for call, message in (
        (lambda: attend(q, mg.ones(2, 3, 5), k), "in common"),
        (lambda: attend(q, k, q), "in common"),
        (lambda: attend(q, mg.ones(3, 3, 4), mg.ones(3, 3, 4)), "do not broadcast"),
        (lambda: attend(q, k, k, mg.ones(5, 4)), r"broadcast to \(5, 3\)"),
        (lambda: attend(q, k, k, mg.arange(3)), "truth values"),
        (lambda: attend(q, k, k, mg.ones(5, 3), attn_mask=mg.ones(5, 3)), "two names"),
        (lambda: attend(q[0, 0], k, k), "shape"),
        (lambda: nn.MultiheadAttention(6, 4), "share"),
        (lambda: nn.TransformerBlock(4, 2, activation="tan"), "activation"),
    ):
        with pytest.raises(mg.MinigradError, match=message):
            call()


# ---- Memory ------------------------------------------------------------------------------------------


def traced(length, run=mg.scaled_dot_product_attention, **settings):
    q, k, v = [mg.tensor(real(1, length, 16), dtype="float32", requires_grad=True) for _ in range(3)]
    with mg.Tracer(workspace=True) as tracer:
        out = run(q, k, v, **settings)
        (out * out).sum().backward()
    return tracer


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_grows_as_the_length_and_not_as_its_square(is_causal):
    short, long = traced(512, is_causal=is_causal), traced(4096, is_causal=is_causal)
    assert long.peak_bytes / short.peak_bytes < 9
    assert long.peak_bytes < 4096 * 4096  # a quarter of the matrix
    assert traced(512, attention_plain).peak_bytes > 512 * 512 * 4 > 0.9 * short.peak_bytes


def test_the_tape_keeps_inputs_output_and_one_number_for_each_row():
    q, k, v = [mg.tensor(real(2, 50, 8), dtype="float32", requires_grad=True) for _ in range(3)]
    with mg.Tracer() as tracer:
        out = mg.scaled_dot_product_attention(q * 1, k * 1, v * 1)
        assert tracer.live_activations == 4
        assert tracer.live("activation") == 3 * q.nbytes + 2 * 50 * 9 * 4
    out.sum().backward()


# ---- Layers ------------------------------------------------------------------------------------------


def test_heads_are_attention_on_parts_of_the_features():
    layer, x = nn.MultiheadAttention(6, 2, batch_first=True, dtype="float64"), leaf(real(3, 5, 6))
    out, weights = layer(x, x, x)
    assert weights is None
    q, k, v = np.split(x.data @ layer.in_proj_weight.data.T, 3, axis=-1)
    heads = [attention_plain(*[mg.tensor(part[..., h]) for part in (q, k, v)]) for h in (slice(3), slice(3, 6))]
    close(out, np.concatenate([head.data for head in heads], -1) @ layer.out_proj.weight.data.T)


def test_weights_are_given_if_asked_for_and_change_nothing():
    layer, x = nn.MultiheadAttention(6, 2, dtype="float64"), leaf(real(5, 3, 6))
    out, _ = layer(x, x, x, is_causal=True)
    same, weights = layer(x, x, x, is_causal=True, need_weights=True)
    _, each = layer(x, x, x, is_causal=True, need_weights=True, average_attn_weights=False)
    close(same, out)
    assert weights.shape == (3, 5, 5) and each.shape == (3, 2, 5, 5)
    close(weights.sum(axis=-1), np.ones((3, 5)))
    close(each.mean(axis=1), weights)


def test_what_is_masked_does_not_matter():
    """True hides in this layer, as in torch: padded keys, and what attn_mask says."""
    layer, x = nn.MultiheadAttention(6, 2, batch_first=True, dtype="float64"), real(2, 5, 6)
    padding = np.array([[False, False, False, True, True], [False] * 5])
    later = np.triu(np.ones((5, 5), bool), 1)
    other = np.where(padding[..., None], 100.0, x)
    for settings in (
        {"key_padding_mask": mg.tensor(padding)},
        {"key_padding_mask": mg.tensor(padding), "attn_mask": mg.tensor(later)},
        {"key_padding_mask": mg.tensor(np.where(padding, -INF, 0)), "attn_mask": mg.tensor(later)},
        {"key_padding_mask": mg.tensor(padding), "is_causal": True},
    ):
        first, second = [layer(mg.tensor(array), **settings)[0].data for array in (x, other)]
        close(first[~padding], second[~padding])


def test_a_mask_that_hides_what_comes_is_causal():
    layer, x = nn.MultiheadAttention(6, 2, batch_first=True, dtype="float64"), mg.tensor(real(2, 5, 6))
    later, padding = np.triu(np.ones((5, 5), bool), 1), np.array([[False, False, True, False, True], [False] * 5])
    for padded in ({}, {"key_padding_mask": mg.tensor(padding)}):
        expected, _ = layer(x, is_causal=True, **padded)
        for mask in (later, np.where(later, -INF, 0.0), np.stack([later] * 4)):
            close(layer(x, attn_mask=mg.tensor(mask), **padded)[0], expected)


def test_without_a_batch_and_without_a_bias():
    layer, x = nn.MultiheadAttention(6, 3, bias=False, dtype="float64"), leaf(real(5, 6))
    alone, _ = layer(x, x, x)
    batch, _ = layer(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1))
    close(alone, batch[:, 0])
    assert list(layer.state_dict()) == ["in_proj_weight", "out_proj.weight"]


def test_dropout_in_training_only():
    mg.manual_seed(3)
    layer, x = nn.MultiheadAttention(6, 2, dropout=0.5), mg.tensor(real(5, 1, 6), dtype="float32")
    first, second = layer(x)[0], layer(x)[0]
    assert not np.array_equal(first.data, second.data)
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].data, layer(x)[0].data)


def blocks(checkpoint=None, **settings):
    mg.manual_seed(4)
    return nn.Sequential(*[nn.TransformerBlock(8, 2, causal=True, **settings) for _ in range(4)], checkpoint=checkpoint)


def test_a_causal_block_does_not_see_what_comes():
    x = real(2, 7, 8).astype("float32")
    changed = x.copy()
    changed[:, 5:] += real(2, 2, 8)
    model = blocks()
    first, second = model(mg.tensor(x)).data, model(mg.tensor(changed)).data
    close(first[:, :5], second[:, :5], 1e-6)
    assert not np.allclose(first[:, 5:], second[:, 5:])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_transformer_blocks_in_checkpoints_have_the_same_gradients(dropout, same_bits):
    x, found = mg.tensor(real(2, 7, 8), dtype="float32"), []
    for schedule in (None, mg.schedules.sqrt(), 1):
        model = blocks(schedule, dropout=dropout)
        (model(x) ** 2).sum().backward()
        found.append([p.grad.numpy() for p in model.parameters()])
    same_bits(found[0], found[1])
    same_bits(found[0], found[2])


# ---- Torch -------------------------------------------------------------------------------------------

both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.oracle
@both_dtypes
@each_case
def test_attention_agrees_with_torch(case, dtype, small_blocks):
    torch = pytest.importorskip("torch")
    *shapes, mask, settings = CASES[case]
    if mask is not None and settings.get("is_causal"):
        pytest.skip("torch takes a mask or is_causal, not both")
    lead = np.broadcast_shapes(*[shape[:-2] for shape in shapes], *([] if mask is None else [mask.shape[:-2]]))
    arrays = [real(*lead, *shape[-2:]) for shape in shapes]  # torch does not broadcast everything
    theirs = dict(settings) if mask is None else {**settings, "attn_mask": torch.tensor(mask)}
    if mask is not None and mask.dtype != bool:
        theirs["attn_mask"] = theirs["attn_mask"].to(getattr(torch, dtype))
    ours = dict(settings) if mask is None else {**settings, "attn_mask": mg.tensor(theirs["attn_mask"].numpy())}
    function = torch.nn.functional.scaled_dot_product_attention
    compare(mg.scaled_dot_product_attention, function, arrays, dtype, ours, **theirs)


@pytest.mark.oracle
@both_dtypes
def test_multihead_attention_agrees_with_torch(dtype):
    torch = pytest.importorskip("torch")
    later, padding = np.triu(np.ones((5, 5), bool), 1), np.array([[False] * 3 + [True] * 2, [False] * 5])
    for batch_first in (False, True):
        shape = (2, 5, 6) if batch_first else (5, 2, 6)
        for masks in ({}, {"attn_mask": later}, {"key_padding_mask": padding}):
            ours = nn.MultiheadAttention(6, 2, batch_first=batch_first)
            theirs = torch.nn.MultiheadAttention(6, 2, batch_first=batch_first)
            torch.nn.init.normal_(theirs.in_proj_bias)

            def run_ours(*x, layer=ours, masks=masks):
                q, k, v = x * (3 // len(x))
                return layer(q, k, v, need_weights=True, **{key: mg.tensor(mask) for key, mask in masks.items()})

            def run_theirs(*x, layer=theirs, masks=masks):
                q, k, v = x * (3 // len(x))
                return layer(q, k, v, **{key: torch.tensor(mask) for key, mask in masks.items()})

            for inputs in (1, 3):
                compare_modules(ours, theirs, [real(*shape) for _ in range(inputs)], dtype, run_ours, run_theirs)


@pytest.mark.oracle
@both_dtypes
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_transformer_block_agrees_with_torch(activation, dtype):
    torch = pytest.importorskip("torch")
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    ours = nn.TransformerBlock(8, 2, 16, activation=activation, causal=True)
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, activation=activation, batch_first=True, norm_first=True
    )  # fmt: skip

    def run_theirs(x):
        return theirs(x, src_mask=mask.to(x.dtype), is_causal=True)

    compare_modules(ours, theirs, [real(3, 5, 8)], dtype, ours, run_theirs)
