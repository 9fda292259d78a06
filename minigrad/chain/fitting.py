"""`mg.fit`: the fastest schedule for these layers that fits into so many bytes.

It profiles the layers, and forecasts what each of many schedules would hold and run again: the optimum for the
layers' costs (`schedules.hetero`), equal segments, ever shorter ones, everything from the input. What hetero counts
is an upper bound, layer by layer; a forecast goes op by op and is exact. So hetero is also asked for a little more
than the budget, as long as what it then plans still fits. Of all that fit, the one with the shortest estimated time
is taken.
"""

from ..errors import ArgumentError, BudgetError
from ..schedules import Schedule, from_input, hetero, store_all, triangular, uniform
from ..table import bytes_text, parse_bytes
from .profiling import Profile, profile

TRIES = 6  # budgets beyond the given one for which hetero is asked


class Fitted(Schedule):
    """A schedule that was chosen for one chain of layers; print it for what it will cost.

    schedule           the schedule that was chosen
    profile            the measurements behind it
    budget             bytes that it may hold
    predicted_bytes    what it will hold: the tracer's peak_activation_bytes, exactly
    predicted_seconds  an estimate for one forward and one backward
    replayed_ops       ops that will be run again
    """

    def __init__(self, schedule, measured, forecast, budget):
        self.schedule, self.profile, self.budget = schedule, measured, budget
        self.early_stop = schedule.early_stop
        self.predicted_bytes, self.replayed_ops = forecast.peak_activation_bytes, forecast.replayed_ops
        self.predicted_seconds = measured.seconds(forecast)
        self.label = f"fit({bytes_text(budget)}: {schedule})"

    def split(self, n):
        if n != len(self.profile):
            raise ArgumentError(f"{self!r} was made for {len(self.profile)} layers, and cannot split {n}; fit again")
        return self.schedule.split(n)

    def __str__(self):
        everything = self.profile.forecast(store_all())
        seconds = self.profile.seconds(everything)
        plain = bytes_text(everything.peak_activation_bytes)
        return (
            f"{self.schedule} for {len(self.profile)} layers in {bytes_text(self.budget)}:\n"
            f"  holds {bytes_text(self.predicted_bytes)} at the peak, where storing everything would hold {plain};\n"
            f"  runs {self.replayed_ops} ops again, and takes about {self.predicted_seconds * 1e3:.1f} ms for forward "
            f"and backward, {self.predicted_seconds / seconds:.2f} times\n"
            f"  the {seconds * 1e3:.1f} ms of storing everything. Parameters, gradients and what an op needs while it "
            "runs come on top."
        )


def fit(layers, x, budget, repeats: int = 3) -> Fitted:
    """The fastest schedule for these layers, run on x, that holds at most `budget`. Print it for what it will cost.

    layers  a sequence of functions or modules, as for `checkpoint_sequential`; or the Profile of one, and then x
            is not looked at
    budget  bytes, a number or text such as "64MB": what the tape and replays may hold at once, x with it.
            Parameters, gradients and what an op needs only while it runs come on top
    repeats for `mg.profile`

    The estimate of time is good to some percent if memory comes and goes at no cost. On Linux it does so with the
    environment variables MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ at a large number: then freed arrays are
    kept for the next ones (tests/bench/fit_deep_networks.py does that, and prints what was said and what was).

    BudgetError for a budget that no schedule here keeps to; it says what the least possible is.

    >>> import minigrad as mg
    >>> weight = mg.eye(4, requires_grad=True)
    >>> layers, x = [lambda h: mg.tanh(h @ weight)] * 16, mg.ones((2, 4))
    >>> schedule = fit(layers, x, budget=300)
    >>> schedule.predicted_bytes <= 300
    True
    >>> y = mg.checkpoint_sequential(layers, schedule, x)
    """
    budget = parse_bytes(budget)
    measured = layers if isinstance(layers, Profile) else profile(layers, x, repeats)
    best, least = None, None
    for schedule in candidates(measured, budget):
        forecast = measured.forecast(schedule)
        peak = forecast.peak_activation_bytes
        least = peak if least is None else min(least, peak)
        if peak <= budget and (best is None or measured.seconds(forecast) < measured.seconds(best[1])):
            best = schedule, forecast
    if best is None:
        raise BudgetError(
            f"no schedule takes these {len(measured)} layers through forward and backward in {bytes_text(budget)}; the "
            f"least possible is {bytes_text(least)} ({least:,} bytes). Make the batch smaller, or "
            "split the largest layer"
        )
    schedule, forecast = best
    return Fitted(schedule, measured, forecast, budget)


def candidates(measured, budget):
    """Schedules worth a forecast."""
    n = len(measured)
    yield store_all()
    yield from optima(measured, budget)
    yield from (uniform(segments) for segments in range(2, min(n, 64) + 1))
    yield triangular()
    yield from_input()


def optima(measured, budget):
    """What hetero plans for this budget, and for more, as long as it still keeps to the budget by forecast.

    If its upper bound says that the budget is too small, it is asked for the least that it can do.
    """
    try:
        yield hetero(measured, budget)
    except BudgetError:
        least = least_budget(measured)
        yield hetero(measured, least)
        low = least
    else:
        low = budget
    high = max(low, measured.costs.store_all_bytes)
    for _ in range(TRIES):
        middle = (low + high) // 2
        schedule = hetero(measured, middle)
        yield schedule
        if measured.forecast(schedule).peak_activation_bytes <= budget:
            low = middle
        else:
            high = middle


def least_budget(measured) -> int:
    """The least that hetero can plan for."""
    return hetero(measured, measured.costs.store_all_bytes * 2, slots=1).least_budget
