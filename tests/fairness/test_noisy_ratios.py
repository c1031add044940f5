"""Limits for ratios of noisy counts: they hold as often as stated, not much more often, and give up where they must.

Statistical tests have fixed seeds and level 1e-4 for each of six tests: were the seeds redrawn, one run of this file in
1,600 would raise a false alarm.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from discreet.fairness.evaluation.private_certificate import NoisyCounts

LEVEL, FAILURE, DRAWS = 1e-4, 0.05, 1000
TRUE = np.array([400.0, 60.0, 30.0, 250.0, 77.0])
EVENT, BASE = np.array([1, 1, 0, 0, 0], dtype=bool), np.array([1, 1, 1, 1, 0], dtype=bool)
RATIO = TRUE[EVENT].sum() / TRUE[BASE].sum()


@cache
def misses(side, law, claimed, size=1.0):
    """How often a limit is wrong, if the noise has `size` times the scale that is claimed."""
    rng = np.random.default_rng(3)
    draw = rng.normal if law == "normal" else rng.laplace
    wrong = 0
    for _ in range(DRAWS):
        noisy = NoisyCounts(TRUE + draw(0.0, claimed * size, TRUE.size), claimed, 0.0, law)
        limit = getattr(noisy, side)(EVENT, BASE, FAILURE)
        wrong += limit > RATIO if side == "lower" else limit < RATIO
    return wrong


def too_many(wrong):
    return wrong > stats.binom.isf(LEVEL, DRAWS, FAILURE)


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_limit_is_wrong_as_seldom_as_stated(law, side):
    assert not too_many(misses(side, law, 20.0))
    assert too_many(misses(side, law, 20.0, size=3.0 if law == "normal" else 8.0))  # noise that was understated


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_gaussian_limits_are_exact(side):
    """Not merely valid: they are wrong in the stated share of the draws, up to chance."""
    low, high = stats.binom.interval(1.0 - LEVEL, DRAWS, FAILURE)
    assert low <= misses(side, "normal", 20.0) <= high
    assert not low <= misses(side, "normal", 20.0, size=0.5) <= high


def test_counts_that_drown_in_noise_give_no_limit():
    drowned = NoisyCounts(np.array([3.0, 1.0, 5.0, 2.0, 0.0]), 50.0, 0.0, "normal")
    assert drowned.lower(EVENT, BASE, FAILURE) == 0.0
    assert drowned.upper(EVENT, BASE, FAILURE) == 1.0
    negative = NoisyCounts(-TRUE, 50.0, 0.0, "normal")
    assert np.isnan(negative.estimate(EVENT, BASE))


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_limits_meet_at_the_ratio_when_the_noise_vanishes(law):
    noisy = NoisyCounts(TRUE, 0.0, 0.0, law)
    assert noisy.lower(EVENT, BASE, FAILURE) == pytest.approx(RATIO, abs=1e-12)
    assert noisy.upper(EVENT, BASE, FAILURE) == pytest.approx(RATIO, abs=1e-12)
    assert noisy.lower(BASE, BASE, FAILURE) == pytest.approx(1.0)
    assert noisy.upper(BASE & False, BASE, FAILURE) == pytest.approx(0.0)


def test_rounding_to_the_grid_is_covered():
    """A count that is off by half a step, as rounding may leave it, stays within limits without noise."""
    for sign in (-0.5, 0.5):
        off = NoisyCounts(np.where(EVENT, TRUE + sign * 8.0, TRUE - sign * 8.0), 1e-9, 8.0, "normal")
        assert off.lower(EVENT, BASE, 0.5) <= RATIO <= off.upper(EVENT, BASE, 0.5)
        fine = NoisyCounts(off.counts, 1e-9, 0.0, "normal")
        assert not fine.lower(EVENT, BASE, 0.5) <= RATIO <= fine.upper(EVENT, BASE, 0.5)
