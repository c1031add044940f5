"""What of scikit-learn calls a fit is noticed if it reads rows without noise, and is left alone if it does not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from discreet import LogisticRegression, PrivacyLeakWarning, Ridge
from discreet.model_selection import PrivateSearchCV
from discreet.preprocessing import ColumnClipper, PrivateImputer, PrivateScaler, pipeline_guarantee

MODEL = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
RIDGE = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0))
SCALER = PrivateScaler(bounds=(-1.0, 1.0))
X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 3))
Y = (X[:, 0] > 0.0).astype(int)
TWO = KFold(2)

# Each returns a model that was fitted inside; the words are those of the warning, and of the statement.
LEAKY = {
    "pipeline": (lambda: make_pipeline(StandardScaler(), MODEL).fit(X, Y)[-1], "StandardScaler", "without noise"),
    "before a private step": (
        lambda: make_pipeline(MinMaxScaler(), SCALER, MODEL).fit(X, Y)[1],
        "MinMaxScaler",
        "without noise",
    ),
    "density of sparse rows": (
        lambda: make_pipeline(ColumnTransformer([("a", Normalizer(), [0, 1])]), MODEL).fit(csr_array(X), Y)[-1],
        "exact density",
        "exact density",
    ),
    "density of categories": (
        lambda: make_pipeline(
            ColumnTransformer([("a", OneHotEncoder(categories=[[0, 1]]), [0]), ("b", SCALER, [1])]), MODEL
        ).fit(np.stack([Y, X[:, 1]], axis=1), Y)[-1],
        "exact density",
        "exact density",
    ),
    "inside a union": (
        lambda: make_pipeline(FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]), MODEL).fit(X, Y)[-1],
        "'featureunion.b'",
        "without noise",
    ),
    "inside a pipeline": (
        lambda: make_pipeline(make_pipeline(SimpleImputer(), Normalizer()), MODEL).fit(X, Y)[-1],
        "'pipeline.simpleimputer'",
        "what to fill in",
    ),
    "around a pipeline": (
        lambda: make_pipeline(StandardScaler(), make_pipeline(Normalizer(), MODEL)).fit(X, Y)[-1][-1],
        "'standardscaler'",
        "without noise",
    ),
    "subclass": (
        lambda: type("Longer", (Pipeline,), {})([("a", StandardScaler()), ("b", MODEL)]).fit(X, Y)[-1],
        "StandardScaler",
        "without noise",
    ),
    "cross_validate": (
        lambda: cross_validate(MODEL, X, Y, cv=TWO, return_estimator=True)["estimator"][0],
        "cross_validate computes exact scores .*cross_val_score_private",
        "exact scores",
    ),
    "calibration": (
        lambda: CalibratedClassifierCV(MODEL, cv=2).fit(X, Y).calibrated_classifiers_[0].estimator,
        "CalibratedClassifierCV",
        "this fit alone",
    ),
    "one against the rest": (
        lambda: OneVsRestClassifier(MODEL).fit(X, Y).estimators_[0],
        "OneVsRestClassifier .* multi_class='ovr'",
        "this fit alone",
    ),
    "one against one": (lambda: OneVsOneClassifier(MODEL).fit(X, Y).estimators_[0], "OneVsOne", "this fit alone"),
    "bagging": (
        lambda: BaggingClassifier(MODEL, 2).fit(X, Y).estimators_[0],
        "BaggingClassifier draws rows",
        "this fit alone",
    ),
    "votes": (lambda: VotingClassifier([("a", MODEL)]).fit(X, Y).estimators_[0], "Voting", "this fit alone"),
    "stacking": (
        lambda: StackingClassifier([("a", MODEL)], MODEL, cv=2).fit(X, Y).final_estimator_,
        "StackingClassifier",
        "this fit alone",
    ),
    "threshold": (
        lambda: TunedThresholdClassifierCV(MODEL, cv=2).fit(X, Y).estimator_,
        "TunedThreshold",
        "this fit alone",
    ),
    "search over a pipeline": (
        lambda: GridSearchCV(make_pipeline(StandardScaler(), MODEL), {}, cv=TWO).fit(X, Y).best_estimator_[-1],
        "StandardScaler|GridSearchCV",
        "which GridSearchCV chose",
    ),
    "several targets": (
        lambda: MultiOutputClassifier(MODEL).fit(X, np.stack([Y, Y], axis=1)).estimators_[0],
        "MultiOutputClassifier may have",
        "this fit alone",
    ),
    "scaled target": (
        lambda: TransformedTargetRegressor(RIDGE, transformer=StandardScaler()).fit(X, X[:, 0]).regressor_,
        "TransformedTargetRegressor",
        "this fit alone",
    ),
    "private search": (
        lambda: make_pipeline(StandardScaler(), PrivateSearchCV(MODEL, {"alpha": [1.0]}, n_iter=2)).fit(X, Y)[-1],
        "StandardScaler",
        "without noise",
    ),
}


# Bagging draws seeds for its parts, which the statement names as well.
@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")
@pytest.mark.parametrize("case", LEAKY)
def test_what_reads_rows_is_warned_of_and_stated(case):
    fit, warning, leak = LEAKY[case]
    with pytest.warns(PrivacyLeakWarning, match=warning) as caught:
        model = fit()
    told = [one for one in caught if one.category is PrivacyLeakWarning]
    assert {one.filename for one in told} == {__file__}
    assert leak in " ".join(model.guarantee_.leaks)
    assert "ATTENTION" in model.guarantee_.statement()


class Wrapped(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Somebody's own estimator around a model: what it does to rows is for its author to say."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self


COLUMNS = ColumnTransformer([("a", SCALER, [0]), ("b", Normalizer(), [1, 2])], sparse_threshold=0)
FINE = {
    "alone": lambda: clone(MODEL).fit(X, Y),
    "private step": lambda: make_pipeline(SCALER, MODEL).fit(X, Y)[-1],
    "cached": lambda: make_pipeline(PrivateImputer(bounds=(-1.0, 1.0)), SCALER, MODEL, memory=None).fit(X, Y)[-1],
    "row by row": lambda: make_pipeline(PolynomialFeatures(2), FunctionTransformer(np.abs), MODEL).fit(X, Y)[-1],
    "clipped": lambda: make_pipeline(ColumnClipper(-1.0, 1.0), "passthrough", MODEL).fit(X, Y)[-1],
    "columns": lambda: make_pipeline(COLUMNS, MODEL).fit(X, Y)[-1],
    "columns of an array": lambda: make_pipeline(
        ColumnTransformer([("a", SCALER, [0])], remainder="passthrough"), SCALER, MODEL
    ).fit(X, Y)[-1],
    "declared": lambda: make_pipeline(OneHotEncoder(categories=[[0, 1]]), MODEL).fit(Y[:, None], Y)[-1],
    "leaky steps behind": lambda: make_pipeline(SCALER, StandardScaler()).fit(X, Y)[0],
    "nested": lambda: make_pipeline(make_pipeline(Normalizer(), SCALER), MODEL).fit(X, Y)[-1],
    "a threshold": lambda: FixedThresholdClassifier(MODEL, threshold=0.4).fit(X, Y).estimator_,
    "target by a function": lambda: (
        TransformedTargetRegressor(RIDGE, func=np.arctan, inverse_func=np.tan, check_inverse=False)
        .fit(X, X[:, 0])
        .regressor_
    ),
    "somebody's own": lambda: Wrapped(MODEL).fit(X, Y).estimator_,
    "private search": lambda: make_pipeline(SCALER, PrivateSearchCV(MODEL, {"alpha": [1.0]}, n_iter=2)).fit(X, Y)[-1],
}


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
@pytest.mark.parametrize("case", FINE)
def test_what_treats_rows_one_by_one_or_privately_is_not(case):
    """No warning, which would be an error here."""
    assert FINE[case]().guarantee_.leaks == ()


SCORES = {
    "cross_val_score": lambda **how: cross_val_score(MODEL, X, Y, cv=TWO, **how),
    "learning_curve": lambda **how: learning_curve(MODEL, X, Y, cv=TWO, train_sizes=[0.9], **how),
    "validation_curve": lambda **how: validation_curve(
        MODEL, X, Y, cv=TWO, param_name="alpha", param_range=[1.0], **how
    ),
    "permutation_test_score": lambda **how: permutation_test_score(MODEL, X, Y, cv=TWO, n_permutations=1, **how),
    "cross_val_predict": lambda **how: cross_val_predict(MODEL, X, Y, cv=TWO, **how),
}


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
@pytest.mark.parametrize("name", SCORES)
def test_functions_that_fit_and_score_are_warned_of_by_their_name(name):
    with pytest.warns(PrivacyLeakWarning, match=f"^{name} ") as caught:
        SCORES[name]()
    assert {one.filename for one in caught if one.category is PrivacyLeakWarning} == {__file__}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")  # shown by the other processes
def test_folds_and_parts_in_other_processes_are_noticed_too():
    folds = cross_validate(MODEL, X, Y, cv=TWO, return_estimator=True, n_jobs=2)["estimator"]
    assert "exact scores of held-out rows" in folds[0].guarantee_.leaks[0]
    parts = OneVsRestClassifier(MODEL, n_jobs=2).fit(X, np.arange(400) % 3).estimators_
    assert "_fit_binary of scikit-learn" in parts[0].guarantee_.leaks[0]


def test_models_that_a_search_compares_are_silent_and_the_winner_is_not():
    search = GridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, cv=TWO)
    with pytest.warns(PrivacyLeakWarning) as caught:
        search.fit(X, Y)
    assert [warning.category for warning in caught].count(PrivacyLeakWarning) == 1
    assert "4 other models" in search.best_estimator_.guarantee_.leaks[1]


def test_what_is_noticed_does_not_depend_on_the_rows():
    """Neighbouring tables, one hostile: the same warnings and the same leaks."""
    hostile = X.copy()
    hostile[0] = [1e308, -1e308, 5e-324]

    def told(table):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make_pipeline(Normalizer(), StandardScaler(), MODEL).fit(table, Y)[-1]
        return {str(one.message) for one in caught if one.category is PrivacyLeakWarning}, model.guarantee_.leaks

    assert told(X) == told(hostile)


def test_a_statement_of_the_pipeline_is_refused_where_a_leak_was_named():
    with pytest.warns(PrivacyLeakWarning):
        pipeline = make_pipeline(StandardScaler(), MODEL).fit(X, Y)
    with pytest.raises(ValueError, match="PrivateScaler"):
        pipeline_guarantee(pipeline)
