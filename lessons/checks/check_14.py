"""Looks at lessons/exercises/ex14_second_order.py."""

import numpy as np

import minigrad as mg

HISTORY = "Look at 'A gradient without a history' in lesson 14."
CHANGES = "Look at 'How a gradient changes' in lesson 14."
PENDULUM = "Look at 'A pendulum' in lesson 14."


def answer(where, function, *args):
    """What a function gives; an error of minigrad's is said in its words, with where to look."""
    try:
        return function(*args)
    except mg.MinigradError as error:
        raise AssertionError(f"{function.__name__}: {type(error).__name__}: {error}. {where}") from error


def same(found, expected, rtol=1e-10):
    """Whether these are arrays of one shape with nearly the same numbers."""
    return np.shape(found) == np.shape(expected) and np.allclose(found, expected, rtol=rtol, atol=rtol / 100)


def check_second_derivative(answers):
    points = np.linspace(-1.5, 1.5, 7)
    tanh = np.tanh(points)
    for name, f, expected in (
        ("sin(t)", mg.sin, -np.sin(points)),
        ("tanh(t)", mg.tanh, -2 * tanh * (1 - tanh**2)),
        ("t ** 3", lambda t: t**3, 6 * points),
        ("exp(2 t)", lambda t: mg.exp(t * 2), 4 * np.exp(2 * points)),
    ):
        found = answer(HISTORY, answers.second_derivative, f, points)
        shaped = np.shape(found) == points.shape
        assert shaped, f"{points.size} points have {points.size} second derivatives; yours gave {found}. {PENDULUM}"
        assert same(found, expected, rtol=1e-13), (
            f"the second derivative of {name} at {points} is {expected.round(6)}, and yours {found.round(6)}; the "
            f"largest difference is {abs(found - expected).max():.1e}, where only rounding is allowed. {HISTORY}"
        )
    table = np.arange(6.0).reshape(2, 3)
    found = answer(HISTORY, answers.second_derivative, mg.sin, table)
    assert same(found, -np.sin(table)), f"for points of shape (2, 3) there should be as many derivatives, not {found}"


def quadratic(seed, sizes):
    """(loss, parameters, H) of xᵀ H x / 2, where x is all parameters one after another."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    matrix = rng.standard_normal((n, n))
    hessian = matrix + matrix.T
    parameters = [mg.tensor(rng.standard_normal(size), requires_grad=True) for size in sizes]

    def loss():
        x = mg.cat(parameters)
        return (x @ mg.tensor(hessian) * x).sum() / 2

    return loss, parameters, hessian


def check_hessian_product(answers):
    for sizes in ((4,), (2, 3)):
        loss, parameters, hessian = quadratic(len(sizes), sizes)
        directions = [np.random.default_rng(i).standard_normal(size) for i, size in enumerate(sizes)]
        expected = np.split(hessian @ np.concatenate(directions), np.cumsum(sizes)[:-1])
        found = answer(CHANGES, answers.hessian_product, loss, parameters, directions)
        assert len(found) == len(sizes), f"{len(sizes)} parameters: there should be as many arrays, not {len(found)}"
        for i, (ours, right) in enumerate(zip(found, expected, strict=True)):
            assert same(ours, right), (
                f"a loss xᵀ H x / 2 in which x is all parameters, of {sizes} numbers: in parameter {i}'s part "
                f"H v is {right}, and hessian_product gave {ours}. Does the gradient of each parameter change with the "
                f"moves of the others too? {CHANGES}"
            )
    w = mg.tensor(np.random.default_rng(0).standard_normal((3, 3)), requires_grad=True)
    x, v, step = mg.ones(2, 3, dtype="float64"), np.eye(3) + 0.5, 1e-5

    def loss_of(values):
        w.assign_(values)
        return (mg.tanh(x @ w) ** 2).sum()

    start = w.numpy()
    ahead, back = (mg.grad(loss_of(start + sign * step * v), w)[0].numpy() for sign in (1, -1))
    w.assign_(start)
    (found,) = answer(CHANGES, answers.hessian_product, lambda: (mg.tanh(x @ w) ** 2).sum(), [w], [v])
    assert same(found, (ahead - back) / (2 * step), rtol=1e-6), (
        f"for a small network H v is not what a difference of two gradients gives. {CHANGES}"
    )
    assert w.grad is None, f"hessian_product leaves something in .grad, where a training loop would find it. {CHANGES}"


def bowl(x):
    """Smallest where every number is 2: steep, and coupled."""
    return ((x - 2) ** 4).sum() + ((x[1:] - x[:-1]) ** 2).sum() + ((x - 2) ** 2).sum()


def check_newton_step(answers):
    loss, (parameter,), hessian = quadratic(3, (4,))
    shift = np.array([1.0, -2.0, 0.5, 3.0])

    def f(x):
        x = x - mg.tensor(shift)
        return (x @ mg.tensor(hessian) * x).sum() / 2

    found = answer(PENDULUM, answers.newton_step, f, parameter.numpy())
    assert same(found, shift, rtol=1e-8), (
        f"for a quadratic function one step leads to where its gradient is 0, here {shift}; newton_step came to "
        f"{found}. Is each row of H complete, and is the step taken against the gradient? {PENDULUM}"
    )
    x, sizes = np.array([3.0, 1.0, 2.5]), []
    for _ in range(12):
        x = answer(PENDULUM, answers.newton_step, bowl, x)
        sizes.append(float(abs(x - 2).max()))
    assert sizes[-1] < 1e-10, (
        f"twelve steps on a smooth bowl should lead to its lowest point; the distances were {sizes}. {PENDULUM}"
    )
