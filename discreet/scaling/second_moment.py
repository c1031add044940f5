"""The noisy second-moment matrix of the rows, the metric that is made of it, and the bound on norms before it.

The bound is one that all but a few rows (or gradients) keep, from noisy counts. Sensitivities, the law of the symmetric
noise and proofs: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.exceptions import IncompatibleSolverError
from discreet._common.types import FloatArray
from discreet.data.rows import exact_weights
from discreet.kernels.gradient import mapped_row_norms
from discreet.privacy import mechanisms
from discreet.problem.scaled_block import ScaledBlock

if TYPE_CHECKING:
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.mechanisms.additive import NoisyGrid
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation

LOWEST, USUAL_HIGHEST, HIGHEST = -3, 5, 12  # the range of bounds, in octaves of the unit
PER_OCTAVE = 3  # bins: a bound is at most 26 % larger than it must be
USUAL_BINS = (USUAL_HIGHEST - LOWEST) * PER_OCTAVE  # over the usual range
BINS = (HIGHEST - LOWEST) * PER_OCTAVE  # over the whole range
FEW_ROWS = 1e-3  # of the rows: where so few stand out of the noise, sizes far beyond the usual ones are told apart
FEW_NORMS = 20_000  # which NumPy counts in a millisecond, in the same bins
CLEAR = 4.5  # deviations of the noise that counts beyond the bulk must exceed to be read: 8e-5 of false alarms
LARGEST_COLUMNS = 5_000  # a matrix of that many squared columns is held in memory
SMALLEST_EIGENVALUE = 1e-12  # of the largest one: without noise, collinear columns must not divide by zero


def private_norm_bound(
    counts: FloatArray, unit: float, allowed: float, mechanism: Gaussian, relation: Relation, rng: RandomGenerator,
    rows: int,
) -> float:  # fmt: skip
    """The lowest bound that about `allowed` rows exceed, or as few as the noise lets us see.

    Parameters
    ----------
    counts : array
        The number of rows in each bin, from `norm_counts`, summed over all rows.
    unit : float
        A public number: a typical norm. The same as for the counts.
    allowed : float
        How many rows may exceed the bound.
    rows : int
        The public number of rows, which decides with the noise how many bins are told apart.

    Guarantee: reads the norms only through one histogram, which costs one event of the mechanism.
    """
    sensitivity = mechanisms.one_hot_counts(relation, 1)
    if noticeable(mechanism, relation) > FEW_ROWS * rows:
        counts = np.append(counts[: USUAL_BINS - 1], counts[USUAL_BINS - 1 :].sum())
    noisy = mechanism.release(rng, counts, sensitivity)
    noisy[_end_of_bulk(noisy, mechanism.deviation(sensitivity)) :] = 0.0
    above = np.append(noisy[:0:-1].cumsum()[::-1], 0.0)
    return norm_bound_at(int(np.argmax(above <= allowed)), unit)


def _end_of_bulk(counts: FloatArray, deviation: float) -> int:
    """Past the highest bin that stands out of the noise, alone or together with the empty ones before it.

    What lies beyond is not read: among many empty bins one may look full, and the bound would be far too large.
    """
    end = int(np.argmax(counts)) + 1
    while end < counts.size:
        together = counts[end:].cumsum() / np.sqrt(np.arange(1, counts.size - end + 1))
        clear = np.flatnonzero(together > CLEAR * deviation)
        if clear.size == 0:
            break
        end += int(clear[0]) + 1
    return end


def norm_bound_at(place: int, unit: float) -> float:
    """The upper end of a bin; that of bin 0 is the lowest bound, for when there are too few rows to learn one."""
    return unit * 2.0 ** (LOWEST + (place + 1) / PER_OCTAVE)


def noticeable(mechanism: Gaussian, relation: Relation) -> float:
    """How many rows of one norm it takes to be told from none."""
    return CLEAR * mechanism.deviation(mechanisms.one_hot_counts(relation, 1))


def norm_counts(norms: FloatArray, weight: FloatArray | None, unit: float) -> FloatArray:
    """The weighted number of rows in each bin; every row, whatever its norm, has exactly one."""
    if norms.size > FEW_NORMS:
        from discreet.kernels.histograms import add_norms
    else:
        from discreet.kernels.small_rows import add_norms

    counts, weights = np.zeros(BINS), exact_weights(weight)
    edges = 2.0 ** (np.arange(1, PER_OCTAVE) / PER_OCTAVE)
    none = np.empty(0)
    add_norms(np.asarray(norms), none if weights is None else weights, float(unit), LOWEST, edges, counts)
    return counts


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


def unit_of(longest: float, table_rows: int | None) -> float:
    """The unit, a power of two, to which the entries of rows no longer than `longest` are cut; 0: not at all.

    `table_rows` is the public number of rows of the whole table. Sums of products of two entries stay below 2^53
    squared units for 8 times as many rows: the second moment is then exact, whatever the order of the rows.
    """
    if table_rows is None:
        return 0.0
    bits = (47 - math.ceil(math.log2(max(table_rows, 1)))) // 2
    return math.ldexp(2.0 ** math.floor(math.log2(longest)), -bits)


def clipped_second_moment(
    rows: Any, norms: FloatArray, radius: float, weight: FloatArray | None, table_rows: int | None = None,
    metric: Metric | None = None, factor: FloatArray | float = 1.0,
) -> FloatArray:  # fmt: skip
    """The weighted sum of a a', a being `factor` times the rows, in the metric if there is one, cut to the radius.

    `rows` are a block or a matrix, `norms` those of the rows there, without the factor; they may be overstated. Factors
    must lie in [0, 1] and depend on their own row alone. Rows are taken into the metric one by one: taking their sum
    there would magnify its rounding. With `table_rows`, the public number of rows of the whole table, they are rounded
    so that the sum is exact.
    """
    factors = factor * (radius / np.maximum(factor * norms, radius))
    if weight is not None:
        factors *= np.sqrt(weight)
    unit, matrix = unit_of(radius, table_rows), None if metric is None else metric.whitening
    if isinstance(rows, ScaledBlock):
        return rows.outer_products(factors, unit, matrix)
    from discreet.kernels.grid_sums import outer_product_sum

    return outer_product_sum(rows, factors, unit, matrix)


@dataclass(frozen=True, eq=False)
class Metric:
    """The norm ||g||_B = ||L^(-1/2) V' g|| of gradients, B = V L V' with all eigenvalues L positive."""

    values: FloatArray
    vectors: FloatArray

    @cached_property
    def key(self) -> bytes:
        """Equal for equal metrics, copies in other processes included: under it norms of rows are kept."""
        return sha256(self.values.tobytes() + self.vectors.tobytes()).digest()

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

    @cached_property
    def whitening(self) -> FloatArray:
        """The matrix by which rows are multiplied to be as they are in the metric."""
        return np.asarray(self.vectors / np.sqrt(self.values))

    def norms(self, X: Any) -> FloatArray:
        """The norms of the rows, floored like those of `row_norms`."""
        return mapped_row_norms(X, self.whitening)

    def norms_of(self, block: ScaledBlock) -> FloatArray:
        """The norms of the rows of a block; kept, as every gradient needs them."""
        if self.key not in block.kept:
            block.kept[self.key] = block.mapped_norms(self.whitening)
        return block.kept[self.key]

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
