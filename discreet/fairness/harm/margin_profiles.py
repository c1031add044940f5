"""Public assumptions on how near people are to the decision boundary, before any row is read; how often they change.

Without one nothing can be promised (docs/guarantees/harm.md, Theorem 1). Labels are 1 (favourable) and 0; a cell is a
label and a group. Margins are those of the noise-free twin: positive where it is right. How often a row changes is a
function of the size of its margin (theorems 2 and 3).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

from discreet._common.checks import SMALLEST_THRESHOLD, number_in
from discreet._common.types import FloatArray
from discreet.data.validation import as_numbers

FAR = 9.0  # standard deviations beyond which a normal law has no mass that a double can see
SMALLEST_DEVIATION, LARGEST_DEVIATION = 1e-6, 50.0  # of log-odds: nothing is known, or everything, for all purposes
RAREST = 1e-12  # share of a label, beyond which grids see nothing of it


def normal(score: FloatArray, mean: float, spread: float) -> FloatArray:
    return np.exp(-0.5 * ((score - mean) / spread) ** 2) / (spread * math.sqrt(2.0 * math.pi))


def logistic(score: FloatArray) -> FloatArray:
    return np.asarray(expit(score))


@cache
def _grid() -> tuple[FloatArray, FloatArray]:
    """Points and weights of a standard normal law; sums over an even grid are exact for smooth functions."""
    points = np.linspace(-FAR, FAR, 1_201)
    weights = normal(points, 0.0, 1.0)
    return points, weights / weights.sum()


@cache
def mean_for(rate: float, spread: float) -> float:
    """The mean of calibrated normal log-odds whose favourable share is `rate`."""
    points, weights = _grid()
    width = FAR * spread + 40.0
    return float(brentq(lambda mean: logistic(mean + spread * points) @ weights - rate, -width, width, xtol=1e-13))


def area_under_curve(rate: float, spread: float) -> float:
    points, weights = _grid()
    favourable = weights * logistic(mean_for(rate, spread) + spread * points) / rate
    other = (weights - rate * favourable) / (1.0 - rate)
    return float(favourable @ (np.cumsum(other) - 0.5 * other))


@cache
def deviation_for(auc: float, rate: float) -> float:
    """The deviation of calibrated normal log-odds with this area under the curve."""
    if auc >= area_under_curve(rate, LARGEST_DEVIATION):
        raise ValueError(f"auc={auc:g} is too near to 1 for normal log-odds.")
    if auc <= area_under_curve(rate, SMALLEST_DEVIATION):
        raise ValueError(f"auc={auc!r} is too near to 0.5: such a model knows nothing.")
    limits = (SMALLEST_DEVIATION, LARGEST_DEVIATION)
    return float(brentq(lambda spread: area_under_curve(rate, spread) - auc, *limits, xtol=1e-9))


BENDS = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)  # in deviations: where to cut an integral
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)  # of the rule between two cuts


class FlipCurve(Protocol):
    """A function of |margin| that lies between 0 and 1 and never increases."""

    def __call__(self, margins: FloatArray) -> FloatArray: ...

    @property
    def bends(self) -> list[float]:
        """Where the function bends, so that integrals are cut there; it is 0 beyond the last, up to rounding."""


@dataclass(frozen=True)
class NoiseCurve:
    """Gaussian noise: the probability that a row changes or, with `failure`, min(1, probability / failure).

    `noise` and `error` are in units of the score. The noise must be positive.
    """

    noise: float
    error: float = 0.0
    failure: float | None = None

    def __call__(self, margins: FloatArray) -> FloatArray:
        chance = ndtr((self.error - margins) / self.noise)
        return np.asarray(chance if self.failure is None else np.minimum(1.0, chance / self.failure))

    @property
    def bends(self) -> list[float]:
        kink = 0.0 if self.failure is None else -float(ndtri(self.failure))
        # Beyond a far kink the curve falls faster than the noise: within 1 / kink deviations.
        beyond = [kink + part / max(1.0, kink) for part in (0.0, 1.0, 3.0, 10.0, 30.0)]
        return [self.error + self.noise * place for place in (*BENDS, *beyond)]


@dataclass(frozen=True)
class BallCurve:
    """A bound on how far scores move: rows with |margin| <= `reach` may change, no others do."""

    reach: float

    def __call__(self, margins: FloatArray) -> FloatArray:
        return (margins <= self.reach).astype(np.float64)

    @property
    def bends(self) -> list[float]:
        return [self.reach]


def integration_rule(cuts: Sequence[float], end: float) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre points and weights on [0, end], with a rule of its own between every two cuts."""
    inside = sorted({0.0, end, *(cut for cut in cuts if 0.0 < cut < end)})
    edges = np.array(inside)
    half = 0.5 * np.diff(edges)[:, None]
    points = edges[:-1, None] + half * (NODES + 1.0)
    return points.ravel(), (half * NODE_WEIGHTS).ravel()


LABELS = (0, 1)

PerGroup = float | Mapping[str, float]


class Sides(NamedTuple):
    """Parts of a cell that change: of its correct rows, of its wrong rows, and of both together."""

    loss: float
    gain: float
    total: float


class MarginProfile(ABC):
    """An assumption on the margins of every cell."""

    @abstractmethod
    def base_rate(self, group: str) -> float:
        """The share of the favourable label in a group."""

    @abstractmethod
    def sides(self, label: int, group: str, curve: FlipCurve) -> Sides:
        """The mean of a curve over a cell, or the most that it can be."""

    @abstractmethod
    def accuracy(self, label: int, group: str) -> float | None:
        """The part of a cell on which the twin is right; None if the assumption does not tell it."""

    @abstractmethod
    def describe(self) -> str:
        """Say the assumption in one sentence."""


@dataclass(frozen=True)
class NormalMargins(MarginProfile):
    """The log-odds of a group are normal and calibrated: P(y = 1 | score) = 1 / (1 + exp(-score)).

    Parameters
    ----------
    base_rates : float or dict, default=0.5
        Share of the favourable label, for all groups or for each.
    deviation : float or dict, optional
        Standard deviation of the score inside a group, for all groups or for each; 2 if neither this nor `auc` is
        given. Groups that a model knows less about have smaller ones. It is that of the noise-free model of the same
        plan: a ridge makes scores smaller than the log-odds of the population.
    auc : float or dict, optional
        Area under the ROC curve inside a group, instead of the deviation.

    Examples
    --------
    >>> from discreet.fairness import NormalMargins
    >>> margins = NormalMargins(base_rates={"men": 0.4, "women": 0.3}, deviation=2.0)
    >>> round(margins.accuracy(1, "men"), 3)
    0.694
    """

    base_rates: PerGroup = 0.5
    deviation: PerGroup | None = None
    auc: PerGroup | None = None

    def __post_init__(self) -> None:
        if self.deviation is not None and self.auc is not None:
            raise ValueError("give deviation or auc, not both: each follows from the other.")
        for name, low, high in (("base_rates", RAREST, 1.0), ("deviation", 0.0, LARGEST_DEVIATION), ("auc", 0.5, 1.0)):
            given = getattr(self, name)
            for value in given.values() if isinstance(given, Mapping) else () if given is None else (given,):
                number_in(name, value, low, high, above=True)
                if high == 1.0 and 1.0 - value < RAREST:
                    raise ValueError(f"{name} must be below 1, got {value!r}.")

    def base_rate(self, group: str) -> float:
        return _of_group("base_rates", self.base_rates, group)

    def deviation_of(self, group: str) -> float:
        """Return the standard deviation of a group's score."""
        if self.auc is not None:
            return deviation_for(_of_group("auc", self.auc, group), self.base_rate(group))
        return 2.0 if self.deviation is None else _of_group("deviation", self.deviation, group)

    def sides(self, label: int, group: str, curve: FlipCurve) -> Sides:
        rate, spread = self.base_rate(group), self.deviation_of(group)
        mean = mean_for(rate, spread)
        share = rate if label == 1 else 1.0 - rate
        end = abs(mean) + FAR * spread
        own = [abs(mean + spread * place) for place in range(-8, 9, 2)]
        cuts = [*curve.bends, *own, *(2.0**power for power in range(-2, 6))]
        points, weights = integration_rule(cuts, end)
        changing = curve(points) * weights / share

        def part(side: int) -> float:  # 1: the rows on which the twin is right
            score = points * side * (1 if label == 1 else -1)
            return float(changing @ (normal(score, mean, spread) * logistic(side * points)))

        loss, gain = part(1), part(-1)
        return Sides(loss, gain, loss + gain)

    def accuracy(self, label: int, group: str) -> float | None:
        return self.sides(label, group, BallCurve(math.inf)).loss

    def describe(self) -> str:
        strength = (
            f"an AUC of {_told(self.auc)}" if self.auc is not None else f"deviation {_told(self.deviation or 2.0)}"
        )
        return (
            f"in each group the noise-free score is normal with {strength} and calibrated; base rates "
            f"{_told(self.base_rates)}"
        )


@dataclass(frozen=True)
class MarginDensity(MarginProfile):
    """In every cell at most a fraction `kappa` * t of the rows has a margin within t of the boundary, for all t.

    Parameters
    ----------
    kappa : float or dict
        The most rows per unit of margin, for all groups or for each.
    base_rates : float or dict, default=0.5
        Share of the favourable label, for all groups or for each.

    Examples
    --------
    >>> from discreet.fairness import MarginDensity
    >>> from discreet.fairness.harm.margin_profiles import BallCurve
    >>> MarginDensity(kappa=0.4).sides(1, "a", BallCurve(0.5)).total
    0.2
    """

    kappa: PerGroup
    base_rates: PerGroup = 0.5

    def __post_init__(self) -> None:
        for value in self.kappa.values() if isinstance(self.kappa, Mapping) else (self.kappa,):
            number_in("kappa", value, SMALLEST_THRESHOLD)
        NormalMargins(self.base_rates)  # checks the base rates

    def base_rate(self, group: str) -> float:
        return _of_group("base_rates", self.base_rates, group)

    def sides(self, label: int, group: str, curve: FlipCurve) -> Sides:
        kappa = _of_group("kappa", self.kappa, group)
        points, weights = integration_rule(curve.bends, 1.0 / kappa)
        most = float(kappa * (curve(points) @ weights))
        return Sides(most, most, most)

    def accuracy(self, label: int, group: str) -> float | None:
        return None

    def describe(self) -> str:
        return (
            f"in each label of each group at most a fraction {_told(self.kappa)} * t of the rows has a noise-free "
            f"score within t of 0; base rates {_told(self.base_rates)}"
        )


@dataclass(frozen=True, eq=False)
class MarginSample(MarginProfile):
    """Margins of a model of a public table, such as last year's published survey, which stands for the private one.

    Parameters
    ----------
    margins : dict
        For each (label, group), with label 0 or 1, the margins of its rows: the score where the label is 1, minus the
        score where it is 0. Their numbers give the base rates.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.fairness import MarginSample
    >>> scores, y, sex = np.array([2.0, -1.0, 0.5, -3.0]), np.array([1, 0, 0, 1]), np.array(["f", "f", "m", "m"])
    >>> MarginSample.from_scores(scores, y, sex).base_rate("f")
    0.5
    """

    margins: Mapping[tuple[int, str], Any]

    def __post_init__(self) -> None:
        for cell, values in self._arrays.items():
            if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
                raise ValueError(f"margins of {cell!r} must be a vector of finite numbers, at least one.")
        if any(label not in LABELS for label, _ in self._arrays):
            raise ValueError("margins must have keys (label, group) with label 0 or 1.")

    @classmethod
    def from_scores(cls, scores: Any, labels: Any, groups: Any) -> MarginSample:
        """Make the cells from scores (positive: 1 is predicted), labels 0 or 1, and groups, one of each per row."""
        scores, labels, groups = as_numbers(scores), np.asarray(labels), np.asarray(groups)
        if not scores.shape == labels.shape == groups.shape or scores.ndim != 1:
            raise ValueError("scores, labels and groups must be vectors of the same length.")
        cells = {
            (label, group): np.where(label == 1, 1.0, -1.0) * scores[(labels == label) & (groups == group)]
            for group in np.unique(groups).tolist()
            for label in np.unique(labels).tolist()
        }
        return cls({cell: values for cell, values in cells.items() if values.size})

    @cached_property
    def _arrays(self) -> dict[tuple[int, str], FloatArray]:
        return {cell: np.asarray(values, dtype=np.float64) for cell, values in self.margins.items()}

    def base_rate(self, group: str) -> float:
        favourable, other = self._cell(1, group).size, self._cell(0, group).size
        return favourable / (favourable + other)

    def sides(self, label: int, group: str, curve: FlipCurve) -> Sides:
        margins = self._cell(label, group)
        changing = curve(np.abs(margins)) / margins.size
        loss, gain = float(changing[margins >= 0.0].sum()), float(changing[margins <= 0.0].sum())
        return Sides(loss, gain, float(changing.sum()))

    def accuracy(self, label: int, group: str) -> float | None:
        return float((self._cell(label, group) > 0.0).mean())

    def describe(self) -> str:
        rows = sum(values.size for values in self._arrays.values())
        return f"noise-free margins and base rates are those of {rows} public rows that stand for the private ones"

    def _cell(self, label: int, group: str) -> FloatArray:
        if (label, group) not in self._arrays:
            raise ValueError(f"margins has no rows with label {label} in group {group!r}.")
        return self._arrays[label, group]


def _of_group(name: str, values: PerGroup, group: str) -> float:
    if not isinstance(values, Mapping):
        return float(values)
    if group not in values:
        raise ValueError(f"{name} says nothing about group {group!r}; it has {', '.join(map(repr, values))}.")
    return float(values[group])


def _told(values: PerGroup | None) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{value:g} ({group})" for group, value in values.items())
    return f"{values:g}"
