"""The noisy second-moment matrix of the rows, and the metric that is made of it.

Sensitivity, the law of the symmetric noise and proofs: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.exceptions import IncompatibleSolverError
from discreet._common.types import FloatArray
from discreet.data.rows import block_slices
from discreet.kernels.gradient import SMALLEST_NORM
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.privacy.mechanisms import Gaussian, Sensitivity
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation


LARGEST_COLUMNS = 5_000  # a matrix of that many squared columns is held in memory
SMALLEST_EIGENVALUE = 1e-12  # of the largest one: without noise, collinear columns must not divide by zero


def check_columns(solver: str, columns: int) -> None:
    """Refuse tables whose second-moment matrix would not fit in memory."""
    if columns > LARGEST_COLUMNS:
        raise IncompatibleSolverError(
            f"solver {solver!r} holds a matrix of columns x columns and takes at most {LARGEST_COLUMNS:,} columns, "
            f"not {columns:,}; use a solver without one, such as 'cd' or 'gd'."
        )


@dataclass(frozen=True, eq=False)
class SecondMoment:
    """The released mean of the clipped rows' outer products; `deviation` is that of its diagonal noise."""

    matrix: FloatArray
    deviation: float

    @property
    def noise_edge(self) -> float:
        return noise_edge(self.matrix.shape[0], self.deviation)


def noise_edge(columns: int, deviation: float) -> float:
    """Where the largest eigenvalue of symmetric noise lies (the edge of its semicircle, for many columns)."""
    return math.sqrt(2.0 * columns) * deviation


def release(
    total: FloatArray, radius: float, rows: int, mechanism: Gaussian, relation: Relation, rng: RandomGenerator
) -> SecondMoment:
    """The mean of outer products of rows no longer than the radius, with noise, from their sum over all rows.

    `rows` is the public number of rows.

    Guarantee: costs one event of the mechanism under the relation.
    """
    columns = total.shape[0]
    sensitivity = mechanisms.outer_products(relation, columns) * radius**2
    noisy = total + symmetric_noise(mechanism, rng, sensitivity, columns)
    return SecondMoment(noisy / rows, mechanism.deviation(sensitivity) / rows)


def symmetric_noise(mechanism: Gaussian, rng: RandomGenerator, sensitivity: Sensitivity, columns: int) -> FloatArray:
    """Gaussian noise that is white in the Frobenius norm of symmetric matrices."""
    draws = mechanism.noise(rng, sensitivity, (columns, columns))
    return np.asarray(0.5 * (draws + draws.T))


def clipped_second_moment(X: Any, norms: FloatArray, radius: float, weight: FloatArray | None) -> FloatArray:
    """The weighted sum of a a', a being the rows shortened to the radius; the norms may be overstated."""
    factor = radius / np.maximum(norms, radius)
    if weight is not None:
        factor *= np.sqrt(weight)
    if sp.issparse(X):
        clipped = sp.csr_array(X.multiply(factor[:, None]))
        return np.asarray((clipped.T @ clipped).toarray(), dtype=np.float64)
    clipped = X * factor[:, None]
    return np.asarray(clipped.T @ clipped)


def whitened_second_moment(
    X: Any, metric: Metric, factor: FloatArray, norms: FloatArray, radius: float, weight: FloatArray | None
) -> FloatArray:
    """The same of `factor` times the rows in the metric; `norms` are those of the rows there, without the factor.

    Factors must lie in [0, 1] and depend on their own row alone.
    """
    total = np.zeros((X.shape[1], X.shape[1]))
    for part, white in metric.whitened(X):  # rows first: whitening their sum would magnify its rounding
        scale = factor[part] * (radius / np.maximum(factor[part] * norms[part], radius))
        if weight is not None:
            scale *= np.sqrt(weight[part])
        clipped = white * scale[:, None]
        total += clipped.T @ clipped
    return total


@dataclass(frozen=True, eq=False)
class Metric:
    """The norm ||g||_B = ||L^(-1/2) V' g|| of gradients, B = V L V' with all eigenvalues L positive."""

    values: FloatArray
    vectors: FloatArray

    @classmethod
    def from_second_moment(cls, moment: SecondMoment) -> Metric:
        """The released matrix, lifted until twice of it exceeds the matrix without noise: steps then do not overshoot.

        Where the noise is at most its edge e, the matrix without noise is at most B + e, B being the released one
        without its negative eigenvalues. Twice the result is max(2 B, B + e).
        """
        values, vectors = np.linalg.eigh(moment.matrix)
        lifted = np.maximum(values, 0.5 * (np.maximum(values, 0.0) + moment.noise_edge))
        return cls(np.maximum(lifted, SMALLEST_EIGENVALUE * max(float(values[-1]), 1.0)), vectors)

    @property
    def matrix(self) -> FloatArray:
        return np.asarray((self.vectors * self.values) @ self.vectors.T)

    def whitened(self, X: Any) -> Iterator[tuple[slice, FloatArray]]:
        """The rows as they are in the metric; a sparse table in parts, as they are dense there."""
        whiten = self.vectors / np.sqrt(self.values)
        if not sp.issparse(X):
            yield slice(0, X.shape[0]), np.asarray(X @ whiten, dtype=np.float64)
            return
        table = sp.csr_array(X)
        for part in block_slices(*X.shape):
            yield part, np.asarray(table[part] @ whiten, dtype=np.float64)

    def norms(self, X: Any) -> FloatArray:
        """The norms of the rows, floored like those of `row_norms`."""
        squares = np.empty(X.shape[0])
        for part, rows in self.whitened(X):
            squares[part] = np.einsum("ij,ij->i", rows, rows)
        np.sqrt(squares, out=squares)
        return np.maximum(squares, SMALLEST_NORM, out=squares)

    def unwhitened(self, matrix: FloatArray) -> FloatArray:
        """A sum of outer products of whitened rows, as it would be outside the metric."""
        root = self.vectors * np.sqrt(self.values)
        return np.asarray(root @ matrix @ root.T)

    def spread(self, draws: FloatArray) -> FloatArray:
        """White noise in the metric: L^(1/2) along the eigenvectors."""
        return np.asarray(self.vectors @ (np.sqrt(self.values) * draws))
