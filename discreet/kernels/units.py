"""The units in which kernels count clipped numbers, so that sums of them are sums of integers."""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray

UNROUNDED = 2.0**-200  # a unit so small that rounding to multiples of it changes nothing


def units_of(clip: FloatArray, step: float) -> FloatArray:
    """In what numbers clipped to `clip` are counted: multiples of `step` times their threshold.

    A step of 0, for no noise, stands for no rounding; a threshold of 0 gives a unit that is not 0.
    """
    if step == 0.0:
        return np.full_like(clip, UNROUNDED)
    return np.maximum(clip * step, np.finfo(np.float64).tiny)
