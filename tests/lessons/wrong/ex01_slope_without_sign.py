# Forgets that a quotient falls when its divisor rises.
def divide(a, b):
    return a / b, (1 / b, a / (b * b))
