"""What a certificate needs of a fitted model: its parameters, their columns and their distance law; and margins.

Margins say how far predictions are from changing: docs/guarantees/fairness.md, theorems 1 and 2.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import BoolArray, FloatArray, IndexArray
from discreet.data.rows import Data
from discreet.data.validation import as_numbers, check_sparse_bounds, load_features, validate_features
from discreet.estimators.stored_plan import plan_of
from discreet.problem.column_scaling import ColumnScaling, identity_scaling
from discreet.theory.distance import DistanceLaw, KnownDistance

BLOCK = 2**22  # entries of scaled rows that are in memory at once
PROBES = 3  # rows on which a model's own scores are compared with those of its coefficients


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """A linear classifier in the columns in which its solver worked.

    Attributes
    ----------
    classes : array of shape (classes,)
    coef : array of shape (outputs, columns)
        Coefficients of the user's columns; one output for two classes.
    intercept : array of shape (outputs,)
    scaling : ColumnScaling
        How the user's columns become the solver's.
    has_intercept : bool
        Whether a last column of ones belongs to the solver's columns.
    law : DistanceLaw or None
        How far the parameters can be from their noise-free limit, in the solver's columns.
    why_no_law : str
        Why there is no law.
    estimator : object or None
        The estimator it was made of, which knows the names of its columns.
    """

    classes: npt.NDArray[Any]
    coef: FloatArray
    intercept: FloatArray
    scaling: ColumnScaling
    has_intercept: bool = True
    law: DistanceLaw | None = None
    why_no_law: str = "none was given"
    estimator: Any = None

    def __post_init__(self) -> None:
        outputs = 1 if len(self.classes) == 2 else len(self.classes)
        columns = self.scaling.columns
        if np.shape(self.coef) != (outputs, columns) or np.shape(self.intercept) != (outputs,):
            raise ValueError(
                f"{len(self.classes)} classes and {columns} columns need coefficients of shape "
                f"{(outputs, columns)} and {outputs} intercepts; got "
                f"{np.shape(self.coef)} and {np.shape(self.intercept)}."
            )

    @property
    def size(self) -> int:
        """Number of parameters of one output."""
        return self.scaling.columns + self.has_intercept

    @property
    def weights(self) -> FloatArray:
        """The parameters in the solver's columns, of shape (outputs, size); the intercept is the last."""
        scaled = self.scaling.from_user(self.coef)
        if not self.has_intercept:
            return scaled
        return np.column_stack([scaled, self.intercept + self.coef @ self.scaling.shift])

    def features(self, X: Any) -> Any:
        """The table, checked as the estimator checks what it predicts for."""
        own = self.estimator
        table = load_features(X).X if own is None else validate_features(own, X, reset=False)
        if table.shape[1] != self.scaling.columns:
            raise ValueError(f"X has {table.shape[1]} columns, the model {self.scaling.columns}.")
        if sp.issparse(table):
            check_sparse_bounds(self.scaling.low, self.scaling.high)
        return table

    def rows(self, X: Any) -> FloatArray:
        """The rows in the solver's columns, with a last 1 if there is an intercept; `X` is what `features` returned."""
        if sp.issparse(X) and self.scaling.shift.any():
            X = X.toarray()  # the scaling of sparse columns subtracts no centre
        table = X if sp.issparse(X) else as_numbers(X)
        scaled = self.scaling.matrix(Data(table, np.zeros(table.shape[0])), "C", self.has_intercept)
        return np.asarray(scaled.toarray() if sp.issparse(scaled) else scaled, dtype=np.float64)

    def scores(self, X: Any) -> FloatArray:
        """One score per row and output; `X` is what `features` returned."""
        parts = [self.rows(X[part]) @ self.weights.T for part in self.blocks(X)]
        return np.concatenate(parts)

    def blocks(self, X: Any) -> list[slice]:
        """Parts of the rows that are scaled one after the other, so that a large table is not copied at once."""
        step = max(1, BLOCK // self.size)
        return [slice(start, start + step) for start in range(0, X.shape[0], step)]

    def in_user_columns(self) -> LinearClassifier:
        """The same classifier with columns that are clipped, but neither centred nor scaled."""
        own = self.scaling
        plain = replace(identity_scaling(own.columns), low=own.low, high=own.high, frozen=own.frozen)
        return replace(self, scaling=plain, law=None, has_intercept=self.has_intercept or bool(self.intercept.any()))

    def with_parameters(self, coef: FloatArray, intercept: FloatArray) -> LinearClassifier:
        """The classifier of other parameters in the same columns."""
        return replace(self, coef=np.asarray(coef), intercept=np.asarray(intercept))


def unknown_distance(classifier: LinearClassifier) -> DistanceLaw:
    """Return the law that says nothing: for the values of a model whose distance from its twin nobody knows.

    Parameters
    ----------
    classifier : LinearClassifier
        What `linear_classifier` returned.
    """
    words = f"unknown, since {classifier.why_no_law.rstrip('.')}"
    return KnownDistance(np.ones(classifier.size), classifier.coef.shape[0], words, distance=math.inf)


def linear_classifier(model: Any) -> LinearClassifier:
    """Return what a certificate needs of a fitted classifier of discreet or a linear one of scikit-learn.

    Parameters
    ----------
    model : estimator or LinearClassifier
        A fitted linear classifier. Only models of discreet come with a distance law, and only those whose solver has
        one; for all others `why_no_law` says why there is none.
    """
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, LinearClassifier):
        return model
    check_is_fitted(model)
    if not all(hasattr(model, name) for name in ("coef_", "intercept_", "classes_", "decision_function")):
        raise ValueError(
            f"{type(model).__name__} is not a linear classifier with coef_, intercept_ and classes_; for a pipeline, "
            "pass its last step, and the rows as the steps before it return them."
        )
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)), (coef.shape[0],)).copy()
    scaling, law, reason = _columns_and_law(model, coef.shape[1])
    has_intercept = bool(getattr(model, "fit_intercept", True) or intercept.any())
    made = LinearClassifier(
        np.asarray(model.classes_), coef, intercept, scaling, has_intercept, law, reason, estimator=model
    )
    _check_scores(made, model)
    return made


def _columns_and_law(model: Any, columns: int) -> tuple[ColumnScaling, DistanceLaw | None, str]:
    """The columns of a model, fitted or from a file, and its law; or why there is none."""
    scaling = getattr(model, "scaling_", None)
    if scaling is not None:
        try:
            plan = plan_of(model)
            return scaling, plan.distance_law(scaling), ""
        except ValueError as refused:
            return scaling, None, str(refused)
    plain = identity_scaling(columns)
    if hasattr(model, "ranges_"):
        low, high = model.ranges_
        plain = replace(plain, low=np.asarray(low), high=np.asarray(high))
    return plain, None, "the model does not carry the plan of its fit"


def _check_scores(made: LinearClassifier, model: Any) -> None:
    """Refuse a model whose decision is not the largest score of its coefficients, such as one of pairs of classes."""
    probes = np.cos(np.arange(1.0, 1.0 + PROBES * made.scaling.columns)).reshape(PROBES, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the probes have no column names
        wanted = np.asarray(model.decision_function(probes)).reshape(PROBES, -1)
    found = made.scores(probes)
    if wanted.shape != found.shape or not np.allclose(
        wanted, found, rtol=1e-6, atol=1e-6 * (1.0 + np.abs(found).max())
    ):
        raise ValueError(f"the decisions of {type(model).__name__} are not linear scores of its coefficients.")


ROUNDING = 2.0**-50  # of a sum of products, relative to the product of the norms and the number of terms


@dataclass(frozen=True, eq=False)
class Margins:
    """How far each row's prediction is from changing.

    Attributes
    ----------
    gaps : array of shape (rows, rivals)
        The score of the row's label minus the score of each other class (for two classes y * score, y = +-1).
    correct : array of shape (rows,)
        Whether the row's label is predicted.
    lipschitz : array of shape (rows,)
        How far the gaps can move per unit of distance between parameters.
    rounding : float
        A distance that covers the rounding errors of the margins.
    """

    gaps: FloatArray
    correct: BoolArray
    lipschitz: FloatArray
    rounding: float = 0.0

    @cached_property
    def margin(self) -> FloatArray:
        """The least gap: positive only if the prediction is correct, negative only if it is wrong."""
        return self.gaps.min(axis=1)

    @property
    def rivals(self) -> int:
        return self.gaps.shape[1]

    @cached_property
    def needed(self) -> FloatArray:
        """The distance that parameters must move before the correctness of a row can change; inf if it never can."""
        return self._distances(np.abs(self.margin))

    def _distances(self, gaps: FloatArray) -> FloatArray:
        speed = self.lipschitz if gaps.ndim == 1 else self.lipschitz[:, None]
        moved = np.divide(
            gaps, speed, out=np.full(gaps.shape, math.inf), where=np.broadcast_to(speed > 0.0, gaps.shape)
        )
        return np.where(moved < 0.0, moved, np.maximum(moved - self.rounding, 0.0))

    def flip_probabilities(self, deviation: float, error: float = 0.0) -> FloatArray:
        """At most how probably Gaussian noise changes the correctness of each row, for margins without that noise.

        `deviation` and `error` are those of a `GaussianDistance`.
        """
        # A correct row becomes wrong if any rival wins.
        needed = np.where(self.correct[:, None], self._distances(self.gaps), math.inf)
        needed[~self.correct, 0] = self.needed[~self.correct]  # a wrong one becomes correct only past its best rival
        return np.minimum(normal_above(needed - error, deviation).sum(axis=1), 1.0)


def normal_above(level: FloatArray, deviation: float) -> FloatArray:
    """The probability that a centred normal variable is at least the level."""
    from scipy.special import ndtr

    if deviation == 0.0:
        return (level <= 0.0).astype(np.float64)
    return np.asarray(ndtr(-level / deviation))


def gaps_of(scores: FloatArray, label: IndexArray) -> tuple[FloatArray, BoolArray]:
    """The gaps of scores (rows, outputs), and whether the label, an index among the classes, is predicted."""
    if scores.shape[1] == 1:
        positive = label == 1
        return np.where(positive[:, None], scores, -scores), (scores[:, 0] > 0.0) == positive
    rows = np.arange(label.size)
    others = np.ones(scores.shape, dtype=bool)
    others[rows, label] = False
    rivals = scores[others].reshape(label.size, -1)
    return scores[rows, label][:, None] - rivals, scores.argmax(axis=1) == label


def margins_of(classifier: LinearClassifier, law: DistanceLaw, table: Any, label: IndexArray) -> Margins:
    """The margins of all rows, by the indices of their labels; `table` is what `LinearClassifier.features` returned."""
    weights = classifier.weights
    if law.weights.size != weights.shape[1] or law.outputs != weights.shape[0]:
        raise ValueError(
            f"the distance law is about {law.outputs} x {law.weights.size} parameters, the model has "
            f"{weights.shape[0]} x {weights.shape[1]}."
        )
    speed = 1.0 if weights.shape[0] == 1 else math.sqrt(2.0)
    gaps, correct, lipschitz = [], [], []
    for part in classifier.blocks(table):
        rows = classifier.rows(table[part])
        gap, right = gaps_of(rows @ weights.T, label[part])
        gaps.append(gap)
        correct.append(right)
        lipschitz.append(speed * law.row_norms(rows))
    norm = math.sqrt(float((np.square(weights) * law.weights).sum()))
    rounding = ROUNDING * weights.shape[1] * norm
    return Margins(np.concatenate(gaps), np.concatenate(correct), np.concatenate(lipschitz), rounding)
