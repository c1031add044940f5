"""Numbers rounded up, so that a promise made of them stays true."""

from __future__ import annotations

import math
from fractions import Fraction

UP = 1.0 + 1e-12  # covers the rounding of the few operations of a closed form


def product_above(*factors: float) -> float:
    """Return the least double that is not below the product of positive factors, infinite if it is too large."""
    if math.inf in factors:
        return math.inf
    exact = math.prod(map(Fraction, factors))
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)
