# Runs what backward reads, and forgets what that has to be computed from.
def runs_again(needed, kept):
    return needed - kept
