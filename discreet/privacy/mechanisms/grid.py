"""The one way by which numbers leave the rows: on a grid, with noise that is an integer number of its steps.

A sum is rounded to a multiple of the grid's step, a power of two, and the noise is a normal or Laplace number that is
rounded to a multiple as well. As the sum is on the grid already, rounding the noise is the same as rounding the sum of
both: the result is a function of the sum with continuous noise, and every theorem about that holds to the last bit.
The step is fixed before the rows are read. Proof: docs/guarantees/mechanisms.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet._common.types import FloatArray

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator

Law = Literal["normal", "laplace", "spherical"]
Size = int | tuple[int, ...]

FINEST = 2.0**-30  # step over noise: finer ones would make the draws slower and nothing better
EXACT = 2.0**-50  # step over the sum of the rows' sensitivities: partial sums stay below 2^53 steps, so they are exact
SMALLEST_EXPONENT = -960  # of a step: multiples and quotients of steps are normal numbers


@dataclass(frozen=True)
class NoisyGrid:
    """Where the releases of one mechanism lie, and their noise.

    Attributes
    ----------
    step : float
        Distance between neighbouring points, a power of two; 0: no noise, and nothing is rounded.
    scale : float
        Standard deviation of normal noise or scale of Laplace noise, for the sum as rounded.
    law : {"normal", "laplace", "spherical"}
        Independent entries, or a vector whose density is proportional to exp(-norm / scale).
    sensitivity : float
        How far the rounded value may move between neighbouring tables, in L1 for "laplace", else in L2.
    """

    step: float
    scale: float
    law: Law
    sensitivity: float = math.inf

    @property
    def is_exact(self) -> bool:
        """Whether there is neither noise nor rounding: an infinite budget."""
        return self.step == 0.0

    def noise(self, rng: RandomGenerator, size: Size) -> FloatArray:
        """Independent multiples of the step, for sums that are multiples of it."""
        if self.is_exact:
            return np.zeros(size)
        draw = rng.rounded_laplace if self.law == "laplace" else rng.rounded_normal
        scale = self.scale / self.step
        if self.law == "spherical":  # a normal vector whose variance has the chi-squared law with one more degree
            scale *= float(np.linalg.norm(rng.normal(math.prod(np.atleast_1d(size)) + 1)))
        draws = draw(scale, size)
        draws *= self.step
        return draws

    def nearest(self, value: FloatArray) -> FloatArray:
        """The point of the grid nearest to each entry; dividing by a power of two is exact."""
        return value if self.is_exact else np.rint(value / self.step) * self.step

    def release(self, rng: RandomGenerator, value: FloatArray) -> FloatArray:
        """The value, rounded to the grid, with fresh noise on every entry.

        Guarantee: costs one release of the mechanism that made the grid, if the value moves by no more than the
        sensitivity given there.
        """
        return self.nearest(value) + self.noise(rng, value.shape)


def noisy_grid(law: Law, multiplier: float, sensitivity: float, rounding: float, rows: float) -> NoisyGrid:
    """The grid for noise of `multiplier` times a sensitivity.

    Parameters
    ----------
    law : {"normal", "laplace", "spherical"}
    multiplier : float
        Noise over sensitivity; 0: none.
    sensitivity : float
        How far the value can move before it is rounded.
    rounding : float
        How much further the rounded value can move, in steps: sqrt(entries) in L2, entries in L1.
    rows : float
        How many rows there are, about; sums of that many rounded contributions are then exact.

    Guarantee: the noise has `multiplier` times the sensitivity of the rounded value, which is at most
    sensitivity + step * rounding.
    """
    if multiplier == 0.0 or sensitivity == 0.0:
        return NoisyGrid(0.0, 0.0, law, sensitivity)
    exponent = math.ceil(math.log2(sensitivity) + math.log2(max(multiplier * FINEST, rows * EXACT)))
    # A step may not vanish: below the smallest power the grid is coarse, and the noise large, for the sensitivity.
    step = math.ldexp(1.0, max(exponent, SMALLEST_EXPONENT))
    rounded = sensitivity + step * rounding
    if not multiplier * rounded < math.inf:
        raise OverflowError("the noise of this release is too large for double precision.")
    return NoisyGrid(step, multiplier * rounded, law, rounded)
