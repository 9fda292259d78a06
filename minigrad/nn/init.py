"""Initial values: torch's defaults."""

import math

from ..ops import create


def uniform(shape, fan_in, dtype=None, device=None):
    """Values in +-1/sqrt(fan_in): torch's kaiming_uniform with a = sqrt(5), its start for Linear."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return create.rand(*shape, dtype=dtype, device=device) * (2 * bound) - bound


def normal(shape, dtype=None, device=None):
    """Values of mean 0 and variance 1."""
    return create.randn(*shape, dtype=dtype, device=device)
