"""What the models of a cross-validation promise together, and scores that are private.

Models promise something together only if no row decides where another row goes. For private scores every fit and every
score is paid for; proof: docs/guarantees/evaluation.md, section 5.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
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
from sklearn.utils import _safe_indexing

from discreet._common.blocks import Groups, Shown, Text
from discreet._common.checks import number_in, whole
from discreet._common.docstrings import with_options
from discreet._common.types import FloatArray, IndexArray
from discreet.data.loading import split_target
from discreet.estimators.task import SHRINK
from discreet.metrics.released_sums import Counts, Limits
from discreet.model_selection.candidates import (
    checked_table,
    last_step,
    promise_of,
    readable,
    set_private,
    silenced,
    with_budget,
)
from discreet.model_selection.search import RowScore, TableShape, check_event, check_scorable
from discreet.preprocessing.pipeline import compose_guarantees, pipeline_guarantee
from discreet.privacy import accounting
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms import Additive, Laplace, additive, bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan

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
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold, cross_validate
    >>> from discreet import LogisticRegression, PrivacyLeakWarning
    >>> from discreet.model_selection import folds_guarantee
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-1.0, 1.0), classes=[0, 1])
    >>> cv = KFold(4, shuffle=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyLeakWarning)  # of exact scores, which are not covered
    ...     models = cross_validate(model, X, X[:, 0] > 0.0, cv=cv, return_estimator=True)["estimator"]
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


@dataclass(frozen=True, eq=False)
class PrivateScores(Shown):
    """Scores of a private cross-validation.

    Guarantee: the scores and the models are private together, as `guarantee` states.

    Attributes
    ----------
    scores : ndarray of shape (folds,)
        The noisy score of each fold, in the unit of `scoring`; larger is better.
    folds : tuple of Limits
        The same with confidence limits, each for the population score of that fold's model.
    mean : Limits
        Their mean, with limits for the mean of the population scores.
    scoring : str
        Which score.
    confidence : float
        The probability with which an interval holds.
    estimators : tuple
        The models, one for each fold; paid for like the scores. The promise to quote is `guarantee`.
    guarantee : Guarantee
        What is promised for all models and scores together.

    Examples
    --------
    See `cross_val_score_private`.
    """

    folds: tuple[Limits, ...]
    mean: Limits
    scoring: str
    confidence: float
    estimators: tuple[Any, ...]
    guarantee: Guarantee

    @property
    def scores(self) -> FloatArray:
        """The noisy score of each fold."""
        return np.array([fold.value for fold in self.folds])

    def _blocks(self) -> Groups:
        promise = self.guarantee
        lines = [
            f"{self.scoring}, mean of {len(self.folds)} folds: {_text(self.mean)}",
            *(f"fold {k + 1}: {_text(fold)}" for k, fold in enumerate(self.folds)),
            f"Each interval holds with probability {self.confidence:g}, over the noise and the draw of the rows.",
            f"Cost of all fits and scores: epsilon {promise.epsilon:g}, delta {promise.delta:g}, "
            f"relation {promise.relation}.",
        ]
        return [[Text(line) for line in lines]]


def _text(limits: Limits) -> str:
    return f"{limits.value:.4g} ({limits.low:.4g} to {limits.high:.4g})"


@with_options
def cross_val_score_private(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    scoring: str | None = None,
    epsilon: Any = 1.0,
    delta: float | None = None,
    score_share: float = 0.1,
    confidence: float = 0.95,
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> PrivateScores:
    """Return scores of a cross-validation, with noise, and paid for together with the fits.

    The rows are dealt out to folds at random, without looking at them. For each fold a private model of the other rows
    is fitted, and its score on the fold is released with noise.

    Guarantee: all scores and all models are differentially private together, as the `guarantee` of the result states.

    Parameters
    ----------
    estimator : estimator of discreet, or private Pipeline that ends in one
        A classifier with `classes=[...]`, or a regressor with `y_bounds=(low, high)`. Its own `epsilon` and `delta` are
        replaced (the private steps of a pipeline share the budget in the ratio of their epsilons); its relation must be
        "replace" or "zero_out".
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The private rows.
    y : array of shape (n_samples,)
        The target.
    cv : int, default=5
        Number of folds. Each row is in all training parts but one, so that few folds leave more budget for each fit.
    scoring : str, optional
        "accuracy" (the default of classifiers) or "neg_brier_score"; for regressors "neg_mean_absolute_error" (the
        default) or "neg_mean_squared_error", with errors limited to the width of `y_bounds`.
    epsilon : float or Budget, default=1.0
        Privacy budget of the whole: all fits and all scores.
    score_share : float, default=0.1
        Share of the budget for the scores; the rest is for the fits.
    confidence : float, default=0.95
        The probability with which an interval holds.
    ledger : Ledger or str, optional
        Where the cost of the whole is booked, once, before any row is used. Needs `dataset`.

    Returns
    -------
    PrivateScores
        `scores`, `mean` with limits, `estimators` and `guarantee`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import cross_val_score_private
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (5000, 3))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1])
    >>> found = cross_val_score_private(model, X, y, cv=3, epsilon=1.0, random_state=0)  # a seed: this repeats
    >>> found.scores.shape, bool(0.8 < found.mean.low < found.mean.high <= 1.0), found.guarantee.epsilon
    ((3,), True, 1.0)
    """
    check_scorable(estimator, "cross_val_score_private")
    relation, folds = Relation(last_step(estimator).relation), whole("cv", cv, least=2)
    if relation is Relation.ADD_REMOVE:
        raise ValueError("a row more or less moves other rows between the folds; use relation='replace'.")
    failure = 1.0 - number_in("confidence", confidence, 0.5, 1.0 - 1e-9)
    share = number_in("score_share", score_share, 1e-3, 0.999)
    score = RowScore.of(estimator, "accuracy" if scoring is None and is_classifier(estimator) else scoring)
    X, y = split_target(X, y)
    X, y, given = readable(estimator, X, y, {})
    table = checked_table(estimator, X, y, given)  # refuses a bad table before anything is released
    rows = table.rows
    if folds > rows.rows:
        raise ValueError(f"cv={folds} folds need at least as many rows; got {rows.rows}.")
    # Of a column every row would be compared with every other one; numbers may be texts until now, as for `fit`.
    y = np.ravel(y) if is_classifier(estimator) else np.ravel(y).astype(np.float64)
    budget = budget_from(epsilon, delta, rows.rows)
    sizes = [part.size for part in np.array_split(np.arange(rows.rows), folds)]
    classes = len(last_step(estimator).classes) if is_classifier(estimator) else 2
    told: dict[str, Any] = {"names": table.names, "booleans": table.booleans, "neutral": table.neutral}
    shapes = [TableShape(rows.rows, size, rows.columns, classes, rows.sparse, **told) for size in sizes]
    plan = plan_scores(estimator, shapes, budget, share)
    # Two scores have two noises.
    with plan.booked("cross_val_score_private", ledger, dataset, random_state, score) as booking:
        rng = booking.rng
        positions = fold_positions(rows.rows, folds, rng)
        models, totals = _run(estimator, (X, y, given.get("sample_weight")), positions, plan, score, rng)
    leaks = dict.fromkeys(leak for model in models for leak in promise_of(model).leaks)
    promise = replace(plan.guarantee, leaks=tuple(leaks), release=booking.record)
    return _scores(totals, sizes, plan.score, score, failure, (models, promise))


def plan_scores(estimator: Any, shapes: Sequence[TableShape], budget: Budget, share: float) -> ReleasePlan:
    """Share the budget among the fits that a row takes part in and one score.

    Guarantee: the composition of these keeps `budget`.
    """
    relation, folds = Relation(last_step(estimator).relation), len(shapes)
    for counted in (folds - 1, folds):  # a row is missing in one training part; all count if the fits differ
        for shrink in SHRINK:
            part = budget.part((1.0 - shrink) * (1.0 - share) / counted)
            score = additive(budget, (1.0 - shrink) * share)
            fits = tuple(shape.plan(clone(estimator), part, everything=False) for shape in shapes)
            equal = all(fit.event == fits[0].event for fit in fits)
            if counted < folds and not equal:
                break
            event = accounting.compose([*(fit.event for fit in fits[:counted]), score.event])
            if budget.is_infinite or accounting.fits(event, budget, relation):
                parts, inputs = {"fits": fits, "score": score}, shapes[0].public_inputs([estimator])
                return ReleasePlan("scores", shapes[0].public(relation), budget, parts, {"fit": part}, event, inputs)
    raise ValueError("the fits and scores of this cross-validation do not keep the budget; use another solver.")


def fold_positions(rows: int, folds: int, rng: RandomGenerator) -> list[IndexArray]:
    """Positions of the rows of each fold: random, and without looking at any row."""
    return [np.sort(part) for part in np.array_split(rng.permutation(rows), folds)]


def _run(
    estimator: Any,
    table: tuple[Any, Any, FloatArray | None],
    positions: list[IndexArray],
    plan: ReleasePlan,
    score: RowScore,
    rng: RandomGenerator,
) -> tuple[list[Any], FloatArray]:
    """The models, and the noisy sum of the scores of each fold's rows."""
    X, y, weight = table
    models, totals = [], []
    for planned, out in zip(plan.fits, positions, strict=True):
        kept = np.setdiff1d(np.arange(sum(part.size for part in positions)), out)
        model = silenced(with_budget(clone(estimator), planned.budget))
        set_private(model, random_state=None if rng.secure else rng)
        passed = {} if weight is None else {"sample_weight": weight[kept]}
        model.fit(_safe_indexing(X, kept), _safe_indexing(y, kept), **passed)
        check_event(model, planned)
        set_private(model, random_state=None)  # a generator belongs to this run, not to the model
        with warnings.catch_warnings():  # never shown: such a warning would come from the exact rows held out
            warnings.simplefilter("ignore")
            counted = np.ones(out.size) if weight is None else weight[out]
            exact = score.total(model, _safe_indexing(X, out), _safe_indexing(y, out), counted)
        totals.append(float(plan.score.release(rng, np.array([exact]), bounded_fractions(1))[0]))
        models.append(model)
    return models, np.array(totals)


def _scores(
    totals: FloatArray, sizes: list[int], noise: Additive, score: RowScore, failure: float, made: tuple[Any, Guarantee]
) -> PrivateScores:
    """Scores with limits, from the noisy sums."""
    deviation = noise.deviation(bounded_fractions(1))
    laplace = isinstance(noise, Laplace)
    shift = score.in_units(0.0)
    factor = score.in_units(1.0) - shift

    def limits(share: float, rows: float, spread: float) -> Limits:
        # Two bins that add up to the rows: of what is predicted well, and the rest. Their common noise is counted
        # twice and halved by the known sum.
        counts = Counts(np.array([share, 1.0 - share]) * rows, math.sqrt(2.0) * spread, laplace, float(rows))
        return counts.mean(np.array([1.0, 0.0]), np.ones(2), failure).scaled(factor, shift)

    shares = totals / np.array(sizes)
    folds = tuple(limits(share, rows, deviation) for share, rows in zip(shares.tolist(), sizes, strict=True))
    # The draws of different folds may depend on each other, so that their mean is taken to scatter as one fold does.
    mean = limits(float(shares.mean()), min(sizes), deviation / math.sqrt(len(sizes)))
    return PrivateScores(folds, mean, score.scoring, 1.0 - failure, tuple(made[0]), made[1])
