# Gives three layers of which one does all the work.
def in_three(block):
    def nothing(x):
        return x

    return [nothing, block, nothing]
