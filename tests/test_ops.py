"""Every op, from its samples in op_samples.py: values, derivatives, checkpoints, dtypes. Nobody lists ops by hand."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.op import registry
from minigrad.ops.create import leaf
from tests.op_samples import KEEPS, REFERENCES, SAMPLES, Sample

OURS = {name: op for name, op in registry.items() if op.forward.__module__.startswith("minigrad.")}
each_op = pytest.mark.parametrize("name", SAMPLES)


def samples_of(name):
    """The samples of an op. What is printed here pytest shows with a failure: so it says which sample it was."""
    for sample in SAMPLES[name]:
        print(f"{name}({sample})")
        yield sample


def is_real(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def tensors(name, sample, dtype="float64"):
    """A sample's inputs as leaves; the real ones require a gradient if the op has one for them."""
    op, made = registry[name], []
    for i, x in enumerate(sample.inputs):
        parameter = op.parameters[0 if op.variadic else i]
        if is_real(x):
            made.append(mg.tensor(x, dtype=dtype, requires_grad=parameter in op.vjps))
        else:
            made.append(mg.tensor(x) if isinstance(x, np.ndarray) else x)
    return made


def needs_gradient(x):
    return isinstance(x, mg.Tensor) and x.requires_grad


def leaves_of(inputs):
    return list(filter(needs_gradient, inputs))


def gradients(run, inputs):
    """The gradients of a random combination of what `run` gives."""
    out = run(*inputs)
    cotangent = mg.tensor(np.random.default_rng(1).standard_normal(out.shape), dtype=out.dtype)
    return [g.numpy() for g in mg.grad(out, leaves_of(inputs), cotangent)]


def bound(name, sample):
    def run(*inputs):
        return registry[name](*inputs, **sample.settings)

    run.__name__ = name
    return run


def strided(x):
    """The same values, with gaps between them, in Fortran's order."""
    if x.ndim == 0:
        return x.copy()
    roomy = np.zeros([2 * n for n in x.shape], x.dtype, order="F")
    view = roomy[tuple([slice(None, None, 2)] * x.ndim)]
    view[...] = x
    return view


def test_every_op_has_samples_and_every_sample_an_op():
    assert set(OURS) == set(SAMPLES)


@each_op
def test_values_are_those_of_the_reference(name):
    for sample in samples_of(name):
        expected = np.asarray(REFERENCES[name](*sample.inputs, **sample.settings))
        out = bound(name, sample)(*tensors(name, sample))
        assert isinstance(out, mg.Tensor) and out.shape == expected.shape
        assert out.dtype.kind == expected.dtype.kind
        np.testing.assert_allclose(out.data, expected, rtol=1e-12, atol=1e-14)
        assert not out.data.flags.writeable


@each_op
def test_arrays_give_arrays_with_the_same_bits_and_are_not_written_to(name):
    for sample in samples_of(name):
        arrays = [x.copy() if isinstance(x, np.ndarray) else x for x in sample.inputs]
        for x in arrays:
            if isinstance(x, np.ndarray):
                x.setflags(write=False)
        out = bound(name, sample)(*arrays)
        assert isinstance(out, (np.ndarray, np.generic))
        assert np.asarray(out).tobytes() == bound(name, sample)(*tensors(name, sample)).data.tobytes()


@each_op
def test_first_and_second_derivatives_are_those_of_difference_quotients(name):
    for sample in samples_of(name):
        inputs = tensors(name, sample)
        if leaves_of(inputs):
            assert mg.gradcheck(bound(name, sample), inputs)
            assert mg.gradgradcheck(bound(name, sample), inputs)
        else:
            assert not bound(name, sample)(*inputs).requires_grad


@each_op
def test_a_checkpoint_gives_the_same_bits(name):
    """The op between two others, so that the replay must recompute its inputs, its output, or both."""
    for sample in samples_of(name):
        inputs = tensors(name, sample)

        def run(*xs, sample=sample):
            return bound(name, sample)(*[x * 1.5 if needs_gradient(x) else x for x in xs]) * 0.5

        def in_a_checkpoint(*xs, run=run):
            return mg.checkpoint(run, *xs, verify=True)

        if leaves_of(inputs):
            plain, replayed = gradients(run, inputs), gradients(in_a_checkpoint, inputs)
            assert [g.tobytes() for g in plain] == [g.tobytes() for g in replayed]


@each_op
def test_a_smaller_dtype_is_kept(name):
    """In values and in gradients; Python numbers among the inputs change nothing."""
    for sample in samples_of(name):
        for dtype in ("float32", "float16"):
            settings = {k: np.dtype(dtype) if k == "dtype" else v for k, v in sample.settings.items()}
            run = bound(name, Sample(sample.inputs, settings))
            inputs = tensors(name, sample, dtype)
            out = run(*inputs)
            assert out.dtype.kind != "f" or out.dtype == dtype
            if leaves_of(inputs):
                assert all(g.dtype == dtype for g in gradients(run, inputs))


@each_op
def test_strided_inputs_give_what_contiguous_ones_give(name):
    for sample in samples_of(name):
        inputs, run = tensors(name, sample), bound(name, sample)
        apart = [leaf(strided(x.data), x.requires_grad) if isinstance(x, mg.Tensor) else x for x in inputs]
        np.testing.assert_allclose(run(*apart).data, run(*inputs).data, rtol=1e-13, atol=1e-14)
        if leaves_of(inputs):
            for a, b in zip(gradients(run, apart), gradients(run, inputs), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


# ---- What the tape keeps -----------------------------------------------------------------------------


def reads(op, vjp):
    buffers = {"out", *op.parameters[: op.arity]}
    return " ".join(name for name in list(inspect.signature(vjp).parameters)[1:] if name in buffers) or "-"


def test_each_gradient_keeps_what_it_is_meant_to_keep():
    for name, op in OURS.items():
        if op.vjps:
            nothing = ", ".join(f"{parameter}: -" for parameter in op.vjps)
            kept = ", ".join(f"{parameter}: {reads(op, vjp)}" for parameter, vjp in op.vjps.items())
            assert kept == KEEPS.get(name, nothing), name


# ---- Can these tests fail? ---------------------------------------------------------------------------


FLAT = ("sign", "floor", "ceil", "trunc", "round")  # their gradient is zero, and a thousandth more is zero too


@pytest.mark.mutation
@pytest.mark.parametrize("name", [name for name, op in OURS.items() if op.vjps and name not in FLAT])
def test_a_gradient_that_is_off_by_a_thousandth_is_noticed(name, monkeypatch):
    """Each vjp of the op in turn."""
    op = registry[name]
    for parameter, right in op.vjps.items():
        monkeypatch.setattr(op, "vjps", {**op.vjps, parameter: off_by_a_thousandth(right)})
        monkeypatch.setattr(op, "_needs", {})
        with pytest.raises(mg.GradientMismatch, match=f"{name}: .* argument"):
            for sample in SAMPLES[name]:
                inputs = tensors(name, sample)
                if leaves_of(inputs):
                    mg.gradcheck(bound(name, sample), inputs)
        monkeypatch.undo()


def off_by_a_thousandth(vjp):
    def wrong(*args):
        return vjp(*args) * 1.001

    wrong.__signature__ = inspect.signature(vjp)
    return wrong
