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
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.problem import Problem
from discreet.solvers import CoordinateDescent, StochasticGradientDescent
from tests.catalogue import table

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
    for rows, target in cases:
        for model in (LogisticRegression(classes=[0, 1]), Ridge()):
            quietly(model.set_params(solver=solver), rows, target)
            assert np.isfinite(model.coef_).all()
        bounded = LogisticRegression(classes=[0, 1], bounds=(4.0, 4.0), solver=solver)
        assert np.isfinite(quietly(bounded, rows, target).coef_).all()


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
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
        ({"bounds": (math.inf, math.inf)}, "bounds"),
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
    from discreet.data.validation import array_rows

    matrix = sp.csr_matrix((np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert array_rows(matrix, np.zeros(2)).X.has_canonical_format
    huge = sp.csr_matrix((np.array([1e308, 1e308]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(ValueError, match="infinite"):
        array_rows(huge, np.zeros(1))


def test_a_stale_canonical_flag_does_not_hide_duplicates():
    from discreet.data.validation import array_rows

    matrix = sp.csr_array(np.eye(3))
    assert matrix.has_canonical_format
    matrix = sp.csr_array((np.ones(4), np.array([0, 0, 1, 2]), np.array([0, 2, 3, 4])), shape=(3, 3))
    matrix.has_canonical_format = True
    found = array_rows(matrix, np.zeros(3)).X
    assert found.nnz == 3
    assert found[0, 0] == 2.0


@pytest.mark.filterwarnings("ignore:epsilon = 50:discreet.NotPrivateWarning")
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)], ids=lambda loss: loss.name)
def test_public_smoothness_constants_do_not_open_a_door_for_one_row(loss):
    """Unscaled columns: an entry of 1.7e308 once turned the other rows' gradients into nothing."""
    X, y = table(loss, rows=500, scales=np.ones(4))
    solver = CoordinateDescent(passes=20, smoothness=(0.1,) * 5, clip=2.0)
    quiet = discreet.solve(Problem(loss), X, y, solver, 50.0)
    X[0] = 1.7e308
    loud = discreet.solve(Problem(loss), X, y, solver, 50.0)
    assert np.abs(loud.w - quiet.w).max() < 0.5 * np.abs(quiet.w).max()


def test_a_plan_serves_its_own_solver_problem_and_table_only():
    X, y = small()
    data = Data(X, 2.0 * y - 1.0)
    public = Public(60, 3, low=-np.ones(3), high=np.ones(3))
    problem, budget = Problem(Logistic()), discreet.Budget(1.0, 1e-4)
    solver = StochasticGradientDescent(passes=1)
    plan = solver.plan(problem, public, budget)
    solver.solve(problem, data, plan, seeded_generator(0))
    other = StochasticGradientDescent(passes=1, sampler="single")
    for call in (
        lambda: other.solve(problem, data, plan, seeded_generator(0)),
        lambda: solver.solve(Problem(Squared()), data, plan, seeded_generator(0)),
        lambda: solver.solve(problem, Data(X[:50], data.y[:50]), plan, seeded_generator(0)),
        lambda: solver.solve(problem, Data(X[:, :2], data.y), plan, seeded_generator(0)),
    ):
        with pytest.raises(ValueError, match="plan was made"):
            call()


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_shares_outside_the_unit_interval_are_refused(share):
    with pytest.raises(ValueError, match="scale_share"):
        CoordinateDescent(scale_share=share).plan(Problem(Logistic()), Public(60, 3), discreet.Budget(1.0, 1e-4))


def test_absurdly_narrow_bounds_are_refused():
    X, y = small()
    with pytest.raises(ValueError, match="bounds must not be closer"):
        LogisticRegression(classes=[0, 1], bounds=(0.0, 1e-310)).fit(X, y)


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_the_callers_memory_is_left_alone():
    class Wrapped:
        def __init__(self, table):
            self.table, self.shape = table, table.shape

        def __array__(self, dtype=None, copy=None):
            return self.table

        def __len__(self):
            return len(self.table)

    X, y = small()
    for order in "CF":
        table_ = np.array(X, order=order)
        before = table_.copy()
        for given in (table_, Wrapped(table_), pd.DataFrame(table_)):
            model = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), fit_intercept=False)
            model.set_params(solver="cd" if order == "F" else "sgd").fit(given, y)
        np.testing.assert_array_equal(table_, before)


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_the_statement_owns_up_to_what_was_read_from_the_rows():
    X, y = small()
    with pytest.warns(discreet.PrivacyLeakWarning):
        model = LogisticRegression(bounds="data").fit(X, y)
    statement = model.guarantee_.statement()
    assert "the classes were read from the rows" in statement
    assert "the bounds of the columns were read from the rows" in statement
    declared = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0)).fit(X, y)
    assert "read from the rows" not in declared.guarantee_.statement()
