"""Looks at lessons/exercises/ex15_budget.py."""

import numpy as np

import minigrad as mg
from minigrad import nn, schedules

PARTS = "The message of the error under 'Break it' in lesson 15 is about this: a smaller batch."
HALVES = "Look at `halves` under 'Break it' in lesson 15."


# ---- gradients_in_parts ------------------------------------------------------------------------------


class Problem:
    """A small network and its mean loss on some rows."""

    def __init__(self, rows):
        rng = np.random.default_rng(rows)
        self.inputs, self.targets = rng.standard_normal((rows, 4)), rng.standard_normal((rows, 2))
        shapes = ((4, 8), (8, 2))
        self.parameters = [mg.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]

    def loss_of(self, inputs, targets):
        first, second = self.parameters
        return mg.mse_loss(mg.tanh(mg.tensor(inputs) @ first) @ second, mg.tensor(targets))

    def gradients(self):
        """Those of all rows at once."""
        return [g.numpy() for g in mg.grad(self.loss_of(self.inputs, self.targets), self.parameters)]


def check_gradients_in_parts(answers):
    for rows, parts in ((6, 1), (6, 2), (6, 3), (7, 2), (10, 4)):
        problem = Problem(rows)
        expected, case = problem.gradients(), f"{rows} rows in {parts} parts"
        for parameter in problem.parameters:
            parameter.grad = mg.ones(parameter.shape, dtype="float64")  # left over from a step before
        arguments = problem.loss_of, problem.parameters, problem.inputs, problem.targets, parts
        with mg.Tracer() as tracer:
            found = answers.gradients_in_parts(*arguments)
        is_right_kind = isinstance(found, list) and len(found) == 2 and all(isinstance(g, np.ndarray) for g in found)
        assert is_right_kind, f"{case}: gradients_in_parts must give a list of NumPy arrays, one for each parameter"
        for number, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert a.shape == b.shape, f"{case}: gradient {number} has shape {a.shape}, its parameter {b.shape}"
            ratio = float((a * b).sum() / (b * b).sum())
            assert np.allclose(a, b, rtol=1e-9, atol=1e-12), (
                f"{case}: gradient {number} is not that of one backward of all rows; in its direction, yours is "
                f"{ratio:.3f} times as long. Each part's loss is a mean over its own rows: what is its share of the "
                f"mean over all, if parts are not equal? And whose gradients were there before? {PARTS}"
            )
        whole = held_by_one_backward(problem)
        allowed = whole * -(-rows // parts) / rows + 1
        assert parts == 1 or tracer.peak_activation_bytes <= allowed, (
            f"{case}: the gradients are right, and the tape held {tracer.peak_activation_bytes} bytes, where the "
            f"largest part alone needs {allowed:.0f}. Call backward for one part before the next one runs. {PARTS}"
        )


def held_by_one_backward(problem):
    with mg.Tracer() as tracer:
        problem.gradients()
    return tracer.peak_activation_bytes


# ---- in_three ----------------------------------------------------------------------------------------


def run(layers, block, x):
    """(output, gradients of x and of all parameters) from the same seed."""
    mg.manual_seed(3)
    h = x
    for layer in layers:
        h = layer(h)
    is_tensor = isinstance(h, mg.Tensor)
    assert is_tensor, f"the last of the layers must give one tensor, as the block does, and gave {type(h).__name__}"
    gradients = mg.grad((h * h).sum(), [x, *block.parameters()], allow_unused=True)
    return h.numpy(), [None if g is None else g.numpy() for g in gradients]


def equal(a, b):
    return a is b if a is None or b is None else np.array_equal(a, b)


def check_in_three(answers):
    mg.manual_seed(0)
    block, x = nn.TransformerBlock(8, 2, dropout=0.2, activation="relu", causal=True), mg.randn(2, 6, 8)
    x = x.detach().requires_grad_()
    for training in (False, True):
        block.train(training)
        words = "in training, with dropout" if training else "after eval(), without dropout"
        layers = answers.in_three(block)
        is_three = isinstance(layers, list) and len(layers) == 3 and all(map(callable, layers))
        assert is_three, f"in_three must give a list of three functions, not {layers!r:.80}. {HALVES}"
        (out, gradients), (expected, expected_gradients) = run(layers, block, x), run([block], block, x)
        assert out.shape == expected.shape, f"{words}: the result has shape {out.shape}, the block's {expected.shape}"
        assert np.array_equal(out, expected), (
            f"{words}: the result differs from the block's by up to {abs(out - expected).max():.3g}. Is something left "
            "out, added twice, or in another order? TransformerBlock.forward in minigrad/nn/attention.py has it all"
        )
        same = all(map(equal, gradients, expected_gradients))
        assert same, f"{words}: the result is the block's, and a gradient is not. Is something detached?"
    kept = [layer.kept_bytes for layer in mg.profile(answers.in_three(block), x).layers]
    of_block = mg.profile([block], x).layers[0].kept_bytes
    for number, (nbytes, most) in enumerate(zip(kept, (0.7, 0.6, 0.6), strict=True), start=1):
        assert 0 < nbytes < most * of_block, (
            f"of layer {number} the tape keeps {nbytes} bytes, and of the whole block {of_block}. Each of the three "
            f"should have a part of the work; the cuts are after the first sum, and after the widest array. {HALVES}"
        )


# ---- least_share -------------------------------------------------------------------------------------


def check_least_share(answers):
    for count, width in ((6, 4), (10, 16)):
        mg.manual_seed(count)
        layers = [nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(count)]
        x = mg.randn(16, width)
        found, case = answers.least_share(layers, x), f"a chain of {count} layers"
        is_percent = isinstance(found, int) and 1 <= found <= 100
        assert is_percent, f"{case}: least_share must give a whole number of percent, from 1 to 100, not {found!r}"
        measured = mg.profile(layers, x)
        assert fits(measured, found + 1), (  # one more, as times decide between schedules, and times are never the same
            f"{case}: mg.fit finds no schedule for {found} % of what storing everything holds. Is your share one of "
            "mg.fit's budget, in bytes, and of store_all's peak? It raises mg.BudgetError if it finds none"
        )
        assert not fits(measured, found - 2), (
            f"{case}: {found} % of the bytes is enough, and {found - 2} % would be, too. Have you tried all of them, "
            "down to the first one for which mg.fit raises mg.BudgetError? See 'Break it' in lesson 15"
        )


def fits(measured, percent):
    everything = measured.forecast(schedules.store_all()).peak_activation_bytes
    try:
        mg.fit(measured, None, budget=max(0, everything * percent // 100))
    except mg.BudgetError:
        return False
    return True
