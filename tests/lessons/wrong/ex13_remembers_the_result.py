# Remembers what came out instead of the dice, and so ignores what it is given.
def same_dice(fn):
    found = []

    def again(x):
        if not found:
            found.append(fn(x))
        return found[0]

    return again
