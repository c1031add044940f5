"""Private cross-validation: folds ignore the rows, everything is paid for, intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from discreet import Budget, BudgetExceededError, Ledger, LogisticRegression, Ridge
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV, cross_val_score_private
from discreet.model_selection.private_scores import fold_positions, plan_scores
from discreet.model_selection.search import TableShape
from discreet.privacy import accounting
from discreet.privacy.random.generator import generator_from
from discreet.privacy.relation import Relation

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")
SETTINGS = {"bounds": (-1.0, 1.0), "classes": [0, 1], "solver": "gd"}


def table(rows=3_000, seed=0):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, 2))
    return X, (X[:, 0] > 0.2).astype(int)


def test_scores_are_about_the_models_and_cost_what_is_stated():
    X, y = table()
    found = cross_val_score_private(LogisticRegression(**SETTINGS), X, y, cv=4, epsilon=2.0, delta=1e-6)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (2.0, 1e-6)
    assert found.scores.shape == (4,)
    true = np.mean([model.score(X, y) for model in found.estimators])
    assert found.mean.low - 0.02 < true < found.mean.high + 0.02
    assert found.mean.value == pytest.approx(found.scores.mean(), abs=0.02)
    assert "epsilon 2, delta 1e-06, relation replace" in str(found)
    Xr = cross_val_score_private(Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)), X, X[:, 0], cv=2, epsilon=2.0)
    assert Xr.scoring == "neg_mean_absolute_error"
    assert all(-2.0 <= fold.low <= fold.value <= fold.high <= 0.0 for fold in Xr.folds)


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget.pure(1.0), Budget.zcdp(0.1), Budget.gdp(0.5)], ids=str)
@pytest.mark.parametrize("rows", [3_000, 3_001])
def test_the_folds_together_keep_the_budget(budget, rows):
    """For each position the fits that see it and one score; the stated event is their composition or more."""
    model = LogisticRegression(**SETTINGS)
    sizes = [part.size for part in np.array_split(np.arange(rows), 3)]
    plan = plan_scores(model, [TableShape(rows, size, 2, 2, False) for size in sizes], budget, 0.1)
    assert accounting.fits(plan.event, budget, Relation.REPLACE)
    delta = 0.0 if budget.kind == "pure" else 1e-6
    stated = accounting.epsilon_of(plan.event, delta, Relation.REPLACE)
    for left_out in range(3):
        seen = [fit.event for place, fit in enumerate(plan.fits) if place != left_out]
        paid = accounting.epsilon_of(accounting.compose([*seen, plan.score.event]), delta, Relation.REPLACE)
        assert paid <= stated * (1.0 + 1e-9)
    fits = [fit.event for fit in plan.fits]
    fewer = accounting.compose([fits[0], plan.score.event])  # one fit less than a row takes part in
    assert accounting.epsilon_of(fewer, delta, Relation.REPLACE) < 0.9 * stated


def test_folds_are_sets_of_positions_that_no_row_decides():
    folds = fold_positions(103, 4, generator_from(5))
    assert sorted(np.concatenate(folds).tolist()) == list(range(103))
    assert [fold.size for fold in folds] == [26, 26, 26, 25]
    again = fold_positions(103, 4, generator_from(5))
    assert all((one == two).all() for one, two in zip(folds, again, strict=True))


def test_the_ledger_is_charged_once_and_before_any_fit(tmp_path, monkeypatch):
    X, y = table()
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=1.0, delta=1e-6)
    settings = {"cv": 2, "delta": 1e-6, "ledger": ledger, "dataset": "clinic"}
    cross_val_score_private(LogisticRegression(**SETTINGS), X, y, epsilon=0.7, **settings)
    assert ledger.spent("clinic") == pytest.approx(0.7, abs=0.01)
    assert len(ledger.entries("clinic")) == 1
    monkeypatch.setattr(LogisticRegression, "fit", lambda *_: pytest.fail("a model was fitted"))
    with pytest.raises(BudgetExceededError):
        cross_val_score_private(LogisticRegression(**SETTINGS), X, y, epsilon=0.9, **settings)


def test_what_allows_no_statement_is_refused():
    X, y = table(100)
    for model, settings, message in [
        (LogisticRegression(), {}, "cross_val_score_private needs classes to be declared"),
        (LogisticRegression(classes=[0, 1], relation="add_remove", public_n=100), {}, "use relation='replace'"),
        (LogisticRegression(classes=[0, 1], ledger="x.db"), {}, "pass ledger= to cross_val_score_private"),
        (LogisticRegression(classes=[0, 1]), {"cv": 1}, "cv must be a whole number"),
        (LogisticRegression(classes=[0, 1]), {"cv": 101}, "cv=101 folds need at least as many rows"),
        (LogisticRegression(classes=[0, 1]), {"scoring": "roc_auc"}, "scoring must be one of"),
        (LogisticRegression(classes=[0, 1]), {"score_share": 1.0}, "score_share must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            cross_val_score_private(model, X, y, **settings)


def test_leaks_of_the_models_and_of_a_seed_are_named():
    X, y = table()
    found = cross_val_score_private(LogisticRegression(**SETTINGS), X, y, cv=2, random_state=0)
    assert any("seed" in leak for leak in found.guarantee.leaks)
    assert math.isfinite(found.mean.value)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_a_column_of_labels_is_a_list_of_labels():
    X, y = table()
    one, two = (
        cross_val_score_private(LogisticRegression(**SETTINGS), X, labels, cv=2, random_state=0)
        for labels in (y, y[:, None])
    )
    assert one.scores.tolist() == two.scores.tolist()


def test_two_scores_under_one_seed_have_different_noise():
    """The same noise in both would be gone from their difference."""
    X, y = table()
    one, two = (
        cross_val_score_private(LogisticRegression(**SETTINGS), X, y, cv=2, random_state=0, scoring=scoring)
        for scoring in ("accuracy", "neg_brier_score")
    )
    assert (one.estimators[0].coef_ != two.estimators[0].coef_).all()


def test_sums_of_scores_are_exact():
    """A row moves them by at most 1, which the rounding of a sum would exceed."""
    from fractions import Fraction

    from discreet.model_selection.search import RowScore

    class Tenths:
        def predict(self, X):
            return X[:, 0]

    score = RowScore("neg_mean_absolute_error")
    X = np.full((10_001, 1), 0.1)
    total = score.total(Tenths(), X, np.zeros(10_001), np.ones(10_001))
    alone = score.total(Tenths(), X[:1], np.zeros(1), np.ones(1))
    assert Fraction(total) == 10_001 * Fraction(alone)


def test_numbers_as_texts_are_no_error_after_the_fits_were_paid_for():
    X, _ = table()
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0))
    one, two = (cross_val_score_private(model, X, y, cv=2, random_state=0) for y in (X[:, 0], X[:, 0].astype(str)))
    assert one.scores.tolist() == two.scores.tolist()


def test_booleans_and_bounds_by_name_are_planned_as_they_are_fitted():
    """A plan that did not know them would be paid for, and the fits would then cost something else."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.random(3000) > 0.5, "b": draw.random(3000) > 0.5, "c": draw.random(3000)})
    labels = frame["a"].astype(int)
    for X, bounds in ((frame[["a", "b"]], None), (frame[["a", "b"]].to_numpy(), None), (frame, {"c": (0.0, None)})):
        model, tried = LogisticRegression(classes=[0, 1], bounds=bounds), {"alpha": [1e-3, 1e-2]}
        assert cross_val_score_private(model, X, labels, epsilon=5.0, cv=2).guarantee.epsilon <= 5.0
        for search in (
            PrivateGridSearch(model, tried, epsilon=5.0),
            PrivateSearchCV(model, tried, epsilon=5.0, n_iter=2),
        ):
            assert search.fit(X, labels).guarantee_.epsilon <= 5.0
    planned = PrivateGridSearch(model, tried).plan(3000, 3, feature_names=["a", "b", "c"]).finals[0].public
    np.testing.assert_array_equal(planned.low, [-np.inf, -np.inf, 0.0])
