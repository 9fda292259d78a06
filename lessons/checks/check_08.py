"""Looks at lessons/exercises/ex08_costs.py."""

import math

import minigrad as mg
from minigrad import schedules

FORMULA = "Look at 'Count first' in lesson 08."


def check_time_factor(answers):
    found = answers.time_factor(1.0, 2.0, 0, 10)
    assert math.isclose(found, 1), f"if nothing is replayed, a pass takes as long as before: 1, and not {found:.6g}"
    found = answers.time_factor(1.0, 2.0, 10, 10)
    assert math.isclose(found, 4 / 3), (
        f"forward 1 s, backward 2 s, and all ten of ten layers run again: 4 s instead of 3 s, a factor of {4 / 3:.6g}; "
        f"yours is {found:.6g}. A replay of all layers takes one forward. {FORMULA}"
    )
    for schedule in (schedules.sqrt(), schedules.from_input(), schedules.triangular()):
        for layers in (9, 50, 100):
            plan = schedule.plan(layers)
            found = answers.time_factor(0.5, 1.0, plan.extra_forwards, layers)
            assert math.isclose(found, plan.time_factor), (
                f"{layers} layers under {schedule!r}, {plan.extra_forwards} layers replayed, a backward of two "
                f"forwards: plan.time_factor is {plan.time_factor:.6g}, and yours {found:.6g}. Is the time of one "
                f"layer's forward that of the whole, divided by the number of layers? {FORMULA}"
            )
    one, other = (answers.time_factor(scale, 3 * scale, 20, 36) for scale in (1.0, 1e-3))
    assert math.isclose(one, other), (
        f"a factor has no unit: in seconds yours is {one:.6g}, in milliseconds {other:.6g}. {FORMULA}"
    )


def check_backward_in_forwards(answers):
    for forward, backward, replayed, layers in ((1, 2, 81, 100), (2, 1, 25, 36), (1, 5, 4851, 100), (3, 3, 1, 3)):
        factor = (forward + backward + forward * replayed / layers) / (forward + backward)
        expected, found = backward / forward, answers.backward_in_forwards(factor, replayed, layers)
        assert math.isclose(found, expected, rel_tol=1e-9), (
            f"a forward of {forward} s, a backward of {backward} s, {replayed} runs of layers again where there are "
            f"{layers}: the factor is {factor:.4f}. Given that, backward_in_forwards should find {expected:.4f} again, "
            f"and says {found:.4f}. Look at 'Turn it around' in lesson 08: what is added, what is divided by what?"
        )


def check_fewest_replays(answers):
    for layers, peak in ((100, 19), (100, 30), (100, 51), (100, 100), (64, 15), (36, 20), (9, 5), (1, 1), (103, 19)):
        plans = {k: schedules.uniform(k).plan(layers) for k in range(1, layers + 1)}
        fitting = {k: plan.extra_forwards for k, plan in plans.items() if plan.peak <= peak}
        expected, found = min(fitting, key=fitting.get), answers.fewest_replays(layers, peak)
        case = f"fewest_replays({layers}, {peak}) gave {found!r}"
        assert found in plans, f"{case}; it must be a number of segments, from 1 to {layers}"
        assert found in fitting, (
            f"{case}: with so many segments {plans[found].peak} activations are live at the peak, and {peak} may be"
        )
        assert fitting[found] == fitting[expected], (
            f"{case}: that replays {fitting[found]} layers. Some other k fits too and replays {fitting[expected]}: the "
            "smallest peak is not what was asked for"
        )
        assert found == expected, f"{case}: that is as cheap as can be, but there is a smaller k that is equally cheap"
    try:
        found = answers.fewest_replays(100, 18)
    except mg.BudgetError:
        return
    except Exception as error:
        raise AssertionError(
            "no number of segments brings 100 layers down to 18 live activations; that should be a mg.BudgetError, and "
            f"was a {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(
        f"no number of segments brings 100 layers down to 18 live activations; fewest_replays must raise "
        f"mg.BudgetError, and returned {found!r}"
    )
