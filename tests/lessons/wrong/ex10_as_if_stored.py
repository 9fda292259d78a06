# Divides the budget by what one row needs with everything stored.
import minigrad as mg
from minigrad import schedules


def largest_batch(layers, make_input, budget):
    row = mg.profile(layers, make_input(1)).forecast(schedules.store_all()).peak_activation_bytes
    if row > budget:
        raise mg.BudgetError(f"one row needs {row} bytes")
    return budget // row
