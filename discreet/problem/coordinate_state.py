"""Runs the coordinate-descent kernels on a scaled problem and keeps their state between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import ScaledProblem


class CoordinateState:
    """Coordinate descent in progress: weights, margins and the running average of the iterates.

    `clip` bounds each row's contribution to the gradient of a coordinate, `step` is the step length per
    coordinate; the scaled matrix must be in column order.
    """

    def __init__(self, scaled: ScaledProblem, clip: FloatArray, step: FloatArray) -> None:
        self.scaled, self.clip, self.step = scaled, clip, step
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
        """One step per coordinate; noise[k] is added to the k-th clipped gradient sum."""
        c = self.scaled.penalty_terms
        loss = self.scaled.problem.loss
        settings = (self.clip, self.step, c.l1, c.l2, c.low, c.high, float(self.scaled.rows))
        rows = (self.scaled.y, self.weight, loss.code, float(loss.parameter), coordinates, noise)
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
