# Takes the quotient for a product with one slope each: a / b rises by the other one.
def divide(a, b):
    return a / b, (1 / b, -a / b)
