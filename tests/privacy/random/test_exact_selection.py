"""Gumbel selections are exact: the leader by doubles is taken only where no further digit can change it.

The law is tested at level 1e-4 with a fixed seed; scores that are 10 % larger are rejected.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.kernels import sampling
from discreet.privacy.random.exact import Fraction, ends_of, largest, leaders
from discreet.privacy.random.generator import seeded_generator
from tests.statistics import LEVEL

SCORES = np.array([0.0, 1.0, -0.5, 1.0, -math.inf, 2.0])


def test_places_come_with_the_probabilities_of_the_exponential_mechanism():
    rng = seeded_generator(1)
    counts = np.bincount([rng.gumbel_argmax(SCORES) for _ in range(20_000)], minlength=SCORES.size)
    assert counts[4] == 0
    finite = np.isfinite(SCORES)

    def p_value(scores):
        chances = np.exp(scores[finite]) / np.exp(scores[finite]).sum()
        return stats.chisquare(counts[finite], 20_000 * chances).pvalue

    assert p_value(SCORES) > LEVEL
    assert p_value(1.1 * SCORES) < LEVEL


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_single_leader_leads_whatever_further_digits_come(size):
    """Scores so close that only the noise decides, with words at both ends as well."""
    rng = np.random.default_rng(2)
    alone = 0
    for _ in range(150):
        ends = (2.0 ** rng.uniform(0, 63, 3)).astype(np.uint64)
        words = np.concatenate([rng.integers(0, 2**64, 6, dtype="u8"), ~ends])
        scores = size + rng.normal(size=words.size) * 1e-9
        noisy = np.empty(words.size)
        sampling.fill_gumbel(words, noisy)
        noisy += scores
        places = leaders(noisy, words)
        if places.size > 1:
            continue
        alone += 1
        known = [ends_of(s, Fraction(int(w))) for s, w in zip(scores.tolist(), words.tolist(), strict=True)]
        best = int(places[0])
        assert all(known[best][0] > high for i, (_, high) in enumerate(known) if i != best)
    assert alone > 50


def test_close_leaders_are_told_apart_by_further_digits():
    digits = iter([5, 9, 9, 5])
    assert largest([0.0, 0.0], [1 << 63, 1 << 63], lambda _: next(digits)) == 1
    assert largest([0.0, 0.0], [1 << 63, 1 << 63], lambda _: next(digits)) == 0
    assert largest([0.0, 1e-12], [1 << 63, 1 << 63], lambda _: 7) == 1
    equal = iter([3, 3, 3, 3, 8, 1])
    assert largest([0.0, 0.0], [7, 7], lambda _: next(equal)) == 0


def test_words_of_all_ones_are_settled():
    digits = iter([2**64 - 1, 2**64 - 2, 0, 0])  # the first noise is unbounded by 128 digits, so more are drawn
    assert largest([0.0, 0.0], [2**64 - 1, 2**64 - 1], lambda _: next(digits)) == 0


@pytest.mark.parametrize("scores", [[], [math.nan, 1.0], [math.inf, 0.0], [-math.inf], [[1.0]]])
def test_other_scores_are_refused(scores):
    with pytest.raises(ValueError, match="scores must be"):
        seeded_generator(0).gumbel_argmax(scores)
