"""Which steps of a pipeline treat every row on its own, which are private, and why others allow no statement.

A step that learned from the rows moves all rows when one of them changes: a model behind it then sees two tables that
differ everywhere, and its guarantee says nothing. So there is a list of steps that are known to learn nothing from the
rows, with the settings for which that is true; everything else is refused. Parameters and types are looked at, no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
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

from discreet.privacy.guarantee import Guarantee

LEARNED = "learned from the rows without noise, so no guarantee holds behind it"
DENSITY = "decides by the exact density of the rows whether its result is sparse; set sparse_threshold=0"
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
    "VotingRegressor": "fitted several models to the same rows; fit the models one by one and pass them as also=",
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
    return known_reason(step) or (
        "is not known to treat every row on its own; use a private step, or apply it to the rows before the pipeline "
        "if it learns nothing from them"
    )


def known_reason(step: Any) -> str | None:
    """What a class of scikit-learn, or one that extends it, does with the rows, as far as it stands in `REASONS`."""
    for base in type(step).__mro__:
        if base.__name__ in REASONS and base.__module__.startswith("sklearn."):
            return REASONS[base.__name__]
    return None


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
    return DENSITY


def _has_sparse_output(step: Any) -> bool:
    """Whether a part, at whatever depth, makes sparse columns of dense ones; of the allowed steps only one does."""
    parts = [step, *step.get_params(deep=True).values()]
    return any(isinstance(part, OneHotEncoder) and part.sparse_output for part in parts)


def refusals_between(steps: Sequence[tuple[str, Any]], dense: bool) -> list[Refusal]:
    """What is refused of named steps in a row; `dense` says that the type of the first rows is not sparse."""
    found = [refusal for name, step in steps for refusal in refusals(step, name)]
    if dense and not any(_has_sparse_output(step) for _, step in steps if hasattr(step, "get_params")):
        found = [refusal for refusal in found if refusal.reason != DENSITY]
    return found


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


def targets_are_row_by_row(step: Any) -> bool:
    """Whether the step only turns every target, on its own, into another one for the model that it fits."""
    if type(step) is not TransformedTargetRegressor or step.transformer is not None:
        return False
    return step.func is None or (_is_elementwise(step.func) and not step.check_inverse)


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
    FunctionTransformer: _function,
    Normalizer: _always,
    OneHotEncoder: _encoder,
    OrdinalEncoder: _encoder,
    PolynomialFeatures: _always,
    RBFSampler: _random_features,
    SimpleImputer: _imputer,
}


def is_private(step: Any) -> bool:
    """Whether a step, fitted or not, states what it promises; a class from elsewhere is taken at its word."""
    kind = type(step)
    planned = getattr(kind, "_has_guarantee", False) or hasattr(kind, "guarantee_")
    return planned or isinstance(getattr(step, "guarantee_", None), Guarantee)


class Refusal(NamedTuple):
    """A part of which no statement can be made, the path of names that leads to it, and why."""

    path: str
    step: Any
    reason: str

    @property
    def name(self) -> str:
        kind = type(self.step).__name__
        return f"step {self.path!r} ({kind})" if self.path else kind

    @property
    def fact(self) -> str:
        """What the part did, without what to use instead."""
        return f"{self.name} {self.reason.partition('; ')[0]}"

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"


def refusals(step: Any, path: str = "") -> Iterator[Refusal]:
    """Every part that is neither private nor known to treat each row on its own, in the order fitted."""
    layout = why_layout_leaks(step) if type(step) is ColumnTransformer else None
    if layout is not None:
        yield Refusal(path, step, layout)
    for inner, part in parts_of(step, path) or ():
        yield from refusals(part, inner)
    if parts_of(step, path) is None and not is_private(step):
        reason = why_refused(step)
        if reason is not None:
            yield Refusal(path, step, reason)


def leaves(step: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every estimator that does the work, in the order fitted, with the path of names that leads to it."""
    parts = parts_of(step, path)
    if parts is None:
        yield path, step
        return
    for inner, part in parts:
        yield from leaves(part, inner)


def parts_of(step: Any, path: str = "") -> list[tuple[str, Any]] | None:
    """The parts of a composite with their paths; None for any other step. Exact types: a subclass may do more."""
    if type(step) is Pipeline:
        named = [*step.steps]
    elif type(step) is FeatureUnion:
        named = [*step.transformer_list]
    elif type(step) is ColumnTransformer:
        planned = [*step.transformers, ("remainder", step.remainder, None)]
        named = [(name, part) for name, part, _ in getattr(step, "transformers_", planned)]
    else:
        return None
    parts = [(name, part) for name, part in named if part is not None and not isinstance(part, str)]
    return [(f"{path}.{name}" if path else str(name), part) for name, part in parts]
