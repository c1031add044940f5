"""Defaults that follow the noise: tight where it is strong, loose where it is weak.

The noise level is a public fact, so such a default costs nothing. The form is derived, the numbers are tuned on
public tables and are not theory (docs/defaults.md); no guarantee depends on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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


def averaged_noise(steps: int, averaged: int, memory: float) -> float:
    """Noise in the mean of the last iterates, over the noise of a single step that goes all the way.

    A step keeps the part `memory` of the earlier error and adds (1 - memory) times its own noise. The factors of the
    noises of all steps in the mean are summed as squares.
    """
    first = steps - averaged  # iterates are numbered from 1; those after `first` are averaged
    later = np.arange(1, steps + 1)
    begin = np.maximum(later, first + 1) - later
    powers = np.power(memory, begin) - np.power(memory, steps + 1 - later)
    return float(np.sqrt((powers**2).sum()) / averaged)
