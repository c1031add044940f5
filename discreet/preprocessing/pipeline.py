"""What a whole pipeline promises: the events of all its steps, composed, or a refusal that names the step.

Beside private steps may stand those that treat every row on its own. A step that learned from the rows moves all rows
when one of them changes: a model behind it then sees two tables that differ everywhere, and its guarantee says nothing.
So there is a list of steps that are known to learn nothing from the rows, with the settings for which that is true;
everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.utils.validation import check_is_fitted

from discreet.estimators.reading.column_clipper import ColumnClipper
from discreet.preprocessing.base import PrivateTransformer
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, record_of_parts
from discreet.privacy.relation import Relation

LEARNED = "learned from the rows without noise, so no guarantee holds behind it"
EXACT_SCORES = "by exact scores of the rows, which no guarantee covers"

# By the names of classes and of their bases, so that nothing is imported for the sake of a message. A class that is not
# here is refused as well, in general words.
REASONS = {
    "BaseSearchCV": f"chose among settings {EXACT_SCORES}; use discreet.model_selection.PrivateSearchCV",
    "TunedThresholdClassifierCV": f"chose a threshold {EXACT_SCORES}; set one from public facts",
    "CalibratedClassifierCV": "fitted its calibration to exact scores of held-out rows, which no guarantee covers; use "
    "the probabilities of LogisticRegression as they are",
    "OneVsRestClassifier": "read from the rows which classes there are, and how many models to fit; use "
    "LogisticRegression(classes=[...], multi_class='ovr')",
    "OneVsOneClassifier": "read from the rows which classes there are, and how many models to fit; use "
    "LogisticRegression(classes=[...])",
    "OutputCodeClassifier": "read from the rows which classes there are, and how many models to fit; use "
    "LogisticRegression(classes=[...])",
    "BaseBagging": "draws rows with replacement, so that one row may count several times in a fit; fit one model with "
    "the whole budget",
    "VotingClassifier": "read from the rows which classes there are; fit the models one by one and pass them as also=",
    "VotingRegressor": "hides its parts; fit the models one by one and pass them as also=",
    "StackingClassifier": "fitted a model to predictions that depend on other rows; fit one model instead",
    "StackingRegressor": "fitted a model to predictions that depend on other rows; fit one model instead",
    "StandardScaler": f"{LEARNED}; use PrivateScaler",
    "MinMaxScaler": f"{LEARNED}; use PrivateScaler, or declare bounds",
    "MaxAbsScaler": f"{LEARNED}; use PrivateScaler, or declare bounds",
    "RobustScaler": f"{LEARNED}; use PrivateScaler",
    "QuantileTransformer": f"{LEARNED}; use PrivateQuantiles",
    "LinearClassifierMixin": f"{LEARNED}; use an estimator of discreet",
    "LinearModel": f"{LEARNED}; use an estimator of discreet",
}


def why_refused(step: Any) -> str | None:
    """Why nothing can be promised for rows that pass through this step; None if it treats each row on its own.

    Guarantee: a step for which this is None computes every row of its output from that row and from its parameters.
    """
    check = ROW_BY_ROW.get(type(step))
    if check is not None:
        return check(step)
    for base in type(step).__mro__:
        if base.__name__ in REASONS and base.__module__.startswith("sklearn."):
            return REASONS[base.__name__]
    return (
        "is not known to treat every row on its own; use a private step, or apply it to the rows before the pipeline "
        "if it learns nothing from them"
    )


def allow_row_by_row(kind: type) -> None:
    """Add a class of discreet, not its subclasses, that learns nothing from the rows, whatever its parameters."""
    ROW_BY_ROW[kind] = _always


def why_layout_leaks(columns: ColumnTransformer) -> str | None:
    """Why a column transformer tells something by itself: which columns it takes, or whether its result is sparse."""
    if any(callable(chosen) for _, _, chosen in columns.transformers):
        return "lets a function of the rows choose columns; name the columns"
    named = hasattr(columns, "feature_names_in_")  # a table with names is not a sparse matrix
    if columns.sparse_threshold == 0 or (named and not _has_sparse_output(columns)):
        return None
    return "decides by the exact density of the rows whether its result is sparse; set sparse_threshold=0"


def _has_sparse_output(columns: ColumnTransformer) -> bool:
    """Whether a part, at whatever depth, makes sparse columns of dense ones; of the allowed steps only one does."""
    parts = columns.get_params(deep=True).values()
    return any(isinstance(part, OneHotEncoder) and part.sparse_output for part in parts)


def _always(step: Any) -> None:
    """A step that learns nothing, whatever its parameters."""


def _encoder(step: OneHotEncoder | OrdinalEncoder) -> str | None:
    if isinstance(step.categories, str):
        return "learned its categories from the rows; declare them, categories=[...], or use DeclaredOneHotEncoder"
    if step.min_frequency is not None or step.max_categories is not None:
        return "counted the categories in the rows; leave out min_frequency and max_categories"
    return None


def _function(step: FunctionTransformer) -> str | None:
    functions = [step.func] if step.func is not None else []
    if step.kw_args or not all(_is_elementwise(function) for function in functions):
        return (
            "applies a function that may look at several rows; use a NumPy ufunc such as numpy.log1p, or apply it to "
            "the rows before the pipeline if it treats every row on its own"
        )
    return None


def _is_elementwise(function: Any) -> bool:
    return isinstance(function, np.ufunc) and function.nin == 1 and function.signature is None


def _imputer(step: SimpleImputer) -> str | None:
    if step.strategy != "constant" or not step.keep_empty_features or step.add_indicator:
        return (
            "learned from the rows what to fill in, or which columns are empty; use strategy='constant' with "
            "keep_empty_features=True and without an indicator, DeclaredImputer or PrivateImputer"
        )
    return None


def _random_features(step: RBFSampler) -> str | None:
    return "read the variance of the rows; set gamma to a number" if isinstance(step.gamma, str) else None


# Exact types: a subclass may do anything.
ROW_BY_ROW: dict[type, Callable[[Any], str | None]] = {
    Binarizer: _always,
    ColumnClipper: _always,
    FunctionTransformer: _function,
    Normalizer: _always,
    OneHotEncoder: _encoder,
    OrdinalEncoder: _encoder,
    PolynomialFeatures: _always,
    RBFSampler: _random_features,
    SimpleImputer: _imputer,
}


def check_pipeline(pipeline: Any) -> None:
    """Refuse a pipeline of which no statement could be made, before its budget is spent.

    Pipelines, feature unions and column transformers are opened. A part must be private, or be known to treat every
    row on its own: `Binarizer`, `Normalizer`, `PolynomialFeatures`, encoders with declared categories,
    `FunctionTransformer` with a NumPy ufunc, `SimpleImputer` with a constant, `RBFSampler` with a number as gamma,
    `DeclaredOneHotEncoder`, `DeclaredImputer`, `discreet.fairness.FairFeatures`.
    Anything else is refused, searches and ensembles of scikit-learn included.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted or not.

    Raises
    ------
    ValueError
        Names the first step that does not fit, why, and what to use instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discreet import LogisticRegression
    >>> from discreet.preprocessing import check_pipeline
    >>> check_pipeline(make_pipeline(StandardScaler(), LogisticRegression()))
    Traceback (most recent call last):
        ...
    ValueError: no statement can be made: step 'standardscaler' (StandardScaler) learned from the rows without noise, \
so no guarantee holds behind it; use PrivateScaler.
    """
    for path, step in _leaves(pipeline, ""):
        reason = None if is_private(step) else why_refused(step)
        if reason is not None:
            raise _refusal(path, step, reason)


def pipeline_guarantee(pipeline: Any, delta: float | None = None, also: Sequence[Any] = ()) -> Guarantee:
    """Return the guarantee of everything that a fitted pipeline learned from its training rows.

    Nested pipelines, feature unions and column transformers are opened. A step that learned from the rows
    without a guarantee of its own (scikit-learn's StandardScaler, say) is refused: it moves every row when one of them
    changes, so nothing holds for the steps behind it. Epsilons are not added: the events of all steps are composed and
    stated at one delta.

    Guarantee: holds for all private steps together, provided that all steps were fitted on the same rows. Under
    zero_out a null row is one of weight 0, so weights must have reached all private steps or none.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted; `check_pipeline` says before the fit whether a statement can be made.
    delta : float, optional
        The delta of the statement; None takes the largest of the parts' deltas.
    also : sequence of Released or of fitted private steps
        Releases from the same rows that came first: `private_smoothness` for a solver of the pipeline, say, or the
        `PrivateBounds` whose ranges were declared to it.

    Returns
    -------
    Guarantee
        Of all releases together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from discreet import LogisticRegression
    >>> from discreet.preprocessing import PrivateScaler, pipeline_guarantee
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> scaler = PrivateScaler(epsilon=0.5, bounds=(-1.0, 1.0), random_state=0)
    >>> model = LogisticRegression(epsilon=0.5, bounds=(-4.0, 4.0), classes=[0, 1], random_state=1)
    >>> pipeline = make_pipeline(scaler, model).fit(X, X[:, 0] > 0.0)
    >>> round(pipeline_guarantee(pipeline).epsilon, 2)  # less than the sum of the two
    0.72
    """
    check_is_fitted(pipeline)
    check_pipeline(pipeline)
    private = [step for _, step in _leaves(pipeline, "") if is_private(step)]
    if not private:
        raise ValueError("no step of the pipeline has a guarantee_: nothing in it is private.")
    _check_weights([*also, *private])
    return compose_guarantees([_promise(part) for part in (*also, *private)], delta)


def is_private(step: Any) -> bool:
    """Whether a step, fitted or not, states what it promises; a class from elsewhere is taken at its word."""
    planned = isinstance(step, PrivateTransformer) or hasattr(type(step), "guarantee_")
    return planned or isinstance(getattr(step, "guarantee_", None), Guarantee)


def _promise(part: Any) -> Guarantee:
    """The guarantee of a fitted step or of a release."""
    promise: Guarantee = part.guarantee_ if hasattr(part, "guarantee_") else part.guarantee
    return promise


def _check_weights(private: list[Any]) -> None:
    """A row that is null for one step and counts for another has been replaced there, not taken out."""
    weighted = {getattr(step, "weighted_", False) for step in private}
    if len(weighted) > 1 and any(_promise(step).relation is Relation.ZERO_OUT for step in private):
        raise ValueError(
            "sample_weight reached some private steps and not others, so relation='zero_out' does not hold for all; "
            "request it for every step (set_fit_request), or for none."
        )


def compose_guarantees(promises: list[Guarantee], delta: float | None) -> Guarantee:
    """One guarantee for releases that were made in this order."""
    relations = {promise.relation for promise in promises}
    if len(relations) > 1:
        raise ValueError(f"the steps use different relations, {sorted(map(str, relations))}; they do not compose.")
    units = {promise.unit for promise in promises}
    if len(units) > 1:
        raise ValueError(
            "some steps promise for persons and others for rows, so that nothing holds for a person with several rows; "
            "private steps before a fit with groups know rows alone: declare bounds to the model instead."
        )
    relation = relations.pop()
    event = accounting.compose([promise.event for promise in promises])
    delta = max(promise.delta for promise in promises) if delta is None else delta
    epsilon = accounting.epsilon_of(event, delta, relation)
    leaks = dict.fromkeys(leak for promise in promises for leak in promise.leaks)
    release = record_of_parts([promise.release for promise in promises])
    inputs = dict.fromkeys(what for promise in promises for what in promise.public_inputs)
    return Guarantee(epsilon, delta, relation, event, tuple(leaks), release, tuple(inputs), units.pop())


def _leaves(step: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every estimator that does the work, in the order fitted, with the path of names that leads to it."""
    parts = _parts(step, path)
    if parts is None:
        yield path, step
        return
    for name, part in parts:
        if part is not None and not isinstance(part, str):
            yield from _leaves(part, f"{path}.{name}" if path else str(name))


def _parts(step: Any, path: str) -> list[tuple[str, Any]] | None:
    """The named parts of a composite; None for any other step. Exact types: a subclass may do more."""
    if type(step) is Pipeline:
        return list(step.steps)
    if type(step) is FeatureUnion:
        return list(step.transformer_list)
    if type(step) is not ColumnTransformer:
        return None
    reason = why_layout_leaks(step)
    if reason is not None:
        raise _refusal(path, step, reason)
    planned = [*step.transformers, ("remainder", step.remainder, None)]
    return [(name, part) for name, part, _ in getattr(step, "transformers_", planned)]


def _refusal(path: str, step: Any, reason: str) -> ValueError:
    name = type(step).__name__
    return ValueError(f"no statement can be made: {f'step {path!r} ({name})' if path else name} {reason}.")
