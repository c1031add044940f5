"""Exact draws from the density exp(-energy) on a set covered by cells, for a convex energy.

On each cell the tangent at its centre lies below the energy, so exp(-tangent) lies above the density: a product of
exponentials that is drawn from in closed form. A draw is kept with probability exp(tangent - energy), and only if
it lies in the set. Theorem and proof: docs/guarantees/exponential.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray, IntArray
from discreet.solvers.exponential.cells import Cells

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.losses import Loss

BLOCK_ENTRIES = 1 << 19  # margins held at once
LARGEST_BATCH = 256  # tries made at once


@dataclass(frozen=True, eq=False)
class Energy:
    """rate * sum over rows of weight * loss(<x, u> + offset, y), at many points u at once."""

    X: FloatArray
    offset: FloatArray
    y: FloatArray
    weight: FloatArray | None
    loss: Loss
    rate: float

    def values(self, points: FloatArray) -> FloatArray:
        """The energy at each row of `points`."""
        return np.concatenate([self._total(self.loss.value(m, self.y)) for _, m in self._margins(points)])

    def tangents(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The energy and its gradient at each row of `points`."""
        values, gradients = np.empty(points.shape[0]), np.empty(points.shape)
        for block, margins in self._margins(points):
            values[block] = self._total(self.loss.value(margins, self.y))
            slopes = self.loss.slope(margins, self.y)
            gradients[block] = self.rate * ((slopes if self.weight is None else slopes * self.weight) @ self.X)
        return values, gradients

    def _margins(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of points, with the margins of all rows: an array (points, rows)."""
        length = max(1, BLOCK_ENTRIES // max(1, self.X.shape[0]))
        for start in range(0, points.shape[0], length):
            block = slice(start, start + length)
            yield block, points[block] @ self.X.T + self.offset

    def _total(self, losses: FloatArray) -> FloatArray:
        return self.rate * (losses.sum(axis=1) if self.weight is None else losses @ self.weight)


class CellSampler:
    """Draws points of the set with density proportional to exp(-energy), by rejection from its envelope.

    Guarantee: in real arithmetic the law is exact, whatever the cells; they only decide how long it takes.
    """

    def __init__(self, energy: Energy, cells: Cells, inside: Callable[[FloatArray], npt.NDArray[np.bool_]]) -> None:
        self.energy, self.cells, self.inside = energy, cells, inside
        self.values, self.gradients = energy.tangents(cells.centres)
        self.cumulative = np.cumsum(self._masses())

    def _masses(self) -> FloatArray:
        """The mass of the envelope over each cell, up to a common factor; the largest is 1."""
        drop = 2.0 * np.abs(self.gradients) * self.cells.halves
        # Integral of exp(-g s) over |s| <= h, as its largest value times a mean in (0, 1] times 2 h.
        means = np.where(drop > 0.0, -np.expm1(-drop) / np.where(drop > 0.0, drop, 1.0), 1.0)
        logs = -self.values + (0.5 * drop + np.log(means * self.cells.halves)).sum(axis=1)
        return np.asarray(np.exp(logs - logs.max()))

    def propose(self, rng: RandomGenerator, count: int) -> tuple[FloatArray, FloatArray]:
        """Points from the envelope, and the energy of the tangent there."""
        cell = self._choose(rng, count)
        gradient, half = self.gradients[cell], self.cells.halves[cell]
        move = exponential_on_interval(gradient, half, rng.uniform(gradient.shape))
        return self.cells.centres[cell] + move, self.values[cell] + (gradient * move).sum(axis=1)

    def _choose(self, rng: RandomGenerator, count: int) -> IntArray:
        levels = rng.uniform(count) * self.cumulative[-1]
        return np.minimum(np.searchsorted(self.cumulative, levels, side="right"), self.cells.count - 1)

    def draw(self, rng: RandomGenerator, count: int = 1) -> FloatArray:
        """Independent points, as the rows of an array; the tries have no limit: giving up would depend on the rows."""
        kept, missing, batch = [], count, min(4 * count, LARGEST_BATCH)
        while missing > 0:
            points, tangent = self.propose(rng, batch)
            gap = self.energy.values(points) - tangent
            accepted = (np.log(rng.uniform(batch)) <= -gap) & self.inside(points)
            kept.append(points[accepted][:missing])
            missing -= len(kept[-1])
            batch = min(2 * batch, LARGEST_BATCH)
        return np.concatenate(kept)


def exponential_on_interval(rate: FloatArray, half: FloatArray, uniform: FloatArray) -> FloatArray:
    """Draws s in [-half, half] with density proportional to exp(-rate * s), from uniform draws."""
    drop = 2.0 * np.abs(rate) * half
    flat = drop < 1e-12  # there the density differs from a constant by less than a rounding error of it
    share = np.where(flat, uniform, -np.log1p(uniform * np.expm1(-drop)) / np.where(flat, 1.0, drop))
    return np.asarray(np.where(rate >= 0.0, 1.0, -1.0) * half * (2.0 * share - 1.0))
