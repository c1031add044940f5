"""A ridge that is stronger along given directions: it shrinks the scores' differences along them.

With c_k the difference of the mean rows of two groups, c_k . w is the difference of their mean scores, whatever the
intercept: docs/fair_models.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, number_in
from discreet.problem.arrays import Array, Values, floats
from discreet.problem.coupled_penalties import RescaledPenalty

LARGEST_RATIO = 1e300  # of a penalty to a proximal step's own curvature: beyond, nothing is left along the direction
# Lengths below this, times the longest and the number of rows or columns, are rounding errors of a decomposition.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

Directions = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, init=False)
class DirectionalL2(RescaledPenalty):
    """Half the sum of squares, and more along given directions: alpha / 2 ||w||^2 + beta / 2 sum_k (c_k . w)^2.

    If c_k is the difference of the mean rows of two groups of people, c_k . w is the difference of their mean scores,
    and the penalty makes it small (Zafar et al. 2017, Lohaus et al. 2020). The directions are public numbers, as all
    of a penalty is: declare them, or take them from `discreet.fairness`.

    Columns keep scales of their own with this penalty, as they do with L2.

    Parameters
    ----------
    alpha : float
        Strength along every direction, at least 0.
    beta : float
        Additional strength along the given directions, at least 0.
    directions : array of shape (n_directions, n_features)
        The directions c_k, one per row, of any lengths; one direction may be given as a flat array. They may depend on
        each other; one that is shorter than a rounding error of the longest, in the scales of the columns, is none.

    Attributes
    ----------
    strong_convexity : float
        alpha; no more, as there may be coefficients that no direction sees.
    smoothness : float
        How fast the gradient changes at most: alpha + beta times the largest eigenvalue of sum_k c_k c_k'.

    Examples
    --------
    >>> from discreet.problem import DirectionalL2
    >>> penalty = DirectionalL2(1.0, 2.0, [[1.0, -1.0]])
    >>> penalty.value([3.0, 1.0]), round(penalty.smoothness, 6)
    (9.0, 5.0)
    >>> penalty.prox([3.0, 1.0], step=1.0).round(3)
    array([1.167, 0.833])
    """

    alpha: float
    beta: float
    directions: Directions

    name = "directional-l2"

    def __init__(self, alpha: float, beta: float, directions: Values) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", alpha, 0.0))
        object.__setattr__(self, "beta", number_in("beta", beta, 0.0))
        object.__setattr__(self, "directions", tuple(map(tuple, checked_directions(directions).tolist())))

    @property
    def strong_convexity(self) -> float:
        return self.alpha

    @property
    def smoothness(self) -> float:
        largest = float(np.linalg.svd(_matrix(self.directions), compute_uv=False)[0])
        return self.alpha + self.beta * largest**2

    def check_columns(self, columns: int) -> None:
        if columns != len(self.directions[0]):
            raise ValueError(f"directions has {len(self.directions[0])} columns, but there are {columns}.")

    def value(self, w: Values) -> float:
        unit, largest = self._unit(w)
        along = _matrix(self.directions) @ unit
        with np.errstate(over="ignore"):
            half = 0.5 * float(self.alpha * (unit @ unit) + self.beta * (along @ along))
            return float(np.float64(half) * largest * largest) if half > 0.0 else 0.0

    def gradient(self, w: Values) -> Array:
        """The gradient, alpha w + beta sum_k (c_k . w) c_k."""
        point, directions = floats(w), _matrix(self.directions)
        self.check_columns(point.size)
        return self.alpha * point + self.beta * (directions.T @ (directions @ point))

    def prox(self, v: Values, step: float) -> Array:  # type: ignore[override]
        return self.scaled_prox(v, step, np.ones(len(self.directions[0])))

    def scaled_prox(self, v: Values, step: float, gain: Array) -> Array:
        """In closed form: a diagonal matrix, and one whose rank is at most the number of directions."""
        unit, largest = self._unit(v)
        with np.errstate(over="ignore", under="ignore"):
            root = 1.0 / np.sqrt(1.0 + step * self.alpha * gain**2)  # the diagonal part alone divides by its square
            lengths, axes = _axes(_matrix(self.directions) * (gain * root))
            ratio = np.minimum(step * self.beta * lengths**2, LARGEST_RATIO)
            shrunk = root * unit
            shrunk -= axes.T @ (ratio / (1.0 + ratio) * (axes @ shrunk))
            return largest * (root * shrunk)

    def _unit(self, w: Values) -> tuple[Array, float]:
        """The coefficients divided by the largest of them, so that no square overflows."""
        point = floats(w)
        self.check_columns(point.size)
        largest = float(np.abs(point).max(initial=0.0)) or 1.0
        return point / largest, largest


def checked_directions(directions: Values) -> Array:
    """The directions as the rows of a matrix of finite numbers; one direction may be flat."""
    try:
        matrix = np.atleast_2d(floats(directions))
    except (TypeError, ValueError):
        raise ValueError("directions must be a table of numbers, one direction per row.") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"directions must have one row per direction and one column per feature; got {matrix.shape}.")
    if not (np.abs(matrix) <= LARGEST_THRESHOLD).all():
        raise ValueError(f"directions must be finite, and at most {LARGEST_THRESHOLD:g} in absolute value.")
    return matrix


def _axes(directions: Array) -> tuple[Array, Array]:
    """Lengths and orthonormal rows of what the directions span.

    Directions that depend on each other span less than their number. What the decomposition adds then has lengths that
    are rounding errors and points anywhere: an enormous strength would remove a part that no direction sees.
    """
    _, lengths, axes = np.linalg.svd(directions, full_matrices=False)
    clear = lengths > ROUNDING * max(directions.shape) * lengths[0]
    return lengths[clear], axes[clear]


@lru_cache(maxsize=64)
def _matrix(directions: Directions) -> Array:
    return np.array(directions)
