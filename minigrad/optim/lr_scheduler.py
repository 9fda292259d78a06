"""Learning rates that change as training goes on. Names, arguments and rates are torch's.

    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    for batch in batches:
        ...
        optimizer.step()
        schedule.step()

A schedule is a function of the number of its steps, and of the rate that each group of the optimizer began with: it
gives the rate itself, not a change of it. So nothing adds up, and any step can be worked out by itself
(`schedule.rate(begin, t)`). What you put into group["lr"] by hand lasts until the next step of the schedule.
"""

import bisect
import math
import numbers
import operator

from .optimizers import Optimizer, OptimizerError

__all__ = ["LRScheduler", "LambdaLR", "StepLR", "ExponentialLR", "CosineAnnealingLR", "LinearLR", "SequentialLR"]


class LRScheduler:
    """What all schedules share: counting, setting the rates, saving and loading.

    optimizer   the rate that a group has when its first schedule is made is the one it begins with; the group notes
                it as "initial_lr", so that a second schedule finds it although the first one has changed "lr"
    last_epoch  the number of steps so far (torch's name; here a plain attribute, 0 at first)
    base_lrs    the rate that each group began with

    A subclass defines `rate(begin, t, group)`: the rate after t steps of a group that began with `begin`.
    """

    def __init__(self, optimizer):
        if not isinstance(optimizer, Optimizer):
            raise OptimizerError(f"a schedule changes the rates of an optimizer, not of {type(optimizer).__name__}")
        self.optimizer, self.last_epoch = optimizer, 0
        self.base_lrs = [float(group.setdefault("initial_lr", group["lr"])) for group in optimizer.param_groups]
        self.go_to(0, self.base_lrs)

    def rate(self, begin, t, group=0):
        """The rate after t steps of a group that began with `begin`; `group` is its number."""
        raise OptimizerError(f"{type(self).__name__} does not say what the rate is")

    def step(self):
        """Count a step, and set the rate of each group. To be called after the optimizer's step."""
        self.go_to(self.last_epoch + 1, self.base_lrs)

    def go_to(self, count, begin):
        """Let `count` steps be done since the rates `begin`. If a rate cannot be had, nothing has been changed."""
        groups = self.optimizer.param_groups
        if len(groups) != len(begin):
            raise OptimizerError(
                f"the optimizer has {len(groups)} groups now, and had {len(begin)} when the schedule was made; "
                "make a new schedule after add_param_group"
            )
        rates = [self.rate(rate, count, number) for number, rate in enumerate(begin)]
        self.last_epoch, self.base_lrs = count, begin
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list:
        """The rate of each group now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict:
        """The count and the rates to begin with. The settings belong to the program that makes the schedule."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state):
        """Continue where `state` left off; sets the rates. Raises OptimizerError if it does not fit.

        A state of torch's names its settings; one that is another here is refused. After an error all is as before.
        """
        try:
            count, begin = operator.index(state["last_epoch"]), [float(rate) for rate in state["base_lrs"]]
        except (TypeError, KeyError, ValueError) as error:
            raise OptimizerError(f"this is not the state_dict() of a schedule: {error!r}") from error
        if len(begin) != len(self.base_lrs) or count < 0:
            raise OptimizerError(f"a state of {count} steps for {len(begin)} groups, and here are {len(self.base_lrs)}")
        if not all(0 <= rate < math.inf for rate in begin):
            raise OptimizerError(f"rates are numbers, at least 0, and the state has base_lrs={begin}")
        for key, own in vars(self).items():
            if key != "last_epoch" and isinstance(own, numbers.Real) and state.get(key, own) != own:
                raise OptimizerError(f"the state was saved with {key}={state[key]!r}, and this schedule has {own!r}")
        self.go_to(count, begin)

    def __repr__(self):
        rates = ", ".join([f"{rate:g}" for rate in self.get_last_lr()])
        return f"{type(self).__name__}(after {self.last_epoch} steps: lr {rates})"


class LambdaLR(LRScheduler):
    """The first rate times a function of the number of steps.

    lr_lambda  such a function, or a list of them, one for each group

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor([1.0], requires_grad=True)], lr=0.1)
    >>> schedule = LambdaLR(optimizer, lambda t: 1 / (1 + t))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.05]
    """

    def __init__(self, optimizer, lr_lambda):
        several = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * len(getattr(optimizer, "param_groups", ()))
        if len(self.lr_lambdas) != len(getattr(optimizer, "param_groups", self.lr_lambdas)):
            raise OptimizerError(
                f"{len(self.lr_lambdas)} functions for an optimizer of {len(optimizer.param_groups)} groups"
            )
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        return begin * self.lr_lambdas[group](t)


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps: a staircase."""

    def __init__(self, optimizer, step_size, gamma=0.1):
        self.step_size, self.gamma = at_least_one("step_size", step_size), factor("gamma", gamma)
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        return begin * self.gamma ** (t // self.step_size)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer, gamma):
        self.gamma = factor("gamma", gamma)
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        return begin * self.gamma**t


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` within `T_max` steps, along half a cosine; and, should it go on, up again.

    Source: Loshchilov and Hutter 2017, arXiv:1608.03983.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0):
        self.T_max, self.eta_min = at_least_one("T_max", T_max), eta_min
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        return self.eta_min + (begin - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class LinearLR(LRScheduler):
    """From start_factor to end_factor times the first rate, in equal steps, and there it stays: a warm-up.

    total_iters  the number of these steps
    """

    def __init__(self, optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5):
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = at_least_one("total_iters", total_iters)
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        done = min(t, self.total_iters) / self.total_iters
        return begin * (self.start_factor + (self.end_factor - self.start_factor) * done)


class SequentialLR(LRScheduler):
    """One schedule after another: a warm-up, say, and then a cosine.

    schedulers  schedules of the same optimizer, each of which counts from its own beginning
    milestones  after how many steps the second one takes over, the third, and so on

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> warm_up = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> cosine = CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule, rates = SequentialLR(optimizer, [warm_up, cosine], milestones=[2]), []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 3))
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5, 0.0]
    """

    def __init__(self, optimizer, schedulers, milestones):
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        if not self.schedulers or len(self.milestones) != len(self.schedulers) - 1:
            raise OptimizerError(
                f"{len(self.schedulers)} schedules change over at {len(self.milestones)} milestones; "
                "they need one fewer than there are schedules"
            )
        if self.milestones != sorted(set(self.milestones)) or (self.milestones and self.milestones[0] < 1):
            raise OptimizerError(f"milestones are steps that come one after another, not {self.milestones}")
        if any(schedule.optimizer is not optimizer for schedule in self.schedulers):
            raise OptimizerError("all schedules of a SequentialLR must be made for its optimizer")
        super().__init__(optimizer)

    def rate(self, begin, t, group=0):
        number = bisect.bisect_right(self.milestones, t)
        since = self.milestones[number - 1] if number else 0
        return self.schedulers[number].rate(begin, t - since, group)


def at_least_one(name, count):
    try:
        count = operator.index(count)
    except TypeError as error:
        raise OptimizerError(f"{name} is a number of steps, not {count!r}") from error
    if count < 1:
        raise OptimizerError(f"{name} must be at least 1, not {count}")
    return count


def factor(name, value):
    """A setting that rates are multiplied with."""
    if not isinstance(value, numbers.Real) or not 0 <= value < math.inf:
        raise OptimizerError(f"{name} must be a number, at least 0, and is {value!r}")
    return value
