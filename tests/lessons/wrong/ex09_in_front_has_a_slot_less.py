# Forgets that the slots behind a boundary are free again when backward comes to the layers in front.
def most_layers(slots, runs):
    if slots == 0 or runs == 0:
        return 1
    return most_layers(slots - 1, runs - 1) + most_layers(slots - 1, runs)
