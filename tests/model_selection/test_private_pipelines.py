"""A private search and a private cross-validation fit pipelines: what they cost, refuse and promise."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from discreet import Budget, Ledger, LogisticRegression, Ridge
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV, cross_val_score_private
from discreet.model_selection.candidates import cost_of, pipeline_budgets, private_steps, with_budget
from discreet.preprocessing import PrivateBounds, PrivateScaler, pipeline_guarantee
from discreet.privacy import accounting
from discreet.privacy.relation import Relation

MODEL = LogisticRegression(classes=[0, 1], bounds=(-4.0, 4.0))
SCALER = PrivateScaler(epsilon=0.5, bounds=(-1.0, 1.0))
PIPELINE = make_pipeline(PolynomialFeatures(2, include_bias=False), SCALER, MODEL)
ALPHAS = {"logisticregression__alpha": [1e-5, 1e-1]}
X = np.random.default_rng(0).uniform(-1.0, 1.0, (6_000, 2))
Y = (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize("budget", [Budget.gdp(0.5), Budget.pure(0.7)], ids=["gdp", "pure"])
def test_the_steps_together_keep_the_budget_of_a_fit_and_use_it(budget):
    parts = pipeline_budgets(PIPELINE, budget)
    amounts = np.array([part.amount for part in parts])
    power = 1 if budget.kind == "pure" else 2
    assert (amounts**power).sum() <= budget.amount**power
    assert (amounts**power).sum() == pytest.approx(budget.amount**power, rel=1e-9)
    assert amounts[1] == pytest.approx(2.0 * amounts[0])  # in the ratio 1 to 0.5 of their own epsilons
    fitted = with_budget(clone(PIPELINE), budget).fit(X, Y)
    assert accounting.fits(cost_of(fitted), budget, Relation.REPLACE)
    more = Budget.pure(0.69) if budget.kind == "pure" else Budget.gdp(0.495)
    assert not accounting.fits(cost_of(fitted), more, Relation.REPLACE)


def test_scores_and_models_of_pipelines_keep_the_budget(tmp_path):
    ledger = Ledger(tmp_path / "l.db")
    ledger.open("t", epsilon=1.0, delta=1e-6)
    found = cross_val_score_private(PIPELINE, X, Y, cv=3, epsilon=1.0, delta=1e-6, ledger=ledger, dataset="t")
    assert found.mean.value > 0.8
    assert found.guarantee.leaks == ()
    assert 0.9 < ledger.spent("t") < 1.0 + 1e-9
    # Two of three fits and one score, from what the steps say themselves: less than what was booked.
    fits = [cost_of(model) for model in found.estimators]
    assert accounting.epsilon_of(accounting.compose(fits[:2]), 1e-6, Relation.REPLACE) < 1.0


@pytest.mark.parametrize("refit", [False, True])
def test_the_winner_carries_the_promise_of_the_search(refit):
    search = PrivateSearchCV(PIPELINE, ALPHAS, n_iter=3, epsilon=1.0, refit=refit).fit(X, Y)
    best = search.best_estimator_
    assert search.score(X, Y) > 0.8
    assert search.guarantee_.epsilon == 1.0
    for step in private_steps(best):
        assert step.guarantee_ is search.guarantee_
    # One promise for both steps, counted once; with another release from the rows it is counted beside that.
    assert pipeline_guarantee(best).epsilon == pytest.approx(1.0, rel=1e-3)
    other = PrivateBounds(epsilon=0.5).fit(X)
    assert pipeline_guarantee(best, also=[other]).epsilon > 1.1
    assert pipeline_guarantee(best.fit(X, Y)).epsilon < 1.0  # fitted anew, the steps promise for themselves


def test_a_step_that_was_fitted_twice_counts_twice():
    scaler = PrivateScaler(bounds=(-1.0, 1.0))
    once = pipeline_guarantee(make_pipeline(scaler).fit(X)).epsilon
    both = pipeline_guarantee(make_pipeline(scaler, scaler).fit(X)).epsilon
    assert both > 1.3 * once


def test_columns_of_text_and_regressions():
    frame = pd.DataFrame({"group": np.where(Y == 1, "a", "b"), "value": X[:, 0]})
    encoder = OneHotEncoder(categories=[["a", "b"]], sparse_output=False)
    parts = (encoder, ["group"]), (PrivateScaler(bounds=(-1.0, 1.0)), ["value"])
    columns = make_column_transformer(*parts, sparse_threshold=0)
    found = cross_val_score_private(make_pipeline(columns, MODEL), frame, Y, cv=2)
    assert found.mean.value > 0.9
    ridge = make_pipeline(PrivateScaler(bounds=(-1.0, 1.0)), Ridge(bounds=(-4.0, 4.0), y_bounds=(-1.0, 1.0)))
    search = PrivateSearchCV(ridge, {"ridge__alpha": [1e-4, 1e-2]}, n_iter=2).fit(X, X[:, 0])
    assert search.score(X, X[:, 0]) > 0.5


REFUSED = [
    (make_pipeline(StandardScaler(), MODEL), {}, "StandardScaler"),
    (make_pipeline(MODEL, StandardScaler()), {}, "must be one of discreet's; got StandardScaler"),
    (make_pipeline(PrivateScaler(relation="zero_out"), MODEL), {}, "relation='replace', or all 'zero_out'"),
    (
        make_pipeline(PrivateScaler(epsilon=Budget.pure(1.0)), MODEL),
        {},
        "in the ratio of their epsilons: make each a positive number",
    ),
    (make_pipeline(PrivateScaler(epsilon=float("inf")), MODEL), {}, "make each a positive number"),
    (make_pipeline(PrivateScaler(ledger="l.db"), MODEL), {}, "pass ledger= to"),
    (PIPELINE, {"logisticregression": [MODEL]}, "cannot vary 'logisticregression'"),
    (PIPELINE, {"privatescaler__epsilon": [1.0]}, "cannot vary 'privatescaler__epsilon'"),
]


@pytest.mark.parametrize(("pipeline", "settings", "reason"), REFUSED)
def test_what_the_proof_does_not_cover_is_refused_before_the_fit(pipeline, settings, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        PrivateSearchCV(pipeline, settings).plan(6_000, 2)
    if not settings:
        with pytest.raises(ValueError, match=re.escape(reason)):
            cross_val_score_private(pipeline, X, Y)


def test_settings_that_exchange_a_step_inside_a_step_are_refused_before_the_fit():
    columns = make_column_transformer((PrivateScaler(bounds=(-1.0, 1.0)), [0, 1]), sparse_threshold=0)
    settings = {"columntransformer__privatescaler": [PrivateScaler(bounds=(-1.0, 1.0)), StandardScaler()]}
    with pytest.raises(ValueError, match="StandardScaler"):
        PrivateSearchCV(make_pipeline(columns, MODEL), settings).plan(6_000, 2)


def test_weights_grids_and_infinite_budgets_are_for_models_alone():
    with pytest.raises(ValueError, match="would not reach every step"):
        PrivateSearchCV(PIPELINE, ALPHAS).fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match="use PrivateSearchCV for a pipeline"):
        PrivateGridSearch(PIPELINE, ALPHAS).plan(6_000, 2)
    with pytest.raises(ValueError, match="needs a finite epsilon"):
        cross_val_score_private(PIPELINE, X, Y, epsilon=float("inf"))
    with pytest.raises(ValueError, match="not in classes"):
        cross_val_score_private(PIPELINE, X, Y + 5)
