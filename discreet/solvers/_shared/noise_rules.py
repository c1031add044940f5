"""Defaults that follow the noise: tight where it is strong, loose where it is weak.

The noise level is a public fact, so such a default costs nothing. The numbers are rules of thumb, fitted once on
public tables (benchmarks/README.md); no guarantee depends on them.
"""

from __future__ import annotations

from typing import NamedTuple


class NoiseRule(NamedTuple):
    """min(most, factor / noise^power).

    For clipping thresholds, in units of a typical gradient: a lower one lowers the noise in proportion and adds a
    bias that does not fade with more rows.
    """

    factor: float
    power: float
    most: float

    def at(self, relative_noise: float) -> float:
        """The default where a mean of numbers clipped to 1 is released with noise of this standard deviation."""
        return self.most if relative_noise == 0.0 else min(self.most, self.factor * relative_noise**-self.power)


COORDINATE_CLIP = NoiseRule(0.16, 0.45, 4.0)  # single entries of the rows' gradients
GRADIENT_CLIP = NoiseRule(0.13, 0.35, 2.0)  # whole gradients, summed over all rows
BATCH_CLIP = NoiseRule(0.126, 0.235, 1.0)  # whole gradients, summed over few rows
