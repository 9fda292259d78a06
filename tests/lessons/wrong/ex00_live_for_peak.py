# Takes what is live at the end for the most that was live at once.
import minigrad as mg


def two_numbers(network, x):
    with mg.Tracer() as tracer:
        network(x).sum().backward()
    return tracer.live_activations, tracer.replayed_ops
