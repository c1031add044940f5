"""Integers, permutations, choices and Poisson samples.

Each test is seeded and has two arms: it accepts the truth and rejects a planted fault. LEVEL is the
false-alarm rate that each would have with a fresh seed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.kernels import sampling
from discreet.privacy.random.generator import seeded_generator

LEVEL = 1e-6


def uniform_pvalue(values, cells):
    return stats.chisquare(np.bincount(values, minlength=cells)).pvalue


@pytest.mark.parametrize("high", [1, 2, 3, 7, 1000, 1023, 4099])
def test_integers_are_uniform(high):
    draws = seeded_generator(14).integers(high, 400_000)
    assert draws.dtype == np.int64
    if high == 1:
        assert not draws.any()
        return
    assert uniform_pvalue(draws, high) > LEVEL
    # The square of the uniform behind the draw leans to the small values.
    assert uniform_pvalue((draws**2) // high, high) < LEVEL


def test_rejection_removes_the_bias_of_an_awkward_bound():
    # 2^64 / high = 16/3: without rejection one residue modulo 3 has six words a value, the others five.
    high = 3 << 60
    draws = seeded_generator(15).integers(high, 200_000)
    assert draws.min() >= 0
    assert draws.max() < high
    assert uniform_pvalue(draws % 3, 3) > LEVEL
    words = np.frombuffer(seeded_generator(15).bytes(160_000), np.uint64)
    biased = np.array([int(word) * high >> 64 for word in words])
    assert uniform_pvalue(biased % 3, 3) < LEVEL


def test_rejected_words_fill_nothing():
    out = np.full(2, -1)
    assert sampling.bounded_integers(np.zeros(5, "u8"), 3, out) == 0
    order = np.arange(3)
    assert sampling.shuffle(np.zeros(5, "u8"), order, 3) == 3
    assert (order == np.arange(3)).all()
    # A power of two divides 2^64: nothing is rejected.
    assert sampling.bounded_integers(np.zeros(5, "u8"), 4, out) == 2


@pytest.mark.parametrize("high", [0, -1, 2**62 + 1])
def test_integers_refuse_bounds_they_cannot_honour(high):
    with pytest.raises(ValueError, match="high"):
        seeded_generator(0).integers(high, 3)


@given(n=st.integers(0, 3_000), seed=st.integers(0, 2**70))
@settings(deadline=None, max_examples=30)
def test_a_permutation_holds_every_index_once(n, seed):
    assert np.array_equal(np.sort(seeded_generator(seed).permutation(n)), np.arange(n))


def test_all_orders_of_four_are_equally_likely_and_the_naive_shuffle_is_caught():
    def rank(order):
        return int(np.ravel_multi_index(order[:3], (4, 4, 4)))

    def pvalue(orders):
        counts = np.bincount([rank(order) for order in orders], minlength=64)
        return stats.chisquare(counts[counts > 0]).pvalue

    def naive(swaps):
        order = np.arange(4)
        for i, j in enumerate(swaps):
            order[i], order[j] = order[j], order[i]
        return order

    rng = seeded_generator(16)
    orders = [rng.permutation(4) for _ in range(8_000)]
    assert len({tuple(order) for order in orders}) == 24
    assert pvalue(orders) > LEVEL
    assert pvalue([naive(swaps) for swaps in rng.integers(4, (8_000, 4))]) < LEVEL


weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=1, max_size=200).filter(any)


@given(weights=weights)
@settings(deadline=None, max_examples=100)
def test_the_alias_table_holds_exactly_the_probabilities(weights):
    p = np.array(weights) / np.sum(weights)
    threshold, partner = sampling.alias_table(p)
    kept = threshold.astype(float) / 2**64
    mass = kept.copy()
    np.add.at(mass, partner, 1.0 - kept)
    assert np.allclose(mass / p.size, p, rtol=0.0, atol=1e-14)
    assert (mass[p == 0.0] == 0.0).all()


def test_choice_follows_the_probabilities():
    p = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    draws = seeded_generator(17).choice(p, 200_000)
    counts = np.bincount(draws, minlength=5)
    assert counts[1] == 0
    nonzero = p > 0
    assert stats.chisquare(counts[nonzero], 200_000 * p[nonzero]).pvalue > LEVEL
    shifted = np.array([0.49, 0.31, 0.15, 0.05])
    assert stats.chisquare(counts[nonzero], 200_000 * shifted).pvalue < LEVEL


@pytest.mark.parametrize("bad", [[], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0], [[1.0]]])
def test_choice_refuses_what_is_not_a_distribution(bad):
    with pytest.raises(ValueError, match="probabilities"):
        seeded_generator(0).choice(bad, 1)


def inclusion_matrix(batches, n):
    indptr, indices = batches
    included = np.zeros((indptr.size - 1, n), np.float32)
    included[np.repeat(np.arange(indptr.size - 1), np.diff(indptr)), indices] = 1.0
    assert included.sum(dtype=float) == indices.size, "a row was drawn twice in one sample"
    return included


def rate_pvalue(included, rate):
    """Every row is included as often as a binomial count should be."""
    steps, n = included.shape
    scores = (included.sum(axis=0, dtype=float) - steps * rate) / math.sqrt(steps * rate * (1 - rate))
    return 2 * min(stats.chi2.cdf(scores @ scores, n), stats.chi2.sf(scores @ scores, n))


def independence_score(first, second, rate, pairs):
    """z-score of the mean squared standardised co-occurrence, which is 1 for independent rows."""
    together = (first - rate).T @ (second - rate) / (math.sqrt(len(first)) * rate * (1 - rate))
    squares = together[pairs].astype(float) ** 2
    return (squares.mean() - 1.0) / math.sqrt(2.0 / squares.size)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_rows_are_included_at_the_rate_and_independently(rate):
    n, steps = 40, 100_000
    included = inclusion_matrix(seeded_generator(18).poisson_batches(n, rate, steps), n)
    assert rate_pvalue(included, rate) > LEVEL
    assert rate_pvalue(included, 0.97 * rate) < LEVEL
    within = np.triu_indices(n, 1)
    anywhere = (slice(None), slice(None))
    # Sums of 780 and 1600 squares are close to normal; 7 leaves room for their longer upper tail.
    assert abs(independence_score(included, included, rate, within)) < 7
    assert abs(independence_score(included[:-1], included[1:], rate, anywhere)) < 7


def test_the_independence_score_rejects_samples_of_fixed_size():
    rng = seeded_generator(19)
    fixed = np.array([rng.permutation(40) for _ in range(30_000)]) < 12
    included = fixed.astype(np.float32)
    assert independence_score(included, included, 0.3, np.triu_indices(40, 1)) > 7


def test_samples_across_batches_are_the_draw_of_one_long_sample():
    indptr, indices = seeded_generator(20).poisson_batches(100, 0.05, 1_000)
    long_sample = seeded_generator(20).bernoulli_indices(100_000, 0.05)
    assert np.array_equal(np.repeat(np.arange(1_000), np.diff(indptr)) * 100 + indices, long_sample)


@given(n=st.integers(0, 500), rate=st.floats(1e-300, 1.0), steps=st.integers(0, 20), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=100)
def test_batches_are_sorted_and_in_range(n, rate, steps, seed):
    indptr, indices = seeded_generator(seed).poisson_batches(n, rate, steps)
    assert indptr.dtype == indices.dtype == np.int64
    assert indptr[0] == 0
    assert indptr[-1] == indices.size
    assert indptr.size == steps + 1
    for start, stop in itertools.pairwise(indptr):
        rows = indices[start:stop]
        assert (np.diff(rows) > 0).all()
        assert rows.size == 0 or (rows[0] >= 0 and rows[-1] < n)


def test_edge_rates():
    rng = seeded_generator(21)
    assert np.array_equal(rng.bernoulli_indices(50_000, 1.0), np.arange(50_000))
    assert rng.bernoulli_indices(0, 0.5).size == 0
    assert rng.bernoulli_indices(2**62, 5e-324).size == 0
    for rate in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="rate"):
            rng.bernoulli_indices(10, rate)
    with pytest.raises(ValueError, match="product"):
        rng.poisson_batches(2**40, 0.5, 2**40)


def test_tiny_rates_over_many_rows_give_poisson_counts_and_uniform_places():
    indptr, indices = seeded_generator(22).poisson_batches(10**12, 1e-10, 400)
    sizes = np.diff(indptr)
    assert stats.poisson.sf(indices.size - 1, 40_000) > LEVEL
    assert stats.poisson.cdf(indices.size, 40_000) > LEVEL
    dispersion = ((sizes - 100.0) ** 2 / 100.0).sum()
    assert LEVEL < stats.chi2.sf(dispersion, 400) < 1 - LEVEL
    assert stats.kstest(indices / 1e12, "uniform").pvalue > LEVEL
    assert stats.kstest((indices / 1e12) ** 1.1, "uniform").pvalue < LEVEL


def test_an_unexpectedly_large_sample_is_kept_whole(monkeypatch):
    monkeypatch.setattr(math, "sqrt", lambda _: -1_000.0)
    indices = seeded_generator(23).bernoulli_indices(20_000, 1.0)
    assert np.array_equal(indices, np.arange(20_000))
