"""Every warning points at the line of the user's code that led to it, whatever is between."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discreet
from discreet import LogisticRegression, Ridge, solve
from discreet._common.callers import BETWEEN
from discreet._common.exceptions import DiscreetWarning
from discreet.metrics import evaluate
from discreet.model_selection import PrivateSearchCV, cross_val_score_private
from discreet.preprocessing import PrivateBounds, PrivateScaler, private_means
from discreet.problem import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import GradientDescent

X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 3))
Y = (X[:, 0] > 0.0).astype(int)
MODEL = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
LOUD = {"epsilon": 20.0, "random_state": 0}  # protects little, and is seeded
FITTED = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd").fit(X, Y)
CALLS = {
    "fit": lambda: LogisticRegression(bounds=(-1.0, 1.0), solver="gd", **LOUD).fit(X, Y),
    "bounds of the data": lambda: Ridge(bounds="data", y_bounds="data", solver="gd").fit(X, X[:, 0]),
    "partial_fit": lambda: LogisticRegression(
        classes=[0, 1], bounds=(-1.0, 1.0), solver="ftrl", public_n=400, **LOUD
    ).partial_fit(X, Y),
    "evaluate": lambda: evaluate(FITTED, X, Y, **LOUD),
    "transformer": lambda: PrivateScaler(bounds=(-1.0, 1.0), **LOUD).fit(X),
    "fit_transform": lambda: PrivateBounds(**LOUD).fit_transform(X),
    "means": lambda: private_means(X, bounds=(-1.0, 1.0), **LOUD),
    "pipeline": lambda: make_pipeline(StandardScaler(), MODEL).fit(X, Y),
    "private pipeline": lambda: make_pipeline(PrivateScaler(bounds=(-1.0, 1.0), **LOUD), MODEL).fit(X, Y),
    "search": lambda: PrivateSearchCV(MODEL, {"alpha": [1.0]}, n_iter=2, **LOUD).fit(X, Y),
    "cross-validation": lambda: cross_val_score_private(MODEL, X, Y, cv=2, **LOUD),
    "solve": lambda: solve(
        Problem(Logistic()), X, 2.0 * Y - 1.0, GradientDescent(), 20.0, bounds=(-1.0, 1.0), random_state=0
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_warning_points_at_the_line_of_the_user(case):
    call = CALLS[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    told = [one for one in caught if issubclass(one.category, DiscreetWarning)]
    lines, first = inspect.getsourcelines(call)
    assert told
    for one in told:
        assert one.filename == __file__, one
        assert first <= one.lineno < first + len(lines), one


def test_what_stands_between_is_told_by_whole_names():
    assert discreet.__name__ in BETWEEN
    assert not any(name.startswith("tests") or "." in name for name in BETWEEN)
