"""Optimizers against plain twins of their formulas, and what they do with odd parameters and settings."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim

STEPS = 7


def problem(dtype=np.float64):
    """Two parameters, and for each step a gradient for each."""
    rng = np.random.default_rng(3)
    start = [rng.standard_normal((3, 2)).astype(dtype), rng.standard_normal(4).astype(dtype)]
    grads = [[rng.standard_normal(p.shape).astype(dtype) for p in start] for _ in range(STEPS)]
    return start, grads


def train(make, start, grads):
    """What `make(parameters)`, an optimizer, makes of the parameters."""
    parameters = [mg.tensor(p, requires_grad=True) for p in start]
    optimizer = make(parameters)
    for step in grads:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = mg.tensor(gradient)
        optimizer.step()
    return [parameter.numpy() for parameter in parameters]


# ---- Plain twins -------------------------------------------------------------------------------------


def plain_sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    velocity = None
    for g in grads:
        g = g + weight_decay * p
        velocity = g if velocity is None else momentum * velocity + (1 - dampening) * g
        p = p - lr * (g + momentum * velocity if nesterov else velocity if momentum else g)
    return p


def plain_adam(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
    m = v = 0.0
    for t, g in enumerate(grads, 1):
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        m_hat, v_hat = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        p = p - lr * m_hat / (np.sqrt(v_hat) + eps)
    return p


def plain_adamw(p, grads, lr, weight_decay=1e-2, **settings):
    return plain_adam(p, grads, lr, weight_decay=weight_decay, decoupled=True, **settings)


def plain_rmsprop(p, grads, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    mean, square, step = 0.0, 0.0, 0.0
    for g in grads:
        g = g + weight_decay * p
        mean = alpha * mean + (1 - alpha) * g
        square = alpha * square + (1 - alpha) * g**2
        step = momentum * step + g / (np.sqrt(square - centered * mean**2) + eps)
        p = p - lr * step
    return p


CASES = [
    (optim.SGD, plain_sgd, dict(lr=0.1)),
    (optim.SGD, plain_sgd, dict(lr=0.1, weight_decay=0.2)),
    (optim.SGD, plain_sgd, dict(lr=0.1, momentum=0.8)),
    (optim.SGD, plain_sgd, dict(lr=0.1, momentum=0.8, dampening=0.3, weight_decay=0.2)),
    (optim.SGD, plain_sgd, dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.2)),
    (optim.Adam, plain_adam, dict(lr=0.1)),
    (optim.Adam, plain_adam, dict(lr=0.1, betas=(0.5, 0.7), eps=0.1, weight_decay=0.3)),
    (optim.AdamW, plain_adamw, dict(lr=0.1)),
    (optim.AdamW, plain_adamw, dict(lr=0.1, betas=(0.5, 0.7), eps=0.1, weight_decay=0.3)),
    (optim.RMSprop, plain_rmsprop, dict(lr=0.1)),
    (optim.RMSprop, plain_rmsprop, dict(lr=0.1, alpha=0.6, eps=0.1, weight_decay=0.3)),
    (optim.RMSprop, plain_rmsprop, dict(lr=0.1, momentum=0.8)),
    (optim.RMSprop, plain_rmsprop, dict(lr=0.1, alpha=0.7, momentum=0.8, weight_decay=0.3, centered=True)),
]


def name_of(case):
    return f"{case[0].__name__}-{'-'.join(case[2])}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_formulas(case):
    kind, plain, settings = case
    start, grads = problem()
    ours = train(lambda parameters: kind(parameters, **settings), start, grads)
    for i, result in enumerate(ours):
        np.testing.assert_allclose(result, plain(start[i], [g[i] for g in grads], **settings), rtol=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_torch_makes_the_same_steps(case):
    torch = pytest.importorskip("torch")
    kind, _, settings = case
    start, grads = problem()
    theirs = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in start]
    optimizer = getattr(torch.optim, kind.__name__)(theirs, **settings)
    for step in grads:
        for parameter, gradient in zip(theirs, step, strict=True):
            parameter.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
    ours = train(lambda parameters: kind(parameters, **settings), start, grads)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-12)


@pytest.mark.oracle
def test_torchs_optimizer_state_loads():
    torch = pytest.importorskip("torch")
    start, grads = problem()
    theirs = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in start]
    their_optimizer = torch.optim.Adam(theirs, lr=0.1)
    ours = [mg.tensor(p, requires_grad=True) for p in start]
    optimizer = optim.Adam(ours, lr=0.5)
    for step, gradients in enumerate(grads):
        for p, q, gradient in zip(ours, theirs, gradients, strict=True):
            p.grad, q.grad = mg.tensor(gradient), torch.from_numpy(gradient.copy())
        their_optimizer.step()
        if step >= 3:
            optimizer.step()
        if step == 2:
            optimizer.load_state_dict(their_optimizer.state_dict())
            for p, q in zip(ours, theirs, strict=True):
                p.assign_(q.detach().numpy())
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_parameter_keeps_its_dtype_whatever_the_settings_are(kind, dtype):
    p = mg.tensor(np.ones(2, dtype), requires_grad=True)
    optimizer = kind([p], lr=np.float64(0.5), weight_decay=np.float64(0.5))
    p.grad = mg.tensor(np.ones(2, dtype))
    optimizer.step()
    assert p.dtype == dtype and np.isfinite(p.numpy()).all() and (p.numpy() < 1).all()
    arrays = [value for value in optimizer.state[p].values() if isinstance(value, np.ndarray)]
    assert all(array.dtype == ("float32" if dtype == "float16" else dtype) for array in arrays)


def test_an_optimizer_of_ones_own_may_compute_in_any_dtype():
    class Signs(optim.Optimizer):
        def update(self, array, gradient, state, settings):
            return array - settings["lr"] * np.sign(gradient).astype("float64")

    p = mg.tensor([1.0, 1.0], requires_grad=True)
    optimizer = Signs([p], lr=0.5)
    p.grad = mg.tensor([3.0, -0.1])
    optimizer.step()
    assert p.dtype == "float32" and p.tolist() == [0.5, 1.5]
    with pytest.raises(mg.MinigradError, match="update"):
        bare = optim.Optimizer([p])
        bare.step()


def test_a_parameter_of_no_axes():
    p = mg.tensor(2.0, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.25, momentum=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).backward()
        optimizer.step()
    assert p.shape == () and isinstance(p.data, np.ndarray) and p.item() == -0.0


def test_a_centered_mean_square_that_rounding_makes_negative_gives_no_nan():
    """Equal gradients have no variance at all, and v - m * m comes out on either side of 0."""
    p = mg.tensor(np.full(50, 1.0, "float32"), requires_grad=True)
    optimizer = optim.RMSprop([p], lr=1e-12, alpha=0.9, centered=True)
    gradient = np.linspace(0.1, 3, 50, dtype="float32")
    for _ in range(200):
        p.grad = mg.tensor(gradient)
        optimizer.step()
    state = optimizer.state[p]
    assert (state["square_avg"] < state["grad_avg"] ** 2).any()
    assert np.isfinite(p.numpy()).all()


# ---- Parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
def test_a_parameter_without_a_gradient_is_left_alone(kind):
    used, unused = mg.tensor([1.0], requires_grad=True), mg.tensor([1.0], requires_grad=True)
    optimizer = kind([used, unused], lr=0.1, weight_decay=0.5)
    before = unused.data
    for _ in range(2):
        optimizer.zero_grad()
        (used * 2).sum().backward()
        optimizer.step()
    assert unused.data is before and unused not in optimizer.state and used.item() < 1


def test_each_parameter_counts_its_own_steps():
    a, b = mg.tensor([1.0], requires_grad=True), mg.tensor([1.0], requires_grad=True)
    optimizer = optim.Adam([a, b], lr=0.1)
    a.grad = mg.tensor([2.0])
    optimizer.step()
    b.grad = mg.tensor([2.0])
    optimizer.step()
    assert optimizer.state[a]["step"] == 2 and optimizer.state[b]["step"] == 1
    assert abs(a.item() - 0.8) < 1e-6 and abs(b.item() - 0.9) < 1e-6


def test_a_parameter_given_twice_is_refused():
    w, v = mg.tensor([1.0], requires_grad=True), mg.tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match="twice") as caught:
        optim.SGD([w, w])
    assert isinstance(caught.value, mg.MinigradError)
    with pytest.raises(ValueError, match="twice"):
        optim.SGD([{"params": [w]}, {"params": [v, w]}])


@pytest.mark.parametrize(
    "params, error",
    [
        ([], ValueError),
        (mg.ones(2), TypeError),
        (mg.nn.Linear(1, 1), TypeError),
        ([np.ones(2)], TypeError),
        ([mg.tensor([1.0], requires_grad=True) * 2], ValueError),
        ([{"weights": []}], ValueError),
        ([{"params": [mg.tensor([1.0])], "speed": 3}], ValueError),
    ],
)
def test_what_is_no_list_of_leaves_is_refused(params, error):
    with pytest.raises(error) as caught:
        optim.SGD(params)
    assert isinstance(caught.value, mg.MinigradError)


def test_groups_have_settings_of_their_own():
    a, b = mg.tensor([1.0], requires_grad=True), mg.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([{"params": [a]}, {"params": (p for p in [b]), "lr": 0.5}], lr=0.1)
    a.grad = b.grad = mg.tensor([1.0])
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.5])
    for group in optimizer.param_groups:
        group["lr"] = 0.25
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.65, 0.25])


@pytest.mark.parametrize(
    "kind, settings",
    [
        (optim.SGD, dict(lr=-1)),
        (optim.SGD, dict(lr=math.nan)),
        (optim.SGD, dict(lr="fast")),
        (optim.SGD, dict(lr=True)),
        (optim.SGD, dict(momentum=-0.1)),
        (optim.SGD, dict(weight_decay=-0.1)),
        (optim.SGD, dict(nesterov=True)),
        (optim.SGD, dict(nesterov=True, momentum=0.9, dampening=0.1)),
        (optim.Adam, dict(betas=(1.0, 0.9))),
        (optim.Adam, dict(betas=(0.9, -0.1))),
        (optim.Adam, dict(betas=0.9)),
        (optim.Adam, dict(eps=-1e-8)),
        (optim.AdamW, dict(weight_decay=-1)),
        (optim.AdamW, dict(lr=math.inf)),
        (optim.RMSprop, dict(alpha=1.0)),
        (optim.RMSprop, dict(momentum=-0.1)),
    ],
)
def test_settings_out_of_range_are_refused(kind, settings):
    with pytest.raises(optim.OptimizerError):
        kind([mg.tensor([1.0], requires_grad=True)], **settings)


# ---- The tape ----------------------------------------------------------------------------------------


def test_a_step_is_not_recorded_and_replaces_the_array():
    w = mg.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5, momentum=0.9)
    seen_before = w.data
    (w * 3).sum().backward()
    with mg.Tape() as tape:
        optimizer.step()
    assert len(tape) == 0 and w.is_leaf and w.requires_grad
    assert seen_before.tolist() == [2.0] and w.tolist() == [0.5]
    with pytest.raises(ValueError):
        w.data[0] = 1


def test_a_graph_from_before_the_step_says_which_parameter_was_overwritten():
    w = mg.tensor([2.0], requires_grad=True, name="w")
    x = mg.tensor([3.0], requires_grad=True)
    y = (x * w).sum()
    optimizer = optim.SGD([w], lr=0.5)
    y.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(mg.OverwrittenError, match="w was overwritten"):
        y.backward()
    assert w.tolist() == [0.5] and x.grad.tolist() == [2.0]


def test_zero_grad():
    w = mg.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([w])
    w.grad = mg.tensor([1.0])
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert w.grad is None


# ---- Saving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_training_goes_on_from_a_saved_state_with_the_same_bits(case):
    kind, _, settings = case
    start, grads = problem()
    whole = train(lambda parameters: kind(parameters, **settings), start, grads)
    first = [mg.tensor(p, requires_grad=True) for p in start]
    optimizer = kind(first, **settings)
    for gradients in grads[:3]:
        for p, gradient in zip(first, gradients, strict=True):
            p.grad = mg.tensor(gradient)
        optimizer.step()
    state, middle = optimizer.state_dict(), [p.numpy() for p in first]
    optimizer.step()  # must not reach into the saved state

    def resume(parameters):
        resumed = kind(parameters, lr=123.0)
        resumed.load_state_dict(state)
        return resumed

    for a, b in zip(train(resume, middle, grads[3:]), whole, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_state_that_does_not_fit_changes_nothing():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Adam([w], lr=0.5)
    w.grad = mg.tensor([1.0, 1.0])
    optimizer.step()
    good, state = optimizer.state_dict(), optimizer.state[w]
    groups = good["param_groups"]
    wrong_shape = {0: {"step": 1, "exp_avg": np.ones(3), "exp_avg_sq": np.ones(3)}}
    for bad in (
        {},
        3,
        {**good, "param_groups": groups * 2},
        {**good, "param_groups": [{**groups[0], "params": [0, 1]}]},
        {**good, "param_groups": [{**groups[0], "lr": -1}]},
        {"param_groups": [{**groups[0], "lr": 7}], "state": wrong_shape},
    ):
        with pytest.raises(optim.OptimizerError):
            optimizer.load_state_dict(bad)
        assert optimizer.state[w] is state and optimizer.param_groups[0]["lr"] == 0.5


# ---- Clipping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_clipping_scales_all_gradients_by_one_factor(norm_type):
    start, (gradients, *_) = problem()
    parameters = [mg.tensor(p, requires_grad=True) for p in start]
    for p, gradient in zip(parameters, gradients, strict=True):
        p.grad = mg.tensor(gradient)
    unused = mg.tensor([1.0], requires_grad=True)
    flat = np.concatenate([g.reshape(-1) for g in gradients])
    norm = np.linalg.norm(flat, norm_type)
    returned = optim.clip_grad_norm_([*parameters, unused, parameters[0]], 0.5, norm_type)
    np.testing.assert_allclose(returned.item(), norm)
    for p, gradient in zip(parameters, gradients, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), gradient * 0.5 / (norm + 1e-6), rtol=1e-12)
    assert unused.grad is None


def test_small_gradients_are_not_clipped_and_none_have_norm_zero():
    w = mg.tensor([1.0], requires_grad=True)
    assert optim.clip_grad_norm_([w], 1.0).item() == 0
    w.grad = gradient = mg.tensor([0.5])
    assert optim.clip_grad_norm_(w, 1.0).item() == 0.5 and w.grad is gradient


def test_a_norm_that_is_not_finite_is_an_error_only_when_asked_for():
    w = mg.tensor([1.0], requires_grad=True)
    w.grad = mg.tensor([math.inf])
    with pytest.raises(optim.OptimizerError, match="inf"):
        optim.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    assert w.grad.tolist() == [math.inf]
    w = mg.tensor([1.0, 1.0], requires_grad=True)
    w.grad = mg.tensor([math.nan, 0.5])
    assert math.isnan(optim.clip_grad_norm_([w], 1.0).item()) and np.isnan(w.grad.numpy()).all()


def test_a_model_learns():
    mg.manual_seed(2)
    model = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
    x = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = mg.tensor([[0.0], [1.0], [1.0], [0.0]])
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        difference = model(x) - y
        loss = (difference * difference).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


def test_a_state_whose_momentum_buffer_is_none_begins_anew():
    """As PyTorch writes it, before the first step."""
    p = mg.tensor([1.0], requires_grad=True)
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    opt.load_state_dict({**opt.state_dict(), "state": {0: {"step": 0, "momentum_buffer": None}}})
    p.grad = mg.tensor([1.0])
    opt.step()
    np.testing.assert_allclose(p.numpy(), [0.9], rtol=1e-6)
