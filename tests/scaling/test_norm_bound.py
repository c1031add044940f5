"""Counts of norms: every norm has exactly one bin, the one whose ends it lies between."""

import numpy as np
import pytest

from discreet.scaling.second_moment import BINS, LOWEST, PER_OCTAVE, norm_bound_at, norm_counts


def bin_of(norm, unit=1.0):
    counts = norm_counts(np.array([norm]), None, unit)
    assert counts.sum() == 1.0
    return int(np.argmax(counts))


@pytest.mark.parametrize("unit", [1.0, 0.3, 1e-200, 1e200])
def test_a_norm_lies_below_the_bound_of_its_bin_and_above_the_one_before(unit):
    places = np.arange(1, BINS - 1)
    ends = np.array([norm_bound_at(place, unit) for place in range(BINS)])
    for place in places:
        assert bin_of(ends[place] * (1.0 - 1e-12), unit) == place
        assert bin_of(ends[place] * (1.0 + 1e-12), unit) == place + 1


def test_extreme_norms_go_to_the_ends():
    assert bin_of(0.0) == bin_of(5e-324) == bin_of(2.0 ** (LOWEST - 1)) == 0
    assert bin_of(1e308) == bin_of(np.inf) == bin_of(np.nan) == bin_of(-np.nan) == bin_of(1e308, 1e-300) == BINS - 1


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_logarithms(weighted):
    rng = np.random.default_rng(0)
    norms = 2.0 ** rng.uniform(LOWEST - 2, 14, 5_000)
    weight = rng.integers(0, 5, norms.size) / 4.0 if weighted else None
    places = np.clip(np.floor((np.log2(norms / 3.0) - LOWEST) * PER_OCTAVE), 0, BINS - 1).astype(int)
    np.testing.assert_array_equal(norm_counts(norms, weight, 3.0), np.bincount(places, weight, BINS))
