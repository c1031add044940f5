"""Where no valid interval can be given, none is: before anything is spent, or as NaN with a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    Ledger,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PublicModel,
    PublicTable,
    Ridge,
)
from discreet._common.exceptions import IncompatibleSolverError
from discreet.inference.results import infer
from discreet.model_selection import PrivateGridSearch
from discreet.problem.constraints import Box
from discreet.solvers import GradientDescent
from tests.inference_tools import fitted, labels_table, linear_table

REFUSED = "no interval can be given: "


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        (Lasso, {}, "l1 penalty"),
        (ElasticNet, {}, "penalty"),
        (HuberRegressor, {}, "huber loss"),
        (LogisticRegression, {"penalty": "l1"}, "l1 penalty"),
        (LogisticRegression, {"class_weight": {0: 1.0, 1: 2.0}}, "loss"),
        (LogisticRegression, {"classes": [0, 1, 2]}, "several classes"),
        (LinearSVC, {"classes": [0, 1]}, "loss"),
        (PoissonRegressor, {"inference": "robust"}, "log link"),
        (Ridge, {"constraint": Box(-1.0, 1.0)}, "constraints"),
        (Ridge, {"delta": 0.0}, "pure epsilon-DP"),
        (Ridge, {"start": PublicModel(np.zeros(3))}, "public tables and starts"),
        (Ridge, {"public_table": PublicTable(np.eye(3))}, "public tables and starts"),
    ],
)
def test_what_the_page_does_not_cover_is_refused_before_anything_is_booked(kind, settings, why, tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.open("table", 2.0, 1e-5)
    X, y = linear_table(5_000, 0)
    target = (y > 0).astype(int) if issubclass(kind, LogisticRegression | LinearSVC) else y
    with pytest.raises(IncompatibleSolverError, match=REFUSED) as caught:
        fitted(X, target, kind, ledger=ledger, dataset="table", **settings)
    assert why in str(caught.value)
    assert ledger.spent("table") == 0.0


def test_the_least_number_of_rows_is_public_and_right():
    X, y = linear_table(6_000, 1)
    with pytest.raises(IncompatibleSolverError, match="at least") as caught:
        fitted(X[:100], y[:100])
    least = int(str(caught.value).partition("at least ")[2].split()[0].replace(",", ""))
    model = LinearRegression(inference=True)
    assert model.plan(least, 3).settings.steps >= 2
    with pytest.raises(IncompatibleSolverError):
        model.plan(least - 1, 3)


def test_persons_streams_other_solvers_and_other_words_are_refused():
    X, y = linear_table(3_000, 2)
    with pytest.raises(IncompatibleSolverError, match="persons"):
        LinearRegression(inference=True).fit(X, y, groups=np.arange(3_000) // 2)
    with pytest.raises(AttributeError, match=REFUSED):
        LinearRegression(inference=True, bounds=(-1, 1), y_bounds=(-1, 1), public_n=9).partial_fit(X, y)
    with pytest.raises(ValueError, match="plan of its own"):
        LinearRegression(inference=True, solver=GradientDescent()).fit(X, y)
    with pytest.raises(ValueError, match="'robust'"):
        LinearRegression(inference="yes").fit(X, y)


def test_searches_are_refused():
    X, y = labels_table(2_000, 7)
    model = LogisticRegression(classes=[0, 1], bounds=(-4.0, 4.0), inference=True)
    with pytest.raises(ValueError, match=f"{REFUSED}searches"):
        PrivateGridSearch(model, {"alpha": [1e-3, 1e-2]}).fit(X, y)


def test_a_fit_without_inference_has_none_and_says_how_to_get_it():
    X, y = linear_table(1_000, 3)
    model = fitted(X, y, inference=False, random_state=0)
    assert not hasattr(model, "inference_")
    with pytest.raises(AttributeError, match="inference=True"):
        _ = model.inference_


def refused_with(found, why):
    assert not found.valid
    assert len(found.reasons) == 1
    assert why in found.reasons[0]
    for numbers in (found.params, found.bse, found.pvalues, found.conf_int(), found.cov_params(), found.noise):
        assert np.isnan(numbers).all()
    assert found.get_prediction(np.zeros((1, len(found.names) - 1))).conf_int().shape == (1, 2)
    assert np.isnan(found.wald_test(found.names[0]).pvalue)
    assert found.to_dict()["terms"][0]["estimate"] is None
    assert str(found).startswith("No interval can be given")


def test_columns_that_are_nearly_the_same_are_refused_and_the_same_table_without_one_is_not():
    X, y = linear_table(4_000, 4)
    twice = np.column_stack([X, X[:, 0] + 0.01 * np.random.default_rng(0).normal(size=4_000)])
    refused_with(fitted(twice, y, random_state=1).inference_, "too correlated")
    assert fitted(X, y, random_state=1).inference_.valid


def test_a_strong_penalty_is_refused_and_a_weak_one_is_not():
    X, y = labels_table(20_000, 5)
    refused_with(fitted(X, y, LogisticRegression, alpha=1.0, random_state=2).inference_, "far from the optimum")
    assert fitted(X, y, LogisticRegression, alpha=1e-4, random_state=2).inference_.valid


def test_columns_and_targets_that_were_not_found_are_refused_by_name():
    X, y = linear_table(4_000, 6)
    solution = fitted(X, y, random_state=3).solution_
    scaling, problem = solution.scaling, solution.plan.problem

    def found(lost):
        return infer(solution.released, problem, lost, 4_000, ["a", "b", "c"], False)

    assert found(scaling).valid
    refused_with(found(replace(scaling, frozen=np.array([False, True, False]))), "column b could not be told")
    refused_with(found(replace(scaling, target_low=0.0, target_high=0.0)), "the target could not be told")


def test_a_column_of_zeros_is_refused():
    X, y = linear_table(4_000, 6)
    X[:, 1] = 0.0
    refused_with(fitted(X, y, random_state=3).inference_, "No interval can be given")


def test_no_setting_of_the_estimator_overrides_a_refusal():
    assert {"force", "override"} & set(discreet.Ridge().get_params()) == set()
