"""Runs the coordinate-descent kernels on a scaled problem and keeps their state between calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.gradient import UNROUNDED, units_of
from discreet.problem.scaled_problem import ScaledProblem


class CoordinateState:
    """Coordinate descent in progress: weights, margins and the running average of the iterates.

    `clip` bounds each row's contribution to the gradient of a coordinate, `step` is the step length per
    coordinate; the scaled matrix must be in column order. Contributions are rounded to multiples of `grid_step` times
    their threshold (0: not at all).
    """

    def __init__(self, scaled: ScaledProblem, clip: FloatArray, step: FloatArray, grid_step: float = 0.0) -> None:
        self.scaled, self.clip, self.step, self.grid_step = scaled, clip, step, grid_step
        self.unit = units_of(clip, grid_step)
        self.weight = scaled.kernel_weight
        self.restart(scaled.start())

    def restart(self, w: FloatArray) -> None:
        """Continue from `w` and begin a new average."""
        self.w = np.array(w, dtype=np.float64)
        self.margins = np.ascontiguousarray(self.scaled.margins(self.w))
        self.total = np.zeros_like(self.w)
        self.since = np.zeros(self.scaled.columns, dtype=np.int64)
        self.count = 0

    def run(self, coordinates: npt.NDArray[np.int64], noise: FloatArray) -> None:
        """One step per coordinate; noise[k], in thresholds, is added to the k-th clipped gradient sum."""
        c = self.scaled.penalty_terms
        loss = self.scaled.problem.loss
        units = noise_in_units(noise, self.clip[coordinates], self.grid_step)
        settings = (self.clip, self.unit, self.step, c.l1, c.l2, c.low, c.high, float(self.scaled.rows))
        rows = (self.scaled.y, self.weight, loss.code, float(loss.parameter), coordinates, units)
        state = (self.w, self.margins)
        average = (self.total, self.since, self.count)
        self._kernel(rows, settings, state, average)
        self.count += coordinates.size

    def place(self, coordinates: npt.NDArray[np.int64], values: FloatArray) -> None:
        """Put some coordinates elsewhere; their average goes on from there."""
        self.total[..., coordinates] += self.w[..., coordinates] * (self.count - self.since[coordinates])
        self.since[coordinates] = self.count
        self.w[..., coordinates] = values
        self.margins = np.ascontiguousarray(self.scaled.margins(self.w))

    def average(self) -> FloatArray:
        """The mean of the iterates since the last restart."""
        if self.count == 0:
            return self.w.copy()
        return (self.total + self.w * (self.count - self.since)) / self.count

    def _kernel(self, rows: Any, settings: Any, state: Any, average: Any) -> None:
        from discreet.kernels import coordinate

        X = self.scaled.X
        sparse = sp.issparse(X)
        if self.scaled.outputs > 1:
            parts = (X.indptr, X.indices, X.data[None, :]) if sparse else (_NONE, _NONE, X.T)
            coordinate.sweep_blocks(*parts, *rows, *settings, *state, *average)
        elif sparse:
            coordinate.sweep_sparse(X.indptr, X.indices, X.data, *rows, *settings, *state, *average)
        else:
            coordinate.sweep_dense(X.T, *rows, *settings, *state, *average)


_NONE = np.empty(0, dtype=np.int32)


def sweeps(state: CoordinateState) -> Iterator[FloatArray]:
    """The weights after each pass over the coordinates, without noise and without end."""
    order, zero_noise = np.arange(state.scaled.columns), np.zeros((state.scaled.columns, *state.scaled.shape[:-1]))
    while True:
        state.run(order, zero_noise)
        yield state.w


def noise_in_units(noise: FloatArray, clip: FloatArray, grid_step: float) -> FloatArray:
    """Noise given in thresholds, as the kernels count it; on a grid its multiples of the step stay integers."""
    if grid_step > 0.0:
        return noise / grid_step
    spread = np.where(np.isfinite(clip), clip, 0.0) / UNROUNDED  # without thresholds there is no noise
    return noise * spread.reshape(clip.shape + (1,) * (noise.ndim - 1))
