"""The scale of the scores: what is counted, what the counts speak for, and what it wins."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import truncnorm

from discreet import LogisticRegression, NotPrivateWarning
from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.solvers.newton.calibration import (
    CENTRES,
    EXPECTED,
    MOST_CHECK,
    SCALES,
    ScoreCounts,
    check_share,
    level_shifts,
    mean_within_one,
    score_counts,
)


def block_of(scores, labels, weight=None):
    """A block of rows with these scores."""
    return types.SimpleNamespace(margins=lambda w: scores, y=labels, weight=weight)


def counts_of(scores, labels, weight=None):
    return score_counts(block_of(scores, labels, weight), np.zeros(1), 0.0, 1.0)


HOSTILE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 4.0, -4.0, np.nextafter(4.0, 5.0), 1e-310]


@pytest.mark.parametrize("score", HOSTILE)
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_a_row_is_in_one_bin_whatever_its_score_is(score, label):
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=50), np.where(rng.random(50) < 0.5, -1.0, 1.0)
    others = counts_of(scores, labels)
    found = counts_of(np.append(scores, score), np.append(labels, label)) - others
    assert found.sum() == 1.0
    assert sorted(found)[-2:] == [0.0, 1.0]
    half = counts_of(np.append(scores, score), np.append(labels, label), np.append(np.ones(50), 0.5)) - others
    assert half.sum() == 0.5


def test_no_warning_tells_of_a_row_that_is_far_off():
    scores = np.array([0.0, 1e300, -1e300, math.inf, math.nan])
    found = score_counts(block_of(scores, np.ones(5)), np.zeros(1), 1e10, 1e-20)
    assert found.sum() == 5.0


def test_the_share_of_the_check_falls_with_rows_and_budget_and_is_left_out_where_it_says_nothing():
    for relation in Relation:
        shares = [check_share(Public(n, 5, relation=relation), Budget(1.0, 1e-6)) for n in (100, 1_000, 2_000, 10**5)]
        assert shares[0] == 0.0
        assert MOST_CHECK >= shares[1] > shares[2] > shares[3] > 0.0


def expected_counts(rows, scale, share=0.5):
    """Counts without noise of scores around 0 whose labels follow a logistic curve of this scale."""
    sizes, odds = rows * EXPECTED, math.log(share / (1.0 - share))
    ones = expit(odds + scale * CENTRES)
    return np.column_stack([sizes * (1.0 - ones), sizes * ones])


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_without_noise_the_scale_is_found(scale):
    found, shift = ScoreCounts(expected_counts(10**7, scale), 1.0, 10**7, CENTRES).best_scale(0.5, 0.0)
    assert found == pytest.approx(scale, rel=0.2)  # one step of the grid: a doubt of one row in a hundred is left
    assert shift == pytest.approx(0.0, abs=1e-6)


def test_noise_alone_is_not_believed_and_a_signal_is():
    """Both arms of 200 draws each. At most 5 % of noise find a scale above a half, and 95 % of a signal do.

    Measured: 0 and all of 2,000 draws, so that either arm fails for less than 1e-5 of seeds.
    """
    rng, rows, noise = np.random.default_rng(1), 2_000, 20.0

    def scales(true):
        clean = expected_counts(rows, true)
        drawn = (rng.poisson(clean) + noise * rng.normal(size=clean.shape) for _ in range(200))
        return np.array([ScoreCounts(counts, noise, rows, CENTRES).best_scale(0.5, 0.0)[0] for counts in drawn])

    assert (scales(0.0) > 0.5).mean() <= 0.05
    assert (scales(2.0) > 0.5).mean() >= 0.95


def test_a_scale_of_0_predicts_the_constant():
    found, shift = ScoreCounts(expected_counts(10**6, 0.0, share=0.1), 1.0, 10**6, CENTRES).best_scale(0.999, -2.2)
    assert (found, shift) == (0.0, -2.2)


def test_the_mean_prediction_stays_where_it_was():
    scores = CENTRES * 3.0 - 1.0
    shifts = level_shifts(scores, EXPECTED)
    means = expit(shifts[:, None] + SCALES[:, None] * scores) @ EXPECTED
    np.testing.assert_allclose(means, EXPECTED @ expit(scores), rtol=1e-9)
    assert shifts[SCALES == 1.0] == pytest.approx(0.0, abs=1e-9)


def test_the_mean_of_a_cut_normal_number():
    mean, deviation = np.meshgrid([-0.05, -0.01, 0.0, 0.3, 0.999, 1.02], [0.003, 0.01, 0.2])
    expected = truncnorm.mean(-mean / deviation, (1.0 - mean) / deviation, loc=mean, scale=deviation)
    possible = np.minimum(mean, 1.0 - mean) > -5.0 * deviation  # beyond, a cut number is what the edge says
    np.testing.assert_allclose(mean_within_one(mean, deviation)[possible], expected[possible], rtol=1e-6, atol=1e-9)
    assert ((mean_within_one(mean, deviation) >= 0.0) & (mean_within_one(mean, deviation) <= 1.0)).all()


def log_loss(model, X, y):
    return float(np.logaddexp(0.0, -(2.0 * y - 1.0) * model.decision_function(X)).mean())


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning", "ignore::discreet.InsecureRandomnessWarning")
@pytest.mark.parametrize(("strength", "most"), [(12.0, 0.42), (0.0, 1.02)], ids=["strong", "nothing"])
def test_strong_signals_are_followed_and_noise_is_not(strength, most):
    """Mean log-loss of six fits over that of a constant; each has 1,000 rows, ten columns and epsilon 1, seeded.

    Measured: 0.34 and 1.005. benchmarks/experiments/score_check.py has more draws, and the same without the check.
    """
    rng, losses = np.random.default_rng(3), []
    for seed in range(6):
        X = rng.normal(size=(3_000, 10))
        y = (rng.random(3_000) < expit(strength * X[:, :3].sum(axis=1) / math.sqrt(3.0))).astype(int)
        model = LogisticRegression(epsilon=1.0, classes=[0, 1], random_state=seed).fit(X[:1_000], y[:1_000])
        losses.append(log_loss(model, X[1_000:], y[1_000:]) / math.log(2.0))
    assert np.mean(losses) < most


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning", "ignore::discreet.InsecureRandomnessWarning")
def test_a_penalty_is_not_undone():
    """A strong penalty asks for short weights, however well longer ones would do; seeded, measured 0.97 to 1.02."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4_000, 3))
    y = (rng.random(4_000) < expit(3.0 * X[:, 0])).astype(int)
    settings = {"alpha": 0.5, "classes": [0, 1], "bounds": (-5.0, 5.0)}
    with pytest.warns(NotPrivateWarning):
        exact = LogisticRegression(epsilon=math.inf, **settings).fit(X, y)
    for seed in range(4):
        found = LogisticRegression(epsilon=2.0, random_state=seed, **settings).fit(X, y)
        assert found.coef_[0, 0] == pytest.approx(exact.coef_[0, 0], rel=0.2)


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning", "ignore::discreet.InsecureRandomnessWarning")
@pytest.mark.parametrize(
    ("weight", "settings"),
    [(0.3, {}), (0.3, {"relation": "zero_out"}), (None, {"relation": "add_remove", "public_n": 2_000})],
    ids=["weights", "weights, zero_out", "more rows than estimated"],
)
def test_counts_that_do_not_sum_to_the_public_number_of_rows_tell_the_same_scale(weight, settings):
    """The first coefficient is 3. Seeded; with shares of the public number it was 0.8, or 14,."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-1.0, 1.0, (12_000, 2))
    y = (rng.random(12_000) < expit(3.0 * X[:, 0])).astype(int)
    weights = {} if weight is None else {"sample_weight": np.full(12_000, weight)}
    for seed in range(3):
        model = LogisticRegression(
            epsilon=1.0, solver="newton", classes=[0, 1], bounds=(-1.0, 1.0), random_state=seed, **settings
        ).fit(X, y, **weights)
        assert 2.0 < model.coef_[0, 0] < 4.5


@pytest.mark.parametrize("rows", [1e-9, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("relative", [1e-12, 1e-3, 0.03, 1.0])
def test_no_counts_and_no_scores_make_a_number_that_is_not_finite(rows, relative):
    rng, noise = np.random.default_rng(7), rows * relative
    shapes = [np.zeros(24), np.full(24, -noise), np.full(24, 50.0 * rows), np.repeat(rows * EXPECTED / 2.0, 2)]
    for counts in shapes:
        for centre, deviation in ((0.0, 1.0), (0.0, 1e-12), (0.0, 1e5), (-700.0, 1.0)):
            for nothing in (0.0, 0.5, 1.0):
                noisy = (counts + noise * rng.normal(size=24)).reshape(-1, 2)
                with np.errstate(all="raise", under="ignore"):
                    found = ScoreCounts(noisy, noise, rows, centre + deviation * CENTRES).best_scale(nothing, 0.3)
                assert np.isfinite(found).all()
