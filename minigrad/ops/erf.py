"""The error function, which NumPy does not have and the exact GELU needs.

Three quotients of polynomials, for |x| up to 0.47, up to 4, and beyond, exact to the last digits of a double.
Source: W. J. Cody, Rational Chebyshev approximations for the error function, Mathematics of Computation 23
(1969) 631-637; the coefficients are those of his program CALERF.
"""

import math

from ..engine.device import array_module
from ..engine.op import op
from .arithmetic import clamp_
from .elementwise import exp

# fmt: off
NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)
FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346047, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)
# fmt: on


@op
def erf(x):
    """The error function 2/√π ∫₀ˣ exp(-t²) dt. Keeps x."""
    xp = array_module(x)
    x = xp.asarray(x)
    wide = x if x.dtype in ("float32", "float64") else x.astype("float32" if x.dtype == "float16" else "float64")
    size = xp.minimum(xp.abs(wide), 6)  # from 6 on, erf is 1 to the last bit
    near = size * quotient(NEAR, xp.minimum(size * size, 1))
    middle = 1 - xp.exp(-size * size) * quotient(MIDDLE, size)
    inverse = 1 / xp.maximum(size * size, 1)
    tail = (1 / math.sqrt(math.pi) - inverse * quotient(FAR, inverse)) / xp.maximum(size, 1)
    far = 1 - xp.exp(-size * size) * tail
    out = xp.copysign(xp.where(size < 0.46875, near, xp.where(size < 4, middle, far)), wide)
    return out.astype("float16") if x.dtype == "float16" else out


@erf.vjp("x")
def erf_wrt_x(g, x):
    near = clamp_(x, min=-30.0, max=30.0)  # exp(-900) is 0, and float16 could not square much more
    return g * exp(-(near * near)) * (2 / math.sqrt(math.pi))


def quotient(polynomials, x):
    """The quotient of two polynomials, highest coefficient first, by Horner's rule."""
    top, bottom = 0.0, 0.0
    for a, b in zip(*polynomials, strict=True):
        top, bottom = top * x + a, bottom * x + b
    return top / bottom
