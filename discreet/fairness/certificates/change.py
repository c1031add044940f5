"""How many predictions can change: bounds in several forms, cell by cell.

Theorems: docs/guarantees/fairness.md, 1 to 3 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in, whole
from discreet._common.types import BoolArray, FloatArray
from discreet.fairness.cells import RowCells
from discreet.fairness.certificates.margins import Margins
from discreet.fairness.quantities import Quantity
from discreet.theory.distance import DistanceLaw, GaussianDistance

SHARE = 0.001  # of the rows that may move further than the others, in the form for private margins
CHERNOFF_STEPS = 25  # halvings of the interval of the exponent


@dataclass(frozen=True)
class Reach:
    """How far rows can move: rows that need a larger distance keep their prediction, but for a share of the weight.

    Attributes
    ----------
    radius : float
        A distance between parameters.
    share : float
        At most this share of the rows, weighted as a statement weighs them, moves further.
    """

    radius: float
    share: float = 0.0


def all_rows_reach(law: DistanceLaw, failure: float, rows: int, rivals: int = 1) -> float:
    """The distance that, with probability 1 - failure, covers how all rows' margins move at once.

    It is the radius of the law or, for Gaussian noise, what `rows` given rows all stay below by a union bound, if that
    is less; both are known before any margin is.
    """
    radius = law.radius(failure)
    if not isinstance(law, GaussianDistance):
        return radius
    return min(radius, law.error + law.deviation * _normal_quantile(failure / (2.0 * rows * rivals)))


def reaches(law: DistanceLaw, failure: float, rows: int, rivals: int = 1, simultaneous: bool = False) -> list[Reach]:
    """Reaches that hold together with probability 1 - failure, for one statement; for all of them if `simultaneous`."""
    everything = all_rows_reach(law, failure, rows, rivals)
    if simultaneous or not isinstance(law, GaussianDistance):
        return [Reach(everything)]
    half = 0.5 * failure
    most = law.error + law.deviation * _normal_quantile(SHARE * half / (2.0 * rivals))
    if most >= everything:
        return [Reach(everything)]
    return [Reach(all_rows_reach(law, half, rows, rivals)), Reach(most, SHARE)]


def sides(rows: RowCells, margins: Margins, radius: float) -> tuple[FloatArray, FloatArray]:
    """Shares of each cell that can turn wrong (loss) and correct (gain) within a distance."""
    near = margins.needed <= radius
    return rows.means(near & margins.correct), rows.means(near & ~margins.correct)


def interval(quantity: Quantity, rows: RowCells, margins: Margins, reach: Reach) -> tuple[float, float]:
    """The least and the largest change of a quantity within a reach."""
    low, high = quantity.change_within(*sides(rows, margins, reach.radius))
    more = reach.share * float(np.abs(quantity.weights).sum())
    return low - more, high + more


def tail(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Share of each cell that can change within a distance: no other form is smaller."""
    return rows.means(margins.needed <= radius)


def markov(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Markov's inequality: radius times the mean inverse distance, at most 1."""
    return np.minimum(rows.means(_ratios(margins.needed, radius)), 1.0)


def truncated_markov(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Markov's inequality for the rows within the distance alone, at most 1."""
    near = margins.needed <= radius
    return np.minimum(rows.means(np.where(near, _ratios(margins.needed, radius), 0.0)), 1.0)


def chernoff(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Chernoff's bound: the least over t >= 0 of exp(t radius) times the mean of exp(-t distance)."""
    cells = [margins.needed[rows.cell == place] for place in range(rows.counts.size)]
    return np.array([chernoff_bound(part, radius) if part.size else 0.0 for part in cells]).reshape(rows.shape)


def chernoff_bound(needed: FloatArray, radius: float) -> float:
    """Chernoff's bound on the share of values that are at most the radius."""
    if not math.isfinite(radius):
        return 1.0
    finite = needed[np.isfinite(needed)]
    if finite.size == 0 or float(finite.min()) > radius:
        return 0.0  # the limit of large t
    if float(finite.mean()) <= radius and finite.size == needed.size:
        return 1.0  # the bound rises with t from its value 1 at t = 0
    away = finite - radius

    def logarithm_and_slope(t: float) -> tuple[float, float]:
        largest = float((-t * away).max())
        terms = np.exp(-t * away - largest)
        return largest + math.log(float(terms.sum()) / needed.size), -float((away * terms).sum())

    low, high = 0.0, 1.0 / max(float(np.abs(away).max()), np.finfo(float).tiny)
    doublings = 0
    while logarithm_and_slope(high)[1] < 0.0 and doublings < 4 * CHERNOFF_STEPS:
        low, high, doublings = high, 2.0 * high, doublings + 1
    for _ in range(CHERNOFF_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if logarithm_and_slope(middle)[1] < 0.0 else (low, middle)
    return min(1.0, math.exp(min(0.0, logarithm_and_slope(high)[0])))


FORMS = {"markov": markov, "truncated": truncated_markov, "chernoff": chernoff, "tail": tail}


def noise_side(weights: FloatArray, probabilities: FloatArray, failure: float) -> float:
    """What a weighted sum of changed rows exceeds with probability at most `failure`, given each row's probability."""
    return float((weights * np.minimum(probabilities / failure, 1.0)).sum())


def noise_interval(
    quantity: Quantity, rows: RowCells, correct: BoolArray, probabilities: FloatArray, failure: float
) -> tuple[float, float]:
    """The least and the largest change of a quantity, of which each end fails with half of the probability."""
    weight = row_weights(quantity, rows)
    rises = np.where(correct, weight < 0.0, weight > 0.0)
    size, half = np.abs(weight), 0.5 * failure
    fall = noise_side(np.where(rises, 0.0, size), probabilities, half)
    return 0.0 - fall, noise_side(np.where(rises, size, 0.0), probabilities, half)


def row_weights(quantity: Quantity, rows: RowCells) -> FloatArray:
    """How much the correctness of each row adds: the weight of its cell over the number of rows there."""
    shares = np.divide(quantity.weights, rows.counts, out=np.zeros(rows.shape), where=rows.counts > 0.0)
    return shares.ravel()[rows.cell]


def printed_radius(deviation: float, size: int, failure: float) -> float:
    """The distance printed in the literature for Gaussian noise of a deviation on each of `size` parameters."""
    failure = number_in("failure", failure, 0.0, 1.0, above=True)
    return deviation * math.sqrt(4.0 * whole("size", size, least=1) * math.log(2.0 / failure))


def _ratios(needed: FloatArray, radius: float) -> FloatArray:
    if not math.isfinite(radius):
        return np.full(needed.shape, math.inf)
    return np.divide(radius, needed, out=np.full(needed.shape, math.inf), where=needed > 0.0)


def _normal_quantile(above: float) -> float:
    """What a standard normal variable exceeds with this probability, at least 0."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(min(above, 0.5))))
