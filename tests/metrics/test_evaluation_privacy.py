"""What one row can do to an evaluation: no more than the noise is made for, whatever the row is."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, LogisticRegression
from discreet._common.exceptions import DiscreetWarning
from discreet.data.public import Public
from discreet.metrics import evaluate
from discreet.metrics.classification import ClassifierMeasure, codes_of
from discreet.metrics.deviances import GAMMA, POISSON
from discreet.metrics.ranking import ScoreLook
from discreet.metrics.regression import ErrorLook, RegressorMeasure
from discreet.metrics.released_sums import check_one_each, grid_of, plan_sums, release_sums, sensitivity_of, totals_of
from discreet.privacy import accounting
from discreet.privacy.mechanisms import Gaussian, Laplace
from discreet.privacy.relation import Relation
from tests.metrics_tools import StubClassifier, StubRegressor

CLASSIFIER = ClassifierMeasure(StubClassifier(), (0, 1), (-1.0, 0.0, 1.0), 0.01, 2, 2, np.array([-2.0, 0.1, 0.2]))
SCORES = ScoreLook(StubClassifier(), (0, 1))
REGRESSOR = RegressorMeasure(StubRegressor(), -1.0, 1.0, 0.1, 4.0, True, largest=0.49)
COUNTS = RegressorMeasure(StubRegressor(), 0.0, np.inf, 0.5, 40.0, True, POISSON, 3.0)
AMOUNTS = RegressorMeasure(StubRegressor(), 0.0, np.inf, 0.5, 40.0, True, GAMMA, 3.0)
MEASURES = {
    "classifier": CLASSIFIER,
    "scores": SCORES,
    "regressor": REGRESSOR,
    "counts": COUNTS,
    "amounts": AMOUNTS,
    "errors": ErrorLook(REGRESSOR),
    "deviances": ErrorLook(COUNTS),
}
HOSTILE = [0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, 0.3, -40.0]


def contribution(measure, x, y, weight):
    """What a row adds to the release, each part times its weight."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = measure.contributions(np.array([[x]]), np.array([y], dtype=object if y is None else None))
    totals = [part.weight * found[part.name].total(part, np.array([weight])) for part in measure.parts]
    return np.concatenate(totals)


def sensitivity(measure, relation):
    return sensitivity_of(measure.parts, relation)


def contributions_of_hostile_rows(measure):
    labels = isinstance(measure, ClassifierMeasure | ScoreLook)
    targets = [0, 1, 7, -3.5] if labels else [0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 0.2]
    return np.array([contribution(measure, x, y, v) for x in HOSTILE for y in targets for v in (1.0, 0.37, 0.0)])


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_no_row_moves_the_sums_further_than_the_sensitivity(measure):
    rows = contributions_of_hostile_rows(measure)
    assert np.isfinite(rows).all()
    assert (rows >= 0.0).all()
    vanished, replaced = sensitivity(measure, Relation.ZERO_OUT), sensitivity(measure, Relation.REPLACE)
    assert sensitivity(measure, Relation.ADD_REMOVE) == vanished
    moves = np.abs(rows[:, None, :] - rows[None, :, :])
    largest = np.linalg.norm(rows, axis=1).max(), rows.sum(axis=1).max()
    assert largest[0] <= vanished.l2 + 1e-12
    assert largest[1] <= vanished.l1 + 1e-12
    pairs = np.linalg.norm(moves, axis=2).max(), moves.sum(axis=2).max()
    assert pairs[0] <= replaced.l2 + 1e-12
    assert pairs[1] <= replaced.l1 + 1e-12
    # The bounds are no larger than they must be, and half of them would be too small.
    assert min(largest[0] / vanished.l2, pairs[0] / replaced.l2) > 0.7


def test_a_null_row_adds_nothing():
    for measure in MEASURES.values():
        assert (contribution(measure, 1.0, 1, 0.0) == 0.0).all()


def sums_plan(mechanism, relation):
    plan = plan_sums(Public(50, 1, relation), Budget(1.0, 1e-6), CLASSIFIER.parts, SCORES.parts, 0.1)
    return replace(plan, mechanisms={"look": replace(mechanism, multiplier=9.0), "mechanism": mechanism})


@pytest.mark.parametrize("mechanism", [Gaussian(3.0), Laplace(3.0)], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_noise_is_what_the_event_says(mechanism, relation):
    """Noise over sensitivity, as released, is the multiplier that is booked."""
    plan = sums_plan(mechanism, relation)
    for own, measure in ((plan.look, SCORES), (plan.mechanism, CLASSIFIER)):
        norm, grid = sensitivity(measure, relation), grid_of(own, measure.parts, relation)
        wanted = own.multiplier * (norm.l1 if isinstance(own, Laplace) else norm.l2)
        assert wanted <= grid.scale == pytest.approx(wanted, rel=1e-5)
    leaves = [leaf for leaf, _ in accounting.flatten(plan.event)]
    assert sorted(leaf.noise_multiplier for leaf in leaves) == [3.0, 9.0]


@pytest.mark.parametrize("budget", [Budget(0.5, 1e-6), Budget.pure(0.5), Budget.zcdp(0.1)], ids=lambda b: b.kind)
def test_look_and_sums_together_keep_the_budget(budget):
    """And they use nearly all of it; without the look's part of the noise they would exceed it."""
    plan = plan_sums(Public(50, 1), budget, CLASSIFIER.parts, SCORES.parts, 0.1)
    assert accounting.fits(plan.event, budget, plan.relation)
    assert not accounting.fits(plan.event, budget.part(0.99), plan.relation)
    alone = plan_sums(Public(50, 1), budget, CLASSIFIER.parts)
    careless = replace(plan, mechanisms=dict(plan.mechanisms) | {"mechanism": alone.mechanism})
    assert not accounting.fits(careless.event, budget, plan.relation)


def test_released_sums_have_the_noise_they_state():
    """Means and deviations within 5 standard errors, a false alarm below 1e-5; half the noise fails."""
    from discreet.privacy.random.generator import generator_from

    plan = sums_plan(Gaussian(2.0), Relation.REPLACE)
    X, y = np.linspace(-2.0, 2.0, 50)[:, None], np.arange(50) % 2
    found = CLASSIFIER.contributions(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        rng = generator_from(0)
    exact = totals_of(CLASSIFIER.parts, found, None)
    drawn = [release_sums(plan, exact, 50.0, rng) for _ in range(100)]
    errors = np.array([(sums.values - exact) / sums.deviations for sums in drawn])
    assert abs(errors.mean()) < 5.0 / np.sqrt(errors.size)
    assert abs(errors.std() - 1.0) < 5.0 / np.sqrt(2.0 * errors.size)
    assert abs(0.5 * errors.std() - 1.0) > 5.0 / np.sqrt(2.0 * errors.size)


def test_a_measure_that_mixes_rows_is_stopped():
    """A column of targets makes a matrix of differences; a row would add to as many terms as there are rows."""
    X = np.linspace(-1.0, 1.0, 6)[:, None]
    mixed = REGRESSOR.contributions(X, X)
    with pytest.raises(RuntimeError, match="nothing was released"):
        check_one_each(mixed, 6)
    check_one_each(REGRESSOR.contributions(X, X[:, 0]), 6)
    check_one_each(CLASSIFIER.contributions(X, X[:, 0]), 6)


def test_strange_labels_are_no_error_and_have_a_bin():
    values = [0, 1, "1", None, np.nan, [1, 2], 2**70, True]
    assert codes_of(values, (0, 1)).tolist() == [0, 1, 2, 2, 2, 2, 2, 1]


def test_one_row_changes_no_message_and_no_figure_disappears(recwarn):
    """Tables that differ in one hostile row give the same kinds of results, without a warning."""
    from discreet import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (500, 2))
    y = (X[:, 0] > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1]).fit(X, y)
    shapes = []
    for entry, label in [(0.5, 1), (1e308, 0), (-1e308, 7), (5e-324, -1)]:
        table, labels = X.copy(), y.copy()
        table[3], labels[3] = entry, label
        found = evaluate(model, table, labels, 1.0)
        shapes.append((tuple(found.figures), len(found.roc), len(found.calibration), found.released.values.size))
        assert np.isfinite(found.released.values).all()
    assert len(set(shapes)) == 1
    assert len(recwarn) == 0


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")
def test_two_evaluations_under_one_seed_have_different_noise():
    """With the same noise in both, the difference of two releases would be exact, without knowing the seed."""
    from discreet import LogisticRegression, Ridge

    X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
    y = (X[:, 0] > 0.0).astype(int)
    settings = {"bounds": (-1.0, 1.0), "classes": [0, 1]}
    models = [LogisticRegression(**settings).fit(X, labels) for labels in (y, 1 - y)]

    def released(model, target, **asked):
        return evaluate(model, X, target, 1.0, random_state=0, **asked).released.values

    first = released(models[0], y)
    assert (first == released(models[0], y)).all()
    others = [released(models[1], y)]
    others += [released(models[0], y, **asked) for asked in ({"least_probability": 0.02}, {"edges": np.arange(17.0)})]
    assert not any(_whole(first[:5] - other[:5]) for other in others)
    ridge = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
    targets = [released(ridge, X[:, 0], **asked) for asked in ({}, {"largest_error": 1.0}, {"y_bounds": (-2.0, 2.0)})]
    assert len({float(values[0] - targets[0][0]) for values in targets}) == 3
    assert abs(targets[0][2] - targets[1][2]) > 1e-6  # sums of squared targets: the errors' limit does not enter


def _whole(differences):
    """Whether noise has cancelled: counts differ by whole numbers."""
    return bool((np.abs(differences - np.rint(differences)) < 1e-6).all())


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
def test_no_message_shows_a_value_of_a_row():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from discreet import LogisticRegression

    X, y = np.array([["u"], ["v"]] * 200, dtype=object), np.arange(400) % 2
    encoder = OneHotEncoder(categories=[["u", "v"]], sparse_output=False)
    model = make_pipeline(encoder, LogisticRegression(bounds=(0.0, 1.0), classes=[0, 1])).fit(X, y)
    X[7] = "a rare disease"
    with pytest.raises(ValueError, match="cannot predict all rows") as caught:
        evaluate(model, X, y)
    assert "rare" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("columns", [5, 17, 50])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_row_more_changes_the_predictions_of_no_other(columns, outputs):
    """A product of matrices rounds the last rows differently; on an edge, each of them would change its bin."""
    rng = np.random.default_rng(columns)
    classes = list(range(max(outputs, 2)))
    model = LogisticRegression(classes=classes)
    model.coef_, model.intercept_ = rng.normal(size=(outputs, columns)), np.zeros(outputs)
    model.ranges_, model.n_features_in_ = (np.full(columns, -3.0), np.full(columns, 3.0)), columns
    model.classes_ = np.array(classes)
    for rows in range(20, 40):
        X = rng.normal(size=(rows, columns))
        scores = model.decision_function(X)
        assert np.array_equal(model.decision_function(X[1:]), scores[1:])
        assert np.array_equal(model.decision_function(np.asfortranarray(X)), scores)
