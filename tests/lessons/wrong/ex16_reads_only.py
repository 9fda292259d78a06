# Forgets that a boundary has to be written before it can be read.
def break_even(moving, replaying):
    return (replaying.extra_forwards - moving.extra_forwards) / (moving.reads - replaying.reads)
