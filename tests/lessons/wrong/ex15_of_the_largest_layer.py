# Takes what the largest layer keeps for the least, and forgets its input and what else is there.
import minigrad as mg


def least_share(layers, x):
    measured = mg.profile(layers, x)
    everything = measured.forecast(mg.schedules.store_all()).peak_activation_bytes
    return max(1, 100 * max(layer.kept_bytes for layer in measured.layers) // everything)
