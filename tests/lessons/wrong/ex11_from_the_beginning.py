# Starts from the boundary whatever is kept on the way.
def runs_again(needed, kept):
    missing = needed - kept
    return set(range(max(missing) + 1)) - kept if missing else set()
