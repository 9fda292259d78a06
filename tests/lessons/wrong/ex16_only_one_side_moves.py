# Takes it for granted that the second schedule moves nothing.
def break_even(moving, replaying):
    return (replaying.extra_forwards - moving.extra_forwards) / (moving.writes + moving.reads)
