"""Every op of the registry with several tensor inputs, on its samples: integers take the dtype of the floats."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.op import registry
from minigrad.ops.promotion import AS_IT_IS, FLOATING, WITHOUT_GRADIENT
from tests.op_samples import SAMPLES
from tests.test_ops import bound, is_real

FLOATS = ("float16", "float32", "float64")


def inputs_that_agree(name):
    """The positions of the inputs that a float can win over, by the op's own gradients."""
    op = registry[name]
    if op.variadic:
        return None
    named = op.parameters[: op.arity]
    return [i for i, p in enumerate(named) if (p in op.vjps and p != "mask") or name in WITHOUT_GRADIENT]


def mixtures():
    """(name, sample, position): this op's sample with integers at this position."""
    for name, samples in SAMPLES.items():
        if name in AS_IT_IS:
            continue
        for number, sample in enumerate(samples):
            places = inputs_that_agree(name)
            real = [i for i, x in enumerate(sample.inputs) if is_real(x) and (places is None or i in places)]
            for position in real if len(real) > 1 else ():
                yield pytest.param(name, sample, position, id=f"{name}-{number}-{position}")


def mixed(sample, position, floating, integer):
    made = []
    for i, x in enumerate(sample.inputs):
        if i == position:
            made.append(mg.tensor(np.round(x * 3).astype(integer) + np.asarray(1, integer)))
        else:
            needs = is_real(x)
            made.append(mg.tensor(x, dtype=floating if needs else None) if isinstance(x, np.ndarray) else x)
    return made


@pytest.mark.parametrize("name, sample, position", [*mixtures()])
@pytest.mark.filterwarnings("ignore")
def test_a_float_wins_over_integers_in_every_op(name, sample, position):
    for floating in FLOATS:
        for integer in ("int64", "int8", "bool"):
            inputs = mixed(sample, position, floating, integer)
            out = bound(name, sample)(*inputs)
            alone = [x.astype(floating) if i == position else x for i, x in enumerate(inputs)]
            expected = bound(name, sample)(*alone)
            assert out.dtype == expected.dtype == (out.dtype if out.dtype.kind == "b" else floating)
            np.testing.assert_array_equal(out.numpy(), expected.numpy())


@pytest.mark.parametrize("name, sample, position", [*mixtures()])
@pytest.mark.filterwarnings("ignore")
def test_gradients_and_checkpoints_of_mixed_inputs(name, sample, position):
    inputs = mixed(sample, position, "float32", "int64")
    leaves = [x.requires_grad_() for x in inputs if isinstance(x, mg.Tensor) and x.dtype == "float32"]
    out, kept = bound(name, sample)(*inputs), mg.checkpoint(bound(name, sample), *inputs)
    if out.requires_grad:
        ones = mg.ones_like(out)
        plain = mg.grad(out, leaves, ones, allow_unused=True, retain_graph=True)
        replayed = mg.grad(kept, leaves, ones, allow_unused=True)
        recorded = mg.grad(out, leaves, ones, allow_unused=True, create_graph=True)
        for leaf, *found in zip(leaves, plain, replayed, recorded, strict=True):
            if found[0] is not None:
                assert all(g.dtype == "float32" and g.shape == leaf.shape for g in found)
                np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())


@pytest.mark.parametrize("name", sorted(FLOATING))
@pytest.mark.parametrize("default", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore")
def test_functions_of_integers_have_the_default_dtype(name, default):
    places = inputs_that_agree(name)
    mg.set_default_dtype(default)
    try:
        for sample in SAMPLES[name]:
            for integer in ("int64", "uint8", "bool"):
                made = [mg.tensor((abs(x) > 0.5).astype(integer)) if is_real(x) and i in places else x
                        for i, x in enumerate(sample.inputs)]  # fmt: skip
                made = [mg.tensor(x) if isinstance(x, np.ndarray) else x for x in made]
                if not any(isinstance(x, mg.Tensor) and x.dtype.kind == "f" for x in made):
                    assert bound(name, sample)(*made).dtype == default
    finally:
        mg.set_default_dtype("float32")


@pytest.mark.parametrize("integer", ["bool", "uint8", "int32", "int64"])
def test_an_integer_tensor_and_a_python_float_give_the_default_dtype(integer):
    i = mg.tensor(np.array([1, 0], integer))
    found = [i * 0.5, 0.5 + i, i / 2, 2 / (i + 1), i**0.5, mg.where(i > 0, i, 0.5), mg.maximum(i, 0.5),
             mg.clamp(i, 0.5), mg.clamp(i, max=0.5), i * np.float64(0.5), mg.leaky_relu(i)]  # fmt: skip
    assert {out.dtype.name for out in found} == {"float32"}
    assert (i * 2).dtype.kind in "iu" and (i * np.int64(2)).dtype.kind in "iu"


def test_a_mask_of_booleans_is_kept_as_it_is():
    x, mask = mg.ones(1000, requires_grad=True), mg.tensor(np.ones(1000, bool))
    out = x * mask
    assert out.dtype == "float32" and out.node.inputs[1].dtype == "bool"


def test_the_default_dtype_of_a_call_is_that_of_its_replay():
    i, x = mg.tensor([1, 2]), mg.ones(2, dtype="float64", requires_grad=True)
    out = mg.checkpoint(lambda x, i: mg.exp(i) * x, x, i)
    mg.set_default_dtype("float64")
    try:
        (gradient,) = mg.grad(out.sum(), x)
    finally:
        mg.set_default_dtype("float32")
    np.testing.assert_array_equal(gradient.numpy(), np.exp(np.array([1, 2], "float32")).astype("float64"))


def test_of_two_floats_in_a_recorded_product_with_integers():
    a, b, i = mg.ones(2, requires_grad=True), mg.ones(2, dtype="float64", requires_grad=True), mg.tensor([1, 2])
    assert mg.stack([a, b, i]).dtype == mg.cat([i, b, a]).dtype == "float64"
    assert (mg.ones(2, dtype="float16") + mg.ones(2)).dtype == "float32"


STRANGE = {"complex": np.ones(4) * 1j, "a complex scalar": np.complex64(1j), "objects": np.array([None] * 4),
           "text": np.array(["a"] * 4), "dates": np.zeros(4, "M8[s]"), "a Python complex": 1j,
           "masked": np.ma.masked_array(np.ones(4), [0, 0, 1, 0])}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_is_no_real_array_is_refused_wherever_it_comes_in(name, create_graph):
    strange, x = STRANGE[name], mg.tensor(np.ones(4), requires_grad=True)

    def answered():
        y = x * 2
        y.register_hook(lambda gradient: strange)
        y.sum().backward(create_graph=create_graph)

    ways = [
        lambda: mg.sin(x).backward(strange, create_graph=create_graph),
        lambda: mg.grad(mg.sin(x), x, strange, create_graph=create_graph),
        answered, lambda: setattr(x, "grad", strange), lambda: x.assign_(strange), lambda: x * strange,
        lambda: mg.where(mg.ones(4) > 0, x, strange), lambda: mg.cat([x, strange]), lambda: mg.tensor(strange),
        lambda: mg.index_put(x, slice(None), strange), lambda: x @ strange,
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(mg.MinigradError):
            way()
    assert x.grad is None and x.numpy().tolist() == [1.0] * 4


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_refused():
    for way in (lambda x, m: x * m, lambda x, m: m * x, lambda x, m: mg.tensor(m), lambda x, m: x.backward(m)):
        with pytest.raises(mg.MinigradError):
            way(mg.ones(1, 4, requires_grad=True) * 2, np.matrix(np.ones((1, 4))))
