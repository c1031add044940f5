"""Fits with invalid_rows="neutral": bit for bit those with a null row in the place of one that cannot be read."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from discreet import LinearSVC, LogisticRegression, PoissonRegressor, Ridge, load_model, save_model, solve
from discreet.data import invalid_rows, loading
from discreet.data.people import gather_persons
from discreet.metrics import evaluate
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV, cross_val_score_private
from discreet.preprocessing import (
    DeclaredImputer,
    PrivateBounds,
    PrivateFrequentCategories,
    PrivateImputer,
    PrivateQuantiles,
    PrivateScaler,
    pipeline_guarantee,
    private_means,
    private_smoothness,
)
from discreet.privacy.random.generator import secure_generator
from discreet.problem import L2, Logistic, Problem

ROWS, AT = 1_200, 77
pytestmark = pytest.mark.filterwarnings(
    "ignore::discreet._common.exceptions.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning"
)


def table(null=False):
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (ROWS, 3))
    if null:
        X[AT] = 0.0
    return X, (X[:, 0] + 0.2 * rng.normal(size=ROWS) > 0.0).astype(int)


WEIGHT = (np.arange(ROWS) != AT).astype(float)


def hostile(name):
    """A frame, its labels and weights, of which one row cannot be read."""
    X, y = table()
    frame, labels, weight = pd.DataFrame(X, columns=list("abc")), y.tolist(), np.ones(ROWS)
    if name in ("text", "empty text"):
        frame["b"] = frame["b"].astype(object)
    spoilt = {"NaN": np.nan, "infinity": -np.inf, "text": "HIV positive", "empty text": ""}
    if name in spoilt:
        frame.loc[AT, "b"] = spoilt[name]
    elif name == "label":
        labels[AT] = "maybe"
    else:
        weight[AT] = np.nan
    return frame, labels, weight


NAMES = ["NaN", "infinity", "text", "empty text", "label", "weight"]


def told(run):
    """What a run returns, and every warning that it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
    return found, [(each.category, str(each.message)) for each in caught]


def same(first, second):
    return first.coef_.tobytes() == second.coef_.tobytes() and np.array_equal(first.intercept_, second.intercept_)


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
@pytest.mark.parametrize("solver", ["auto", "gd", "sgd", "cd", "ftrl", "bolt-on", "output-perturbation"])
def test_a_fit_is_that_with_a_null_row_and_as_silent(solver, relation):
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], solver=solver, relation=relation, random_state=1)
    model.set_params(public_n=ROWS if relation == "add_remove" else None)
    X, y = table(null=True)
    frame = pd.DataFrame(X, columns=list("abc"))
    wanted, said = told(lambda: clone(model).fit(frame, y, sample_weight=WEIGHT))
    for name in NAMES:
        rows, labels, weight = hostile(name)
        neutral = clone(model).set_params(invalid_rows="neutral")
        found, heard = told(lambda: neutral.fit(rows, labels, sample_weight=weight))  # noqa: B023 - called at once
        assert same(found, wanted), name
        assert found.plan_.digest == wanted.plan_.digest
        assert heard == said
        with pytest.raises(ValueError, match=r"NaN|infinity|text|labels|\[0, 1\]"):
            clone(model).fit(rows, labels, sample_weight=weight)


def test_without_such_a_row_the_same_code_runs_and_the_table_may_be_anything():
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=1)
    X, y = table()
    wanted = clone(model).fit(X, y, sample_weight=np.ones(ROWS))
    for given in (X, pd.DataFrame(X), X.astype(object), X.astype(str), np.asfortranarray(X)):
        found = clone(model).set_params(invalid_rows="neutral").fit(given, y.astype(object))
        assert same(found, wanted)
        assert found.weighted_
    stored = clone(model).set_params(invalid_rows="neutral").fit(sp.csc_array(X), y)
    assert same(stored, clone(model).fit(sp.csc_array(X), y, sample_weight=np.ones(ROWS)))


@pytest.mark.parametrize("kind", [Ridge, PoissonRegressor, LinearSVC])
def test_so_it_is_for_targets_that_are_numbers_and_texts(kind):
    X, y = table(null=True)
    classes = {"classes": ["0", "1"]} if kind is LinearSVC else {"y_bounds": (0.0, 1.0)} if kind is Ridge else {}
    model = kind(bounds=(-1.0, 1.0), random_state=1, **classes)
    target = y.astype(str) if kind is LinearSVC else y.astype(float)
    wanted = clone(model).fit(X, np.where(WEIGHT > 0, target, target.dtype.type(0)), sample_weight=WEIGHT)
    for bad in (None, np.inf, "HIV", np.nan):
        spoilt = list(target)
        spoilt[AT] = bad
        assert same(clone(model).set_params(invalid_rows="neutral").fit(table()[0], spoilt), wanted)


def test_so_it_is_for_several_classes_with_weights():
    X, y = table(null=True)
    labels = np.array(["a", "b", "c"])[y + (X[:, 1] > 0.5)]
    weights = {"b": 5.0, "c": 0.5}
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=["a", "b", "c"], class_weight=weights, random_state=1)
    wanted = clone(model).fit(X, labels, sample_weight=WEIGHT)
    for label in ("b", "d", None, 1):
        rows, spoilt = table()[0], labels.astype(object)
        rows[AT, 2], spoilt[AT] = (np.nan if label == "b" else 0.5), label
        assert same(clone(model).set_params(invalid_rows="neutral").fit(rows, spoilt), wanted)


def test_solve_takes_rows_alike():
    (X, y), (null, _) = table(), table(null=True)
    problem, coded = Problem(Logistic(), L2(1e-3)), np.where(y == 1, 1.0, -1.0)
    wanted = solve(
        problem, null, np.where(WEIGHT > 0, coded, -1.0), sample_weight=WEIGHT, bounds=(-1, 1), random_state=0
    )
    for rows, label in (
        (np.where(WEIGHT[:, None] > 0, X, np.nan), 1.0),
        (X, 3.0),
        (pd.DataFrame(X, columns=list("abc")), "x"),
    ):
        labels = coded.astype(object)
        labels[AT] = label
        found = solve(problem, rows, labels, bounds=(-1, 1), random_state=0, invalid_rows="neutral")
        assert np.array_equal(found.coef, wanted.coef)


def test_whole_persons_with_rows_that_cannot_be_read_or_have_no_id():
    X, y = table()
    ids = np.repeat(np.arange(ROWS // 4), 4)
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=1)
    neutral = clone(model).set_params(invalid_rows="neutral")
    texts = ids.astype(str).astype(object)
    spoilt = np.where(WEIGHT[:, None] > 0, X, np.nan)
    assert same(
        clone(neutral).fit(spoilt, y, groups=ids),
        clone(model).fit(table(null=True)[0], y, groups=texts, sample_weight=WEIGHT),
    )
    keep = WEIGHT > 0
    wanted = clone(model).fit(X[keep], y[keep], groups=texts[keep], sample_weight=np.ones(ROWS - 1))
    for missing in (None, np.nan, ""):
        known = ids.astype(object)
        known[AT] = missing
        assert same(clone(neutral).fit(X, y, groups=known), wanted)


def test_a_row_without_an_id_changes_the_weight_of_nobody_and_a_planted_owner_is_found(monkeypatch):
    """One arm: the weights of all others stay. The other: rows without an id are given to the first person."""
    X, y = table()
    ids = np.repeat(np.arange(ROWS // 4), 4).astype(object)
    ids[AT] = None

    def rows_of_persons():
        data = loading.load(X, y, "numbers", {"groups": ids}, invalid_rows="neutral").rows
        return np.bincount(gather_persons(data, 1_024, secure_generator()).persons)

    assert sorted(rows_of_persons()) == [3] + [4] * (ROWS // 4 - 1)
    original = invalid_rows.text_of
    monkeypatch.setattr(invalid_rows, "text_of", lambda one: original(one) or "0")
    assert rows_of_persons().max() == 5


def test_a_stream_goes_on():
    (X, y), (null, _) = table(), table(null=True)
    settings = {"bounds": (-1.0, 1.0), "classes": [0, 1], "public_n": 2 * ROWS, "random_state": 1}
    wanted, found = LogisticRegression(**settings), LogisticRegression(invalid_rows="neutral", **settings)
    for rows, weight in ((X, np.ones(ROWS)), (null, WEIGHT)):
        wanted.partial_fit(rows, y, sample_weight=weight)
    found.partial_fit(X, y)
    found.partial_fit(hostile("text")[0].to_numpy(), y)
    assert same(found, wanted)
    assert found.weighted_


@pytest.mark.parametrize("name", ["NaN", "infinity", "text", "label", "weight"])
def test_an_evaluation_counts_what_can_be_read(name):
    (X, y), (null, _) = table(), table(null=True)
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=1).fit(X, y)
    rows, labels, weight = hostile(name)
    labels[AT] = None if name == "label" else labels[AT]
    options = {"epsilon": 1.0, "random_state": 2}
    wanted = evaluate(model, null, y, sample_weight=WEIGHT, **options)
    found = evaluate(model, rows.to_numpy(), labels, sample_weight=weight, invalid_rows="neutral", **options)
    assert np.array_equal(found.released.values, wanted.released.values)
    assert found.weighted
    assert found.guarantee.release.invalid_rows == "neutral"
    assert found.released.rows is None  # how many rows count is released with noise


def test_an_evaluation_refuses_pipelines_in_one_line():
    X, y = table()
    model = make_pipeline(PrivateScaler(bounds=(-1, 1)), LogisticRegression(bounds=(-5, 5), classes=[0, 1])).fit(X, y)
    with pytest.raises(ValueError, match="for linear models alone, not Pipeline"):
        evaluate(model, X, y, invalid_rows="neutral")


@pytest.mark.parametrize("make", [PrivateScaler, PrivateBounds, PrivateQuantiles, PrivateImputer])
def test_steps_learn_from_what_can_be_read_and_pass_the_rest_on(make):
    step = make(random_state=1, **({} if make is PrivateBounds else {"bounds": (-1.0, 1.0)}))
    wanted = clone(step).fit(table(null=True)[0], sample_weight=WEIGHT)
    rows = hostile("text")[0]
    found = clone(step).set_params(invalid_rows="neutral").fit(rows)
    for name in ("low_", "high_", "mean_", "scale_", "quantiles_", "statistics_"):
        assert np.array_equal(getattr(found, name, 0), getattr(wanted, name, 0)), name
    passed = found.transform(rows)
    assert np.array_equal(np.isfinite(passed).all(axis=1), WEIGHT > 0)
    assert not np.isfinite(passed[AT]).any()
    keep = WEIGHT > 0
    assert np.array_equal(passed[keep], wanted.transform(table()[0][keep]))
    assert found.guarantee_.release.invalid_rows == "neutral"


def test_gaps_stay_gaps_for_imputers():
    rows = hostile("text")[0]
    rows.loc[3, "a"] = np.nan
    for step in (
        PrivateImputer(bounds=(-1, 1), random_state=1, invalid_rows="neutral"),
        DeclaredImputer(invalid_rows="neutral"),
    ):
        filled = step.fit(rows).transform(rows)
        assert np.isfinite(filled[3]).all()
        assert not np.isfinite(filled[AT]).any()


def test_categories_take_any_entry_and_no_bad_weight():
    codes, weight = np.array(["A", "B", "?"] * 400, dtype=object)[:, None], np.ones(ROWS)
    wanted = PrivateFrequentCategories(categories=["A", "B"], random_state=1).fit(codes, sample_weight=WEIGHT)
    weight[AT] = np.inf
    step = PrivateFrequentCategories(categories=["A", "B"], random_state=1, invalid_rows="neutral")
    assert np.array_equal(step.fit(codes, sample_weight=weight).counts_[0], wanted.counts_[0])


def test_sparse_rows_pass_a_step_that_does_not_centre():
    X = sp.csr_array(np.where(WEIGHT[:, None] > 0, table()[0], np.inf))
    step = PrivateScaler(bounds=(-1, 1), with_mean=False, random_state=1, invalid_rows="neutral").fit(X)
    passed = step.transform(X).toarray()
    assert np.array_equal(np.isfinite(passed).all(axis=1), WEIGHT > 0)


def test_a_pipeline_is_that_with_a_null_row_in_each_step():
    (X, y), (null, _) = table(), table(null=True)
    rows = hostile("text")[0]
    steps = (
        PrivateScaler(bounds=(-1, 1), random_state=1),
        LogisticRegression(bounds=(-5, 5), classes=[0, 1], random_state=2),
    )
    found = make_pipeline(*(clone(step).set_params(invalid_rows="neutral") for step in steps)).fit(rows, y)
    scaler = clone(steps[0]).fit(null, sample_weight=WEIGHT)
    wanted = clone(steps[1]).fit(np.where(WEIGHT[:, None] > 0, scaler.transform(X), 0.0), y, sample_weight=WEIGHT)
    assert same(found[-1], wanted)
    assert pipeline_guarantee(found).release.invalid_rows == "neutral"
    with pytest.raises(ValueError, match="NaN"):
        found.predict(rows)


def test_means_and_smoothness_are_those_with_a_null_row():
    rows, null = hostile("text")[0], table(null=True)[0]
    for release in (
        lambda X, **how: private_means(X, (-1, 1), random_state=0, **how),
        lambda X, **how: private_smoothness(X, Logistic(), bounds=(-1, 1), random_state=0, **how),
    ):
        found, wanted = release(rows, invalid_rows="neutral"), release(null, sample_weight=WEIGHT)
        assert np.array_equal(found.values, wanted.values)
        assert found.weighted_


@pytest.mark.parametrize("name", ["text", "label"])
def test_searches_and_cross_validations_take_rows_alike(name):
    rows, labels, _ = hostile(name)
    model = LogisticRegression(bounds={"a": (-1, 1)}, classes=[0, 1], invalid_rows="neutral")
    search = PrivateSearchCV(model, {"alpha": [1e-5, 1.0]}, n_iter=2, random_state=0).fit(rows, labels)
    assert search.guarantee_.release.invalid_rows == "neutral"
    assert search.weighted_
    assert list(search.best_estimator_.feature_names_in_) == list("abc")
    PrivateGridSearch(model, {"alpha": [1e-5, 1.0]}, random_state=0).fit(rows, labels)
    found = cross_val_score_private(model, rows, labels, cv=2, random_state=0)
    assert found.guarantee.release.invalid_rows == "neutral"
    with pytest.raises(ValueError, match="cannot vary 'invalid_rows'"):
        PrivateSearchCV(model, {"invalid_rows": ["error", "neutral"]}).fit(rows, labels)


def test_the_option_is_in_the_plan_the_statement_and_the_file(tmp_path):
    X, y = table()
    model = LogisticRegression(bounds=(-1, 1), classes=[0, 1], random_state=1, invalid_rows="neutral").fit(X, y)
    assert "unreadable rows     count as empty ones" in str(model.plan_)
    assert "rows that cannot be read count as empty rows" in str(model.guarantee_)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.invalid_rows == "neutral"
    assert loaded.guarantee_.release.invalid_rows == "neutral"
    assert loaded.guarantee_.statement() == model.guarantee_.statement()
    plain = clone(model).set_params(invalid_rows="error").fit(X, y)
    save_model(plain, tmp_path / "plain.json")
    assert "invalid_rows" not in (tmp_path / "plain.json").read_text()


def test_a_table_on_a_device_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(loading, "on_gpu", lambda X: True)
    X, y = table()
    with pytest.raises(ValueError, match=r"tables in the memory of the host; pass X\.cpu\(\)"):
        LogisticRegression(classes=[0, 1], invalid_rows="neutral").fit(X, y)


def test_predictions_are_refused_as_always():
    X, y = table()
    model = LogisticRegression(bounds=(-1, 1), classes=[0, 1], random_state=1, invalid_rows="neutral").fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 0.0, 0.0]])
