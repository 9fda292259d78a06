# Begins the sums with nothing, where one layer can be done.
def most_layers(slots, runs):
    if slots == 0 or runs == 0:
        return 0
    return most_layers(slots, runs - 1) + most_layers(slots - 1, runs)
