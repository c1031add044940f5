"""What every loss offers, and the losses of one margin per row: two for real targets, two for labels -1 and +1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from discreet._common.checks import number_in
from discreet.kernels import forms
from discreet.kernels.forms import NUMBERED, CompiledForms
from discreet.problem.arrays import Array, Values, floats

# Noise is in proportion to the slopes of a loss, so that extreme parameters could make it vanish or overflow.
SMALLEST, LARGEST = 1e-50, 1e50


class Loss(ABC):
    """A convex function of a margin and a target; it never sees the features.

    A value too large for a float is returned as infinity, never as NaN. A loss for real targets depends on
    margin - target alone: solvers centre the target and give the shift back to the intercept. One with a log link is
    told targets in units of their mean, whose logarithm is given back.

    Attributes
    ----------
    classification : bool
        Whether targets are labels: -1 or +1 with one margin per row, 0 to outputs - 1 with several.
    monotone : bool
        Whether, for a given target, the slope has the same sign at every margin. Objective perturbation then needs less
        noise for the same budget.
    discontinuous_curvature : bool
        Whether the second derivative jumps, so that its value at one point says little about nearby points. `newton`
        then learns no Hessian.
    log_link : bool
        Whether the prediction is exp(margin): solvers then divide the target by its mean instead of centring it.
    target_power : int
        With a log link, what a target and a mean that are both c times as large do to the loss: it is multiplied by c
        to this power.
    """

    __slots__ = ()
    classification: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    discontinuous_curvature: ClassVar[bool] = False
    log_link: ClassVar[bool] = False
    target_power: ClassVar[int] = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name, for tables and messages."""

    @property
    def code(self) -> int | CompiledForms | None:
        """By what compiled loops know the loss, a number or its functions; None if they do not."""
        return None

    @property
    def forms(self) -> frozenset[str]:
        """What compiled loops know of the loss; a solver whose loop needs more refuses it."""
        code = self.code
        return code.names if isinstance(code, CompiledForms) else NUMBERED.get(code, frozenset())

    @property
    def parameter(self) -> float:
        """Number that compiled kernels need besides the code."""
        return 0.0

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on the slope (its Euclidean norm, with several margins), infinite if there is none."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on the second derivative (the largest eigenvalue, with several margins); finite, as steps need it."""

    @property
    def usual_curvature(self) -> float:
        """The mean curvature to be expected of the rows of a table, where its bound is far larger."""
        return self.smoothness

    @property
    def outputs(self) -> int:
        """Margins per row."""
        return 1

    @abstractmethod
    def value(self, margin: Values, y: Values) -> Array:
        """Loss of each row."""

    @abstractmethod
    def slope(self, margin: Values, y: Values) -> Array:
        """Derivative in the margin; same shape as the margins."""

    @abstractmethod
    def curvature(self, margin: Values, y: Values) -> Array:
        """Second derivative in the margin, the larger one-sided value at a kink; the Hessian's diagonal."""

    @abstractmethod
    def conjugate(self, dual: Values, y: Values) -> Array:
        """Supremum over margins m of <dual, m> - value(m, y), one per row; infinite outside its domain."""


def every_label(loss: Loss) -> tuple[Array, Array]:
    """Margins of 0, and every label that a row may have."""
    if loss.outputs == 1:
        return np.zeros(2), np.array([-1.0, 1.0])
    return np.zeros((loss.outputs, loss.outputs)), np.arange(loss.outputs, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Squared(Loss):
    """Half the squared residual, (m - y)^2 / 2. The slope has no bound: private solvers must clip it.

    Examples
    --------
    >>> from discreet.problem import Squared
    >>> Squared().value([3.0], [1.0])
    array([2.])
    """

    name = "squared"
    code = forms.SQUARED
    lipschitz = math.inf
    smoothness = 1.0

    def value(self, margin: Values, y: Values) -> Array:
        residual = _residual(margin, y)
        with np.errstate(over="ignore"):
            return 0.5 * residual * residual

    def slope(self, margin: Values, y: Values) -> Array:
        return _residual(margin, y)

    def curvature(self, margin: Values, y: Values) -> Array:
        return np.ones_like(_residual(margin, y))

    def conjugate(self, dual: Values, y: Values) -> Array:
        return _half_square_conjugate(floats(dual), floats(y))


@dataclass(frozen=True, slots=True)
class Logistic(Loss):
    """Logistic loss, log(1 + exp(-y m)), for labels y in {-1, +1}.

    Guarantee: for every margin, |slope| <= 1 and 0 <= curvature <= 1/4.

    Examples
    --------
    >>> from discreet.problem import Logistic
    >>> Logistic().slope([0.0], [1.0])
    array([-0.5])
    """

    name = "logistic"
    code = forms.LOGISTIC
    lipschitz = 1.0
    smoothness = 0.25
    classification = True
    monotone = True

    def value(self, margin: Values, y: Values) -> Array:
        return np.logaddexp(0.0, -floats(y) * floats(margin))

    def slope(self, margin: Values, y: Values) -> Array:
        label = floats(y)
        return expit(-label * floats(margin)) * -label  # in this order one array fewer is alive

    def curvature(self, margin: Values, y: Values) -> Array:
        smaller = expit(-np.abs(floats(y) * floats(margin)))  # the probability of the less likely label
        return smaller * (1.0 - smaller)

    def conjugate(self, dual: Values, y: Values) -> Array:
        weight, inside = _label_weight(dual, y)
        return np.where(weight == inside, xlogy(inside, inside) + xlog1py(1.0 - inside, -inside), np.inf)


@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Residual r = m - y costs r^2 / 2 up to the threshold and grows linearly beyond it.

    Guarantee: for every margin, |slope| <= threshold and 0 <= curvature <= 1.

    Parameters
    ----------
    threshold : float, default=1.35
        Where the loss becomes linear.

    Examples
    --------
    >>> from discreet.problem import Huber
    >>> Huber(1.0).slope([5.0, 0.5], [0.0, 0.0])
    array([1. , 0.5])
    """

    threshold: float = 1.35

    name = "huber"
    code = forms.HUBER
    smoothness = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number_in("threshold", self.threshold, SMALLEST, LARGEST))

    @property
    def parameter(self) -> float:
        return self.threshold

    @property
    def lipschitz(self) -> float:
        return self.threshold

    def value(self, margin: Values, y: Values) -> Array:
        residual = _residual(margin, y)
        slope = np.clip(residual, -self.threshold, self.threshold)
        with np.errstate(over="ignore"):
            return slope * (residual - 0.5 * slope)

    def slope(self, margin: Values, y: Values) -> Array:
        return np.clip(_residual(margin, y), -self.threshold, self.threshold)

    def curvature(self, margin: Values, y: Values) -> Array:
        return np.where(np.abs(_residual(margin, y)) <= self.threshold, 1.0, 0.0)

    def conjugate(self, dual: Values, y: Values) -> Array:
        slope = floats(dual)
        return np.where(np.abs(slope) <= self.threshold, _half_square_conjugate(slope, floats(y)), np.inf)


@dataclass(frozen=True, slots=True)
class SmoothedHinge(Loss):
    """Hinge loss max(0, 1 - y m), y in {-1, +1}, with a parabola for 1 - width <= y m <= 1 + width.

    Guarantee: for every margin, |slope| <= 1 and 0 <= curvature <= 1 / (2 width).

    Parameters
    ----------
    width : float, default=0.5
        Half the length of the smoothed part.

    Examples
    --------
    >>> from discreet.problem import SmoothedHinge
    >>> SmoothedHinge(0.5).slope([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    array([-1. , -0.5, -0. ])
    """

    width: float = 0.5

    name = "smoothed-hinge"
    code = forms.SMOOTHED_HINGE
    lipschitz = 1.0
    classification = True
    monotone = True
    discontinuous_curvature = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", number_in("width", self.width, SMALLEST, LARGEST))

    @property
    def parameter(self) -> float:
        return self.width

    @property
    def smoothness(self) -> float:
        return 0.5 / self.width

    def value(self, margin: Values, y: Values) -> Array:
        shortfall = 1.0 - floats(y) * floats(margin)
        steepness = self._steepness(shortfall)
        return self.width * steepness * steepness + np.maximum(shortfall - self.width, 0.0)

    def slope(self, margin: Values, y: Values) -> Array:
        label = floats(y)
        return -label * self._steepness(1.0 - label * floats(margin))

    def curvature(self, margin: Values, y: Values) -> Array:
        shortfall = 1.0 - floats(y) * floats(margin)
        return np.where(np.abs(shortfall) <= self.width, self.smoothness, 0.0)

    def conjugate(self, dual: Values, y: Values) -> Array:
        weight, inside = _label_weight(dual, y)
        return np.where(weight == inside, -inside * (1.0 + self.width * (1.0 - inside)), np.inf)

    def _steepness(self, shortfall: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(0.5 * (shortfall / self.width + 1.0), 0.0, 1.0)


def _residual(margin: Values, y: Values) -> Array:
    with np.errstate(over="ignore"):
        return np.subtract(floats(margin), floats(y))


def _half_square_conjugate(slope: Array, y: Array) -> Array:
    # Factored, because slope^2 / 2 + slope * y would be inf - inf for huge arguments of opposite sign.
    with np.errstate(over="ignore"):
        return slope * (0.5 * slope + y)


def _label_weight(dual: Values, y: Values) -> tuple[Array, Array]:
    weight = -floats(y) * floats(dual)
    return weight, np.clip(weight, 0.0, 1.0)
