"""No error and no warning of a public function that takes rows shows an entry of them."""

from __future__ import annotations

import importlib
import inspect
import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils import check_array

import discreet
from discreet import Budget, Problem, fairness, model_selection, preprocessing
from discreet.data import load
from discreet.federated import Client, plan_federated, simulate, split_evenly
from discreet.federated.vertical import Holder, HolderFacts, plan_vertical
from discreet.metrics import evaluate
from discreet.problem import L2, Logistic, Squared

ROOMS = ("", "preprocessing", "metrics", "fairness", "model_selection", "federated", "federated.vertical", "data")
N = 40
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2))
TARGET, BINARY, SEX = X[:, 0].copy(), np.repeat([0, 1], N // 2), np.arange(N) % 2
SIGNS, AMOUNTS = 2.0 * BINARY - 1.0, 1.0 + np.abs(TARGET)
LIMITS = (-1.0, 1.0)
SQUARED, LOGISTIC = Problem(Squared(), L2(0.1)), Problem(Logistic(), L2(0.1))
FEDERATED = plan_federated(LOGISTIC, 2, LIMITS, clients=2, epsilon=2.0, unit="record", rows_per_client=N, rounds=1)
HOLDERS = [HolderFacts(name, 2, Budget(1.0, 1e-5), LIMITS) for name in ("a", "b")]
VERTICAL = plan_vertical(SQUARED, HOLDERS, N, labels="a", y_bounds=LIMITS)
LISTED = {"categories": [["a", "b"], ["c", "d"]]}
GRID = {"alpha": [0.1, 1.0]}
EXACT_LAW = {"alpha": 0.1, "fit_intercept": False, "solver": "output-perturbation"}


@cache
def fitted(name):
    """What is asked about rows after a fit."""
    plain = {"bounds": LIMITS, "classes": [0, 1]}
    makers = {
        "Ridge": lambda: discreet.Ridge(bounds=LIMITS, y_bounds=LIMITS).fit(X, TARGET),
        "LogisticRegression": lambda: discreet.LogisticRegression(**plain).fit(X, BINARY),
        "linear": lambda: discreet.LogisticRegression(**plain, **EXACT_LAW).fit(X, BINARY),
        "PrivateScaler": lambda: preprocessing.PrivateScaler().fit(X),
        "PrivateQuantiles": lambda: preprocessing.PrivateQuantiles(bounds=LIMITS).fit(X),
        "PrivateGridSearch": lambda: grid_search(model_selection.PrivateGridSearch).fit(X, BINARY),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return makers[name]()


def grid_search(kind):
    return kind(discreet.LogisticRegression(bounds=LIMITS, classes=[0, 1]), GRID, epsilon=1.0)


def scored(kind):
    """An estimator as `fit(X, y, sample_weight)`, for every estimator of the package."""
    classifies = kind in (discreet.LogisticRegression, discreet.LinearSVC)
    ends = {"classes": [0, 1]} if classifies else {"y_bounds": (0.5, 3.0) if kind in AMOUNT_LIKE else LIMITS}
    more = {"alpha": 0.1, "l1_ratio": 0.5} if kind is discreet.ElasticNet else {}
    y = BINARY if classifies else AMOUNTS if kind in AMOUNT_LIKE else TARGET
    return lambda X, y, w: kind(bounds=LIMITS, **ends, **more).fit(X, y, sample_weight=w), (X, y, WEIGHT)


def learned(kind, weighted=True, **settings):
    """A transformer that learns from the rows and transforms them."""
    if not weighted:
        return lambda X: kind(**settings).fit(X).transform(X), (X,)
    return lambda X, w: kind(**settings).fit(X, sample_weight=w).transform(X), (X, WEIGHT)


AMOUNT_LIKE = (discreet.PoissonRegressor, discreet.GammaRegressor)
WEIGHT = np.full(N, 0.5)
ESTIMATORS = ("LinearRegression", "Ridge", "Lasso", "ElasticNet", "HuberRegressor", "LogisticRegression", "LinearSVC")
SEEN = {"groups": [0, 1], "favourable": 1, "notion": "equality of opportunity"}
# How each function is called, and the rows with which it accepts.
CALLS = {
    **{name: scored(getattr(discreet, name)) for name in (*ESTIMATORS, "PoissonRegressor", "GammaRegressor")},
    "Ridge.predict": (lambda X: fitted("Ridge").predict(X), (X,)),
    "Ridge.score": (lambda X, y, w: fitted("Ridge").score(X, y, w), (X, TARGET, WEIGHT)),
    "LogisticRegression.predict_proba": (lambda X: fitted("LogisticRegression").predict_proba(X), (X,)),
    "LogisticRegression.score": (lambda X, y, w: fitted("LogisticRegression").score(X, y, w), (X, BINARY, WEIGHT)),
    "Ridge.partial_fit": (
        lambda X, y: discreet.Ridge(bounds=LIMITS, y_bounds=LIMITS, public_n=99).partial_fit(X, y),
        (X, TARGET),
    ),
    "solve": (lambda X, y, w: discreet.solve(SQUARED, X, y, sample_weight=w), (X, TARGET, WEIGHT)),
    "Problem.objective": (lambda X, y, w: SQUARED.objective(X, y, np.zeros(2), 0.0, w), (X, TARGET, WEIGHT)),
    "Problem.optimum": (SQUARED.optimum, (X, TARGET, WEIGHT)),
    "load": (load, (X, TARGET)),
    "PrivateScaler": learned(preprocessing.PrivateScaler),
    "PrivateScaler.inverse": (lambda X: fitted("PrivateScaler").inverse_transform(X), (X,)),
    "PrivateBounds": learned(preprocessing.PrivateBounds),
    "PrivateQuantiles": learned(preprocessing.PrivateQuantiles, bounds=LIMITS),
    "PrivateQuantiles.inverse": (lambda X: fitted("PrivateQuantiles").inverse_transform(X), (X,)),
    "PrivateImputer": learned(preprocessing.PrivateImputer, bounds=LIMITS),
    "DeclaredImputer": learned(preprocessing.DeclaredImputer, weighted=False),
    "ColumnClipper": learned(preprocessing.ColumnClipper, weighted=False, low=-1.0, high=1.0),
    "PrivateFrequentCategories": learned(preprocessing.PrivateFrequentCategories, **LISTED),
    "DeclaredOneHotEncoder": learned(preprocessing.DeclaredOneHotEncoder, weighted=False, **LISTED, other=False),
    "private_means": (lambda X, w: preprocessing.private_means(X, LIMITS, sample_weight=w), (X, WEIGHT)),
    "private_smoothness": (
        lambda X, w: preprocessing.private_smoothness(X, Logistic(), LIMITS, sample_weight=w),
        (X, WEIGHT),
    ),
    "evaluate": (
        lambda X, y, w: evaluate(fitted("LogisticRegression"), X, y, sample_weight=w),
        (X, BINARY, WEIGHT),
    ),
    "evaluate, R2": (
        lambda X, y, w: evaluate(fitted("Ridge"), X, y, sample_weight=w, y_bounds=LIMITS),
        (X, TARGET, WEIGHT),
    ),
    "FairFeatures": learned(fairness.FairFeatures, weighted=False, directions=np.array([[1.0, 0.0]])),
    "LinearClassifier": (lambda X: fairness.linear_classifier(fitted("linear")).scores(X), (X,)),
    "LinearClassifier.features": (lambda X: fairness.linear_classifier(fitted("linear")).features(X), (X,)),
    "MarginSample.from_scores": (lambda s: fairness.MarginSample.from_scores(s, BINARY, SEX), (TARGET,)),
    "CellTable.from_predictions": (
        lambda y, p: fairness.CellTable.from_predictions(y, p, SEX, labels=[0, 1]),
        (BINARY, BINARY),
    ),
    "certificate": (
        lambda X, y: fairness.certificate(fitted("linear"), X, y, SEX, distance=0.1),
        (X, BINARY),
    ),
    "private_certificate": (
        lambda X, y, s, w: fairness.private_certificate(fitted("linear"), X, y, s, groups=[0, 1], sample_weight=w),
        (X, BINARY, SEX, WEIGHT),
    ),
    "gradient_distance": (
        lambda X, y, w: fairness.gradient_distance(fitted("linear"), X, y, epsilon=1.0, sample_weight=w),
        (X, BINARY, WEIGHT),
    ),
    "mean_differences": (
        lambda X, s, y, w: fairness.mean_differences(X, s, y, **SEEN, classes=[0, 1], sample_weight=w),
        (X, SEX, BINARY, WEIGHT),
    ),
    "private_directions": (
        lambda X, y, s, w: fairness.private_directions(X, y, s, LIMITS, **SEEN, classes=[0, 1], sample_weight=w),
        (X, BINARY, SEX, WEIGHT),
    ),
    "cross_val_score_private": (
        lambda X, y: model_selection.cross_val_score_private(
            discreet.LogisticRegression(bounds=LIMITS, classes=[0, 1]), X, y, epsilon=1.0, cv=2
        ),
        (X, BINARY),
    ),
    "PrivateSearchCV": (lambda X, y: grid_search(model_selection.PrivateSearchCV).fit(X, y), (X, BINARY)),
    "PrivateGridSearch": (lambda X, y: grid_search(model_selection.PrivateGridSearch).fit(X, y), (X, BINARY)),
    "PrivateGridSearch.predict": (lambda X: fitted("PrivateGridSearch").predict(X), (X,)),
    "PrivateGridSearch.score": (lambda X, y: fitted("PrivateGridSearch").score(X, y), (X, BINARY)),
    "Client": (lambda X, y, w: Client(FEDERATED, "a", X, y, sample_weight=w), (X, SIGNS, WEIGHT)),
    "simulate": (lambda X, y: simulate(FEDERATED, X, y, split_evenly(N, 2)), (X, SIGNS)),
    "Holder": (lambda X, y, w: Holder(VERTICAL, "a", X, y, w), (X, TARGET, WEIGHT)),
}
# Classes that are handed checked arrays, or public rows: nothing in them is anybody's secret.
CHECKED_BEFORE = {"Data", "PublicTable", "VerticalModel"}


def with_one(base, place, value):
    """The rows, with one entry that does not belong there."""
    values = base.astype(object)
    values[place] = value
    return values


def tables(base):
    """Rows of every kind, each with a secret in it."""
    place = (7, 1) if base.ndim == 2 else 7
    text, number = with_one(base, place, "secret"), with_one(base, place, 77123.25)
    frame = pd.DataFrame if base.ndim == 2 else pd.Series
    yield from (text, text.tolist(), frame(text), frame(text).astype("str").astype("category"), number)
    yield from (number.astype(float), frame(number.astype(float)), np.asarray(base, dtype=complex) + 77123.25j)
    yield pl.from_pandas(
        pd.DataFrame(text.astype(str), columns=["a", "b"]) if base.ndim == 2 else pd.Series(text.astype(str))
    )


def texts_of(call, *rows):
    """What a call with these rows says: its warnings, and its error with all that would be printed before it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            call(*rows)
        except Exception as error:
            while error is not None:
                yield str(error)
                error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    yield from (str(one.message) for one in warned)


def shows(text):
    return "secret" in text or "77123" in text


@pytest.mark.parametrize("name", CALLS)
def test_no_text_shows_an_entry(name):
    call, rows = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(*rows)  # the rows themselves are accepted
    for slot, base in enumerate(rows):
        for bad in tables(base):
            shown = [text for text in texts_of(call, *rows[:slot], bad, *rows[slot + 1 :]) if shows(text)]
            assert not shown, f"argument {slot} as {type(bad).__name__}: {shown[0][:200]}"


def test_an_entry_that_is_shown_is_seen():
    """The other arm: NumPy and scikit-learn show entries."""
    assert any(map(shows, texts_of(partial(np.asarray, dtype=float), next(tables(TARGET)))))
    assert any(map(shows, texts_of(check_array, X + 77123.25j)))


def test_every_public_function_that_takes_rows_is_called():
    known = {name.split(".")[0].split(",")[0] for name in CALLS} | CHECKED_BEFORE
    assert {name for name in public_names_that_take_rows() if name not in known} == set()


def public_names_that_take_rows():
    """Functions with a parameter X, and classes of which a public method or the constructor has one."""
    for room in ROOMS:
        module = importlib.import_module(f"discreet.{room}".rstrip("."))
        for name in filter(str.isidentifier, (one for one in dir(module) if not one.startswith("_"))):
            value = getattr(module, name)
            methods = [value, *(getattr(value, one) for one in dir(value) if not one.startswith("_"))]
            if callable(value) and any(takes_rows(method) for method in methods):
                yield name


def takes_rows(method):
    try:
        return "X" in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
