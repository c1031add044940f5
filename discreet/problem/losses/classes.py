"""Losses of one margin per class, for labels 0, 1, ..., of any numeric type; losses with a weight for each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from discreet.kernels.forms import MULTINOMIAL, CompiledForms
from discreet.problem.arrays import Array, Values, floats
from discreet.problem.losses.scalar import Loss


@dataclass(frozen=True, slots=True)
class Multinomial(Loss):
    """Softmax loss, log(sum_k exp(m_k)) - m_y, for labels 0 to classes - 1 and margins of shape (n, classes).

    The conjugate is finite where dual plus the label's indicator is a distribution, up to rounding of
    1e-12 per class, since softmax slopes sum to zero only in exact arithmetic.

    Guarantee: for every row, the slope has norm at most sqrt(2) and the Hessian no eigenvalue above 1/2.

    Parameters
    ----------
    classes : int
        Number of classes, at least 2.

    Examples
    --------
    >>> from discreet.problem import Multinomial
    >>> Multinomial(2).slope([[0.0, 0.0]], [1])
    array([[ 0.5, -0.5]])
    """

    classes: int

    name = "multinomial"
    code = MULTINOMIAL
    lipschitz = math.sqrt(2.0)
    smoothness = 0.5
    classification = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _class_count(self.classes))

    @property
    def outputs(self) -> int:
        return self.classes

    def value(self, margin: Values, y: Values) -> Array:
        margins, index = _rows(margin, y, self.classes)
        relative = _below_best(margins)
        others = np.exp(relative)
        # The best class counts exactly 1, so that log1p keeps the tiny losses of confident rows.
        np.put_along_axis(others, margins.argmax(axis=1)[:, None], 0.0, axis=1)
        return np.log1p(others.sum(axis=1)) - np.take_along_axis(relative, index, axis=1)[:, 0]

    def slope(self, margin: Values, y: Values) -> Array:
        margins, index = _rows(margin, y, self.classes)
        gradient = _softmax(margins)
        # Minus the sum of the others rather than p - 1, which rounds to 0 for confident rows.
        np.put_along_axis(gradient, index, 0.0, axis=1)
        np.put_along_axis(gradient, index, -gradient.sum(axis=1, keepdims=True), axis=1)
        return gradient

    def curvature(self, margin: Values, y: Values) -> Array:
        probability = _softmax(_rows(margin, y, self.classes)[0])
        return probability * (1.0 - probability)

    def conjugate(self, dual: Values, y: Values) -> Array:
        weight, index = _rows(dual, y, self.classes)
        weight = weight + (index == np.arange(self.classes))
        rounding = 1e-12 * self.classes
        inside = np.clip(weight, 0.0, 1.0)
        feasible = (np.abs(weight - inside) <= rounding).all(axis=1)
        feasible &= np.abs(inside.sum(axis=1) - 1.0) <= rounding
        return np.where(feasible, xlogy(inside, inside).sum(axis=1), np.inf)


@dataclass(frozen=True, slots=True)
class OneVsRest(Loss):
    """Sum of one scalar loss per class, with label +1 for the row's own class and -1 for the others.

    Guarantee: for every row, the slope has norm at most sqrt(classes) * loss.lipschitz, and the Hessian,
    which is diagonal, no entry above loss.smoothness.

    Parameters
    ----------
    loss : Loss
        A loss of one margin, such as `Logistic()`.
    classes : int
        Number of classes, at least 2.

    Examples
    --------
    >>> from discreet.problem import Logistic, OneVsRest
    >>> OneVsRest(Logistic(), 3).slope([[0.0, 0.0, 0.0]], [1])
    array([[ 0.5, -0.5,  0.5]])
    """

    loss: Loss
    classes: int

    classification = True

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss) or self.loss.outputs != 1:
            raise ValueError(f"loss must be a scalar loss such as Logistic(), got {self.loss!r}.")
        object.__setattr__(self, "classes", _class_count(self.classes))

    @property
    def name(self) -> str:
        return f"one-vs-rest-{self.loss.name}"

    @property
    def code(self) -> int | CompiledForms | None:
        return self.loss.code

    @property
    def parameter(self) -> float:
        return self.loss.parameter

    @property
    def lipschitz(self) -> float:
        return math.sqrt(self.classes) * self.loss.lipschitz

    @property
    def smoothness(self) -> float:
        return self.loss.smoothness

    @property
    def outputs(self) -> int:
        return self.classes

    def value(self, margin: Values, y: Values) -> Array:
        with np.errstate(over="ignore"):
            return self.loss.value(*self._binary(margin, y)).sum(axis=1)

    def slope(self, margin: Values, y: Values) -> Array:
        return self.loss.slope(*self._binary(margin, y))

    def curvature(self, margin: Values, y: Values) -> Array:
        return self.loss.curvature(*self._binary(margin, y))

    def conjugate(self, dual: Values, y: Values) -> Array:
        with np.errstate(over="ignore"):
            return self.loss.conjugate(*self._binary(dual, y)).sum(axis=1)

    def _binary(self, margin: Values, y: Values) -> tuple[Array, Array]:
        margins, index = _rows(margin, y, self.classes)
        return margins, np.where(index == np.arange(self.classes), 1.0, -1.0)


def _below_best(margins: Array) -> Array:
    with np.errstate(over="ignore"):
        return margins - margins.max(axis=1, keepdims=True)


def _softmax(margins: Array) -> Array:
    weight = np.exp(_below_best(margins))
    return weight / weight.sum(axis=1, keepdims=True)


def _rows(margin: Values, y: Values, classes: int) -> tuple[Array, npt.NDArray[np.intp]]:
    margins, labels = floats(margin), np.asarray(y)
    if margins.ndim != 2 or margins.shape[1] != classes:
        raise ValueError(f"margin must have shape (n, {classes}), got {margins.shape}.")
    with np.errstate(invalid="ignore"):  # a NaN label is refused below
        index = labels.astype(np.intp)
    if labels.shape != margins.shape[:1] or ((index != labels) | (index < 0) | (index >= classes)).any():
        raise ValueError(f"y must hold one label per row, each an integer from 0 to {classes - 1}.")
    return margins, index[:, None]


def _class_count(classes: object) -> int:
    if not isinstance(classes, Integral) or isinstance(classes, bool) or int(classes) < 2:
        raise ValueError(f"classes must be an integer of at least 2, got {classes!r}.")
    return int(classes)


@dataclass(frozen=True, slots=True)
class ClassWeighted(Loss):
    """Another loss of labels, times the public weight of the row's class.

    Guarantee: for every row, slope and curvature are at most the largest weight times the bounds of the other loss.

    Parameters
    ----------
    loss : Loss
        A loss of labels, such as `Logistic()`.
    weights : tuple of float
        The weight of each class, in the order of the classes: that of -1 before that of +1.

    Examples
    --------
    >>> from discreet.problem import ClassWeighted, Logistic
    >>> ClassWeighted(Logistic(), (0.1, 1.0)).slope([0.0, 0.0], [-1.0, 1.0])
    array([ 0.05, -0.5 ])
    """

    loss: Loss
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss) or not self.loss.classification or isinstance(self.loss, ClassWeighted):
            raise ValueError(f"loss must be a loss of labels, such as Logistic(); got {self.loss!r}.")
        weights = tuple(float(weight) for weight in self.weights)
        if len(weights) != max(self.loss.outputs, 2):
            raise ValueError(f"weights must hold one for each of {max(self.loss.outputs, 2)} classes; got {weights!r}.")
        if not all(weight >= 0.0 and math.isfinite(weight) for weight in weights) or not max(weights) > 0.0:
            raise ValueError(f"weights must be finite, not negative and not all 0; got {weights!r}.")
        object.__setattr__(self, "weights", weights)

    @property
    def name(self) -> str:
        return f"class-weighted-{self.loss.name}"

    @property
    def classification(self) -> bool:  # type: ignore[override]
        return self.loss.classification

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        return self.loss.monotone

    @property
    def discontinuous_curvature(self) -> bool:  # type: ignore[override]
        return self.loss.discontinuous_curvature

    @property
    def lipschitz(self) -> float:
        return max(self.weights) * self.loss.lipschitz

    @property
    def smoothness(self) -> float:
        return max(self.weights) * self.loss.smoothness

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    def value(self, margin: Values, y: Values) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):  # a weight of 0 makes nothing of an infinite loss
            return np.where(self._weight(y) > 0.0, self._weight(y) * self.loss.value(margin, y), 0.0)

    def slope(self, margin: Values, y: Values) -> Array:
        return self._spread(y) * self.loss.slope(margin, y)

    def curvature(self, margin: Values, y: Values) -> Array:
        return self._spread(y) * self.loss.curvature(margin, y)

    def conjugate(self, dual: Values, y: Values) -> Array:
        slope = floats(dual)
        nothing = (slope == 0.0) if self.outputs == 1 else (slope == 0.0).all(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = self._weight(y) * self.loss.conjugate(np.nan_to_num(slope / self._spread(y)), y)
        return np.where(self._weight(y) > 0.0, found, np.where(nothing, 0.0, np.inf))

    def _weight(self, y: Values) -> Array:
        """The weight of each row."""
        labels = np.asarray(y)
        index = (floats(labels) > 0.0).astype(np.intp) if self.outputs == 1 else labels.astype(np.intp)
        return np.asarray(self.weights)[np.clip(index, 0, len(self.weights) - 1)]

    def _spread(self, y: Values) -> Array:
        """The same in the shape of the margins."""
        return self._weight(y) if self.outputs == 1 else self._weight(y)[:, None]
