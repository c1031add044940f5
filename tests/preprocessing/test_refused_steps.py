"""Statements of pipelines are true or not made: attacks succeed on what is refused and fail on what is allowed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression as OpenLogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import all_estimators

from discreet import LogisticRegression, Ridge
from discreet.data.pipeline_steps import ROW_BY_ROW, why_refused
from discreet.preprocessing import PrivateScaler, check_pipeline, pipeline_guarantee

MODEL = LogisticRegression(classes=[0, 1], bounds=(-3.0, 3.0))


def coefficient(pipeline, X, y):
    return float(pipeline.fit(X, y)[-1].coef_[0, 0])


@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")  # tests/data/test_composites.py expects it
def test_one_row_behind_a_standard_scaler_decides_about_all():
    """A row of 1e9 makes all others equal: the model behind the scaler loses what it knew, at any epsilon."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2_000, 1))
    y = (X[:, 0] > 0.0).astype(int)
    neighbour = X.copy()
    neighbour[0] = 1e9

    def smallest_gap(scaler):
        pipelines = [make_pipeline(scaler, MODEL) for _ in range(6)]
        return min(coefficient(p, X, y) for p in pipelines) - max(coefficient(p, neighbour, y) for p in pipelines)

    assert smallest_gap(StandardScaler()) > 0.5  # 12 of 12 runs tell which table it was
    assert smallest_gap(PrivateScaler(bounds=(-1.0, 1.0))) < 0.5
    with pytest.raises(ValueError, match=r"step 'standardscaler' \(StandardScaler\) learned .* use PrivateScaler\."):
        pipeline_guarantee(make_pipeline(StandardScaler(), MODEL).fit(X, y))
    assert pipeline_guarantee(make_pipeline(PrivateScaler(bounds=(-1.0, 1.0)), MODEL).fit(X, y)).leaks == ()


@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")  # tests/data/test_composites.py expects it
def test_a_learned_category_shows_in_the_number_of_columns():
    """The only row with category "c" adds a column: declared categories have it whether the row is there or not."""
    X = np.array(["a", "b"] * 200, dtype=object)[:, None]
    y, neighbour = np.arange(400) % 2, X.copy()
    neighbour[0] = "c"

    def widths(encoder):
        fits = [clone(make_pipeline(encoder, MODEL)).fit(table, y) for table in (X, neighbour)]
        return [fit[-1].n_features_in_ for fit in fits], fits[0]

    learned, open_pipeline = widths(OneHotEncoder())
    declared, pipeline = widths(OneHotEncoder(categories=[["a", "b", "c"]]))
    assert learned == [2, 3]
    assert declared == [3, 3]
    with pytest.raises(ValueError, match="learned its categories from the rows; declare them"):
        pipeline_guarantee(open_pipeline)
    assert pipeline_guarantee(pipeline).epsilon == pytest.approx(1.0, rel=2e-3)


@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")  # tests/data/test_composites.py expects it
def test_the_density_decides_whether_columns_are_sparse():
    """One entry of one row crosses `sparse_threshold`, and the plan of the model shows it."""
    X = pd.DataFrame({"group": ["a", "b"] * 200, "value": 0.0})
    y, neighbour = np.arange(400) % 2, X.copy()
    neighbour.loc[0, "group"] = "z"  # unknown, so its columns are all zero

    def layouts(**settings):
        encoder = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore")
        columns = ColumnTransformer([("group", encoder, ["group"])], **settings)
        fits = [clone(make_pipeline(columns, MODEL)).fit(table, y) for table in (X, neighbour)]
        return [fit[-1].plan_.public.sparse for fit in fits], fits[0]

    by_density, leaky = layouts(sparse_threshold=0.5)
    fixed, pipeline = layouts(sparse_threshold=0)
    assert by_density == [False, True]
    assert fixed == [False, False]
    with pytest.raises(ValueError, match=r"'columntransformer' .* exact density .* sparse_threshold=0"):
        pipeline_guarantee(leaky)
    assert pipeline_guarantee(pipeline).is_private


def test_tables_with_names_need_no_threshold_if_nothing_makes_sparse_columns():
    X = pd.DataFrame({"group": ["a", "b"] * 200, "value": 0.0})
    encoder = OneHotEncoder(categories=[["a", "b"]], sparse_output=False)
    parts = ((encoder, ["group"]), (PrivateScaler(bounds=(-1.0, 1.0)), ["value"]))
    pipeline = make_pipeline(make_column_transformer(*parts), MODEL).fit(X, np.arange(400) % 2)
    assert pipeline_guarantee(pipeline).epsilon > 1.2


ALLOWED = [
    Normalizer(),
    PolynomialFeatures(2),
    FunctionTransformer(np.log1p),
    FunctionTransformer(),
    OrdinalEncoder(categories=[["a"]]),
    SimpleImputer(strategy="constant", keep_empty_features=True),
    RBFSampler(gamma=1.0),
    FrozenEstimator(
        LogisticRegression(classes=[0, 1], bounds=(0.0, 1.0), solver="gd").fit(np.ones((50, 1)), np.arange(50) % 2)
    ),
    FeatureUnion([("part", Normalizer()), ("private", PrivateScaler())]),
]
REFUSED = [
    (GridSearchCV(MODEL, {}), "exact scores .*PrivateSearchCV"),
    (RandomizedSearchCV(MODEL, {}), "exact scores .*PrivateSearchCV"),
    (TunedThresholdClassifierCV(MODEL), "exact scores"),
    (CalibratedClassifierCV(MODEL), "calibration to exact scores of held-out rows"),
    (OneVsRestClassifier(MODEL), "multi_class='ovr'"),
    (OneVsOneClassifier(MODEL), "which classes there are"),
    (BaggingClassifier(MODEL), "with replacement"),
    (VotingClassifier([("a", MODEL)]), "pass them as also="),
    (VotingRegressor([("a", Ridge())]), "pass them as also="),
    (StackingClassifier([("a", MODEL)]), "depend on other rows"),
    (OpenLogisticRegression(), "use an estimator of discreet"),
    (OneHotEncoder(categories=[["a"]], min_frequency=2), "counted the categories"),
    (OrdinalEncoder(), "declare them"),
    (FunctionTransformer(lambda X: X - X.mean(axis=0)), "may look at several rows"),
    (FunctionTransformer(np.add, kw_args={"x2": 1.0}), "may look at several rows"),
    (SimpleImputer(), "strategy='constant'"),
    (SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True), "without an indicator"),
    (RBFSampler(gamma="scale"), "variance"),
    (ColumnTransformer([("a", Normalizer(), make_column_selector())], sparse_threshold=0), "name the columns"),
    (ColumnTransformer([("a", Normalizer(), [0])], remainder=StandardScaler(), sparse_threshold=0), "PrivateScaler"),
    (type("Subclass", (Normalizer,), {})(), "not known to treat every row on its own"),
    (type("Longer", (Pipeline,), {})([("a", Normalizer())]), "not known to treat every row on its own"),
]


@pytest.mark.parametrize("step", ALLOWED, ids=lambda step: type(step).__name__)
def test_steps_that_treat_every_row_on_its_own_are_allowed(step):
    check_pipeline(make_pipeline(step, MODEL))


@pytest.mark.parametrize(("step", "reason"), REFUSED, ids=lambda value: type(value).__name__)
def test_everything_else_is_refused_with_a_reason_in_one_line(step, reason):
    with pytest.raises(ValueError, match=f"step 'part.step.*{reason}") as refused:
        check_pipeline(Pipeline([("part", Pipeline([("step", step), ("last", MODEL)]))]))
    assert "\n" not in str(refused.value)


def test_all_that_must_change_is_listed_at_once():
    leaky = make_column_transformer((SimpleImputer(), [0]), (PrivateScaler(), [1]))
    with pytest.raises(ValueError, match="no statement can be made: ") as refused:
        check_pipeline(make_pipeline(StandardScaler(), leaky, OneHotEncoder(), MODEL))
    told = str(refused.value)
    names = ["'standardscaler' (", "'columntransformer' (", "'columntransformer.simpleimputer' (", "'onehotencoder' ("]
    assert [told.index(f"({k}) step {name}") for k, name in enumerate(names, start=1)]
    assert "(5)" not in told
    assert "\n" not in told


def test_no_other_estimator_of_scikit_learn_is_allowed():
    """Also those that a later release of scikit-learn adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {kind for _, kind in all_estimators()} - set(ROW_BY_ROW)
        unmade = {kind: kind.__new__(kind) for kind in found}
    assert len(unmade) > 150
    assert [kind.__name__ for kind, step in unmade.items() if why_refused(step) is None] == []


def test_allowed_steps_compute_every_row_from_that_row_alone():
    """The law behind the list: the output for a row does not change when another row does."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 1.0, (30, 3))
    X[1, 2] = np.nan
    other = X.copy()
    other[0] = [1e3, -7.0, 2.0]

    def same(step, X, other):
        with np.errstate(invalid="ignore"):
            first, second = (np.asarray(step.fit(table).transform(table)) for table in (X, other))
        return first.shape == second.shape and np.array_equal(first[1:], second[1:], equal_nan=True)

    assert same(SimpleImputer(strategy="constant", keep_empty_features=True), X, other)
    assert not same(SimpleImputer(), X, other)
    X, finite = np.nan_to_num(X), np.nan_to_num(other)
    features = RBFSampler(gamma=1.0, random_state=0)
    for step in (Normalizer(), PolynomialFeatures(2), FunctionTransformer(np.sqrt), features):
        assert same(step, X, finite), step
    assert not same(StandardScaler(), X, finite)
    assert not same(FunctionTransformer(lambda X: X - X.mean(axis=0)), X, finite)
    assert not same(RBFSampler(gamma="scale", random_state=0), X, finite)
