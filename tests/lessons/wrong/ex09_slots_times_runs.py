# Believes that each run of each slot is good for one layer.
def most_layers(slots, runs):
    return slots * runs + 1
