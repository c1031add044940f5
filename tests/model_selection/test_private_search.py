"""The search with a random number of trials: what it costs, what it releases, and what it refuses."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score

from discreet import (
    Budget,
    BudgetExceededError,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PrivacyLeakWarning,
    Ridge,
    load_model,
    save_model,
)
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV
from discreet.model_selection.private_search import Split
from discreet.model_selection.search import RowScore
from discreet.preprocessing import pipeline_guarantee
from discreet.privacy import accounting
from discreet.privacy.mechanisms import RandomTrials
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")

MODEL = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
ALPHAS = {"alpha": [1e-4, 1e-2, 1.0]}


def table(rows=2_000, seed=0):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, 2))
    return X, (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["approximate", "pure"])
def test_the_plan_pays_for_the_best_of_all_trials_and_hardly_leaves_anything(delta, refit, relation):
    model = clone(MODEL).set_params(relation=relation, public_n=2_000 if relation == "add_remove" else None)
    search = PrivateSearchCV(model, ALPHAS, n_iter=20, refit=refit, delta=delta)
    plan = search.plan(2_000, 2)
    budget = Budget(1.0, delta)
    best = plan.trials.event([plan.score.event, *plan.trial_events])
    whole = accounting.compose([best, plan.final_events[0]]) if refit else best
    assert plan.event == whole
    assert accounting.fits(plan.event, budget, relation)
    more = accounting.compose([plan.event, accounting.pure_event(0.01)])
    assert not accounting.fits(more, budget, relation)
    assert plan.guarantee.epsilon == 1.0
    assert "20 expected" in str(plan)


def test_a_trial_of_twenty_has_far_less_noise_than_under_composition():
    """In units of mu, which the noise is the inverse of, at epsilon 1 and delta 1e-6."""
    whole = accounting.gaussian_mu(1.0, 1e-6)
    settings = {"alpha": list(np.geomspace(1e-5, 1.0, 20))}
    search = PrivateSearchCV(MODEL, settings, n_iter=20, delta=1e-6).plan(1_000, 2)
    grid = PrivateGridSearch(MODEL, settings, delta=1e-6).plan(1_000, 2)
    ours = accounting.mu_of(search.trial_events[0], "replace")
    theirs = accounting.mu_of(grid.trials[0].event, "replace")
    assert ours > 0.6 * whole
    assert ours > 4.0 * theirs


def test_one_booking_before_the_first_trial_and_a_winner_with_the_guarantee_of_the_whole(tmp_path):
    X, y = table(3_000)
    frame, labels = pd.DataFrame(X, columns=["a", "b"]), np.where(y, "yes", "no")
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("clinic", epsilon=1.2, delta=1e-6)
    model = LogisticRegression(classes=["no", "yes"], bounds=(-1.0, 1.0))
    search = PrivateSearchCV(
        model, {"alpha": [100.0, 1e-5]}, n_iter=8, delta=1e-6, ledger=ledger, dataset="clinic"
    ).fit(frame, labels)
    assert [entry.note for entry in ledger.entries("clinic")] == ["PrivateSearchCV"]
    assert ledger.spent("clinic") == pytest.approx(1.0, rel=2e-3)
    winner = search.best_estimator_
    assert winner.guarantee_ is search.guarantee_
    assert search.guarantee_.event == search.plan_.event
    assert "How many models the search tried" in " ".join(search.guarantee_.statement().split())
    assert (winner.random_state, list(winner.feature_names_in_)) == (None, ["a", "b"])
    save_model(winner, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").guarantee_.event == search.guarantee_.event
    assert pipeline_guarantee(search).epsilon == pytest.approx(1.0, rel=2e-3)
    with pytest.raises(BudgetExceededError):
        clone(search).fit(frame, labels)
    assert len(ledger.entries("clinic")) == 1


def test_only_the_best_trial_is_released(monkeypatch):
    X, y = table()
    made = []
    monkeypatch.setattr(RandomTrials, "draw", lambda self, rng: 5)
    one_trial = PrivateSearchCV._trial
    monkeypatch.setattr(PrivateSearchCV, "_trial", lambda self, *a: made.append(one_trial(self, *a)) or made[-1])
    search = PrivateSearchCV(MODEL, {"alpha": loguniform(1e-4, 1e2)}, random_state=1).fit(X, y)
    assert len(made) == 5
    best = max(made, key=lambda trial: trial.score)
    assert search.best_estimator_ is best.model
    assert (search.best_params_, search.best_score_) == (best.settings, best.score)
    assert [len(values) for values in search.cv_results_.values()] == [1, 1, 1, 1]
    losers = [trial.settings["alpha"] for trial in made if trial is not best]
    shown = repr(vars(search)) + repr(search.cv_results_)
    assert not any(repr(float(alpha)) in shown for alpha in losers)
    assert len({trial.settings["alpha"] for trial in made}) == 5  # each trial draws anew


def test_trials_warn_of_the_winner_alone(monkeypatch):
    """As many warnings as trials would tell their number."""
    X, y = table(300)
    monkeypatch.setattr(RandomTrials, "draw", lambda self, rng: 7)
    model = clone(MODEL).set_params(solver="newton", bounds=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateSearchCV(model, ALPHAS, epsilon=0.1, held_out=0.4).fit(X, y)
    messages = [str(warning.message) for warning in caught]
    assert messages
    assert len(messages) == len(set(messages))


def test_the_search_finds_the_better_settings_and_repeats_with_a_seed():
    X, y = table()
    search = PrivateSearchCV(MODEL, {"alpha": [1e-4, 1e3]}, n_iter=20, random_state=3)
    first, second = (clone(search).fit(X, y) for _ in range(2))
    assert first.best_params_ == second.best_params_ == {"alpha": 1e-4}
    assert (first.best_estimator_.coef_ == second.best_estimator_.coef_).all()
    assert first.score(X, y) > 0.9
    assert -0.25 < first.best_score_ < 0.1
    assert (first.predict(X) == first.best_estimator_.predict(X)).all()
    assert first.predict_proba(X).shape == first.predict_log_proba(X).shape == (2_000, 2)
    assert first.n_features_in_ == 2
    assert pickle.loads(pickle.dumps(first)).best_params_ == first.best_params_
    assert is_classifier(search)
    assert not is_regressor(search)


@pytest.mark.parametrize("refit", [False, True])
def test_add_and_remove_weights_and_regressors(refit):
    X, _ = table()
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), relation="add_remove", public_n=1_900)
    search = PrivateSearchCV(model, {"alpha": [1e-4]}, n_iter=3, refit=refit, epsilon=2.0)
    search.fit(X, X[:, 0], sample_weight=np.linspace(0.5, 1.0, 2_000))
    assert search.weighted_
    assert search.best_estimator_.public_n == 1_900
    assert search.guarantee_.release.rows == 1_900
    with pytest.warns(PrivacyLeakWarning, match="cross_val_score computes exact scores"):
        assert cross_val_score(clone(search), X, X[:, 0], cv=2).min() > 0.5
    assert not hasattr(search, "predict_proba")


def test_a_row_more_moves_no_other_row_under_add_and_remove():
    model = clone(MODEL).set_params(relation="add_remove", public_n=50)
    plan = PrivateSearchCV(model, ALPHAS).plan(50, 2)
    one, two = (Split.draw(plan, rows, Relation.ADD_REMOVE, seeded_generator(4)) for rows in (50, 51))
    assert set(one.out) == set(two.out) - {50}
    assert set(one.fit) == set(two.fit) - {50}
    fixed = Split.draw(plan, 50, Relation.REPLACE, seeded_generator(4))
    assert (fixed.out.size, fixed.fit.size) == (10, 40)


@pytest.mark.parametrize(
    "scoring", ["neg_brier_score", "accuracy", "neg_mean_absolute_error", "neg_mean_squared_error"]
)
def test_a_row_moves_every_score_by_at_most_one(scoring):
    class Wild:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return X[:, 0]

        def predict_proba(self, X):
            return np.column_stack([X[:, 0], 1.0 - X[:, 0]])

    rng = np.random.default_rng(0)
    X, y = rng.normal(0.0, 1e3, (200, 1)), rng.normal(0.0, 1e3, 200)
    X[:3, 0] = np.nan, np.inf, -np.inf
    score = RowScore(scoring, -1.0, 3.0)
    labels = (y > 0.0).astype(int)
    with np.errstate(invalid="ignore"):
        rows = score.rows(Wild(), X, labels if scoring in ("neg_brier_score", "accuracy") else y)
    assert ((rows >= 0.0) & (rows <= 1.0)).all()
    assert rows[0] == 0.0
    right = RowScore(scoring, -1.0, 3.0).rows(Wild(), np.array([[1.0]]), np.array([0 if "brier" in scoring else 1.0]))
    assert right.tolist() == [1.0]
    assert score.in_units(1.0) == (1.0 if scoring == "accuracy" else 0.0)


def test_scores_by_default():
    assert RowScore.of(MODEL, None).scoring == "neg_brier_score"
    assert RowScore.of(LinearSVC(classes=[0, 1]), None).scoring == "accuracy"
    assert RowScore.of(Ridge(y_bounds=(0.0, 5.0)), None) == RowScore("neg_mean_absolute_error", 0.0, 5.0)


@pytest.mark.parametrize(
    ("changes", "options", "settings", "reason"),
    [
        ({"classes": None}, {}, {}, "needs classes to be declared"),
        ({"ledger": "sqlite://"}, {}, {}, "pass ledger= to the search"),
        ({}, {"epsilon": [1.0, 2.0]}, {}, "param_distributions cannot vary 'epsilon'"),
        ({}, {}, {"epsilon": math.inf}, "cannot keep the budget"),
        ({}, {}, {"epsilon": Budget.gdp(1.0)}, "no useful cost in Gaussian"),
        ({}, {}, {"epsilon": Budget.zcdp(1.0)}, "no useful cost in Gaussian or zero-concentrated"),
        ({}, {}, {"held_out": 0.01}, "leaves no row"),
        ({}, {}, {"n_iter": 1}, "n_iter must be a whole number of at least 2"),
        ({}, {}, {"scoring": "f1"}, "scoring must be one of neg_brier_score, accuracy"),
        ({}, {}, {"trials_law": "poisson"}, "one of geometric, logarithmic"),
        ({}, {}, {"refit": True, "search_share": 1.0}, "search_share must lie between 0 and 1"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(changes, options, settings, reason):
    X, y = table(10)
    with pytest.raises(ValueError, match=reason):
        PrivateSearchCV(clone(MODEL).set_params(**changes), options, **settings).fit(X, y)


def test_candidates_of_different_solvers_and_refused_ones():
    plan = PrivateSearchCV(MODEL, {"solver": ["gd", "sgd"]}, n_iter=5, delta=1e-6).plan(2_000, 2)
    assert len({repr(event) for event in plan.trial_events}) == 3
    with pytest.raises(ValueError, match="must be one of discreet's; got GridSearchCV"):
        PrivateSearchCV(GridSearchCV(MODEL, {}), {}).plan(100, 2)
