"""`fit(X, y, groups=ids)`: the promise for whole persons, from the estimator to statement, file and ledger."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as ExactLogistic
from sklearn.linear_model import Ridge as ExactRidge
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline

from discreet import Ledger, LogisticRegression, Problem, Ridge, solve
from discreet._common.exceptions import IncompatibleSolverError, InsecureRandomnessWarning, NotPrivateWarning
from discreet.estimators.model_file import load_model, save_model
from discreet.model_selection import PrivateGridSearch, folds_guarantee
from discreet.preprocessing import PrivateScaler, pipeline_guarantee
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation
from discreet.problem.losses import Squared

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind.__module__}.{kind.__name__}")
    for kind in (InsecureRandomnessWarning, NotPrivateWarning)
]
PERSONS = 600


@pytest.fixture(scope="module")
def panel():
    """Rows in a random order; a person's rows are alike, and their targets too."""
    rng = np.random.default_rng(0)
    persons = rng.permutation(np.repeat(np.arange(PERSONS), rng.integers(1, 9, PERSONS)))
    own = rng.normal(size=(PERSONS, 3))
    X = 0.5 * own[persons] + 0.5 * rng.uniform(-1.0, 1.0, (persons.size, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=PERSONS)[persons] + 0.3 * rng.normal(size=persons.size)
    return X, y, np.array([f"person {i}" for i in persons])


def one_over_count(ids):
    _, numbers, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return 1.0 / counts[numbers]


def test_without_noise_it_is_the_optimum_in_which_every_person_counts_once(panel):
    X, y, ids = panel
    weight = one_over_count(ids)
    found = Ridge(epsilon=np.inf, alpha=1e-3).fit(X, y, groups=ids)
    exact = ExactRidge(alpha=1e-3 * weight.sum()).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=2e-4)
    labels = (y > 0.0).astype(int)
    found = LogisticRegression(epsilon=np.inf, alpha=1e-3, classes=[0, 1]).fit(X, labels, groups=ids)
    exact = ExactLogistic(C=1.0 / (1e-3 * weight.sum()), tol=1e-8).fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=2e-3)


def test_all_rows_are_better_than_one_and_far_better_than_a_divided_epsilon(panel):
    """Mean over seeds at epsilon 1; the bar of group privacy is epsilon over the largest number of rows."""
    X, y, ids = panel

    def error(**settings):
        models = [
            Ridge(bounds=(-3.0, 3.0), y_bounds=(-8.0, 8.0), random_state=seed, **settings.get("model", {})).fit(
                X, y, **settings.get("fit", {})
            )
            for seed in range(8)
        ]
        return np.mean([np.linalg.norm(model.coef_ - [1.0, -2.0, 0.5]) for model in models])

    whole = error(model={"epsilon": 1.0}, fit={"groups": ids})
    one = error(model={"epsilon": 1.0, "rows_per_person": 1}, fit={"groups": ids})
    divided = error(model={"epsilon": 1.0 / 8.0})
    assert whole < one
    assert whole < 0.6 * divided


@pytest.mark.parametrize("relation", list(Relation))
def test_the_promise_names_persons_everywhere(panel, relation, tmp_path):
    X, y, ids = panel
    model = Ridge(relation=relation, public_n=PERSONS if relation is Relation.ADD_REMOVE else None, random_state=0)
    model.fit(X, y, groups=ids)
    promise = model.guarantee_
    assert promise.unit == "person"
    assert promise.delta == 1.0 / PERSONS**2
    text = promise.statement()
    assert "all of their rows" in text
    assert "each row is protected on its own" not in text
    assert f"{PERSONS} persons" in str(model.plan_)
    assert f"{len(y):,}" not in text + str(model.plan_) + model.summary().text(9)  # the number of rows is private
    assert f"{PERSONS} persons" in model.summary().text(9)
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.guarantee_.statement() == text
    assert again.rows_per_person is None
    content = promise.to_dict()
    del content["unit"]  # a file of an earlier version
    assert Guarantee.from_dict(json.loads(json.dumps(content))).unit == "row"
    with pytest.raises(ValueError, match="unit of the guarantee must be one of"):
        Guarantee.from_dict(content | {"unit": "household"})


def test_a_plan_from_a_file_is_that_of_persons(panel, tmp_path):
    from discreet.estimators.stored_plan import plan_of

    X, y, ids = panel
    model = Ridge(rows_per_person=3, random_state=0).fit(X, y, groups=ids)
    save_model(model, tmp_path / "model.json")
    assert plan_of(load_model(tmp_path / "model.json")).digest == model.plan_.digest


def test_what_is_planned_does_not_depend_on_how_many_rows_persons_have(panel):
    X, y, ids = panel
    first = np.sort(np.unique(ids, return_index=True)[1])
    plans = [Ridge(random_state=0).fit(X[rows], y[rows], groups=ids[rows]).plan_ for rows in (slice(None), first)]
    assert plans[0].digest == plans[1].digest
    assert plans[0].digest == Ridge().plan(PERSONS, 3, persons=True).digest
    assert plans[0].digest != Ridge().plan(PERSONS, 3).digest
    assert Ridge(rows_per_person=2).plan(PERSONS, 3).rows_per_person == 2


def test_a_plan_says_how_many_rows_are_used():
    told = {solver: str(Ridge(solver=solver).plan(PERSONS, 3, persons=True)) for solver in ("newton", "cd")}
    assert "up to 1,024, drawn at random" in told["newton"]
    assert "one, drawn at random (newton, adaptive and gd use more)" in told["cd"]
    with pytest.raises(IncompatibleSolverError, match=r"one row of each person.*use one of 'gd', 'newton'"):
        Ridge(solver="cd", rows_per_person=2).plan(PERSONS, 3)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, 1025, "2"])
def test_bad_numbers_of_rows_are_refused(panel, most):
    X, y, ids = panel
    with pytest.raises(ValueError, match="whole number from 1 to 1024"):
        Ridge(rows_per_person=most).fit(X, y, groups=ids)


def test_what_knows_rows_alone_refuses_persons(panel):
    X, y, ids = panel
    bounds = {"bounds": (-3.0, 3.0), "y_bounds": (-8.0, 8.0)}
    with pytest.raises(ValueError, match="is for rows with ids"):
        Ridge(rows_per_person=2).fit(X, y)
    with pytest.raises(ValueError, match=r"partial_fit.*single rows"):
        Ridge(public_n=9_999, **bounds).partial_fit(X, y, groups=ids)
    search = PrivateGridSearch(Ridge(**bounds), {"alpha": [1e-3, 1e-2]}, epsilon=1.0)
    with pytest.raises(ValueError, match="private search protects single rows"):
        search.fit(X, y, groups=ids)
    with pytest.raises(TypeError, match="unexpected argument 'groups'"):
        PrivateScaler(bounds=(-3.0, 3.0)).fit(X, groups=ids)
    pipeline = make_pipeline(PrivateScaler(bounds=(-3.0, 3.0), random_state=0), Ridge(random_state=0))
    pipeline.fit(X, y, ridge__groups=ids)
    with pytest.raises(ValueError, match="some steps promise for persons and others for rows"):
        pipeline_guarantee(pipeline)
    models = [Ridge(random_state=seed).fit(X, y, groups=ids) for seed in range(2)]
    with pytest.raises(ValueError, match="the folds divide rows"):
        folds_guarantee(models, KFold(2))


def test_a_model_alone_in_a_pipeline_keeps_the_promise_for_persons(panel):
    X, y, ids = panel
    pipeline = make_pipeline(Ridge(random_state=0)).fit(X, y, ridge__groups=ids)
    assert pipeline_guarantee(pipeline).unit == "person"


def test_scikit_learn_routes_groups(panel):
    import sklearn

    X, y, ids = panel
    with sklearn.config_context(enable_metadata_routing=True):
        model = Ridge(random_state=0).set_fit_request(groups=True)
        with pytest.warns(UserWarning, match="cross_validate computes exact scores|seed"):
            done = cross_validate(model, X, y, cv=KFold(2), params={"groups": ids}, return_estimator=True)
    assert {fitted.guarantee_.unit for fitted in done["estimator"]} == {"person"}
    assert Ridge(random_state=0).fit(X, y).guarantee_.unit == "row"


def test_clones_pickles_and_frames(panel):
    X, y, ids = panel
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = Ridge(rows_per_person=4, random_state=0)
    fitted = clone(model).fit(frame, y, groups=pd.Series(ids, index=np.arange(len(ids))[::-1]))
    np.testing.assert_array_equal(fitted.coef_, clone(model).fit(X, y, groups=list(ids)).coef_)
    assert pickle.loads(pickle.dumps(fitted)).guarantee_.unit == "person"
    shuffled = np.random.default_rng(1).permutation(len(y))
    moved = clone(model).fit(X[shuffled], y[shuffled], groups=ids[shuffled])
    assert np.linalg.norm(moved.coef_ - fitted.coef_) < 1.0


def test_solve_takes_groups(panel):
    X, y, ids = panel
    found = solve(Problem(Squared()), X, y, groups=ids, rows_per_person=2, random_state=0)
    assert found.guarantee.unit == "person"
    assert found.plan.rows_per_person == 2


def test_sample_weights_and_groups_go_together(panel):
    X, y, ids = panel
    weight = np.random.default_rng(0).uniform(0.2, 1.0, len(y))
    found = Ridge(epsilon=np.inf, alpha=1e-3).fit(X, y, groups=ids, sample_weight=weight)
    share = weight * one_over_count(ids)
    exact = ExactRidge(alpha=1e-3 * PERSONS).fit(X, y, sample_weight=share)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=2e-3)


def test_a_ledger_keeps_persons_and_rows_apart(panel, tmp_path):
    X, y, ids = panel
    ledger = Ledger(tmp_path / "budget.db", allow_seeded=True)
    ledger.open("persons", epsilon=3.0, delta=1e-5, unit="person")
    ledger.open("rows", epsilon=3.0, delta=1e-5)
    model = Ridge(epsilon=0.5, bounds=(-3.0, 3.0), y_bounds=(-8.0, 8.0), ledger=ledger, random_state=0)
    with pytest.raises(ValueError, match=r"kept for persons.*groups=ids"):
        clone(model).set_params(dataset="persons").fit(X, y)
    with pytest.raises(ValueError, match=r"kept for rows.*unit=\"person\""):
        clone(model).set_params(dataset="rows").fit(X, y, groups=ids)
    assert ledger.spent("persons") == ledger.spent("rows") == 0.0
    fitted = clone(model).set_params(dataset="persons").fit(X, y, groups=ids)
    assert ledger.fits("persons", fitted.plan_.event)
    assert 0.0 < ledger.spent("persons") <= 0.5
    assert [entry.unit for entry in ledger.entries("persons")] == ["person"]
    again = Ledger(tmp_path / "budget.db")
    assert again.allowance("persons").unit == "person"
    assert again.verify() == []
    with pytest.raises(ValueError, match="a budget never changes"):
        again.open("persons", epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match="unit must be"):
        again.open("other", epsilon=3.0, delta=1e-5, unit="household")
    with pytest.raises(ValueError, match="unit='person'"):
        Ridge(ledger=ledger, dataset="nobody", random_state=0).fit(X, y, groups=ids)
