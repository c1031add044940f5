"""What a search books and states holds for every candidate, and what it prints does not tell the number of trials."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone

from discreet import Budget, LogisticRegression, PublicModel, PublicTable
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV
from discreet.model_selection.private_search import Split
from discreet.model_selection.search import RowScore
from discreet.privacy import accounting
from discreet.privacy.mechanisms import RandomTrials
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")

MODEL = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
ALPHAS = {"alpha": [1e-4, 1e-2, 1.0]}


def table(rows):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (rows, 2))
    return X, (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize(("search", "epsilon"), [(PrivateSearchCV, 1.0), (PrivateGridSearch, 2.0)])
def test_a_pure_plan_covers_the_last_fit_of_every_candidate(search, epsilon):
    """Laplace noise and randomised response of one epsilon have different profiles: neither may stand for both."""
    model = clone(MODEL).set_params(alpha=1.0)
    kept = {"refit": True, "n_iter": 5} if search is PrivateSearchCV else {}
    plan = search(model, {"solver": ["cd", "objective-perturbation"]}, epsilon=epsilon, delta=0.0, **kept).plan(600, 3)
    if search is PrivateSearchCV:
        before, last = [plan.trials.event(plan.trial_events)], plan.final_events
    else:
        before = [*(trial.event for trial in plan.trials), plan.selection.event]
        last = [final.event for final in plan.finals]
    assert last[0] != last[1]
    for event in last:
        won = accounting.compose([*before, event])
        for delta in (1e-2, 1e-5):
            booked = accounting.epsilon_of(plan.event, delta, "replace")
            assert accounting.epsilon_of(won, delta, "replace") <= booked * (1.0 + 1e-3)
    assert accounting.fits(plan.event, Budget.pure(epsilon), "replace")


def test_a_pure_trial_that_is_not_listed_is_booked_as_any_release_of_its_epsilon():
    """Objective perturbation has the profile of randomised response, which Laplace noise does not cover."""
    model = clone(MODEL).set_params(solver="objective-perturbation")
    search = PrivateSearchCV(model, {"alpha": loguniform(1e-2, 1.0)}, delta=0.0).fit(*table(600))
    plan, fitted = search.plan_, search.best_estimator_.plan_.event
    won = plan.trials.event([fitted])
    for delta in (0.3, 1e-2, 1e-6):
        booked = accounting.epsilon_of(plan.event, delta, "replace")
        assert accounting.epsilon_of(won, delta, "replace") <= booked * (1.0 + 1e-3)


@pytest.mark.parametrize("trials", [1, 4])
def test_progress_and_warnings_do_not_tell_the_number_of_trials(monkeypatch, capsys, trials):
    monkeypatch.setattr(RandomTrials, "draw", lambda self, rng: trials)
    scored = RowScore.total

    def warn(self, *arguments):
        warnings.warn("of a score", RuntimeWarning, stacklevel=1)
        return scored(self, *arguments)

    monkeypatch.setattr(RowScore, "total", warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(MODEL).set_params(verbose=1)
        search = PrivateSearchCV(model, ALPHAS, random_state=1).fit(*table(300))
    assert [str(warning.message) for warning in caught].count("of a score") == 0
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""
    assert search.best_estimator_.verbose == 1


@pytest.mark.parametrize("alpha", [[1e-2], loguniform(1e-4, 1.0)], ids=["listed", "drawn"])
def test_the_guarantee_names_the_public_inputs_of_all_candidates(monkeypatch, alpha):
    """The winner may be one that uses none of them: the others were fitted with them, or might have been."""
    monkeypatch.setattr(RandomTrials, "draw", lambda self, rng: 1)
    X, y = table(600)
    model = clone(MODEL).set_params(public_table=PublicTable(X[:100], y[:100]))
    starts = {"start": [None, PublicModel(np.array([1.0, 0.0]))], "alpha": alpha}
    search = PrivateSearchCV(model, starts, n_iter=3)
    for seed in range(2):
        promise = clone(search).set_params(random_state=seed).fit(X, y).guarantee_
        assert [what.split(",")[0] for what in sorted(promise.public_inputs)] == [
            "a second table",
            "the coefficients from which the fit started",
        ]
        assert promise.statement().count("taken as public") == 2
    with pytest.raises(ValueError, match="start must be a list"):
        PrivateSearchCV(model, {"start": loguniform(1e-4, 1.0)}).plan(600, 2)


def test_an_empty_held_out_part_scores_zero(monkeypatch):
    """Under add_remove the number of rows held out is random, and whether it is 0 must not show as an error."""
    X, y = table(30)
    model = clone(MODEL).set_params(relation="add_remove", public_n=500)
    draw = Split.draw(PrivateSearchCV(model, ALPHAS).plan(500, 2), 30, Relation.ADD_REMOVE, seeded_generator(0))
    everything = Split(np.arange(30), draw.out[:0])
    monkeypatch.setattr(Split, "draw", lambda *arguments: everything)
    search = PrivateSearchCV(model, ALPHAS, n_iter=2, delta=1e-6).fit(X, y)
    assert np.isfinite(search.best_score_)
