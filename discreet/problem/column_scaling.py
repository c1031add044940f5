"""Scaled columns: each column clipped, centred and scaled by public or released numbers.

A linear model of the scaled columns is a linear model of the user's columns. The map between the two is
exact (with an unpenalised intercept, centring changes nothing; scaling moves into the penalty), so solvers
may work where every column has about unit size while the objective stays the one the user wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data, Limits, moment_sums, piece_slices
from discreet.data.validation import LARGEST_BOUND
from discreet.problem.penalties import PenaltyTerms

LEAST_MEAN = 0.1  # of the spread: no counts are so uneven that their mean is less
SMALLEST_UNIT = 1e-9  # of the largest target: a target in units of its mean must not overflow
SMALLEST_SPREAD = 1e-7  # of the radius: a constant column must not be divided by zero


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """An affine map of the columns, x -> (clip(x, low, high) - shift) / scale, and of the target.

    `second_moment` bounds (declared) or estimates (released) the mean square of each scaled column;
    `frozen` marks columns about which nothing could be learned: their coefficient stays 0.
    """

    low: FloatArray
    high: FloatArray
    shift: FloatArray
    scale: FloatArray
    second_moment: FloatArray
    frozen: npt.NDArray[np.bool_]
    target_low: float = -np.inf
    target_high: float = np.inf
    target_shift: float = 0.0
    target_scale: float = 1.0
    target_noise: float = np.inf  # standard deviation of the noise in the shift; infinite: it is not a measured mean
    log_target: bool = False  # the shift is a logarithm: targets are divided by its exponential instead

    @property
    def columns(self) -> int:
        return self.scale.size

    @property
    def gain(self) -> FloatArray:
        """By what shifted columns are multiplied; nothing is left of a frozen one."""
        return np.where(self.frozen, 0.0, 1.0 / self.scale)

    def matrix(self, data: Data, order: Literal["C", "F"], intercept: bool) -> Any:
        """The scaled rows, as one fresh copy in the wanted order, with a last column of ones if asked."""
        if data.sparse:
            return self._sparse_matrix(data.X, order, intercept)
        if data.owned and not intercept and data.X.flags[f"{order}_CONTIGUOUS"]:
            scaled = data.X
        else:
            scaled = np.empty((data.rows, self.columns + intercept), dtype=data.X.dtype, order=order)
            scaled[:, self.columns :] = 1.0
        parts = piece_slices(data.rows, self.columns)
        layout: Literal["C", "F"] = "F" if parts and parts[0].stop > self.columns else "C"  # long inner loops are fast
        gain = self.gain
        for part in parts:
            rows = np.array(data.X[part], dtype=np.float64, order=layout)
            np.maximum(rows, self.low, out=rows)
            np.minimum(rows, self.high, out=rows)
            rows -= self.shift
            rows *= gain
            scaled[part, : self.columns] = rows
        return scaled

    def _sparse_matrix(self, X: Any, order: Literal["C", "F"], intercept: bool) -> Any:
        columns = sp.csc_array(X, copy=True)
        columns.sum_duplicates()
        owner = np.repeat(np.arange(self.columns), np.diff(columns.indptr))
        values = np.clip(columns.data, self.low[owner], self.high[owner])
        columns.data = np.where(self.frozen[owner], 0.0, values / self.scale[owner])
        if intercept:
            columns = sp.hstack([columns, sp.csc_array(np.ones((X.shape[0], 1)))], format="csc")
        return columns if order == "F" else sp.csr_array(columns)

    def target(self, y: FloatArray) -> FloatArray:
        """Return the clipped and centred regression target (labels of a classification are left alone).

        With a log link it is divided by its mean instead, of which the shift is the logarithm.
        """
        clipped = np.clip(y, self.target_low, self.target_high)
        return clipped / np.exp(self.target_shift) if self.log_target else clipped - self.target_shift

    @property
    def constant_prediction(self) -> float:
        """What is predicted where the columns tell nothing."""
        return float(np.exp(self.target_shift)) if self.log_target else self.target_shift

    def with_target(self, low: float, high: float, shift: float, scale: float, noise: float = np.inf) -> ColumnScaling:
        """The same scaling for a target with these ends, this centre and width."""
        low, high, shift, scale, noise = map(float, (low, high, shift, scale, noise))
        ends = replace(self, target_low=low, target_high=high)
        return replace(ends, target_shift=shift, target_scale=scale, target_noise=noise)

    def with_log_target(self, centred: bool) -> ColumnScaling:
        """The same scaling for a loss with a log link: the target has the unit of its mean.

        Targets are not negative. A range that has shrunk to a point stays one; any other begins at 0, where clipping
        costs nothing. Without an intercept (`centred` is False) no unit can be given back, and it stays 1.
        """
        if self.log_target:
            return self
        high = max(self.target_high, 0.0)
        low = high if self.target_low >= high else 0.0
        unit = self._target_unit(high) if centred else 1.0
        return replace(
            self,
            target_low=low,
            target_high=high,
            target_shift=float(np.log(unit)),
            target_scale=self.target_scale / unit,
            target_noise=self.target_noise / unit,
            log_target=True,
        )

    def _target_unit(self, high: float) -> float:
        """The mean of a target that is not negative; its spread where no mean is known, 1 where nothing is."""
        if self.target_shift > 0.0:
            # Many negative targets have a mean that says nothing about what is left of them after clipping.
            least = max(LEAST_MEAN * self.target_scale, SMALLEST_UNIT * high if np.isfinite(high) else 0.0)
            return max(self.target_shift, least)
        return min(self.target_scale, high) if high > 0.0 else 1.0

    def penalty_terms(self, penalty_terms: PenaltyTerms) -> PenaltyTerms:
        """The user's separable penalty, written for the scaled weights w_j * scale_j."""
        l1, l2, low, high = penalty_terms
        return PenaltyTerms(l1 / self.scale, l2 / self.scale**2, low * self.scale, high * self.scale)

    def coef(self, weights: FloatArray) -> FloatArray:
        """Coefficients for the user's columns; `weights` is (p,) or (outputs, p)."""
        return np.where(self.frozen, 0.0, weights / self.scale)

    def intercept(self, intercept: Any, coef: FloatArray) -> Any:
        """The intercept that goes with user coefficients."""
        return intercept + self.target_shift - coef @ self.shift

    def uniform(self) -> ColumnScaling:
        """Return the same scaling with one scale for all columns, for sets that are not separable."""
        scale = np.sqrt(np.mean(self.scale[~self.frozen] ** 2)) if not self.frozen.all() else 1.0
        return replace(
            self,
            scale=np.full(self.columns, scale),
            # Nothing is known about a frozen column, and nothing is left of it; its old scale means nothing.
            second_moment=np.where(
                self.frozen & ~self.frozen.all(), 0.0, self.second_moment * (self.scale / scale) ** 2
            ),
        )

    def without_frozen(self) -> ColumnScaling:
        """Return the same scaling with no column frozen, for sets to whose points every coefficient belongs."""
        moments = np.where(self.frozen, 0.0, self.second_moment)  # clipped entries of frozen columns are all 0
        return replace(self, frozen=np.zeros(self.columns, dtype=bool), second_moment=moments)

    def from_user(self, coef: FloatArray) -> FloatArray:
        """The scaled weights of user coefficients."""
        return coef * self.scale


def identity_scaling(columns: int) -> ColumnScaling:
    """No centring, no scaling, and no clipping but of entries so large that a margin could overflow."""
    low, high = np.full(columns, -LARGEST_BOUND), np.full(columns, LARGEST_BOUND)
    shift, scale, square, frozen = np.zeros(columns), np.ones(columns), np.ones(columns), np.zeros(columns, dtype=bool)
    return ColumnScaling(low, high, shift, scale, square, frozen)


def exact_scaling(data: Data, centred: bool, target: bool) -> ColumnScaling:
    """Columns (and a regression target) centred and scaled by their exact moments. Not private."""
    p = data.X.shape[1]
    radius = np.minimum(np.append(largest_entries(data.X), np.abs(data.y).max(initial=0.0)), LARGEST_BOUND)
    limits = Limits(-radius, radius, np.zeros(p + 1), radius)
    mean, square = moment_sums(data, limits, slice(0, p + 1), rounded=False) / data.rows
    if not centred:
        mean = np.zeros(p + 1)
    known = radius > 0.0
    scale = np.where(known, radius * np.sqrt(np.maximum(square - mean**2, SMALLEST_SPREAD**2)), 1.0)
    shift = mean * radius
    scaling = replace(
        identity_scaling(p), low=-radius[:p], high=radius[:p], shift=shift[:p], scale=scale[:p], frozen=~known[:p]
    )
    if not target:
        return scaling
    return scaling.with_target(-radius[p], radius[p], shift[p], scale[p])


def largest_entries(X: Any) -> FloatArray:
    """The largest absolute value of each column. Not private."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
    return np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0)).astype(np.float64)
