"""What the models of a cross-validation promise together: only if no row decides where another row goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import is_classifier
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from discreet.preprocessing.pipeline import compose_guarantees, pipeline_guarantee
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation

# Their parts are sets of positions, made from the number of rows and from random numbers. Exact types.
BY_POSITION = (KFold, LeaveOneOut, LeavePOut, PredefinedSplit, RepeatedKFold, ShuffleSplit, TimeSeriesSplit)


def folds_guarantee(models: Sequence[Any], cv: Any, delta: float | None = None) -> Guarantee:
    """Return the guarantee of all models of one cross-validation together.

    A row is in the training part of several models, so their costs compose. `KFold` leaves each row out of one part,
    which makes it one model less. Splitters that look at the labels or at groups are refused: if one label changes,
    other rows change their folds as well, and the guarantees of the models, which are for one changed row, say nothing
    about that.

    Guarantee: holds for all models together, under "replace" and "zero_out". Scores on held-out rows are not covered:
    they are exact.

    Parameters
    ----------
    models : sequence of fitted estimators or pipelines
        One for each training part, as `cross_validate(..., return_estimator=True)["estimator"]` returns them.
    cv : int, None or splitter of scikit-learn
        What was passed to `cross_validate`. A number or None stands for `StratifiedKFold` where the models classify,
        and so is refused there.
    delta : float, optional
        The delta of the statement; None takes the largest of the models' deltas.

    Returns
    -------
    Guarantee
        Of all models together.

    Raises
    ------
    ValueError
        If the splitter or the relation allows no statement; the message says what to use instead.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold, cross_validate
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import folds_guarantee
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-1.0, 1.0), classes=[0, 1])
    >>> cv = KFold(4, shuffle=True)
    >>> models = cross_validate(model, X, X[:, 0] > 0.0, cv=cv, return_estimator=True)["estimator"]
    >>> round(folds_guarantee(models, cv).epsilon, 2)  # of three models, as each row is missing in one of four
    1.81
    """
    promises = [pipeline_guarantee(model) for model in models]
    if not promises:
        raise ValueError("models is empty; pass those that cross_validate(..., return_estimator=True) returns.")
    splitter = _splitter(cv, is_classifier(models[0]))
    if type(splitter) not in BY_POSITION:
        raise ValueError(
            f"no statement can be made: {type(splitter).__name__} is not known to split by position alone, so that one "
            "row may move others between the folds; use cv=KFold(...)."
        )
    if any(promise.relation is Relation.ADD_REMOVE for promise in promises):
        raise ValueError(
            "no statement can be made: a row more or less moves other rows between the folds; use relation='replace'."
        )
    if any(promise.unit == "person" for promise in promises):
        raise ValueError(
            "no statement can be made: the models promise for whole persons, and the folds divide rows; split the "
            "persons yourself and compose one guarantee for each part."
        )
    same = all(promise.event == promises[0].event for promise in promises)
    seen = promises[1:] if type(splitter) is KFold and same and len(promises) > 1 else promises
    return compose_guarantees(seen, delta)


def _splitter(cv: Any, classifier: bool) -> Any:
    """What scikit-learn makes of a number or None; anything else as it is."""
    if cv is None or isinstance(cv, int):
        return StratifiedKFold() if classifier else KFold()
    return cv
