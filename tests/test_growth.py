"""Work that grows with n, and not with n²: counted in shapes read and elements made, for n inputs and for 8 n."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine import op as engine
from minigrad.engine.op import registry

N = 200


def pieces(n, *shape):
    rng = np.random.default_rng(3)
    return [mg.tensor(rng.standard_normal(shape), requires_grad=True) for _ in range(n)]


def shapes_read(monkeypatch, n, axis):
    """How many inputs' shapes the backward of a cat of n tensors looks at."""
    read = []

    class Counting(engine.Shapes):
        def __getitem__(self, i):
            found = super().__getitem__(i)
            read.extend(found if isinstance(i, slice) else [found])
            return found

    monkeypatch.setattr(engine, "Shapes", Counting)
    mg.cat(pieces(n, 2, 1), axis).sum().backward()
    monkeypatch.undo()
    return len(read)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_backward_of_cat_looks_at_each_input_once(monkeypatch, axis):
    assert shapes_read(monkeypatch, N, axis) == N
    assert shapes_read(monkeypatch, 8 * N, axis) == 8 * N


@pytest.mark.parametrize("n", [2, 16, 17, 100])
def test_every_input_of_cat_gets_its_own_part_of_the_gradient(n):
    lengths = [1 + i % 3 for i in range(n)]
    for axis in (0, 1):
        parts = [mg.tensor(np.ones((k, 2) if axis == 0 else (2, k)), requires_grad=True) for k in lengths]
        out = mg.cat(parts, axis)
        cotangent = np.arange(float(out.size)).reshape(out.shape)
        out.backward(mg.tensor(cotangent))
        for part, expected in zip(parts, np.split(cotangent, np.cumsum(lengths)[:-1], axis), strict=True):
            assert part.grad.tolist() == expected.tolist()


def elements_made(monkeypatch, name, run):
    """How many elements the forwards of the op make while `run` runs."""
    made, forward = [], registry[name].forward

    def counting(*args, **settings):
        out = forward(*args, **settings)
        made.append(out.size)
        return out

    monkeypatch.setattr(registry[name], "forward", counting)
    run()
    monkeypatch.undo()
    return sum(made)


def in_rows(x):
    return list(x)


def in_parts(x):
    return mg.split(x, 1)


def in_columns(x):
    return mg.unbind(x.T, 1)


@pytest.mark.parametrize("take_apart", [in_rows, in_parts, in_columns])
def test_the_gradients_of_all_rows_make_n_log_n_elements(monkeypatch, take_apart):
    def backward(n):
        x = mg.ones((n, 3), requires_grad=True)
        rows = take_apart(x)
        assert len(rows) == n
        loss = mg.stack([row.sum() * float(i) for i, row in enumerate(rows)]).sum()
        loss.backward()
        assert x.grad.tolist() == [[float(i)] * 3 for i in range(n)]

    for n in (N, 8 * N):
        most = 3 * n * (math.log2(n) + 16)  # the last 16 rows are taken apart one by one
        assert elements_made(monkeypatch, "scatter", lambda n=n: backward(n)) <= most


def test_a_few_rows_are_slices_of_the_whole():
    x = mg.ones((16, 3), requires_grad=True)
    with mg.Tape() as tape:
        list(x), mg.split(x, 1)
    assert len(tape) == 32 and all(line.inputs[0] is x.node for line in tape)


def test_taking_rows_is_lazy():
    x = mg.ones((1000, 2), requires_grad=True)
    with mg.Tape() as tape:
        next(iter(x))
    assert len(tape) <= 8


@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin"])
def test_running_products_and_maxima_make_n_log_n_elements_in_backward(monkeypatch, name):
    def made(n):
        x = mg.tensor(np.random.default_rng(0).uniform(0.5, 1.5, n), requires_grad=True)
        return elements_made(monkeypatch, "pad", lambda: registry[name](x, axis=0).sum().backward())

    assert made(8 * N) <= 8 * 1.5 * made(N)


def test_an_einsum_of_many_operands_is_that_of_two_at_a_time():
    vectors = pieces(60, 3)
    out = mg.einsum(",".join(["i"] * 60) + "->i", *vectors)
    np.testing.assert_allclose(out.data, np.prod([v.data for v in vectors], axis=0), rtol=1e-12)
    matrices = pieces(5, 3, 3)
    out = mg.einsum("ab,bc,cd,de,ef->af", *matrices)
    np.testing.assert_allclose(out.data, np.linalg.multi_dot([m.data for m in matrices]), rtol=1e-12)
    a, b, c = matrices[:3]
    np.testing.assert_allclose(mg.einsum("ab,bc,cb", a, b, c).data, np.einsum("ab,bc,cb", a.data, b.data, c.data))
