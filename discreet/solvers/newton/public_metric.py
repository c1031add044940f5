"""The metric of a public table instead of a private second moment, where the private one would be noisier.

No private row is read. Derivation: docs/guarantees/newton.md, "A public metric".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.privacy import mechanisms
from discreet.scaling.second_moment import Metric
from discreet.solvers._shared.clipping import planned_slope
from discreet.solvers.plan import LABEL_MARGIN, TARGET_MARGIN

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicTable
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import BlockwiseProblem


class PublicMetric(NamedTuple):
    """A metric, and the second moments of the public rows along its directions."""

    metric: Metric
    moments: FloatArray


def public_metric(scaled: BlockwiseProblem, table: PublicTable, noise: float) -> PublicMetric:
    """The second moment S of the scaled public rows, lifted by (1/m + noise) trace(S), m being the public rows.

    For columns that are alike, the smallest eigenvalue of a sample covariance from m rows of p columns is about
    (1 - sqrt(p/m))^2 of the true one; with p/m more it is at least half of it, whatever m is, so that steps do not
    overshoot. `noise` is `unresolved`: in directions of less variance the rows tell less than the noise hides.
    """
    rows = public_rows(scaled, table)
    product = rows.T @ rows / table.rows
    moment = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)
    values, vectors = np.linalg.eigh(moment)
    values = np.maximum(values, 0.0)
    lift = (1.0 / table.rows + noise) * float(np.trace(moment))
    return PublicMetric(Metric(values + lift, vectors), values)


def unresolved(problem: Problem, public: Public, budget: Budget) -> float:
    """The variance of a direction, over that of all columns together, below which noise hides its weight.

    The noise of a gradient in the metric has variance (slope nu)^2 p in every direction, nu being that of the mean of
    gradients of norm 1; the weight of a direction of variance s then has the noise (slope nu)^2 p / (smoothness^2 s).
    It equals the usual square of a weight, usual^2 / trace(S), at s = (slope nu / (smoothness usual))^2 p trace(S).
    """
    columns = public.columns + problem.fit_intercept
    usual = LABEL_MARGIN if problem.loss.classification else TARGET_MARGIN
    unit = mechanisms.additive(budget, 1.0).deviation(mechanisms.clipped_sum(public.relation)) / public.rows
    return columns * (planned_slope(problem) * unit / (problem.loss.usual_curvature * usual)) ** 2


def public_rows(scaled: BlockwiseProblem, table: PublicTable) -> Any:
    """The public rows in the columns of the solver."""
    return scaled.scaling.matrix(Data(table.X, np.zeros(table.rows)), "C", scaled.problem.fit_intercept)


def largest_eigenvalue(
    total: FloatArray, radius: float, rows: int, mechanism: Gaussian, rng: RandomGenerator
) -> tuple[float, float]:
    """The largest eigenvalue of the mean of outer products of rows no longer than the radius, and its noise.

    Guarantee: costs one event of the mechanism, under every relation: docs/guarantees/newton.md, "A public metric".
    """
    columns = total.shape[0]
    # Computed eigenvalues are off by at most a small multiple of columns * 2^-53 of the largest one, rows * radius^2.
    sensitivity = mechanisms.bounded_fractions(1) * (radius**2 * (1.0 + 2.0**-46 * columns * rows))
    top = np.linalg.eigvalsh(total)[-1:].astype(np.float64)
    return float(mechanism.release(rng, top, sensitivity)[0]) / rows, mechanism.deviation(sensitivity) / rows
