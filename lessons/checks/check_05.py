"""Looks at lessons/exercises/ex05_contract.py."""

import inspect

import numpy as np

import minigrad as mg

CONTRACT = "Look at the cell under 'The signature is a contract' of lesson 05."
FUSED = "Look at tanh_linear under 'An op that keeps less' in lesson 05."


@mg.op
def hard_tanh(x):
    """The lesson's wasteful op, which keeps both."""
    return np.clip(x, -1, 1)


@hard_tanh.vjp("x")
def hard_tanh_wrt_x(g, x, out):
    return g * (out == x)


OPS = {"tanh": mg.tanh, "exp": mg.exp, "sin": mg.sin, "neg": mg.neg, "hard_tanh": hard_tanh}


def names_of(vjp) -> list:
    """What a vjp names after the gradient."""
    return list(inspect.signature(vjp).parameters)[1:]


def buffers_on_the_tape(ops):
    """How many buffers the tape holds for a chain of ops whose input is the result of an op that keeps nothing."""
    h = mg.zeros(3, requires_grad=True) + 0.1
    for op in ops:
        h = op(h)
    return len(mg.saved(h.sum()))


def check_buffers_kept(answers):
    chains = [
        ["tanh"], ["sin"], ["neg"], ["hard_tanh"], ["tanh", "sin"], ["sin", "sin", "sin"], ["hard_tanh", "hard_tanh"],
        ["sin", "tanh", "neg", "exp"], ["neg", "sin", "neg", "tanh", "hard_tanh", "sin"], [],
    ]  # fmt: skip
    for names in chains:
        reads = [set(names_of(OPS[name].vjps["x"])) for name in names]
        expected, found = buffers_on_the_tape([OPS[name] for name in names]), answers.buffers_kept(reads)
        assert found == expected, (
            f"the chain {' -> '.join(names) or 'of no op'}, with the contracts {reads}: on the tape mg.saved finds "
            f"{expected}, and buffers_kept says {found}. A vjp that names two values keeps both. But the output of one "
            "op is the input of the next, so two vjps can name the same value. See 'Who else keeps it?' in lesson 05."
        )


def vjp_of(op, name):
    """The one vjp of an op that a reader has made."""
    is_op = hasattr(op, "vjps") and callable(op)
    assert is_op, f"{name} must return the op that @mg.op made, and it returned {op!r}. {FUSED}"
    assert list(op.vjps) == ["x"], (
        f"the op of {name} should have one input, x, with a declared gradient; it has gradients for {list(op.vjps)}. "
        f'Declare it with @name.vjp("x"). {FUSED}'
    )
    return op.vjps["x"]


def _check_values(op, name, formula):
    """The forward, and the gradient against a difference quotient, for a gradient of random numbers."""
    x, g = np.random.default_rng(5).standard_normal((2, 40)) * 2
    with mg.no_grad():
        found = op(mg.tensor(x)).numpy()
    assert np.allclose(found, formula(x), rtol=1e-12, atol=0), (
        f"{name}: the op's forward gives {found[0]:.6g} for x = {x[0]:.6g}, and it should be {formula(x)[0]:.6g}"
    )
    values = {"x": x, "out": formula(x)}
    vjp = vjp_of(op, name)
    unknown = [key for key in names_of(vjp) if key not in values]
    assert not unknown, f"{name}: the vjp names {unknown}; after the gradient it may name x and out. {CONTRACT}"
    gradient = np.asarray(vjp(g, *[values[key] for key in names_of(vjp)]))
    expected = g * (formula(x + 1e-6) - formula(x - 1e-6)) / 2e-6
    same_shape = gradient.shape == g.shape
    assert same_shape, f"{name}: the vjp must give an array of the shape of x, {g.shape}, not {gradient.shape}"
    wrong = np.flatnonzero(~np.isclose(gradient, expected, rtol=1e-5, atol=1e-8))
    assert not len(wrong), (
        f"{name}: at x = {x[wrong[0]]:.6g}, with the gradient {g[wrong[0]]:.6g} coming in, a difference quotient says "
        f"{expected[wrong[0]]:.6g}, and your vjp {gradient[wrong[0]]:.6g}. A vjp multiplies what comes in with the "
        "slope: are both right?"
    )


def check_make_softsign(answers):
    op = answers.make_softsign()
    vjp = vjp_of(op, "make_softsign")
    _check_values(op, "make_softsign", softsign)
    assert names_of(vjp) == ["out"], (
        f"the gradient is right, but the vjp names {names_of(vjp)}, and so the tape keeps that. It should name the "
        "output alone: write the slope with out, and take the rest out of the signature. See the repair of hard_tanh "
        "in lesson 05."
    )
    kept = buffers_on_the_tape([op, mg.sin])
    assert kept == 1, f"softsign, then sin, which reads its input: one buffer for both, and not {kept}. {CONTRACT}"


def check_make_gate(answers):
    op = answers.make_gate()
    vjp = vjp_of(op, "make_gate")
    _check_values(op, "make_gate", gate)
    assert names_of(vjp) == ["x"], (
        f"the gradient is right, but the vjp names {names_of(vjp)}. It should name the input alone, and compute "
        f"whatever else it needs from it. {FUSED}"
    )
    kept = buffers_on_the_tape([op] * 10)
    assert kept == 10, f"a chain of ten gates should keep ten buffers, their inputs, and the tape keeps {kept}. {FUSED}"


def softsign(x):
    return x / (1 + np.abs(x))


def gate(x):
    return x * np.tanh(x)
