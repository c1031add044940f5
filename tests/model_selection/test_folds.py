"""Models of a cross-validation: what they cost together, and why folds made from labels allow no statement."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_validate,
)

from discreet import LogisticRegression, PrivacyLeakWarning, Ridge
from discreet.model_selection import folds_guarantee
from discreet.model_selection.private_scores import BY_POSITION
from discreet.privacy import accounting
from discreet.privacy.relation import Relation

ROWS, CHANGED, DELTA = 60, 14, 1e-6  # the row whose label differs between two tables
SPLITTERS = [
    KFold(5),
    KFold(5, shuffle=True, random_state=0),
    RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    ShuffleSplit(4, random_state=0),
    LeaveOneOut(),
    LeavePOut(1),
    TimeSeriesSplit(3),
    PredefinedSplit(np.arange(ROWS) % 4),
]


pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # small tables


def training_parts(cv, y):
    return [frozenset(train.tolist()) for train, _ in cv.split(np.zeros((y.size, 1)), y)]


def rows_that_moved(cv, y, other):
    """How many other rows than the changed one are in a training part for one table and not for the other."""
    pairs = zip(training_parts(cv, y), training_parts(cv, other), strict=True)
    return max(len((one ^ two) - {CHANGED}) for one, two in pairs)


def labels_and_neighbour():
    labels = np.arange(ROWS) % 2
    other = labels.copy()
    other[CHANGED] = 1
    return labels, other


def test_every_splitter_that_is_accepted_ignores_the_rows():
    assert {type(cv) for cv in SPLITTERS} == set(BY_POSITION)
    labels, other = labels_and_neighbour()
    assert [rows_that_moved(cv, labels, other) for cv in SPLITTERS] == [0] * len(SPLITTERS)
    assert rows_that_moved(StratifiedKFold(5), labels, other) == 4
    assert rows_that_moved(StratifiedKFold(5, shuffle=True, random_state=0), labels, other) > 5
    assert rows_that_moved(StratifiedShuffleSplit(2, random_state=0), labels, other) > 5


def most_revealing_columns(cv, y, other):
    """Two neighbouring columns of numbers in [-1, 1] that move the sum of one training part as far as the folds allow.

    The attacker knows all rows but one: those that leave the part are 1, those that join it -1.
    """
    pairs = list(zip(training_parts(cv, y), training_parts(cv, other), strict=True))
    one, two = max(pairs, key=lambda pair: len((pair[0] ^ pair[1]) - {CHANGED}))
    column = np.array([float(i in one - two) - float(i in two - one) for i in range(ROWS)])
    neighbour = column.copy()
    column[CHANGED], neighbour[CHANGED] = 1.0, -1.0
    return column, neighbour


def epsilon_spent(cv, columns, labels):
    """Epsilon of noisy sums of all training parts, with noise for which epsilon 1 is booked: the exact one, by formula.

    One replaced row moves a sum by 2 at most, and is missing in one part. The moves over the deviation of the noise
    are the mu that these two tables really spend.
    """
    parts = [training_parts(cv, y) for y in labels]
    moves = [columns[0][list(one)].sum() - columns[1][list(two)].sum() for one, two in zip(*parts, strict=True)]
    each = accounting.gaussian_mu(1.0, DELTA) / math.sqrt(len(moves) - 1)
    return accounting.gaussian_epsilon(DELTA, each * float(np.linalg.norm(moves)) / 2.0)


@pytest.mark.parametrize(
    ("cv", "least"), [(StratifiedKFold(5), 1.8), (StratifiedKFold(5, shuffle=True, random_state=0), 5.0)]
)
def test_folds_made_from_labels_spend_more_than_is_booked(cv, least):
    labels = labels_and_neighbour()
    columns = most_revealing_columns(cv, *labels)
    assert epsilon_spent(cv, columns, labels) > least
    for by_position in SPLITTERS[:2]:
        assert epsilon_spent(by_position, columns, labels) <= 1.0 + 1e-9


def test_a_row_more_moves_other_rows_between_folds():
    """Contiguous folds, too: so `add_remove` is refused for every splitter."""
    parts = training_parts(KFold(5), np.zeros(ROWS)), training_parts(KFold(5), np.zeros(ROWS + 1))
    old_rows = [part - {ROWS} for part in parts[1]]  # the new row comes last
    assert max(len(one ^ two) for one, two in zip(parts[0], old_rows, strict=True)) == 2
    X, y = np.zeros((ROWS, 1)), np.arange(ROWS) % 2
    model = LogisticRegression(classes=[0, 1], bounds=(0.0, 1.0), relation="add_remove", public_n=ROWS)
    with pytest.raises(ValueError, match="a row more or less moves other rows"):
        folds_guarantee(models_of(model, X, y, KFold(3)), KFold(3))


def models_of(model, X, y, cv, **arguments):
    with pytest.warns(PrivacyLeakWarning, match="cross_validate computes exact scores"):
        return cross_validate(model, X, y, cv=cv, return_estimator=True, **arguments)["estimator"]


def test_the_models_of_all_folds_compose():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (600, 2))
    y = (X[:, 0] > 0.0).astype(int)
    model = LogisticRegression(epsilon=0.5, delta=DELTA, classes=[0, 1], bounds=(-1.0, 1.0))
    four = models_of(model, X, y, KFold(4))
    event = four[0].guarantee_.event

    def cost(times):
        return pytest.approx(accounting.epsilon_of(accounting.compose([event] * times), DELTA, Relation.REPLACE))

    assert folds_guarantee(four, KFold(4)).epsilon == cost(3)  # each row is missing in one part
    shuffles = ShuffleSplit(4, test_size=150)
    assert folds_guarantee(models_of(model, X, y, shuffles), shuffles).epsilon == cost(4)
    uneven = models_of(clone(model).set_params(delta=None), X, y, KFold(7))  # delta = 1/n^2, for parts of two sizes
    every = accounting.compose([one.guarantee_.event for one in uneven])
    assert folds_guarantee(uneven, KFold(7)).event == every


def test_splitters_that_look_at_labels_or_groups_are_refused():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    y = np.arange(200) % 2
    models = models_of(LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0)), X, y, 3)
    for cv in (3, None, StratifiedKFold(3), GroupKFold(3), [(np.arange(100), np.arange(100, 200))]):
        with pytest.raises(ValueError, match=r"not known to split by position alone.* use cv=KFold"):
            folds_guarantee(models, cv)
    with pytest.raises(ValueError, match="models is empty"):
        folds_guarantee([], KFold(3))
    numbers = models_of(Ridge(bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0)), X, y, 3)
    assert folds_guarantee(numbers, 3).epsilon > 1.2  # a number means KFold for regressors
