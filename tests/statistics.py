"""Statistical tests in two arms: the truth is accepted, a planted fault is rejected."""

from __future__ import annotations

import numpy as np
from scipy import stats

LEVEL = 1e-4


def looks_like(draws, law):
    return stats.kstest(np.ravel(draws), law.cdf).pvalue > LEVEL


def both_arms(draws, law):
    """The truth is accepted, and 2/3 of the noise would be rejected."""
    assert looks_like(draws, law)
    assert not looks_like(np.asarray(draws) * 2 / 3, law)


def variance_fits(noise, deviation, level=1e-4):
    """Whether each vector of noise may have this standard deviation."""
    below = stats.chi2.cdf((noise / deviation) ** 2 @ np.ones(noise.shape[-1]), noise.shape[-1])
    return bool((2.0 * np.minimum(below, 1.0 - below) > level).all())
