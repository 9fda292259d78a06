# Takes the smallest peak, whatever may be live, and pays for memory that is not needed.
import minigrad as mg
from minigrad import schedules


def fewest_replays(layers, peak):
    peaks = {k: schedules.uniform(k).plan(layers).peak for k in range(1, layers + 1)}
    best = min(peaks, key=peaks.get)
    if peaks[best] > peak:
        raise mg.BudgetError("it does not fit")
    return best
