"""How long it takes to plan: 10,000 layers under every schedule, and unequal layers under hetero.

    python tests/bench/plans.py
"""

import time

from minigrad import schedules as s
from minigrad.table import table

LAYERS = 10_000
SCHEDULES = [
    s.store_all(), s.from_input(), s.uniform(100), s.torch_compatible(100), s.every(10), s.sqrt(), s.triangular(),
    s.nested(10), s.bisection(), s.bisection(early_stop=False), s.binomial(2), s.binomial(20), s.binomial(1000),
    s.optimal(3), s.optimal(20), s.mixed(1), s.mixed(20), s.online(10), s.online(100), s.offloaded(s.sqrt()),
    s.multistage(10, 10), s.h_revolve(5, 5),
]  # fmt: skip


def seconds_of(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def uneven(layers):
    """Layers whose sizes and times go up and down."""
    sizes = [1000 + 7919 * i % 9973 for i in range(layers)]
    return s.LayerCosts(5000, sizes, sizes, forward=[1 + i % 5 for i in range(layers)], backward=2)


def main():
    rows = []
    for schedule in SCHEDULES:
        seconds, plan = seconds_of(lambda made=schedule: made.plan(LAYERS))
        rows.append((schedule, f"{seconds:.3f}", f"{plan.peak:,}", f"{plan.extra_forwards:,}"))
    print(table((f"{LAYERS:,} layers", "seconds", "peak", "replayed"), rows, right=(1, 2, 3)))
    costs = uneven(200)
    seconds, schedule = seconds_of(lambda: s.hetero(costs, costs.store_all_bytes // 4))
    print(f"\nhetero, 200 unequal layers in 500 steps of memory: {seconds:.2f} s    the aim: under 10 s")
    print(f"a quarter of the memory for {schedule.predicted_time / costs.store_all_time:.2f} times the time")


if __name__ == "__main__":
    main()
