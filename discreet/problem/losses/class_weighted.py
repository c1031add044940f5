"""A loss whose rows count by the weight of their class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.problem.arrays import Array, Values, floats
from discreet.problem.losses.scalar import Loss


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
