"""Intervals hold as often as they say, with the noise in them; intervals that forget the noise do not.

Truths are means over a million draws, or formulas. A share of 0.1 of 60 intervals may miss; more than 16 misses have
probability below 1e-4 for each figure, so a false alarm has probability below 0.004 in all.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from discreet.metrics.classification import (
    ClassifierMeasure,
    accuracies,
    calibration_bins,
    confusion,
    default_edges,
    log_losses,
    roc_points,
)
from discreet.metrics.ranking import area_under_curve
from discreet.metrics.regression import RegressorMeasure, regression_figures
from discreet.metrics.released_sums import Counts, quantile
from tests.metrics_tools import StubClassifier, StubRegressor, draw_labels, draw_targets, noisy_sums

FAILURE, DRAWS, MOST_MISSES = 0.1, 60, 16
FLOOR, EDGES = 0.01, default_edges(StubClassifier())
CLASSIFIER = ClassifierMeasure(StubClassifier(), (0, 1), EDGES, FLOOR, 8, 4, np.linspace(-4.0, 4.0, 31))
CENTRE, LARGEST_ERROR = 0.3, 0.5


def classification_truth():
    X, _ = draw_labels(1_000_000, np.random.default_rng(1))
    chances = expit(X[:, 0])
    base, other = chances.mean(), 1.0 - chances
    loss = -(chances * np.log(np.maximum(chances, FLOOR)) + other * np.log(np.maximum(other, FLOOR))).mean()
    constant = -(base * math.log(base) + (1.0 - base) * math.log(1.0 - base))
    order = np.argsort(X[:, 0])
    below = (np.cumsum(other[order]) - other[order]) / other.sum()
    accuracy, largest = np.maximum(chances, other).mean(), max(base, 1.0 - base)
    return {
        "accuracy": accuracy,
        "accuracy_of_constant": largest,
        "accuracy_gain": accuracy - largest,
        "log_loss": loss,
        "log_loss_of_constant": constant,
        "log_loss_gain": constant - loss,
        "roc_auc": float(chances[order] @ below / chances.sum()),
    }


def regression_truth():
    X, y = draw_targets(1_000_000, np.random.default_rng(2))
    error = np.minimum(np.square(X[:, 0] - y), LARGEST_ERROR**2).mean()
    constant = np.clip(y, CENTRE - LARGEST_ERROR, CENTRE + LARGEST_ERROR).var()
    return {
        "r2": 1.0 - error / constant,
        "mean_squared_error": error,
        "mean_squared_error_of_constant": constant,
        "mean_squared_error_gain": constant - error,
    }


def classified(sums):
    found = accuracies(sums, 2, FAILURE) | log_losses(sums, 2, FLOOR, FAILURE)
    return found | {"roc_auc": area_under_curve(sums, FAILURE)}


def misses(truth, rows, deviation, known, laplace=False):
    """How often each interval misses, with the noise in it and, where that decides, without."""
    honest, careless = Counter(), Counter()
    rng = np.random.default_rng(rows)
    measure = RegressorMeasure(StubRegressor(), 0.0, 1.0, CENTRE, 1.0, not known, largest=LARGEST_ERROR**2)
    for _ in range(DRAWS):
        if "r2" in truth:
            sums = noisy_sums(measure, *draw_targets(rows, rng), deviation, rng, known, laplace)
            told = [
                regression_figures(measure, s, FAILURE) for s in (sums, without_noise(sums))[: 1 + (deviation > 10.0)]
            ]
        else:
            sums = noisy_sums(CLASSIFIER, *draw_labels(rows, rng), deviation, rng, known, laplace)
            told = [classified(s) for s in (sums, without_noise(sums))[: 1 + (deviation > 10.0)]]
        for count, figures in zip((honest, careless), told, strict=False):
            count.update(name for name, t in truth.items() if not figures[name].low <= t <= figures[name].high)
    return honest, careless


def without_noise(sums):
    """The same numbers, taken for exact ones: the planted fault."""
    return replace(sums, deviations=np.zeros_like(sums.deviations))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "deviation", "known", "laplace"),
    [(1_500, 60.0, True, False), (1_500, 60.0, False, True), (3_000, 8.0, True, False)],
)
def test_figures_of_a_classifier_are_covered(rows, deviation, known, laplace):
    truth = classification_truth()
    honest, careless = misses(truth, rows, deviation, known, laplace)
    assert all(honest[name] <= MOST_MISSES for name in truth), honest
    if deviation > 50.0:  # the noise decides
        assert all(careless[name] > MOST_MISSES for name in ("accuracy", "accuracy_gain", "log_loss")), careless


@pytest.mark.parametrize(
    ("rows", "deviation", "known"), [(2_000, 20.0, True), (2_000, 20.0, False), (20_000, 2.0, True)]
)
def test_figures_of_a_regressor_are_covered(rows, deviation, known):
    truth = regression_truth()
    honest, careless = misses(truth, rows, deviation, known)
    assert all(honest[name] <= MOST_MISSES for name in truth), honest
    if deviation > 10.0:
        assert all(careless[name] > MOST_MISSES for name in truth), careless


def test_curves_and_confusion_matrix_hold_together():
    """All points of a curve at once: more than 8 of 20 curves with a miss have probability below 1e-4."""
    X, _ = draw_labels(1_000_000, np.random.default_rng(1))
    chances, bins = expit(X[:, 0]), np.searchsorted(EDGES, X[:, 0])
    rates = [
        [(weight * (X[:, 0] > edge)).sum() / weight.sum() for edge in EDGES] for weight in (1.0 - chances, chances)
    ]
    shares = np.bincount(bins, chances) / np.bincount(bins)
    right = X[:, 0] > 0.0
    cells = [[((1.0 - chances) * ~right).mean(), ((1.0 - chances) * right).mean()]]
    cells += [[(chances * ~right).mean(), (chances * right).mean()]]
    wrong, rng = Counter(), np.random.default_rng(3)
    for _ in range(20):
        sums = noisy_sums(CLASSIFIER, *draw_labels(1_000, rng), 5.0, rng)
        points = roc_points(sums, EDGES, FAILURE)
        found = [(point.false_positive_rate, rates[0][k]) for k, point in enumerate(points)]
        found += [(point.true_positive_rate, rates[1][k]) for k, point in enumerate(points)]
        wrong["roc"] += not all(limits.low <= t <= limits.high for limits, t in found)
        bins_of = calibration_bins(sums, EDGES, FAILURE)
        wrong["calibration"] += not all(
            b.observed.low <= t <= b.observed.high for b, t in zip(bins_of, shares, strict=True)
        )
        matrix = confusion(sums, 2, FAILURE)
        wrong["confusion"] += not all(
            matrix[i][j].low <= cells[i][j] <= matrix[i][j].high for i in range(2) for j in range(2)
        )
    assert max(wrong.values(), default=0) <= 8  # of 20; probability below 1e-4 each if a tenth may miss


@pytest.mark.parametrize("chance", [0.0005, 0.005, 0.02, 0.5, 0.995])
def test_rare_events_are_covered_without_noise(chance):
    """Few rows decide: the estimate of the variance alone would miss in most tables. Exact, by the binomial law."""
    from scipy.stats import binom

    rows = 400
    counts = np.arange(rows + 1)
    chances = binom.pmf(counts, rows, chance)
    missed = 0.0
    for count in counts[chances > 1e-6]:
        found = Counts(np.array([count, rows - count], dtype=float), 0.0, False, float(rows))
        limits = found.mean(np.array([1.0, 0.0]), np.ones(2), 0.05)
        missed += chances[count] * (not limits.low <= chance <= limits.high)
    assert missed <= 0.05


@pytest.mark.parametrize("terms", [1, 2, 3, 8])
def test_the_quantile_for_laplace_noise_is_on_the_safe_side(terms):
    """Exact for one term; for several by a million draws each, whose error is below 0.0015."""
    draws = np.random.default_rng(terms).laplace(size=(1_000_000, terms)).sum(axis=1) / math.sqrt(2.0 * terms)
    for failure in (0.3, 0.1, 0.05, 0.01):
        assert (np.abs(draws) > quantile(failure, laplace=True)).mean() <= failure + 0.0015
    assert (np.abs(draws) > quantile(0.01)).mean() > 0.0115 or terms > 3  # the normal quantile would be too small
