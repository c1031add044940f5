"""The estimators are good citizens of scikit-learn, and lose track of nothing."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import linear_model
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import discreet
from discreet import (
    Budget,
    InsecureRandomnessWarning,
    Ledger,
    LinearSVC,
    LogisticRegression,
    NotPrivateWarning,
    PrivacyLeakWarning,
    Ridge,
    UtilityWarning,
)
from discreet.privacy.accounting import compose, epsilon_of
from discreet.privacy.relation import Relation

ALL = [
    "LogisticRegression",
    "LinearSVC",
    "LinearRegression",
    "Ridge",
    "Lasso",
    "ElasticNet",
    "HuberRegressor",
    "PoissonRegressor",
    "GammaRegressor",
]
REGRESSORS = ALL[2:7]


@pytest.mark.parametrize("name", ALL)
def test_scikit_learns_own_checks_pass(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(getattr(discreet, name)(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 40


def classification(rows=3_000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)) * np.array([1.0, 10.0, 0.1, 1000.0])
    signal = X @ np.array([1.0, -0.1, 10.0, 0.0005])
    if classes == 2:
        return X, (signal + rng.logistic(size=rows) > 0).astype(int)
    return X, np.digitize(signal + 0.3 * rng.standard_normal(rows), [-1.0, 1.0])


def regression(rows=3_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)) * np.array([1.0, 10.0, 0.1, 1000.0])
    return X, 50.0 + X @ np.array([1.0, -0.1, 10.0, 0.0005]) + 0.1 * rng.standard_normal(rows)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_learn_from_raw_columns_without_any_declaration(name):
    X, y = regression(20_000)
    model = getattr(discreet, name)(epsilon=2.0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.coef_.shape == (4,)
    assert isinstance(model.intercept_, float)


@pytest.mark.parametrize("multi_class", ["multinomial", "ovr"])
@pytest.mark.parametrize("solver", ["cd", "gd", "sgd"])
def test_classifiers_learn_two_and_three_classes(solver, multi_class):
    X, y = classification(10_000)
    model = LogisticRegression(classes=[0, 1], solver=solver, multi_class=multi_class).fit(X, y)
    reference = linear_model.LogisticRegression(max_iter=1000).fit(StandardScaler().fit_transform(X), y)
    assert model.score(X, y) > reference.score(StandardScaler().fit_transform(X), y) - 0.03
    assert model.coef_.shape == (1, 4)
    X, y = classification(10_000, classes=3)
    model = LogisticRegression(classes=[0, 1, 2], solver=solver, multi_class=multi_class).fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert LinearSVC(classes=[0, 1, 2], solver=solver).fit(X, y).score(X, y) > 0.55


def without_noise(model, X, y):
    with pytest.warns(NotPrivateWarning):
        model.set_params(epsilon=math.inf).fit(X, y)
    assert not model.guarantee_.is_private
    return model


def of_scikit_learn(name, alpha, X, y):
    """Scikit-learn's estimator of the same objective; it weighs a sum of losses where we weigh their mean."""
    n = len(y)
    return {
        "LogisticRegression": linear_model.LogisticRegression(C=1 / (n * alpha), solver="newton-cholesky", tol=1e-12),
        "LinearRegression": linear_model.LinearRegression(),
        "Ridge": linear_model.Ridge(alpha=n * alpha),
        "Lasso": linear_model.Lasso(alpha=alpha, tol=1e-12, max_iter=100_000),
        "ElasticNet": linear_model.ElasticNet(alpha=alpha, tol=1e-12, max_iter=100_000),
    }[name].fit(X, y)


def assert_same_model(ours, theirs, scales):
    """The same coefficients, in columns of unit size, and the same intercept."""
    found, wanted = np.ravel(ours.coef_) * scales, np.ravel(theirs.coef_) * scales
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.ravel(ours.intercept_), np.ravel(theirs.intercept_), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearRegression", "Ridge", "Lasso", "ElasticNet"])
def test_infinite_epsilon_equals_scikit_learn(name):
    X, y = classification() if name == "LogisticRegression" else regression()
    options = {"classes": [0, 1]} if name == "LogisticRegression" else {}
    if name != "LinearRegression":
        options["alpha"] = 0.01
    ours = without_noise(getattr(discreet, name)(**options), X, y)
    theirs = of_scikit_learn(name, 0.01, X, y)
    assert_same_model(ours, theirs, X.std(axis=0))
    with pytest.raises(AssertionError):  # half a penalty more would be seen
        assert_same_model(ours, of_scikit_learn(name, 0.015, X, y if name != "LinearRegression" else -y), X.std(axis=0))


def test_three_classes_without_noise_have_the_probabilities_of_scikit_learn():
    X, y = classification(classes=3)
    X = StandardScaler().fit_transform(X)
    ours = without_noise(LogisticRegression(classes=[0, 1, 2], alpha=0.01), X, y)
    theirs = of_scikit_learn("LogisticRegression", 0.01, X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_infinite_epsilon_equals_scikit_learns_huber_regressor_at_its_scale():
    """Scikit-learn learns the scale s as well: at its s both solve the same equations for the coefficients."""
    X, y = regression()
    X = StandardScaler().fit_transform(X)
    y[:200] += 30.0  # outliers, so that the loss is not the squared one
    theirs = linear_model.HuberRegressor(epsilon=1.5, alpha=0.1, tol=1e-10, max_iter=10_000).fit(X, y)
    options = {"threshold": 1.5 * theirs.scale_, "alpha": 0.1 * theirs.scale_ / len(y)}
    ours = without_noise(discreet.HuberRegressor(**options), X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)


def test_the_support_vector_classifier_without_noise_reaches_its_certified_optimum():
    """Scikit-learn's LinearSVC has another loss (not smoothed) and a penalty on the intercept: nothing to compare."""
    X, y = classification()
    model = without_noise(LinearSVC(classes=[0, 1]), X, y)
    problem, signs = model.plan_.problem, 2.0 * y - 1.0
    best = problem.optimum(X, signs)
    value = problem.objective(X, signs, model.coef_.ravel(), float(np.ravel(model.intercept_)[0]))
    assert best.certificate.value <= 1e-8
    assert value - best.value <= 1e-6 * best.value


def test_guarantee_says_what_was_promised_and_what_was_certified():
    X, y = classification(500)
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=(-3000.0, 3000.0)).fit(X, y)
    promise = model.guarantee_
    assert (promise.epsilon, promise.delta) == (1.0, 1 / 500**2)
    assert 0.999 <= promise.certified.epsilon <= 1.0
    assert promise.epsilon_at(1e-3) < 1.0 < promise.epsilon_at(1e-9)
    assert promise.delta_at(1.0) <= promise.delta
    assert "differentially private" in promise.statement()
    assert promise.to_dict()["relation"] == "replace"
    alpha, beta = promise.tradeoff()
    assert (np.diff(alpha) >= 0).all()
    assert (beta <= 1 - alpha + 1e-9).all()


@pytest.mark.parametrize("budget", [Budget(0.7, 1e-7), Budget.pure(2.0), Budget.zcdp(0.05), Budget.gdp(0.3)], ids=str)
def test_budgets_of_every_kind(budget):
    X, y = classification(2_000)
    model = LogisticRegression(epsilon=budget, classes=[0, 1], bounds=(-4e3, 4e3)).fit(X, y)
    assert model.plan_.budget == budget
    assert math.isfinite(model.guarantee_.epsilon)
    assert LogisticRegression(epsilon=2.0, delta=0, classes=[0, 1]).plan(2_000, 4).budget == Budget.pure(2.0)


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_relations(relation):
    X, y = classification(2_000)
    options = {"public_n": 1_900} if relation == "add_remove" else {}
    model = LogisticRegression(classes=[0, 1], relation=relation, **options).fit(X, y)
    assert model.guarantee_.relation is Relation(relation)
    assert model.score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
def test_pipeline_clone_and_set_output():
    X, y = classification(400)
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        LogisticRegression(classes=[0, 1], bounds=(-5.0, 5.0)),
    )
    with pytest.warns(PrivacyLeakWarning, match="step 'standardscaler'"):
        pipeline.fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()
    with pytest.warns(PrivacyLeakWarning):  # of the scaler, and of exact scores
        assert cross_val_score(pipeline, frame, y, cv=3).shape == (3,)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_grid_search_does_not_lose_the_ledger(tmp_path, jobs):
    """15 fits and a refit, each cloned, also in other processes: the ledger has them all, composed."""
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("clinic", epsilon=100.0, delta=1e-6)
    X, y = classification(300)
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=(-3e3, 3e3), ledger=ledger, dataset="clinic")
    search = GridSearchCV(model, {"alpha": [1e-4, 1e-2, 1.0]}, cv=KFold(5), n_jobs=jobs)
    with pytest.warns(PrivacyLeakWarning, match="covers neither the choice nor the other fits"):
        search.fit(X, y)
    entries = ledger.entries("clinic")
    assert len(entries) == 16
    assert all(entry.status == "committed" for entry in entries)
    together = epsilon_of(compose([entry.event for entry in entries]), 1e-6, Relation.REPLACE)
    assert ledger.spent("clinic") == pytest.approx(together)
    assert 1.0 < together < 16.0  # composed, not added
    assert search.best_estimator_.guarantee_.epsilon == 1.0
    assert "GridSearchCV chose by exact scores" in search.best_estimator_.guarantee_.statement()


def test_metadata_routing_of_sample_weight():
    X, y = classification(300)
    weight = np.linspace(0.0, 1.0, 300)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression(classes=[0, 1], bounds=(-3e3, 3e3)).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
            pipeline.fit(X, y, sample_weight=weight)
    assert pipeline[-1].coef_.shape == (1, 4)


def test_weights_count_and_are_refused_outside_the_unit_interval():
    X, y = regression(2_000)
    corrupted = y.copy()
    corrupted[:500] = -1e3
    weight = np.ones(2_000)
    weight[:500] = 0.0
    options = {"epsilon": 10.0, "bounds": (-4e3, 4e3), "y_bounds": (0.0, 100.0)}
    weighted = Ridge(**options).fit(X, corrupted, sample_weight=weight)
    plain = Ridge(**options).fit(X, corrupted)
    assert weighted.score(X[500:], y[500:]) > plain.score(X[500:], y[500:])
    for bad in (np.full(2_000, 2.0), np.full(2_000, -0.1), np.full(2_000, np.nan), np.ones(3)):
        with pytest.raises(ValueError, match="sample_weight"):
            Ridge().fit(X, y, sample_weight=bad)
    with pytest.raises(TypeError, match="unexpected argument 'weights'"):
        Ridge().fit(X, y, weights=weight)


def test_what_is_read_from_the_rows_is_said():
    X, y = classification(1_000)
    with pytest.warns(PrivacyLeakWarning, match=r"pass classes=\["):
        LogisticRegression(bounds=(-3e3, 3e3)).fit(X, y)
    with pytest.warns(PrivacyLeakWarning, match="bounds=\\(low, high\\)"):
        LogisticRegression(classes=[0, 1], bounds="data").fit(X, y)
    with pytest.warns(PrivacyLeakWarning, match="y_bounds"):
        Ridge(bounds=(-3e3, 3e3), y_bounds="data").fit(X, y)
    with pytest.warns(InsecureRandomnessWarning):
        LogisticRegression(classes=[0, 1], bounds=(-3e3, 3e3), random_state=1).fit(X, y)
    with pytest.warns(UtilityWarning, match="predicts the same for every row"):
        LogisticRegression(classes=[0, 1], solver="newton").fit(X[:100], y[:100])


def test_seeded_models_repeat_and_string_labels_work():
    X, y = classification(500)
    labels = np.array(["benign", "malignant"])[y]
    with pytest.warns(InsecureRandomnessWarning):
        one, two = (
            LogisticRegression(classes=["malignant", "benign"], bounds=(-3e3, 3e3), random_state=3).fit(X, labels)
            for _ in range(2)
        )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert set(one.predict(X)) <= {"benign", "malignant"}
    assert one.classes_.tolist() == ["benign", "malignant"]


def test_sparse_prediction_equals_dense_prediction():
    X, y = classification(500)
    X[np.abs(X) < 0.5] = 0.0
    model = LogisticRegression(classes=[0, 1], bounds=(-500.0, 500.0)).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(sp.csc_array(X)))


def test_prediction_clips_to_the_range_of_training():
    X, y = regression(20_000)
    model = Ridge().fit(X, y)
    far = np.full((1, 4), 1e12)
    low, high = model.ranges_
    np.testing.assert_allclose(model.predict(far), model.predict(np.clip(far, low, high)))
