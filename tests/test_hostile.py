"""Hostile and wrong input: one clear line, or harmless; never a NaN model, never a stack trace from NumPy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import discreet
from discreet import LogisticRegression, Ridge
from discreet.losses import Logistic, Squared
from discreet.problem import Problem

SOLVERS = ["cd", "gd", "sgd"]


def quietly(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.UtilityWarning)
        return model.fit(X, y, **options)


def small(rows=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bounds", [None, (-5.0, 5.0)])
@pytest.mark.parametrize("value", [1e308, -1.7e308, 5e-324])
def test_one_enormous_row_is_harmless(value, bounds, solver):
    X, y = small(2_000)
    X[7] = value
    target = X[:, 0].copy()
    target[:] = np.where(np.abs(target) > 1e300, value, target)
    for model, goal in ((LogisticRegression(classes=[0, 1]), y), (Ridge(), target)):
        model.set_params(bounds=bounds, solver=solver)
        quietly(model, X, goal)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
        assert np.isfinite(model.predict(X[:5])).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_are_refused_before_anything_is_released(bad):
    X, y = small()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"(NaN|infinity)"):
        LogisticRegression(classes=[0, 1]).fit(X, y)
    X, _ = small()
    target = X[:, 0].copy()
    target[5] = bad
    with pytest.raises(ValueError, match=r"(NaN|infinity)"):
        Ridge().fit(X, target)


@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_tables_work(solver):
    X, y = small()
    constant = X.copy()
    constant[:, 1] = 4.0
    cases = [
        (constant, y),
        (np.zeros((60, 3)), y),
        (X, np.ones(60, dtype=int)),  # one class in the rows, two declared
        (X[:1], y[:1]),  # n = 1
        (X[:, :1], y),  # p = 1
        (np.repeat(X, 30, axis=1)[:20], y[:20]),  # more columns than rows
    ]
    for table, target in cases:
        for model in (LogisticRegression(classes=[0, 1]), Ridge()):
            quietly(model.set_params(solver=solver), table, target)
            assert np.isfinite(model.coef_).all()
        bounded = LogisticRegression(classes=[0, 1], bounds=(4.0, 4.0), solver=solver)
        assert np.isfinite(quietly(bounded, table, target).coef_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "one"}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -1e-9}, "delta"),
        ({"alpha": -1.0}, "alpha"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"bounds": (0.0, math.inf)}, "bounds"),
        ({"bounds": ([0.0, 0.0], [1.0, 1.0])}, "bounds"),
        ({"bounds": 3.0}, "bounds"),
        ({"solver": "adam"}, "solver must be one of"),
        ({"relation": "swap"}, "relation must be one of"),
        ({"relation": "add_remove"}, "public_n"),
        ({"public_n": 7}, "public_n"),
        ({"classes": [1]}, "classes"),
        ({"classes": [3, 4]}, "classes"),
        ({"penalty": "l0"}, "penalty"),
        ({"multi_class": "auto"}, "multi_class"),
        ({"ledger": "sqlite://"}, "dataset"),
        ({"delta": 0, "solver": "sgd"}, "pure"),
    ],
    ids=str,
)
def test_wrong_arguments_get_one_line_that_names_them(options, message):
    X, y = small()
    with pytest.raises(ValueError, match=message) as caught:
        LogisticRegression(**{"classes": [0, 1], "bounds": (-3.0, 3.0), **options}).fit(X, y)
    assert "\n" not in str(caught.value)


def test_wrong_tables_get_one_line():
    X, y = small()
    with pytest.raises(ValueError, match="duplicate column names"):
        Ridge().fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)
    with pytest.raises(ValueError, match="0 feature"):
        Ridge().fit(X[:, :0], y)
    with pytest.raises(ValueError, match="one class"):
        LogisticRegression().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Ridge().fit(X, y[:-1])
    with pytest.raises(ValueError, match="bounds of sparse columns must contain 0"):
        Ridge(bounds=(1.0, 2.0)).fit(sp.csr_array(X), y)
    with pytest.raises(ValueError, match="-1 and \\+1"):
        discreet.solve(Problem(Logistic()), X, y)
    with pytest.raises(ValueError, match="one value per row"):
        discreet.solve(Problem(Squared()), X, y[:-1])


def test_hostile_duplicates_in_sparse_storage_count_once():
    """Entries stored twice are summed before they are clipped: a row cannot smuggle in a second share."""
    from discreet.data import load

    matrix = sp.csr_matrix((np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert load(matrix, np.zeros(2)).X.has_canonical_format
    huge = sp.csr_matrix((np.array([1e308, 1e308]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(ValueError, match="infinite"):
        load(huge, np.zeros(1))
