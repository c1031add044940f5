"""The private transformers learn what they should, are good citizens of scikit-learn, and say what they cost.

Tests of accuracy have fixed seeds. Were they redrawn, a range would be wrong in one fit of a million, by design.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from discreet import (
    Budget,
    BudgetExceededError,
    InsecureRandomnessWarning,
    Ledger,
    LogisticRegression,
    NotPrivateWarning,
    PrivacyLeakWarning,
    Ridge,
)
from discreet.data.public import Public
from discreet.preprocessing import (
    PrivateBounds,
    PrivateQuantiles,
    PrivateScaler,
    pipeline_guarantee,
    private_means,
    private_smoothness,
)
from discreet.privacy.accounting import compose, epsilon_of, mu_of
from discreet.privacy.guarantee import SEEDED
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Squared
from discreet.scaling.plan import plan_scaling
from discreet.solvers import CoordinateDescent
from tests.preprocessing_tools import CENTRE, SCALE, TRANSFORMERS, table


def labels(X):
    return (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "step",
    [*(make() for make in TRANSFORMERS), PrivateScaler(with_mean=False), PrivateScaler(bounds=(-5.0, 5.0))],
    ids=str,
)
def test_scikit_learns_own_checks_pass(step):
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(step, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) >= 40


# --- what they learn -----------------------------------------------------------------------------------------


def test_learned_ranges_are_powers_of_two_around_the_bulk():
    X = table()
    step = PrivateBounds(random_state=seeded_generator(1)).fit(X)
    ends = np.abs(np.concatenate([step.low_, step.high_]))
    assert (np.log2(ends[ends > 0]) % 1.0 == 0.0).all()
    assert ((step.low_ <= X) & (step.high_ >= X)).mean() > 0.99
    assert step.high_[2] < 0.0 < step.low_[3]  # ranges need not contain 0
    assert (step.high_ <= 4 * X.max(axis=0).clip(0.1)).all()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("epsilon", [1.0, Budget.pure(4.0), Budget.zcdp(0.1), Budget.gdp(0.5)], ids=str)
def test_scaled_columns_are_nearly_standard(epsilon, relation):
    X = table(100_000)
    options = {"public_n": 99_000} if relation is Relation.ADD_REMOVE else {}
    step = PrivateScaler(epsilon=epsilon, relation=relation, random_state=seeded_generator(2), **options).fit(X)
    assert np.abs(step.transform(X).mean(axis=0)).max() < 0.1
    assert np.abs(step.transform(X).std(axis=0) - 1.0).max() < 0.1
    np.testing.assert_allclose(step.inverse_transform(step.transform(X)), np.clip(X, step.low_, step.high_))


@pytest.mark.parametrize("epsilon", [1.0, Budget.pure(4.0), Budget.zcdp(0.1)], ids=str)
def test_quantiles_are_close_in_rank_and_scores_nearly_uniform(epsilon):
    X = table(20_000)
    step = PrivateQuantiles(epsilon=epsilon, quantiles=[0.1, 0.5, 0.9], random_state=seeded_generator(3)).fit(X)
    ranks = (X[None] <= step.quantiles_[:, None, :]).mean(axis=1)
    np.testing.assert_allclose(ranks, np.array([0.1, 0.5, 0.9])[:, None].repeat(4, axis=1), atol=0.03)
    scores = step.transform(X)
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    assert np.abs(scores.mean(axis=0) - 0.5).max() < 0.1
    inside = (scores > 0.0) & (scores < 1.0)
    np.testing.assert_allclose(step.inverse_transform(scores)[inside], X[inside], rtol=1e-9, atol=1e-9)


def test_means_and_smoothness_are_close():
    X = table()
    low, high = CENTRE - 6 * SCALE, CENTRE + 6 * SCALE
    means = private_means(X, (low, high), random_state=seeded_generator(4))
    assert np.abs((means.values - X.mean(axis=0)) / SCALE).max() < 0.01
    assert means.guarantee.epsilon == 1.0
    found = private_smoothness(X, Logistic(), (low, high), random_state=seeded_generator(5))
    np.testing.assert_allclose(found.values[:4], 0.25 * (X**2).mean(axis=0), rtol=0.2)
    assert found.values[4] == 0.25
    assert private_smoothness(X, Squared(), (low, high), fit_intercept=False).values.shape == (4,)


def test_infinite_epsilon_equals_scikit_learn_and_numpy():
    X = np.column_stack([table(2_000), np.full(2_000, 7.0)])
    X[:, 1] += 1e9
    with pytest.warns(NotPrivateWarning):
        step = PrivateScaler(epsilon=math.inf).fit(X)
    reference = StandardScaler().fit(X)
    np.testing.assert_allclose(step.mean_, reference.mean_, rtol=1e-12)
    np.testing.assert_allclose(step.scale_, reference.scale_, rtol=1e-6)
    assert not step.guarantee_.is_private
    with pytest.warns(NotPrivateWarning):
        quantiles = PrivateQuantiles(epsilon=math.inf).fit(X).quantiles_
    np.testing.assert_allclose(quantiles, np.quantile(X, [0.25, 0.5, 0.75], axis=0))
    with pytest.warns(NotPrivateWarning):
        means = private_means(X, (-1e10, 1e10), epsilon=math.inf).values
    np.testing.assert_allclose(means, X.mean(axis=0), rtol=1e-6, atol=1e-5)
    with pytest.warns(NotPrivateWarning):
        constants = private_smoothness(X[:, [0, 2]], Squared(), (-10.0, 10.0), budget=math.inf).values
    np.testing.assert_allclose(constants, [*(X[:, [0, 2]] ** 2).mean(axis=0), 1.0], rtol=1e-9)


def test_a_real_table_at_epsilon_one(shared_data):
    """Uneven, heavy-tailed columns: means against the clipped columns, quantiles in rank."""
    X = np.asarray(shared_data("california")["X"], dtype=np.float64)
    step = PrivateScaler(random_state=seeded_generator(6)).fit(X)
    clipped = np.clip(X, *ends(step))
    assert np.abs((step.mean_ - clipped.mean(axis=0)) / clipped.std(axis=0)).max() < 0.2
    assert ((step.low_ <= X) & (step.high_ >= X)).mean() > 0.98
    found = PrivateQuantiles(quantiles=[0.5], random_state=seeded_generator(7)).fit(X).quantiles_
    ranks = (found - 1e-6 > X).mean(axis=0), (found + 1e-6 >= X).mean(axis=0)
    assert (ranks[0] < 0.55).all()
    assert (ranks[1] > 0.45).all()


def test_sparse_and_dense_tables_teach_the_same():
    """Stored zeros, their number and the format of the table change nothing that is learned."""
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((4_000, 3)) * (rng.random((4_000, 3)) < 0.3)
    stored = sp.csr_array(dense)
    stored.data[:50] = 0.0
    dense = stored.toarray()
    learned = []
    for X in (stored, sp.csc_array(stored), sp.csr_array(dense)):
        with pytest.warns(InsecureRandomnessWarning):
            step = PrivateScaler(with_mean=False, random_state=1).fit(X)
        learned.append(np.concatenate([step.low_, step.high_, step.scale_]))
    np.testing.assert_allclose(learned[0], learned[1])
    np.testing.assert_allclose(learned[0], learned[2])
    np.testing.assert_allclose(step.transform(stored).toarray(), step.transform(dense))
    np.testing.assert_allclose(step.inverse_transform(step.transform(stored)).toarray(), np.clip(dense, *ends(step)))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        PrivateScaler().fit(stored)
    with pytest.raises(ValueError, match="contain 0"):
        PrivateScaler(with_mean=False, bounds=(1.0, 2.0)).fit(stored)


def ends(step):
    return step.low_, step.high_


# --- scikit-learn, ledgers, guarantees -----------------------------------------------------------------------


def test_pipeline_with_names_and_its_guarantee():
    frame = pd.DataFrame(table(), columns=list("abcd"))
    pipeline = make_pipeline(
        PrivateScaler(epsilon=0.5, random_state=seeded_generator(8)).set_output(transform="pandas"),
        PrivateBounds(epsilon=0.2, random_state=seeded_generator(9)).set_output(transform="pandas"),
        LogisticRegression(epsilon=0.5, classes=[0, 1], random_state=seeded_generator(10)),
    ).fit(frame, labels(frame.to_numpy()))
    assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
    assert pipeline.score(frame, labels(frame.to_numpy())) > 0.9
    promise = pipeline_guarantee(pipeline)
    by_hand = compose([step.guarantee_.event for step in pipeline])
    assert promise.epsilon == pytest.approx(epsilon_of(by_hand, promise.delta, Relation.REPLACE))
    assert 0.5 < promise.epsilon < 1.2  # composed, not added
    assert promise.leaks == (SEEDED,)
    fresh = PrivateScaler(epsilon=0.5, bounds=(-1.0, 1.0))
    assert clone(fresh.fit(frame)).get_params() == fresh.get_params()
    assert pipeline_guarantee(pipeline, delta=1e-3).epsilon < promise.epsilon


def test_unions_are_opened_and_open_learners_are_refused():
    X = table(5_000)
    columns = make_column_transformer(
        (PrivateScaler(epsilon=3.0), [0, 1]), ("passthrough", [2]), remainder="drop", sparse_threshold=0
    )
    union = make_union(PrivateBounds(epsilon=3.0), make_pipeline(Normalizer(), PrivateScaler(epsilon=3.0)))
    for part, private in ((columns, 1), (union, 2)):
        promise = pipeline_guarantee(make_pipeline(part).fit(X))
        assert epsilon_of(promise.event, promise.delta, Relation.REPLACE) > 2.9 * private**0.5
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        leaky = make_pipeline(StandardScaler(), PrivateBounds(epsilon=3.0)).fit(X)
    with pytest.raises(ValueError, match=r"'standardscaler' .StandardScaler. learned .* use PrivateScaler"):
        pipeline_guarantee(leaky)
    with pytest.raises(ValueError, match="nothing in it is private"):
        pipeline_guarantee(make_pipeline(Normalizer()).fit(X))
    mixed = make_pipeline(PrivateBounds(epsilon=3.0), PrivateBounds(epsilon=3.0, relation="zero_out")).fit(X)
    with pytest.raises(ValueError, match="different relations"):
        pipeline_guarantee(mixed)


def test_grid_search_pays_for_every_fit(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("clinic", epsilon=100.0, delta=1e-6)
    X = table(3_000)
    booked = {"ledger": ledger, "dataset": "clinic"}
    bounds = (CENTRE - 5 * SCALE, CENTRE + 5 * SCALE)
    model = LogisticRegression(classes=[0, 1], bounds=(-5.0, 5.0), **booked)
    pipeline = make_pipeline(PrivateScaler(bounds=bounds, **booked), model)
    search = GridSearchCV(pipeline, {"privatescaler__with_std": [True, False]}, cv=KFold(3))
    with pytest.warns(PrivacyLeakWarning, match="GridSearchCV chose these settings by exact scores"):
        search.fit(X, labels(X))
    entries = ledger.entries("clinic")
    assert len(entries) == 2 * (2 * 3 + 1)
    assert all(entry.status == "committed" for entry in entries)
    assert {entry.note for entry in entries} == {"PrivateScaler", "LogisticRegression"}
    private_means(X, bounds, epsilon=0.1, **booked)
    private_smoothness(X, Logistic(), bounds, 0.1, **booked)
    assert [entry.note for entry in ledger.entries("clinic")[-2:]] == ["private_means", "private_smoothness"]
    promise = pipeline_guarantee(search.best_estimator_)
    assert promise.epsilon < ledger.spent("clinic")
    assert promise.leaks[0] == "the settings, which GridSearchCV chose by exact scores,"
    assert "6 other models" in promise.leaks[1]


@pytest.mark.parametrize("make", TRANSFORMERS)
def test_a_refused_reservation_leaves_the_rows_unread(tmp_path, make):
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("table", epsilon=0.5, delta=1e-3)
    step = make(epsilon=1.0, ledger=ledger, dataset="table")
    with pytest.raises(BudgetExceededError):
        step.fit(table(500))
    assert not [name for name in vars(step) if name.endswith("_") and name != "n_features_in_"]
    assert ledger.spent("table") == 0.0
    with pytest.raises(ValueError, match="dataset="):
        make(ledger=ledger).fit(table(500))


def test_the_recipe_for_private_smoothness_composes():
    """Constants from part of a budget, coordinate descent with them from the rest, one statement for both."""
    X = np.clip(table(20_000) / SCALE - CENTRE / SCALE, -3.0, 3.0) * np.array([1.0, 5.0, 0.2, 1.0])
    bounds = (-15.0, 15.0)
    found = private_smoothness(X, Logistic(), bounds, Budget.zcdp(0.01))
    solver = CoordinateDescent(smoothness=tuple(found.values), clip=1.0)
    model = LogisticRegression(epsilon=Budget.zcdp(0.09), classes=[0, 1], solver=solver).fit(X, labels(X))
    promise = pipeline_guarantee(model, also=[found])
    assert mu_of(promise.event, Relation.REPLACE) == pytest.approx(math.sqrt(2 * 0.1))
    assert promise.epsilon == pytest.approx(
        epsilon_of(compose([found.event, model.guarantee_.event]), promise.delta, Relation.REPLACE)
    )
    assert model.score(X, labels(X)) > 0.9
    as_array = CoordinateDescent(smoothness=found.values, clip=1.0)
    LogisticRegression(epsilon=1.0, classes=[0, 1], solver=as_array).fit(X, labels(X))


def test_solvers_spend_a_tenth_on_scales_unless_bounds_are_declared():
    budget = Budget(1.0, 1e-6)
    scaling_plan = plan_scaling(Public(10_000, 4), budget, None, centred=True, target=False)
    assert mu_of(scaling_plan.event, "replace") ** 2 == pytest.approx(0.1 * budget.gaussian_mu() ** 2)
    X = table(20_000)
    step = PrivateBounds(epsilon=0.3).fit(X)
    model = Ridge(epsilon=1.0, bounds=ends(step), y_bounds=(0.0, 1.0), solver=CoordinateDescent(scale_share=0.0))
    model.fit(X, labels(X))
    assert model.plan_.scaling_plan.method == "declared"
    assert model.plan_.scaling_plan.histogram is None
    assert model.guarantee_.certified.epsilon == pytest.approx(1.0, rel=1e-3)


def test_seeds_repeat_and_weights_count():
    X = table(5_000)
    with pytest.warns(InsecureRandomnessWarning):
        one, two = (PrivateQuantiles(random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.quantiles_, two.quantiles_)
    weight = (X[:, 0] > 0).astype(float)
    bounds = (CENTRE - 6 * SCALE, CENTRE + 6 * SCALE)
    step = PrivateQuantiles(quantiles=[0.1], bounds=bounds, epsilon=5.0, random_state=seeded_generator(11))
    step.fit(X, sample_weight=weight)
    assert step.quantiles_[0, 0] > 0.0
    for bad in (np.full(5_000, 1.5), np.ones(3)):
        with pytest.raises(ValueError, match="sample_weight"):
            PrivateScaler().fit(X, sample_weight=bad)
    with pytest.raises(TypeError, match="unexpected argument"):
        PrivateScaler().fit(X, weights=weight)
