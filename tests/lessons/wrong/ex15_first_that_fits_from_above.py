# Halves the budget until it does not fit any more, and takes the last half that did.
import minigrad as mg


def least_share(layers, x):
    measured = mg.profile(layers, x)
    everything = measured.forecast(mg.schedules.store_all()).peak_activation_bytes
    percent = 100
    while True:
        try:
            mg.fit(measured, x, budget=everything * (percent // 2) // 100)
        except mg.BudgetError:
            return percent
        percent //= 2
