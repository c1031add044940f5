"""The choice of a search: exact scores give a row away, the private search stays within its guarantee."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes HalvingGridSearchCV importable
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from discreet import (
    Budget,
    BudgetExceededError,
    Ledger,
    LogisticRegression,
    PrivacyLeakWarning,
    PublicModel,
    Ridge,
    load_model,
    save_model,
)
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.model_selection import PrivateGridSearch
from discreet.preprocessing import PrivateScaler, check_pipeline, pipeline_guarantee
from discreet.privacy import accounting
from discreet.privacy.mechanisms import bounded_fractions
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")

# Whatever the noise, the first candidate predicts 0 for every row and the second one 1.
ZEROS_OR_ONES = {"constraint": [Box(-1.0, -0.5), Box(0.5, 1.0)]}
MODEL = LogisticRegression(epsilon=0.01, classes=[0, 1], bounds=(0.0, 1.0), fit_intercept=False, solver="gd")


def neighbours(rows=10):
    """Two tables that differ in one label: zeros and ones are as many, or ones are two more."""
    labels = np.arange(rows) % 2
    other = labels.copy()
    other[0] = 1
    return np.ones((rows, 1)), labels, other


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(MODEL, ZEROS_OR_ONES, cv=KFold(2)),
        RandomizedSearchCV(MODEL, ZEROS_OR_ONES, cv=KFold(2), n_iter=2),
        HalvingGridSearchCV(MODEL, ZEROS_OR_ONES, cv=KFold(2), min_resources=10, max_resources=10),
    ],
    ids=lambda search: type(search).__name__,
)
@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")
def test_a_choice_by_exact_scores_identifies_a_table_and_is_not_stated(search):
    X, labels, other = neighbours()
    guesses = [[clone(search).fit(X, y).best_index_ for _ in range(5)] for y in (labels, other)]
    assert len(set(guesses[1])) == 1
    assert set(guesses[0]).isdisjoint(guesses[1])  # at epsilon 0.01, every run tells which table it was
    search = clone(search)
    with pytest.warns(PrivacyLeakWarning, match=f"{type(search).__name__} chose these settings by exact scores"):
        search.fit(X, labels)
    with pytest.raises(ValueError, match=f"{type(search).__name__} chose among settings by exact scores"):
        pipeline_guarantee(search)
    statement = " ".join(search.best_estimator_.guarantee_.statement().split())
    assert "chose by exact scores" in statement
    assert f"{type(search).__name__} also fitted 4 other models to these rows" in statement  # two settings, two folds
    assert "counts neither the cost of the others nor what their scores tell" in statement


def test_the_private_choice_stays_within_its_epsilon_and_the_audit_notices_missing_noise():
    """The same fits and the same rows held out, for two neighbours; false alarms: one in a thousand for each arm."""
    X, labels, other = neighbours()
    search = PrivateGridSearch(MODEL, ZEROS_OR_ONES, search_share=0.9, held_out=0.9)
    plan = search.plan(10, 1)
    scores = [search._scores(plan, X, y, None, seeded_generator(2)) for y in (labels, other)]
    assert np.abs(scores[0] - scores[1]).tolist() == [1.0, 1.0]  # the row that differs is among those held out

    def bound(selection):
        rng, places = seeded_generator(1), np.ones(2, dtype=np.int64)
        runs = [[selection.choose(rng, -s, places, bounded_fractions(1))[0] for _ in range(1_500)] for s in scores]
        return epsilon_lower_bound(*np.array(runs[::-1], dtype=float), 0.0, confidence=0.999)

    epsilon = accounting.pure_epsilon_of(plan.selection.event, Relation.REPLACE)
    assert bound(plan.selection) <= epsilon
    assert bound(replace(plan.selection, multiplier=0.1 * plan.selection.multiplier)) > epsilon


@pytest.mark.parametrize("relation", ["replace", "zero_out"])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget.zcdp(0.05), Budget.pure(1.0)], ids=str)
def test_everything_that_is_fitted_and_chosen_is_paid_for(budget, relation):
    model = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd", relation=relation)
    plan = PrivateGridSearch(model, {"alpha": [1e-3, 1e-2, 1e-1]}, epsilon=budget).plan(2_000, 3)
    assert len(plan.trials) == len(plan.finals) == 3
    parts = [*(trial.event for trial in plan.trials), plan.selection.event, plan.finals[0].event]
    assert plan.event == accounting.compose(parts)
    assert accounting.fits(plan.event, budget, Relation(relation))
    generous = accounting.compose([plan.event, plan.selection.event])
    assert not accounting.fits(generous, budget, Relation(relation))  # hardly anything is left


def test_candidates_of_different_cost_are_refused_or_covered_by_the_costliest():
    model = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
    with pytest.raises(ValueError, match="settings of one solver"):
        PrivateGridSearch(model, {"solver": ["gd", "sgd"]}).plan(2_000, 3)
    plan = PrivateGridSearch(model, {"solver": ["gd", "greedy-cd"]}, epsilon=Budget.zcdp(0.1)).plan(2_000, 3)
    used = accounting.compose([*(trial.event for trial in plan.trials), plan.selection.event])
    for final in plan.finals:
        whole = accounting.compose([used, final.event])
        assert accounting.rho_of(whole, Relation.REPLACE) <= accounting.rho_of(plan.event, Relation.REPLACE)


def test_the_guarantee_names_the_public_inputs_of_all_candidates():
    """Every candidate is fitted, so the public inputs of those that lose count as well."""
    X, labels, _ = neighbours(200)
    grid = {"start": [None, PublicModel(np.array([1.0]))]}
    for seed in range(4):
        search = PrivateGridSearch(MODEL, grid, random_state=seed).fit(X, labels)
        assert search.guarantee_.public_inputs == ("the coefficients from which the fit started",)


def test_the_better_setting_wins_and_the_winner_carries_the_guarantee_of_the_whole(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (3_000, 2)), columns=["a", "b"])
    y = np.where(X["a"] > 0.0, "yes", "no")
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("clinic", epsilon=1.2, delta=1e-6)
    model = LogisticRegression(classes=["no", "yes"], bounds=(-1.0, 1.0))
    grid = {"alpha": [100.0, 1e-5]}
    search = PrivateGridSearch(model, grid, epsilon=1.0, delta=1e-6, ledger=ledger, dataset="clinic").fit(X, y)
    assert search.best_params_ == {"alpha": 1e-5}
    assert search.score(X, y) > 0.9
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()
    assert search.predict_proba(X).shape == (*search.decision_function(X).shape, 2)
    assert [entry.note for entry in ledger.entries("clinic")] == ["PrivateGridSearch"]
    assert ledger.spent("clinic") == pytest.approx(search.guarantee_.epsilon, rel=2e-3)
    assert search.best_estimator_.guarantee_ is search.guarantee_
    assert search.best_estimator_.random_state is None
    save_model(search.best_estimator_, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").guarantee_.event == search.guarantee_.event
    scaled = pipeline_guarantee(search, also=[PrivateScaler(bounds=(-1.0, 1.0)).fit(X)])
    assert scaled.epsilon > 1.2
    with pytest.raises(BudgetExceededError):
        clone(search).fit(X, y)


def test_regressors_weights_and_scikit_learns_own_tools():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (2_000, 2))
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), relation="zero_out")
    search = PrivateGridSearch(model, [{"alpha": [100.0]}, {"alpha": [1e-5]}], epsilon=2.0)
    search.fit(X, X[:, 0], sample_weight=np.linspace(0.5, 1.0, 2_000))
    assert search.best_index_ == 1
    assert search.weighted_
    assert is_regressor(search)
    assert not is_classifier(search)
    assert not hasattr(search, "predict_proba")
    with pytest.warns(PrivacyLeakWarning, match="cross_val_score computes exact scores"):
        assert cross_val_score(search.set_params(epsilon=8.0), X, X[:, 0], cv=2).min() > 0.5


def test_a_seed_repeats_the_run():
    X, labels, _ = neighbours(200)
    search = PrivateGridSearch(MODEL, ZEROS_OR_ONES, random_state=3)
    first, second = (clone(search).fit(X, labels) for _ in range(2))
    assert first.best_index_ == second.best_index_
    assert first.best_estimator_.coef_ == second.best_estimator_.coef_


@pytest.mark.parametrize(
    ("changes", "grid", "settings", "reason"),
    [
        ({"classes": None}, {}, {}, "needs classes to be declared"),
        ({"relation": "add_remove", "public_n": 10}, {}, {}, "who is held out"),
        ({"ledger": "sqlite://"}, {}, {}, "pass ledger= to the search"),
        ({}, {"epsilon": [1.0, 2.0]}, {}, "cannot vary 'epsilon'"),
        ({}, {"relation": ["replace", "zero_out"]}, {}, "cannot vary 'relation'"),
        ({}, {}, {"epsilon": math.inf}, "cannot keep the budget"),
        ({}, {}, {"epsilon": Budget.gdp(1.0)}, "cannot keep the budget"),
        ({}, {}, {"search_share": 1.0}, "search_share must lie between 0 and 1"),
        ({}, {}, {"held_out": 0.01}, "leaves no row"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(changes, grid, settings, reason):
    X, labels, _ = neighbours()
    with pytest.raises(ValueError, match=reason):
        PrivateGridSearch(clone(MODEL).set_params(**changes), grid, **settings).fit(X, labels)


def test_a_search_may_end_a_pipeline():
    X, y = np.random.default_rng(0).uniform(0.0, 1.0, (500, 1)), np.arange(500) % 2
    pipeline = make_pipeline(PrivateScaler(bounds=(0.0, 1.0)), PrivateGridSearch(MODEL, ZEROS_OR_ONES))
    check_pipeline(pipeline)
    parts = [step.guarantee_.event for step in pipeline.fit(X, y)]
    assert pipeline_guarantee(pipeline).event == accounting.compose(parts)


def test_only_own_estimators_with_declared_targets():
    with pytest.raises(ValueError, match="needs y_bounds to be declared"):
        PrivateGridSearch(Ridge(), {}).plan(100, 2)
    with pytest.raises(ValueError, match="must be one of discreet's; got GridSearchCV"):
        PrivateGridSearch(GridSearchCV(MODEL, {}), {}).plan(100, 2)
