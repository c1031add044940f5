"""The laws and the independence of the continuous draws.

Each test is seeded and has two arms: it accepts the truth and rejects a planted fault. LEVEL is the
false-alarm rate that each would have with a fresh seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.kernels import sampling
from discreet.privacy.random.generator import secure_generator, seeded_generator

LEVEL = 1e-6
EDGES = np.array([0, 1, 2, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 3 << 62, (3 << 62) - 1, 2**64 - 2, 2**64 - 1], "u8")
DRAWS = {"normal": stats.norm, "laplace": stats.laplace, "gumbel": stats.gumbel_r, "uniform": stats.uniform}


def z_threshold(tests: int) -> float:
    """Size of a z-score that one of `tests` normal scores exceeds with probability LEVEL."""
    return float(stats.norm.isf(LEVEL / tests / 2))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [100_000, 100_001])
def test_draws_follow_their_law_and_scaled_draws_do_not(name, size):
    draws = getattr(seeded_generator(1), name)(size)
    assert stats.kstest(draws, DRAWS[name].cdf).pvalue > LEVEL
    assert stats.kstest(draws * 2 / 3, DRAWS[name].cdf).pvalue < LEVEL


@pytest.mark.parametrize("name", DRAWS)
def test_small_requests_follow_the_same_law(name):
    rng = seeded_generator(2)
    draws = np.concatenate([getattr(rng, name)(7) for _ in range(3_000)])
    assert stats.kstest(draws, DRAWS[name].cdf).pvalue > LEVEL
    assert stats.kstest(draws * 2 / 3, DRAWS[name].cdf).pvalue < LEVEL


# Raw moments 0 to 8.
MOMENTS = {
    "normal": [1, 0, 1, 0, 3, 0, 15, 0, 105],
    "laplace": [1, 0, 2, 0, 24, 0, 720, 0, 40_320],
    "uniform": [1 / (k + 1) for k in range(9)],
}


def moment_scores(draws, moments):
    """z-scores of the first four raw moments."""
    errors = [np.mean(draws**k) - moments[k] for k in (1, 2, 3, 4)]
    spreads = [math.sqrt((moments[2 * k] - moments[k] ** 2) / draws.size) for k in (1, 2, 3, 4)]
    return np.abs(np.array(errors) / np.array(spreads))


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    draws = getattr(seeded_generator(3), name)(2_000_000)
    # 6.5 rather than the normal quantile: the fourth powers have heavy tails.
    assert moment_scores(draws, MOMENTS[name]).max() < 6.5
    assert moment_scores(draws * 1.01, MOMENTS[name]).max() > 6.5


@pytest.mark.parametrize(("name", "beyond"), [("normal", 4.0), ("normal", 4.8), ("laplace", 11.0)])
def test_tails_have_the_right_mass_on_both_sides(name, beyond):
    draws = getattr(seeded_generator(4), name)(10_000_000)
    mass = DRAWS[name].sf(beyond)
    for tail in (draws, -draws):
        assert stats.binomtest(int((tail > beyond).sum()), draws.size, mass).pvalue > LEVEL


def test_tail_test_rejects_a_sum_of_twelve_uniforms():
    almost_normal = seeded_generator(5).uniform((12, 1_500_000)).sum(axis=0) - 6.0
    found = int((np.abs(almost_normal) > 4.0).sum())
    assert stats.binomtest(found, almost_normal.size, 2 * stats.norm.sf(4.0)).pvalue < LEVEL


def test_gumbel_tails():
    draws = seeded_generator(6).gumbel(5_000_000)

    def pvalues(draws):
        upper = stats.binomtest(int((draws > 11).sum()), draws.size, stats.gumbel_r.sf(11))
        lower = stats.binomtest(int((draws < -2.3).sum()), draws.size, stats.gumbel_r.cdf(-2.3))
        return np.array([upper.pvalue, lower.pvalue])

    assert (pvalues(draws) > LEVEL).all()
    assert (pvalues(1.1 * draws) < LEVEL).all()


def test_extreme_words_give_finite_and_extreme_draws():
    words = np.repeat(EDGES, 2)
    out = np.empty(words.size)
    for kernel in (sampling.fill_uniform, sampling.fill_normal, sampling.fill_laplace, sampling.fill_gumbel):
        kernel(words, out)
        assert np.isfinite(out).all()
    sampling.fill_uniform(words, out)
    assert 0.0 < out.min() < 2**-52
    assert 1.0 - 2**-52 < out.max() < 1.0
    # 5/8 of a turn: both coordinates are the radius over -sqrt(2), the largest they can be together.
    pair = np.empty(2)
    sampling.fill_normal(np.array([0, 2**63 + 2**61], "u8"), pair)
    assert math.hypot(*pair) > 9.4


def correlation_scores(first, second):
    """z-scores of the correlations of values, sizes and squares."""
    scores = []
    for shape in (np.asarray, np.abs, np.square):
        scores.append(np.corrcoef(shape(first), shape(second))[0, 1] * math.sqrt(first.size))
    return np.abs(scores)


# The two halves of a Box-Muller pair lie half a block apart; blocks follow each other.
@pytest.mark.parametrize("lag", [1, 2, 3, 64, 8_191, 8_192, 8_193, 16_384])
def test_no_correlation_between_lags(lag):
    draws = seeded_generator(7).normal(1_000_000)
    assert correlation_scores(draws[:-lag], draws[lag:]).max() < z_threshold(3 * 8)
    leaky = draws[lag:] + 0.02 * draws[:-lag]
    assert correlation_scores(draws[:-lag], leaky).max() > z_threshold(3 * 8)


def test_box_muller_pairs_are_independent_and_a_wrong_radius_is_noticed():
    draws = seeded_generator(8).normal((50, 16_384)).reshape(50, 2, 8_192)
    first, second = draws[:, 0].ravel(), draws[:, 1].ravel()
    assert correlation_scores(first, second).max() < z_threshold(3)
    radius = np.hypot(first, second)
    assert correlation_scores(first / radius**0.1, second / radius**0.1).max() > z_threshold(3)


def test_spawned_generators_are_uncorrelated_and_inherit_security():
    parent = seeded_generator(11)
    family = [parent, *parent.spawn(3), *parent.spawn(1)]
    draws = [rng.normal(200_000) for rng in family]
    pairs = [(i, j) for i in range(5) for j in range(i)]
    scores = [correlation_scores(draws[i], draws[j]).max() for i, j in pairs]
    assert max(scores) < z_threshold(3 * len(pairs))
    assert correlation_scores(draws[0], draws[1] + 0.03 * draws[0]).max() > z_threshold(3 * len(pairs))
    assert not any(rng.secure for rng in family)
    assert all(rng.secure for rng in secure_generator().spawn(2))
