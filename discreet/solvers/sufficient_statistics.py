"""Least squares from a noisy second-moment matrix of columns and target, with a ridge against the noise (AdaSSP).

One release, no iterations: the strongest simple baseline for linear regression. Theorem and proof:
docs/guarantees/sufficient-statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.kernels.gradient import row_norms
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.losses import Squared
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
from discreet.scaling import second_moment
from discreet.scaling.plan import ScalingPlan
from discreet.scaling.second_moment import SecondMoment, check_columns, norm_counts, private_norm_bound
from discreet.solvers._shared.descents import until_optimal
from discreet.solvers._shared.minimisers import QuadraticModel
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import SQUARED_LENGTH, Plan, Settings

NORM_BOUND_SHARE = 0.02  # of the budget, for the histogram of row norms: docs/defaults.md
LONG_ROWS = 0.2  # the most rows that may be clipped: they only lose weight, and the noise grows with R^2
ROUNDING = 1e-14  # of the trace of an exact second moment
RADIUS, MOMENT = range(2)  # the order of the releases


@dataclass(frozen=True)
class SufficientStatisticsSettings(Settings):
    """What is learned beside the second moments."""

    learns_norm_bound: bool  # of the rows, from noisy counts of their lengths


SufficientStatisticsPlan = Plan[BudgetSplit, SufficientStatisticsSettings]


@dataclass(frozen=True)
class SufficientStatistics(Solver[BudgetSplit, SufficientStatisticsSettings]):
    """Squared loss only: the minimiser of the noisy quadratic.

    Parameters
    ----------
    radius : float, optional
        Norm to which rows (columns and target, both scaled) are clipped; learned privately by default.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "sufficient-statistics"
    capabilities = Capabilities(separable_only=True, single_output=True, stored=True)

    radius: float | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        check_threshold("radius", self.radius)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        if not isinstance(problem.loss, Squared):
            return f"the {problem.loss.name} loss has no sufficient statistics of fixed size"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, SufficientStatisticsSettings]:
        check_columns(self.name, public.columns)
        limit = NORM_BOUND_SHARE if self.radius is None else 0.0
        shares = (limit, 1.0 - limit)
        mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
        return mechanism, SufficientStatisticsSettings(self.radius is None)

    def _releases(self, plan: SufficientStatisticsPlan) -> list[PlannedRelease]:
        relation, shares = plan.public.relation, plan.mechanism
        counts, matrix = mechanisms.one_hot_counts(relation, 1), moment_sensitivity(plan)
        lengths = shares.part(RADIUS).event if shares.shares[RADIUS] > 0.0 else accounting.no_event()
        what = "second-moment matrix of columns and target"
        return planned_releases("counts of row lengths", lengths, relation, counts, "rows per count") + (
            planned_releases(what, shares.part(MOMENT).event, relation, matrix, SQUARED_LENGTH)
        )

    def _descend(self, scaled: BlockwiseProblem, plan: SufficientStatisticsPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, [_minimiser(scaled, _exact_moment(scaled))])
        w = _minimiser(scaled, self._release(scaled, scaled.scaling.target_scale, plan, run))
        run.report(1, 1, scaled, w)
        return w, 1

    def _release(
        self, scaled: BlockwiseProblem, scale: float, plan: SufficientStatisticsPlan, run: Run
    ) -> SecondMoment:
        """Two releases: a bound on the norms of the augmented rows, and their second moment."""
        split, relation = plan.mechanism, plan.public.relation
        radius = self.radius
        if radius is None:
            unit = math.sqrt(scaled.columns + 1)
            counts = scaled.sum(partial(_length_counts, scale=scale, unit=unit))
            allowed = long_rows(plan) * scaled.rows
            radius = private_norm_bound(counts, unit, allowed, split.part(RADIUS), relation, run.rng, scaled.rows)
        total = scaled.sum(partial(_moment, scale=scale, radius=radius, table_rows=scaled.rows))
        return second_moment.release(total, radius, scaled.rows, split.part(MOMENT), relation, run.rng)


def long_rows(plan: SufficientStatisticsPlan) -> float:
    """The fraction of the rows that may be clipped: less than what the noise adds to the variance of sampled rows."""
    length = plan.public.columns + plan.problem.fit_intercept + 1  # squared, of a typical row
    noise = plan.mechanism.part(MOMENT).deviation(moment_sensitivity(plan) * length)
    return min(LONG_ROWS, noise**2 * plan.public.rows)


def moment_sensitivity(plan: SufficientStatisticsPlan) -> mechanisms.Sensitivity:
    """How far one row moves the mean second moment of rows of length at most 1."""
    columns = plan.public.columns + plan.problem.fit_intercept + 1  # the target's moments are among them
    return mechanisms.outer_products(plan.public.relation, columns) * (1.0 / plan.public.rows)


def _length_counts(block: ScaledBlock, scale: float, unit: float) -> FloatArray:
    return norm_counts(row_norms(augmented(block, scale)), block.weight, unit)


def _moment(block: ScaledBlock, scale: float, radius: float, table_rows: int) -> FloatArray:
    table = augmented(block, scale)
    return second_moment.clipped_second_moment(table, row_norms(table), radius, block.weight, table_rows)


def _plain_moment(block: ScaledBlock, scale: float) -> FloatArray:
    short = np.zeros(block.y.size)  # no row is long, hence none is clipped
    return second_moment.clipped_second_moment(augmented(block, scale), short, 1.0, block.weight)


def _exact_moment(scaled: BlockwiseProblem) -> SecondMoment:
    """The second moment of columns and target without noise, no row being clipped. Not private."""
    matrix = scaled.sum(partial(_plain_moment, scale=scaled.scaling.target_scale)) / scaled.rows
    rounding = ROUNDING * float(np.trace(matrix))  # lifts eigenvalues that are 0, as those of equal columns
    return SecondMoment(matrix + rounding * np.eye(matrix.shape[0]), 0.0)


def _minimiser(scaled: BlockwiseProblem, moment: SecondMoment) -> FloatArray:
    """The minimiser of the quadratic with this second moment, which is lifted above its noise."""
    inner = moment.matrix[:-1, :-1]
    ridge = noise_ridge(SecondMoment(inner, moment.deviation))
    model = QuadraticModel(inner + ridge * np.eye(scaled.columns), scaled.penalty_terms)
    linear = scaled.scaling.target_scale * moment.matrix[:-1, -1]
    return model.minimise(np.ascontiguousarray(linear), scaled.start())


def noise_ridge(moment: SecondMoment) -> float:
    """What lifts the smallest eigenvalue to the size of the noise; 0 if it is there already."""
    return max(0.0, moment.noise_edge - float(np.linalg.eigvalsh(moment.matrix)[0]))


def augmented(block: ScaledBlock, scale: float) -> Any:
    """The scaled rows with the target, scaled to about unit size, as a last column."""
    target = (block.y / scale)[:, None]
    if sp.issparse(block.X):
        return sp.hstack([block.X, sp.csr_array(target)], format="csr")
    return np.hstack([block.X, target])
