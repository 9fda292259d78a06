"""Schedules of learning rates against their formulas, in loops; in torch too where it is installed."""

import copy
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim
from minigrad.optim import lr_scheduler
from minigrad.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR, StepLR

STEPS = 20


def optimizer_of(*rates, kind=optim.SGD):
    """An optimizer with a group of one parameter for each rate."""
    return kind([{"params": [mg.tensor([1.0], requires_grad=True)], "lr": rate} for rate in rates])


def rates_of(make, *begin):
    """The rates of each group over the steps of the schedule that `make(optimizer)` makes."""
    optimizer = optimizer_of(*begin)
    schedule, seen = make(optimizer), []
    for _ in range(STEPS):
        assert schedule.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
        seen.append(schedule.get_last_lr())
        optimizer.step()
        schedule.step()
    return np.array(seen)


# ---- Plain twins: from one rate to the next ----------------------------------------------------------


def plain_steps(rate, step_size, gamma=0.1):
    for t in range(1, STEPS + 1):
        yield rate
        rate = rate * gamma if t % step_size == 0 else rate


def plain_cosine(rate, T_max, eta_min=0.0):
    """A point on a circle turns by pi / T_max with each step; its height is the rate."""
    turn, point = complex(math.cos(math.pi / T_max), math.sin(math.pi / T_max)), 1 + 0j
    for _ in range(STEPS):
        yield eta_min + (rate - eta_min) * (1 + point.real) / 2
        point *= turn


def plain_line(rate, start_factor=1 / 3, end_factor=1.0, total_iters=5):
    factor = start_factor
    for t in range(1, STEPS + 1):
        yield rate * factor
        if t <= total_iters:
            factor += (end_factor - start_factor) / total_iters


def plain_function(rate, lr_lambda):
    for t in range(STEPS):
        yield rate * lr_lambda(t)


def falling(t):
    return 0.9**t


CASES = [
    (StepLR, plain_steps, dict(step_size=4)),
    (StepLR, plain_steps, dict(step_size=1, gamma=0.5)),
    (CosineAnnealingLR, plain_cosine, dict(T_max=STEPS)),
    (CosineAnnealingLR, plain_cosine, dict(T_max=6, eta_min=0.01)),  # up again, and down
    (LinearLR, plain_line, dict()),
    (LinearLR, plain_line, dict(start_factor=0.1, end_factor=0.7, total_iters=9)),
    (LinearLR, plain_line, dict(start_factor=0.5, total_iters=100)),  # does not come to its end
    (LambdaLR, plain_function, dict(lr_lambda=falling)),
]


def name_of(case):
    return f"{case[0].__name__}-{'-'.join(case[2])}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_formulas(case):
    kind, plain, settings = case
    ours = rates_of(lambda optimizer: kind(optimizer, **settings), 0.1, 2.0)
    expected = np.array([list(plain(rate, **settings)) for rate in (0.1, 2.0)]).T
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-15)


def warmed_up(module, optimizer):
    """Ten steps up, and the rest down, in our module or in torch's."""
    warm_up = module.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    cosine = module.CosineAnnealingLR(optimizer, T_max=10)
    return module.SequentialLR(optimizer, [warm_up, cosine], milestones=[10])


def test_a_warm_up_and_then_a_cosine():
    ours = rates_of(lambda optimizer: warmed_up(lr_scheduler, optimizer), 0.1, 2.0)
    expected = np.array([
        [*list(plain_line(rate, 0.1, total_iters=10))[:10], *list(plain_cosine(rate, 10))[:10]] for rate in (0.1, 2.0)
    ])  # fmt: skip
    np.testing.assert_allclose(ours, expected.T, rtol=1e-12, atol=1e-15)


def test_a_milestone_is_the_step_after_which_the_next_schedule_rules():
    def jump(optimizer):
        constants = [LambdaLR(optimizer, lambda t, factor=factor: factor) for factor in (1.0, 0.5, 0.25)]
        return SequentialLR(optimizer, constants, [3, 5])

    assert rates_of(jump, 1.0)[:7, 0].tolist() == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_schedules_may_be_made_in_any_order():
    def cosine_first(optimizer):
        cosine, warm_up = CosineAnnealingLR(optimizer, 10), LinearLR(optimizer, 0.1, total_iters=10)
        return SequentialLR(optimizer, [warm_up, cosine], [10])

    assert np.array_equal(rates_of(cosine_first, 0.1), rates_of(lambda o: warmed_up(lr_scheduler, o), 0.1))


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_torch_has_the_same_rates(case):
    torch = pytest.importorskip("torch")
    kind, _, settings = case
    theirs = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    schedule = getattr(torch.optim.lr_scheduler, kind.__name__)(theirs, **settings)
    for (rate,) in rates_of(lambda optimizer: kind(optimizer, **settings), 0.1):
        assert math.isclose(rate, schedule.get_last_lr()[0], rel_tol=1e-12, abs_tol=1e-15)
        theirs.step()
        schedule.step()


# ---- What schedules do with their optimizer ----------------------------------------------------------


def test_a_schedule_sets_the_rate_at_once_and_the_optimizer_uses_it():
    optimizer = optimizer_of(1.0)
    (w,) = optimizer.param_groups[0]["params"]
    schedule = LambdaLR(optimizer, lambda t: 0.5 / (1 + t))
    for expected in (0.5, 0.25):
        w.grad = mg.tensor([1.0])
        before = w.item()
        optimizer.step()
        assert before - w.item() == expected
        schedule.step()


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
def test_every_optimizer_takes_a_schedule(kind):
    optimizer = optimizer_of(1.0, kind=kind)
    schedule = StepLR(optimizer, 1)
    optimizer.param_groups[0]["params"][0].grad = mg.tensor([1.0])
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.1
    fresh = optimizer_of(1.0, kind=kind)
    fresh.load_state_dict(optimizer.state_dict())
    assert fresh.param_groups[0]["lr"] == 0.1


def test_groups_may_have_functions_of_their_own():
    rates = rates_of(lambda optimizer: LambdaLR(optimizer, [falling, lambda t: 1.0]), 0.1, 2.0)
    np.testing.assert_allclose(rates[:, 0], [0.1 * 0.9**t for t in range(STEPS)])
    assert set(rates[:, 1]) == {2.0}


def test_a_rate_set_by_hand_lasts_until_the_next_step():
    optimizer = optimizer_of(1.0)
    schedule = StepLR(optimizer, 10)
    optimizer.param_groups[0]["lr"] = 7.0
    assert schedule.get_last_lr() == [7.0]
    schedule.step()
    assert schedule.get_last_lr() == [1.0]


def test_a_schedule_goes_on_from_its_state():
    optimizer = optimizer_of(0.1, 2.0)
    schedule = warmed_up(lr_scheduler, optimizer)
    for _ in range(13):
        schedule.step()
    state = copy.deepcopy(schedule.state_dict())
    schedule.step()
    again = optimizer_of(5.0, 6.0)
    resumed = warmed_up(lr_scheduler, again)
    resumed.load_state_dict(state)
    resumed.step()
    assert resumed.get_last_lr() == schedule.get_last_lr() and resumed.last_epoch == 14


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda o: StepLR(o, 0), "step_size must be at least 1"),
        (lambda o: StepLR(o, 2.5), "step_size is a number of steps"),
        (lambda o: CosineAnnealingLR(o, 0), "T_max"),
        (lambda o: LinearLR(o, total_iters=0), "total_iters"),
        (lambda o: LambdaLR(o, [falling]), "1 functions for an optimizer of 2 groups"),
        (lambda o: StepLR([mg.ones(1)], 2), "not of list"),
        (lambda o: LambdaLR(3, falling), "not of int"),
        (lambda o: SequentialLR(o, [], []), "0 schedules"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)], [3]), "1 schedules change over at 1 milestones"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)] * 3, [4, 4]), "come one after another"),
        (lambda o: SequentialLR(o, [StepLR(o, 1), StepLR(optimizer_of(1.0), 1)], [3]), "made for its optimizer"),
        (lambda o: StepLR(o, 1).load_state_dict({}), "state_dict"),
        (lambda o: StepLR(o, 1).load_state_dict({"last_epoch": 1, "base_lrs": [1.0]}), "1 groups, and here are 2"),
        (lambda o: StepLR(o, 1).load_state_dict({"last_epoch": -1, "base_lrs": [1.0, 1.0]}), "-1 steps"),
        (lambda o: lr_scheduler.LRScheduler(o), "does not say what the rate is"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(optim.OptimizerError, match=message):
        make(optimizer_of(0.1, 2.0))


def test_a_group_that_is_added_later_needs_a_new_schedule():
    optimizer = optimizer_of(0.1)
    schedule = StepLR(optimizer, 2)
    optimizer.add_param_group({"params": [mg.tensor([1.0], requires_grad=True)], "lr": 1.0})
    with pytest.raises(optim.OptimizerError, match="2 groups now"):
        schedule.step()


def test_repr():
    assert repr(StepLR(optimizer_of(0.1, 2.0), 3)) == "StepLR(after 0 steps: lr 0.1, 2)"
