"""Gradient descent that shrinks its result by its known noise, as `auto` asks for with several classes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from discreet import LogisticRegression
from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem import L2, Logistic, Multinomial, Problem
from discreet.solvers import GradientDescent

CLASSES = 4


def table(rows, signal, seed, columns=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    scores = signal * X @ rng.normal(size=(columns, CLASSES)) / np.sqrt(columns)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def excess(signal, solver, rows=1_000, epsilon=1.0, runs=6):
    """Log-loss over that of a constant without privacy, on fresh rows; the mean over seeded runs."""
    found = []
    for seed in range(runs):
        X, y = table(rows + 2_000, signal, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(epsilon=epsilon, classes=range(CLASSES), solver=solver, random_state=seed)
            model.fit(X[:rows], y[:rows])
        chances = model.predict_proba(X[rows:])[np.arange(2_000), y[rows:]]
        shares = np.bincount(y[rows:], minlength=CLASSES) / 2_000
        found.append(-np.mean(np.log(chances)) / -(shares @ np.log(shares)))
    return float(np.mean(found))


@pytest.mark.slow
def test_it_loses_little_where_columns_tell_nothing_and_keeps_what_they_tell():
    """Seeded. Without shrinkage the same run is more than a tenth worse than the constant, the planted fault."""
    assert excess(0.0, GradientDescent(shrink=True)) < 1.06
    assert excess(0.0, GradientDescent()) > 1.1
    assert excess(4.0, GradientDescent(shrink=True)) < 0.9


def test_auto_learns_several_classes_from_a_table_of_a_thousand_rows():
    """Seeded; `newton`, which whitens all directions alike, keeps less than half of this."""
    assert excess(4.0, "auto") < 0.9


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)])
def test_it_costs_nothing_and_has_no_law_of_distance(loss):
    problem, public, budget = Problem(loss, L2(1e-2)), Public(5_000, 4), Budget(1.0, 1e-6)
    plain, shrunk = (GradientDescent(shrink=shrink).plan(problem, public, budget) for shrink in (False, True))
    assert plain.event == shrunk.event
    assert shrunk.error_bound(1.0) is None
    with pytest.raises(ValueError, match="no theorem bounds"):
        shrunk.distance_law(None)
