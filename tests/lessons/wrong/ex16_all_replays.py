# Forgets that the first schedule replays something, too.
def break_even(moving, replaying):
    return replaying.extra_forwards / (moving.writes + moving.reads - replaying.writes - replaying.reads)
