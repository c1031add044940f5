"""Intervals hold as often as they say, and a covariance without the noise does not: two arms, seeded.

Each arm counts the 4 coefficients of `FITS` fits; those of one fit are correlated a little. With a true coverage of .95
the share has a standard deviation of about .015: the least that is accepted is four below, a false alarm in 30,000
runs of these seeds. Without the noise the share is below that.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet import LinearRegression, LogisticRegression, PoissonRegressor
from tests.inference_tools import COEF, INTERCEPT, counts_table, fitted, labels_table, linear_table

FITS, ROWS = 80, 2_500
LEAST, MOST = 0.89, 0.995
TRUTH = np.array([*COEF, INTERCEPT])


def shares(table, kind, **settings):
    """How often the intervals hold the truth, and how often those without the noise would."""
    hits, without = [], []
    for seed in range(FITS):
        found = fitted(*table(ROWS, 1_000 + seed), kind, random_state=seed, **settings).inference_
        if found.valid:
            error = np.abs(found.params - TRUTH)
            hits.append(error <= 1.96 * found.bse)
            without.append(error <= 1.96 * np.sqrt(np.diag(found.sampling)))
    assert len(hits) > 0.9 * FITS
    return float(np.mean(hits)), float(np.mean(without))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "kind", "inference", "epsilon"),
    [
        (linear_table, LinearRegression, True, 0.7),
        (linear_table, LinearRegression, "robust", 0.7),
        (labels_table, LogisticRegression, True, 0.7),
        (labels_table, LogisticRegression, "robust", 0.7),
        (counts_table, PoissonRegressor, True, 1.6),
    ],
)
def test_intervals_hold_and_those_without_the_noise_do_not(table, kind, inference, epsilon):
    held, faulty = shares(table, kind, inference=inference, epsilon=epsilon)
    assert LEAST <= held <= MOST
    assert faulty < LEAST


@pytest.mark.slow
def test_intervals_of_weighted_rows_hold_and_those_without_the_noise_do_not():
    hits, without = [], []
    for seed in range(FITS):
        X, y = linear_table(ROWS, 4_000 + seed)
        weight = np.where(np.random.default_rng(seed).random(ROWS) < 0.5, 1.0, 0.3)
        found = fitted(X, y, random_state=seed, sample_weight=weight).inference_
        if found.valid:
            hits.append(np.abs(found.params - TRUTH) <= 1.96 * found.bse)
            without.append(np.abs(found.params - TRUTH) <= 1.96 * np.sqrt(np.diag(found.sampling)))
    assert len(hits) > 0.8 * FITS
    assert LEAST <= np.mean(hits) <= MOST
    assert np.mean(without) < LEAST


@pytest.mark.slow
def test_shrunk_coefficients_have_no_such_interval():
    """Why `coef_` gets none: around it, the noise of the estimates covers the truth too seldom where it is shrunk."""
    hits = []
    for seed in range(60):
        model = fitted(*labels_table(1_500, 2_000 + seed), LogisticRegression, random_state=seed, epsilon=0.7)
        hits.append(np.abs(model.coef_[0] - COEF) <= 1.96 * model.inference_.noise[:3])
    assert np.mean(hits) < 0.9


def test_the_null_is_rejected_about_as_often_as_alpha_says():
    """One column has no effect: at level 0.1 at most 16 of 60 fits reject (99.99 %), with half of the errors more."""
    values = [
        fitted(*linear_table(1_500, 3_000 + seed), random_state=seed, epsilon=2.0).inference_.tvalues[1]
        for seed in range(60)
    ]
    given = np.array(values)[np.isfinite(values)]
    assert (np.abs(given) > 1.645).sum() <= 16
    assert (2.0 * np.abs(given) > 1.645).sum() > 16
