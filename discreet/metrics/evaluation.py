"""Private evaluation of a model: all its figures, with confidence limits, from one release.

Of rows that lie on workers or in files, sums over blocks of them are enough. Theorems and proofs:
docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from discreet._common.checks import number_in
from discreet._common.docstrings import with_options
from discreet._common.types import BoolArray, FloatArray
from discreet.data.invalid_rows import MISSING_LABEL, label_codes, read_rows, target_numbers
from discreet.data.loading import on_gpu, table_elsewhere
from discreet.data.public import Public, check_complete_bounds
from discreet.data.rows import Data, Rows
from discreet.data.validation import check_weights, is_neutral, validate_features
from discreet.estimators.base import PrivateLinearModel
from discreet.estimators.fingerprint import fingerprint
from discreet.metrics import classification, ranking, regression
from discreet.metrics.classification import ClassifierMeasure
from discreet.metrics.deviances import SQUARED, Deviance, deviance_of
from discreet.metrics.record import BEYOND, DEVIANCES, ERRORS, Evaluation
from discreet.metrics.regression import RegressorMeasure
from discreet.metrics.released_sums import (
    NoisySums,
    check_one_each,
    look_noise,
    plan_sums,
    release_sums,
    sensitivity_of,
    totals_of,
)
from discreet.preprocessing.pipeline import pipeline_guarantee
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan

LARGEST_FLOOR = 0.5  # of `least_probability`: above it, every prediction for two classes would have the same loss


@with_options
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    epsilon: Any = 1.0,
    delta: float | None = None,
    *,
    figures: Sequence[str] | None = None,
    confidence: float = 0.95,
    least_probability: float = 0.01,
    edges: Sequence[float] | None = None,
    y_bounds: Any = None,
    largest_error: float | None = None,
    relation: Any = "replace",
    public_n: int | None = None,
    sample_weight: Any = None,
    invalid_rows: str = "error",
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Return figures of a model on private rows: accuracy, log-loss, ROC and calibration curves, R2 or D2.

    A look at where errors or scores lie and noisy sums are released; everything else follows from them, the comparison
    with the best constant prediction included. Intervals cover the noise and the random draw of the rows.

    Guarantee: the result is differentially private as its `guarantee` states. The model counts as public.

    Parameters
    ----------
    model : fitted estimator, pipeline or search of discreet
        What is evaluated; its predictions must depend on single rows, so steps that do not are refused.
    X : array, sparse matrix or table of shape (n_samples, n_features), or Dask frame or array
        The private rows to evaluate on. A `pyarrow.dataset` (Parquet files) is read block by block.
    y : array of shape (n_samples,), or str
        Their labels or targets; with a Dask frame or a data set the name of their column. A label that the model does
        not know counts as predicted wrongly; with invalid_rows="neutral" one that is missing makes an empty row. All
        figures, those of the best constant among them, are then about the rows that can be read.
    epsilon : float or Budget, default=1.0
        Privacy budget of this release.
    figures : list of str, optional
        For classifiers, some of "accuracy", "log_loss" and "curves" (ROC and calibration, two classes): fewer have
        less noise. The accuracy and the confusion matrix are always there. None takes all that the model has.
    confidence : float, default=0.95
        The probability with which an interval holds.
    least_probability : float, default=0.01
        Probabilities are raised to this before the log-loss is taken, which bounds what one row can add to it.
    edges : sequence of float, optional
        Thresholds of `decision_function` at which the curves are released; None takes 17 from -4 to 4, which are
        log-odds, or from -2 to 2 for models without probabilities. Must not be chosen by looking at the rows.
    y_bounds : tuple (low, high), optional
        For regressors: public limits, to which targets and predictions are clipped. None takes those that the model
        was declared, or has learned privately.
    largest_error : float, optional
        For regressors: errors of the model and of the constant are clipped to this, in the unit of the target (with a
        deviance: to that of a target so far above the mean). None learns it privately, with a part of the budget. All
        figures are those of clipped errors. Must not be chosen by looking at the rows.

    Returns
    -------
    Evaluation
        `figures`, `confusion`, `roc`, `calibration` and `guarantee`; `print` shows a table.

    Raises
    ------
    ValueError
        The model has a step that treats rows together, or limits of the target are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.metrics import evaluate
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 3))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> settings = {"bounds": (-1.0, 1.0), "classes": [0, 1], "random_state": 0}  # a seed, so that this repeats
    >>> model = LogisticRegression(**settings).fit(X[:2000], y[:2000])
    >>> found = evaluate(model, X[2000:], y[2000:], epsilon=0.5, random_state=0)
    >>> accuracy = found["accuracy"]
    >>> bool(0.8 < accuracy.low < accuracy.value <= accuracy.high <= 1.0), found.beats_constant
    (True, True)
    >>> found.guarantee.epsilon
    0.5
    """
    failure = 1.0 - number_in("confidence", confidence, 0.5, 1.0 - 1e-9)
    pipeline_guarantee(model)  # refuses what does not treat every row on its own
    neutral = is_neutral(invalid_rows)
    elsewhere = rows_elsewhere(model, X, y, sample_weight, neutral)
    if neutral and elsewhere is None:
        X, y, sample_weight = _readable(model, X, y, sample_weight)
    rows, columns = (elsewhere.rows, elsewhere.columns) if elsewhere is not None else _shape(model, X, y)
    weight = None if sample_weight is None else check_weights(sample_weight, rows)
    public = Public.of(rows, columns, relation=relation, public_n=public_n, neutral=neutral)
    budget = budget_from(epsilon, delta, public.rows)
    weighted = neutral or weight is not None
    counted = public.relation is not Relation.REPLACE or weighted
    if is_classifier(model):
        measure: Any = _classifier_measure(model, figures, least_probability, edges)
        measure = with_rank_bins(measure, public, budget)
    else:
        y = _numbers(y) if elsewhere is None else None
        measure = _regressor_measure(model, figures, (y_bounds, largest_error), counted)
    plan = _planned(measure, public, budget)
    if elsewhere is not None:
        measure = replace(measure, model=_lean(_last_step(model)))
    known = None if counted else float(public.rows)
    about: dict[str, Any] = {"confidence": float(confidence), "rows": public.rows, "settings": {}}

    def sums_of(measured: Any) -> FloatArray:
        return _exact_sums(measured, X, y, weight) if elsewhere is None else totals(measured, elsewhere)

    with plan.booked("evaluate", ledger, dataset, random_state, _asked(measure)) as booking:
        seen = None
        if measure.look is not None:
            seen = release_sums(plan, sums_of(measure.look), known, booking.rng, look=True)
            measure = measure.after(seen, look_noise(plan))
        sums = release_sums(plan, sums_of(measure), known, booking.rng)
    about["settings"] = _seen(measure, seen, sums, failure)
    shown = _classification if is_classifier(model) else _regression
    about |= {"weighted": weighted, "model": _which(model), "guarantee": booking.guarantee}
    about["training_rows"] = _may_be_training_rows(model, booking.guarantee)
    return shown(measure, sums, failure, about)


def _readable(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The rows in memory with null rows in the places of those that cannot be read; every row has a weight."""
    inner = getattr(model, "best_estimator_", model)
    if not isinstance(inner, PrivateLinearModel):
        raise ValueError(
            f"invalid_rows='neutral' is for linear models alone, not {type(inner).__name__}, whose steps read rows in "
            "ways of their own."
        )
    if on_gpu(X):
        raise ValueError("invalid_rows='neutral' is for tables in the memory of the host; pass X.cpu().")
    target = partial(_known_labels, classes=inner.classes_) if is_classifier(inner) else target_numbers
    X, y, given = read_rows(X, y, {"sample_weight": sample_weight}, target)
    return X, y, given["sample_weight"]


def _known_labels(values: Any, classes: Any) -> tuple[Any, BoolArray]:
    """Labels for `codes_of`, in which one that is no class stays one; missing ones cannot be read."""
    known = np.empty(classes.size + 1, dtype=object)
    known[:] = [*classes.tolist(), object()]
    if values is None:
        return known[0], np.zeros(0, dtype=bool)
    codes = label_codes(values, classes)
    return known[codes], codes != MISSING_LABEL


def _planned(measure: Any, public: Public, budget: Budget) -> ReleasePlan:
    """What is released: all sums, and before them the look, if the measure has one."""
    if measure.look is None:
        return plan_sums(public, budget, measure.parts)
    share = ranking.LOOK_SHARE if isinstance(measure, ClassifierMeasure) else regression.LOOK_SHARE
    return plan_sums(public, budget, measure.parts, measure.look.parts, share)


def with_rank_bins(measure: ClassifierMeasure, public: Public, budget: Budget) -> ClassifierMeasure:
    """The measure with as many bins for the area under the curve as rows and noise allow; both are public."""
    if measure.edges is None:
        return measure
    some = replace(measure, groups=2, ranks=2)
    sensitivity = sensitivity_of(some.parts, public.relation)
    deviation = _planned(some, public, budget).mechanism.deviation(sensitivity)
    groups, ranks = ranking.rank_bins(public.rows, deviation)
    return replace(measure, groups=groups, ranks=ranks)


def _seen(measure: Any, seen: NoisySums | None, sums: NoisySums, failure: float) -> dict[str, Any]:
    """What a look says beside the limits that it has set: how many errors are clipped, at most."""
    if seen is None or not isinstance(measure, RegressorMeasure):
        return {}
    return {BEYOND: regression.share_beyond(measure, seen, sums, failure)}


def _may_be_training_rows(model: Any, promise: Guarantee) -> bool:
    """Whether the ledger says that the model was trained on as many rows of the same data set."""
    records = [getattr(_last_step(model), "guarantee_", None), promise]
    trained, evaluated = (None if each is None else each.release for each in records)
    if trained is None or evaluated is None or trained.ledger is None or evaluated.ledger is None:
        return False
    return bool(trained.ledger.dataset == evaluated.ledger.dataset and trained.rows == evaluated.rows)


def _shape(model: Any, X: Any, y: Any) -> tuple[int, int]:
    """Number of rows and columns; a table that the model cannot read is refused before anything is booked."""
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"model must be a classifier or a regressor; got {type(model).__name__}.")
    inner = getattr(model, "best_estimator_", model)
    linear = isinstance(inner, PrivateLinearModel)
    shape = np.shape(validate_features(inner, X, reset=False) if linear else X)
    if len(shape) != 2:
        raise ValueError(f"X must be a table of rows and columns; got the shape {shape}.")
    if len(y) != shape[0]:
        raise ValueError(f"y has {len(y)} values but X has {shape[0]} rows; pass one value per row.")
    return int(shape[0]), int(shape[1])


def _which(model: Any) -> str:
    """The fingerprint of a linear model; none for a pipeline, whose other steps decide as well."""
    inner = getattr(model, "best_estimator_", model)
    return fingerprint(inner) if isinstance(inner, PrivateLinearModel) else ""


def _classifier_measure(model: Any, figures: Any, least_probability: float, edges: Any) -> ClassifierMeasure:
    classes = tuple(np.asarray(model.classes_).tolist())
    possible = {"accuracy": True, "log_loss": hasattr(model, "predict_proba"), "curves": len(classes) == 2}
    has = [name for name, there in possible.items() if there]
    chosen = has if figures is None else [figures] if isinstance(figures, str) else list(figures)
    for name in chosen:
        if name not in has:
            raise ValueError(f"figures must be among {', '.join(has)} for this model; got {name!r}.")
    floor = number_in("least_probability", least_probability, 0.0, LARGEST_FLOOR, above=True)
    ends = classification.default_edges(model) if edges is None else _checked_edges(edges)
    return ClassifierMeasure(
        model, classes, ends if "curves" in chosen else None, floor if "log_loss" in chosen else None
    )


def _checked_edges(edges: Any) -> tuple[float, ...]:
    values = np.asarray(edges, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all() or not (np.diff(values) > 0.0).all():
        raise ValueError(f"edges must be finite numbers in increasing order, at least one; got {edges!r}.")
    return tuple(values.tolist())


def _regressor_measure(model: Any, figures: Any, limits: tuple[Any, float | None], counted: bool) -> RegressorMeasure:
    if figures is not None:
        raise ValueError("figures is for classifiers; a regressor has one error, and R2 or D2.")
    y_bounds, largest_error = limits
    bounds = check_complete_bounds(_target_bounds(model) if y_bounds is None else y_bounds, 1, "y_bounds")
    if bounds is None or not bounds[0][0] < bounds[1][0]:
        raise ValueError("y_bounds is missing: pass the public limits of the target, y_bounds=(low, high).")
    low, high = float(bounds[0][0]), float(bounds[1][0])
    deviance, centre = deviance_of(_last_step(model)), _centre(model, low, high)
    if deviance is not SQUARED and low < 0.0:
        low = 0.0
    if not centre > low or not centre < high:
        centre = 0.5 * (low + high)
    most = (high - low) ** 2 if deviance is SQUARED else float(deviance.of(high, centre))
    largest = None
    if largest_error is not None:
        error = number_in("largest_error", largest_error, 1e-6 * (high - low), high - low)
        largest = float(error**2 if deviance is SQUARED else deviance.of(centre + error, centre))
    kept = (low, high) if y_bounds is not None or _declared_bounds(model) else _possible(deviance)
    return RegressorMeasure(model, *kept, centre, most, counted, deviance, largest)


def _possible(deviance: Deviance) -> tuple[float, float]:
    """The targets that a family has: nothing is clipped to limits that the model has learned."""
    return (-math.inf if deviance is SQUARED else 0.0), math.inf


def _centre(model: Any, low: float, high: float) -> float:
    """What the model predicts where its columns tell nothing; the middle where that is unknown, or read from rows."""
    inner = _last_step(model)
    scaling = None if isinstance(getattr(inner, "y_bounds", None), str) else getattr(inner, "scaling_", None)
    return 0.5 * (low + high) if scaling is None else float(scaling.constant_prediction)


def _numbers(y: Any) -> FloatArray:
    """Targets as an array with one number per row; no message shows a value."""
    try:
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y holds something else than numbers; a regression needs a number per row.") from None
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim != 1:
        raise ValueError(f"y must be one number per row; got an array of shape {target.shape}.")
    if not np.isfinite(target).all():
        raise ValueError("y contains NaN or infinity; remove or correct those rows first.")
    return target


def _exact_sums(measure: Any, X: Any, y: Any, weight: FloatArray | None) -> FloatArray:
    """What the rows in memory add to all parts. Not private."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # warnings could tell about single rows
        warnings.simplefilter("ignore")
        try:
            found = measure.contributions(X, y)
        except (TypeError, ValueError):  # the message of a pipeline's step may show values, such as unknown categories
            raise ValueError("the model cannot predict all rows of X; model.predict(X) says why.") from None
        check_one_each(found, len(y))
    return totals_of(measure.parts, found, weight)


def _last_step(model: Any) -> Any:
    """The estimator that predicts: the last step of a pipeline, the winner of a search."""
    inner = model.steps[-1][1] if hasattr(model, "steps") else model
    return getattr(inner, "best_estimator_", inner)


def _asked(measure: Any) -> Any:
    """The measure with the numbers of the model in its place: what tells two evaluations under one seed apart.

    With the same noise in both, their difference would be free of it for whoever sees the two, without the seed. Single
    precision, since machines that differ in the last digits of a fit should draw the same noise.
    """
    inner = _last_step(measure.model)
    numbers = [np.asarray(getattr(inner, name, np.nan), dtype=np.float32) for name in ("coef_", "intercept_")]
    return replace(measure, model=numbers)


def _declared_bounds(model: Any) -> Any:
    """The limits of the target that a model was declared; None where there are none, or they were read from rows."""
    declared = getattr(_last_step(model), "y_bounds", None)
    return None if isinstance(declared, str) else declared


def _target_bounds(model: Any) -> Any:
    """The limits that a model was declared or has learned privately; None where they were read from rows."""
    inner = _last_step(model)
    scaling = getattr(inner, "scaling_", None)
    if isinstance(getattr(inner, "y_bounds", None), str):
        return None
    declared = _declared_bounds(model)
    if declared is not None or scaling is None:
        return declared
    ends = (scaling.target_low, scaling.target_high)
    return ends if all(math.isfinite(end) for end in ends) else None


def _classification(measure: ClassifierMeasure, sums: NoisySums, failure: float, about: Any) -> Evaluation:
    """All figures of a classifier, from what was released."""
    count, floor, edges = len(measure.classes), measure.least_probability, measure.edges
    found = classification.accuracies(sums, count, failure)
    settings: dict[str, Any] = about.pop("settings")
    if floor is not None:
        found |= classification.log_losses(sums, count, floor, failure)
        settings["least_probability"] = floor
    if edges is not None:
        found["roc_auc"] = ranking.area_under_curve(sums, failure)
        settings["edges"] = list(edges)
    calibrated = edges is not None and hasattr(measure.model, "predict_proba")
    return Evaluation(
        figures=found,
        classes=measure.classes,
        confusion=tuple(map(tuple, classification.confusion(sums, count, failure))),
        roc=() if edges is None else classification.roc_points(sums, edges, failure),
        calibration=classification.calibration_bins(sums, edges, failure) if calibrated and edges is not None else (),
        settings=settings,
        released=sums,
        **about,
    )


def _regression(measure: RegressorMeasure, sums: NoisySums, failure: float, about: Any) -> Evaluation:
    """All figures of a regressor, from what was released."""
    found = regression.regression_figures(measure, sums, failure)
    settings: dict[str, Any] = about.pop("settings")
    if math.isfinite(measure.high):
        settings["limits_of_the_target"] = [measure.low, measure.high]
    assert measure.largest is not None
    if measure.deviance is not SQUARED:
        settings[DEVIANCES] = measure.largest
    elif measure.largest < measure.most:
        settings[ERRORS] = math.sqrt(measure.largest)
    return Evaluation(found, (), (), (), (), settings=settings, released=sums, **about)


# Of a fitted model: what predictions do not need, and what must not travel.
NOT_NEEDED = ("solution_", "plan_", "stream_", "_guarantee", "_plan_facts", "feature_names_in_")
PARAMETERS = ("ledger", "dataset", "random_state", "public_table", "start")


def rows_elsewhere(model: Any, X: Any, y: Any, sample_weight: Any, neutral: bool = False) -> Rows | None:
    """The checked rows of a Dask or stored table, with numbers for the model's classes; None if X is in memory.

    A label that is none of them gets the next number, as in memory.
    """
    inner = getattr(model, "best_estimator_", model)
    classes = getattr(inner, "classes_", None)
    table = table_elsewhere(X, y, classes=classes, neutral=neutral)
    if table is None:
        return None
    if sample_weight is not None:
        raise ValueError("sample_weight is for tables in memory; a table that is read block by block has none.")
    if not isinstance(inner, PrivateLinearModel):
        kind = type(inner).__name__
        raise ValueError(f"a table that is read block by block is evaluated for linear models alone, not {kind}.")
    if table.schema.target.name is None:
        raise ValueError("y is missing: pass the name of the target's column, or a Dask series cut like X.")
    names = getattr(inner, "feature_names_in_", None)
    if len(table.names) != inner.n_features_in_ or (table.named and names is not None and table.names != [*names]):
        raise ValueError("the columns of the table are not those that the model was trained on, in that order.")
    if neutral and classes is not None:
        return table.encoded(partial(_codes_or_nan, classes=classes))
    return table.encoded(np.asarray if classes is None else partial(_codes, classes=tuple(classes.tolist())))


def totals(measure: Any, rows: Rows) -> FloatArray:
    """The exact sums of all parts of a release. Not private."""
    return rows.sum(partial(_block_totals, measure=measure))


def _codes(labels: Any, classes: tuple[Any, ...]) -> FloatArray:
    return classification.codes_of(labels, classes).astype(np.float64)


def _codes_or_nan(labels: Any, classes: Any) -> FloatArray:
    """The same with NaN for missing labels."""
    codes = label_codes(labels, classes)
    return np.where(codes == MISSING_LABEL, np.nan, np.where(codes < 0, classes.size, codes))


def _lean(model: PrivateLinearModel) -> PrivateLinearModel:
    """A copy with nothing but what predictions need: all of that is released."""
    lean = copy.copy(model)
    for name in NOT_NEEDED:
        lean.__dict__.pop(name, None)
    for name in PARAMETERS:
        setattr(lean, name, None)
    return lean


def _block_totals(block: Data, measure: Any) -> FloatArray:
    labels = block.y
    if is_classifier(measure.model):
        known = np.empty(len(measure.classes) + 1, dtype=object)
        known[:] = [*measure.classes, object()]  # a label that no model knows
        labels = known[block.y.astype(np.int64)]
    with np.errstate(all="ignore"):  # a warning could tell about single rows
        found = measure.contributions(block.X, labels)
    check_one_each(found, block.rows)
    return totals_of(measure.parts, found, block.weight)
