"""The one release of an evaluation: histograms and sums of bounded columns over the rows, together, with noise.

Section 1 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.data.rows import on_term_grid
from discreet.privacy.mechanisms import additive, histograms_and_fractions
from discreet.privacy.release import WHOLE, ReleasePlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms.additive import NoisyGrid
    from discreet.privacy.random.generator import RandomGenerator

# Weight of sums that only say how far a figure scatters: they need less precision than the figure itself. A power of
# two, so that multiplying by it is exact.
SPREAD_WEIGHT = 0.25


@dataclass(frozen=True)
class Part:
    """One histogram, or one sum of a column between 0 and 1.

    Attributes
    ----------
    name : str
        What it is called in the release.
    bins : int
        Number of bins of a histogram; 0 for the sum of a column.
    weight : float
        What it is multiplied by before the noise is added; a larger weight means less noise on this part.
    """

    name: str
    bins: int = 0
    weight: float = 1.0

    @property
    def size(self) -> int:
        return max(self.bins, 1)


@dataclass(frozen=True, eq=False)
class Contribution:
    """What the rows add to a part: `amounts` between 0 and 1, and for a histogram the bin that each is added to."""

    amounts: FloatArray
    places: IntArray | None = None

    def total(self, part: Part, weight: FloatArray | None) -> FloatArray:
        """The sum over the rows, each times its weight; exact, since all terms are multiples of a power of two."""
        amounts = np.where(self.amounts >= 0.0, np.minimum(self.amounts, 1.0), 1.0)  # NaN counts as 1
        terms = on_term_grid(amounts if weight is None else amounts * weight)
        if self.places is None:
            return np.array([terms.sum()])
        return np.bincount(self.places, weights=terms, minlength=part.bins).astype(np.float64)


def check_one_each(found: Mapping[str, Contribution], rows: int) -> None:
    """Every row must add one amount to each part: the sensitivity rests on it."""
    for name, added in found.items():
        shapes = {np.shape(values) for values in (added.amounts, added.places) if values is not None}
        if shapes != {(rows,)}:
            raise RuntimeError(f"the rows do not add one amount each to {name}; nothing was released.")


def plan_sums(public: Public, budget: Budget, parts: tuple[Part, ...]) -> ReleasePlan:
    """One release of all parts."""
    settings = {"parts": parts, "relation": public.relation}
    return ReleasePlan("evaluation", public, budget, {"mechanism": additive(budget, WHOLE)}, settings)


def grid_of(plan: ReleasePlan) -> NoisyGrid:
    """The grid and the noise of all parts."""
    histograms = [part.weight for part in plan.parts if part.bins]
    fractions = [part.weight for part in plan.parts if not part.bins]
    sensitivity = histograms_and_fractions(plan.public.relation, histograms, fractions)
    grid: NoisyGrid = plan.mechanism.grid(sensitivity, sum(part.size for part in plan.parts))
    return grid


def totals_of(parts: tuple[Part, ...], found: Mapping[str, Contribution], weight: FloatArray | None) -> FloatArray:
    """The exact sums of all parts, one after the other. Not private."""
    return np.concatenate([found[part.name].total(part, weight) for part in parts])


def release_sums(plan: ReleasePlan, exact: FloatArray, rows: float | None, rng: RandomGenerator) -> NoisySums:
    """The sums of what all rows add, with noise; `rows` is their number where that is public.

    Guarantee: costs exactly the event of the plan.
    """
    grid = grid_of(plan)
    scales = np.concatenate([np.full(part.size, part.weight) for part in plan.parts])
    deviation = grid.scale * (math.sqrt(2.0) if grid.law == "laplace" else 1.0)
    values = grid.release(rng, exact * scales) / scales
    return NoisySums(plan.parts, values, deviation / scales, grid.law == "laplace", rows)


@dataclass(frozen=True, eq=False)
class NoisySums:
    """What was released: everything that an evaluation says is computed from this.

    Attributes
    ----------
    parts : tuple of Part
        What the numbers are, in this order.
    values : ndarray
        The numbers.
    deviations : ndarray
        Standard deviation of the noise on each.
    laplace : bool
        Whether the noise is Laplace noise; else it is Gaussian.
    rows : float or None
        The number of rows, where it is public.
    """

    parts: tuple[Part, ...]
    values: FloatArray
    deviations: FloatArray
    laplace: bool
    rows: float | None

    def places(self, name: str) -> slice:
        """Where the numbers of a part are."""
        start = 0
        for part in self.parts:
            if part.name == name:
                return slice(start, start + part.size)
            start += part.size
        raise KeyError(name)

    def of(self, name: str) -> FloatArray:
        """The numbers of a part."""
        return self.values[self.places(name)]

    def one(self, name: str) -> float:
        """The sum of a column."""
        return float(self.of(name)[0])

    def deviation(self, name: str) -> float:
        """Standard deviation of the noise on each number of a part."""
        return float(self.deviations[self.places(name)][0])

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and noise by part, as JSON values."""
        return {
            part.name: {"values": self.of(part.name).tolist(), "noise_std": self.deviation(part.name)}
            for part in self.parts
        }
