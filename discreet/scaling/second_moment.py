"""The noisy second-moment matrix of the rows, and the metric that is made of it.

Sensitivity, the law of the symmetric noise and proofs: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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

    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.mechanisms.grid import NoisyGrid
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
    grid = mechanism.grid(sensitivity, columns**2)
    noisy = grid.nearest(total) + symmetric_noise(grid, rng, columns)
    return SecondMoment(noisy / rows, mechanism.deviation(sensitivity) / rows)


def symmetric_noise(grid: NoisyGrid, rng: RandomGenerator, columns: int) -> FloatArray:
    """Noise that is white in the Frobenius norm of symmetric matrices: each entry off the diagonal counts twice."""
    above = np.triu_indices(columns, 1)
    noise = np.zeros((columns, columns))
    noise[above] = replace(grid, scale=grid.scale / math.sqrt(2.0)).noise(rng, above[0].size)
    noise += noise.T
    noise[np.diag_indices(columns)] = grid.noise(rng, columns)
    return noise


def rounded_rows(rows: Any, longest: float, table_rows: int | None) -> Any:
    """Rows no longer than `longest`, every entry cut towards 0 to a multiple of a power of two; None: as they are.

    Sums of products of two entries stay below 2^53 units for 8 times as many rows as `table_rows`: the second moment
    of the table is then exact, whatever the order of its rows.
    """
    if table_rows is None:
        return rows
    bits = (47 - math.ceil(math.log2(max(table_rows, 1)))) // 2
    unit = math.ldexp(2.0 ** math.floor(math.log2(longest)), -bits)
    if sp.issparse(rows):
        return type(rows)((np.trunc(rows.data / unit) * unit, rows.indices, rows.indptr), shape=rows.shape)
    return np.trunc(rows / unit) * unit


def clipped_second_moment(
    X: Any, norms: FloatArray, radius: float, weight: FloatArray | None, table_rows: int | None = None
) -> FloatArray:
    """The weighted sum of a a', a being the rows shortened to the radius; the norms may be overstated.

    With `table_rows`, the public number of rows of the whole table, the rows are rounded so that the sum is exact.
    """
    factor = radius / np.maximum(norms, radius)
    if weight is not None:
        factor *= np.sqrt(weight)
    clipped = sp.csr_array(X.multiply(factor[:, None])) if sp.issparse(X) else X * factor[:, None]
    clipped = rounded_rows(clipped, radius, table_rows)
    product = clipped.T @ clipped
    return np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)


def whitened_second_moment(
    X: Any, metric: Metric, factor: FloatArray, norms: FloatArray, radius: float, weight: FloatArray | None,
    table_rows: int | None = None,
) -> FloatArray:  # fmt: skip
    """The same of `factor` times the rows in the metric; `norms` are those of the rows there, without the factor.

    Factors must lie in [0, 1] and depend on their own row alone.
    """
    total = np.zeros((X.shape[1], X.shape[1]))
    for part, white in metric.whitened(X):  # rows first: whitening their sum would magnify its rounding
        scale = factor[part] * (radius / np.maximum(factor[part] * norms[part], radius))
        if weight is not None:
            scale *= np.sqrt(weight[part])
        clipped = rounded_rows(white * scale[:, None], radius, table_rows)
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

    @property
    def condition(self) -> float:
        """The ratio of the longest to the shortest vector that are of one length in the metric."""
        return math.sqrt(float(self.values.max() / self.values.min()))

    def whiten(self, gradient: FloatArray) -> FloatArray:
        """A gradient, or one per output, as in the metric, where its Euclidean norm is the one that is clipped."""
        return np.asarray(gradient @ self.vectors) / np.sqrt(self.values)

    def unwhiten(self, gradient: FloatArray) -> FloatArray:
        """The gradient that is as given in the metric: L^(1/2) along the eigenvectors."""
        return np.asarray((np.sqrt(self.values) * gradient) @ self.vectors.T)
