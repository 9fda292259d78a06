# Takes a run away from the layers behind the boundary as well.
def most_layers(slots, runs):
    if slots == 0 or runs == 0:
        return 1
    return most_layers(slots, runs - 1) + most_layers(slots - 1, runs - 1)
