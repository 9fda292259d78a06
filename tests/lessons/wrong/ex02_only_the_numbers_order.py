# Believes that the order of the numbers is the only good one.
def is_good_order(order):
    numbers = [node.number for node in order]
    return numbers == sorted(numbers, reverse=True)
