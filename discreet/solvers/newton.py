"""DP-Newton: few gradient steps in a metric that was learned privately once.

The second-moment matrix of the rows takes a share of the budget. In its metric all directions look alike, so that
few steps are enough, and clipping and noise are fair to all of them. Each step minimises a quadratic model, penalty
included, which costs nothing. Halfway, a noisy Hessian replaces the bound on the curvature: where outcomes are rare, it
is many times smaller. Theorem and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_gradient_sum, margins_of
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.budget_split import BudgetSplit
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling import second_moment
from discreet.scaling.norm_bound import BLOCK, norm_bound_at, noticeable, private_norm_bound
from discreet.scaling.plan import ScalingPlan
from discreet.scaling.second_moment import Metric, SecondMoment, check_columns, noise_edge
from discreet.solvers._shared.clipping import typical_slope
from discreet.solvers._shared.noise_rules import NoiseRule
from discreet.solvers._shared.noiseless import until_optimal
from discreet.solvers._shared.quadratic_model import QuadraticModel
from discreet.solvers.base import Run, Solver, calibrated
from discreet.solvers.plan import Plan, Settings

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.problem import Problem


# Fixed once, with an eye on public tables (electricity, california, adult, acsincome) and never read from rows.
STEPS, FEW_STEPS, FEWEST_STEPS = NoiseRule(0.6, 0.5, 30.0), NoiseRule(0.6, 1.0, 14.0), 4
GROWTH, MOST_GROWTH = 1.2, 100.0  # of the share from step to step, and in all: early steps need not be exact
NORM_BOUND_SHARE = 0.03  # for each of the up to four histograms of sizes
MOMENT_SHARE = 0.1
HESSIAN_SHARE = 0.03
LEAST_SHARE, MOST_SHARE = 1e-6, 0.8  # of the moment, and of both together
LEAST_CURVATURE = 0.05  # in units of its bound: no step is more than 20 times as long as one that is safe everywhere
NOISIEST_HESSIAN = 0.5  # the edge of its noise, over the bound on the curvature; noisier ones are left out
FLOOR = 0.5  # of the eigenvalues, in units of the noise's largest one
LONG_ROWS = 0.05  # fraction of the rows that the second moment may clip at most
LONG_ROWS_AT_LEAST = 0.16  # a histogram that cannot tell this fraction from noise is left out
CLIPPED_ROWS = 6.0  # gradients that may be clipped, in units of the total noise: fewer would not pay for the noise

RADIUS, MOMENT, CLIP, NEW_CLIP, CURVATURE_RADIUS, HESSIAN, GRADIENTS = range(7)  # the order of the releases


@dataclass(frozen=True)
class NewtonSettings(Settings):
    """The gradient steps, and what is learned beside them."""

    steps: int
    learns_norm_bounds: bool  # from noisy counts of lengths; else the lowest bounds are used
    halfway: int  # the step before which threshold and curvature are learned anew; 0: never
    moment_share: float
    hessian_share: float


NewtonPlan = Plan[BudgetSplit, NewtonSettings]


@dataclass(frozen=True)
class Newton(Solver[BudgetSplit, NewtonSettings]):
    """Gradient steps preconditioned by a private second-moment matrix.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default more of them if the noise is weak.
    clip : float, optional
        Norm, in the metric, to which each row's gradient is clipped; learned privately by default.
    radius : float, optional
        Norm to which rows are clipped in the second-moment matrix, in the solver's (scaled) columns; learned
        privately by default.
    moment_share : float
        Share of the budget (after the scales) for the second-moment matrix.
    hessian_share : float
        Share for one noisy Hessian halfway, which then replaces the bound on the curvature; 0 leaves it out. It is
        left out, too, where the table is too small for it, and for losses whose curvature jumps.
    average : bool
        Return the average of the later iterates, weighted by their shares of the budget, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "newton"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    single_output: ClassVar[bool] = True
    needs_all_rows: ClassVar[bool] = False

    steps: int | None = None
    clip: float | None = None
    radius: float | None = None
    moment_share: float = MOMENT_SHARE
    hessian_share: float = HESSIAN_SHARE
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        check_threshold("radius", self.radius)
        if not LEAST_SHARE <= self.moment_share <= MOST_SHARE:
            raise ValueError(
                f"moment_share must lie between {LEAST_SHARE} and {MOST_SHARE}; got {self.moment_share!r}."
            )
        if not 0.0 <= self.hessian_share <= MOST_SHARE:
            raise ValueError(f"hessian_share must be at least 0 and at most {MOST_SHARE}; got {self.hessian_share!r}.")
        if self.moment_share + self.hessian_share > MOST_SHARE:
            raise ValueError(
                f"moment_share and hessian_share may be {MOST_SHARE} together, to leave some to the steps."
            )

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, NewtonSettings]:
        check_columns(self.name, public.columns)
        columns = public.columns + problem.fit_intercept
        steps = int(self.steps) if self.steps is not None else default_steps(budget, public, columns)
        learned = enough_rows(budget, public)
        wanted = (
            learned
            and not problem.loss.discontinuous_curvature
            and quiet_hessian(self.hessian_share, budget, public, columns)
        )
        hessian = self.hessian_share if wanted else 0.0
        shares = self._shares(steps, NORM_BOUND_SHARE if learned else 0.0, hessian)
        mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
        return mechanism, NewtonSettings(steps, learned, _halfway(steps), self.moment_share, shares[HESSIAN])

    def _shares(self, steps: int, limit: float, hessian: float) -> tuple[float, ...]:
        """BudgetSplit in the order of the releases, summing to 1; what is not learned costs 0."""
        later = _halfway(steps) > 0
        before = (
            limit if self.radius is None else 0.0,
            self.moment_share,
            limit if self.clip is None else 0.0,
            limit if self.clip is None and later else 0.0,
            limit if hessian > 0.0 and later else 0.0,
            hessian if later else 0.0,
        )
        growing = min(GROWTH, MOST_GROWTH ** (1.0 / steps)) ** np.arange(steps)
        return (*before, *((1.0 - sum(before)) * growing / growing.sum()).tolist())

    def _descend(self, scaled: ScaledProblem, plan: NewtonPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run)
        shares, steps = plan.mechanism, plan.settings.steps
        metric = self._learn_metric(scaled, plan, shares, run)
        model = QuadraticModel(scaled.problem.loss.smoothness * metric.matrix, scaled.coefficients)
        norms = metric.norms(scaled.X)
        unit = mechanisms.clipped_sum(plan.public.relation, scaled.columns)
        looks = {plan.settings.halfway: NEW_CLIP} | {0: CLIP}
        w, clip, tail, weight = scaled.start(), math.inf, np.zeros(scaled.shape), 0.0
        for t in range(steps):
            if t in looks:  # slopes are not kept for the next line: they are as large as the target
                found = self._learn_clip(scaled, plan, shares, np.abs(scaled.slopes(w)) * norms, looks[t], run)
                clip = found if t == 0 else max(found, clip * least_shrinkage(scaled.problem))
                if looks[t] == NEW_CLIP and shares.shares[HESSIAN] > 0.0:
                    hessian = self._learn_hessian(scaled, plan, shares, metric, norms, w, clip, run)
                    model = QuadraticModel(hessian, scaled.coefficients)
            total = clipped_gradient_sum(scaled.X, scaled.slopes(w), norms, clip, scaled.weight)
            if plan.is_noisy:
                total += metric.spread(shares.part(GRADIENTS + t).noise(run.rng, unit * clip, scaled.shape))
            w = model.minimise(model.matrix @ w - total / scaled.rows, w)
            if 2 * t >= steps - 1:
                tail += shares.shares[GRADIENTS + t] * w
                weight += shares.shares[GRADIENTS + t]
            run.report(t + 1, steps, scaled, w)
        return (tail / weight if self.average else w), steps

    def _learn_metric(self, scaled: ScaledProblem, plan: NewtonPlan, shares: BudgetSplit, run: Run) -> Metric:
        """Two releases: how long rows are, and their second moment."""
        norms, relation = scaled.norms(), plan.public.relation
        radius = self._learn_radius(scaled, plan, shares, norms, RADIUS, run) if self.radius is None else self.radius
        part = shares.part(MOMENT)
        moment = second_moment.release(scaled.X, norms, radius, scaled.weight, scaled.rows, part, relation, run.rng)
        return Metric.from_second_moment(moment, FLOOR)

    def _learn_hessian(
        self,
        scaled: ScaledProblem,
        plan: NewtonPlan,
        shares: BudgetSplit,
        metric: Metric,
        norms: FloatArray,
        w: FloatArray,
        clip: float,
        run: Run,
    ) -> FloatArray:
        """Two releases: how long rows are, counted by their curvatures, and the Hessian in the metric."""
        factor = _root_curvatures(scaled, norms, w, clip)
        radius = self._learn_radius(scaled, plan, shares, factor * norms, CURVATURE_RADIUS, run)
        radius = max(radius, math.sqrt(scaled.columns))  # rows without curvature say nothing of the length of others
        part, relation = shares.part(HESSIAN), plan.public.relation
        moment = second_moment.release_whitened(
            scaled.X, metric, factor, norms, radius, scaled.weight, scaled.rows, part, relation, run.rng
        )
        return scaled.problem.loss.smoothness * metric.unwhitened(_safe_curvature(moment))

    def _learn_radius(
        self, scaled: ScaledProblem, plan: NewtonPlan, shares: BudgetSplit, norms: FloatArray, which: int, run: Run
    ) -> float:
        """The radius of a second moment, from noisy counts of the norms."""
        unit = math.sqrt(scaled.columns)
        if plan.budget.is_infinite:
            return float(norms.max())
        if not plan.settings.learns_norm_bounds:
            return norm_bound_at(0, unit)
        allowed = min(LONG_ROWS * scaled.rows, _worth_clipping(shares, plan))
        return private_norm_bound(
            norms, scaled.weight, unit, allowed, shares.part(which), plan.public.relation, run.rng
        )

    def _learn_clip(
        self, scaled: ScaledProblem, plan: NewtonPlan, shares: BudgetSplit, sizes: FloatArray, which: int, run: Run
    ) -> float:
        """The threshold of the gradients, from noisy counts of their norms at the current weights.

        The number of rows that may be clipped follows from the noise.
        """
        if self.clip is not None:
            return self.clip
        if plan.budget.is_infinite:
            return math.inf
        unit = math.sqrt(scaled.columns) * typical_slope(plan.problem, scaled.scaling)
        if not plan.settings.learns_norm_bounds:
            return norm_bound_at(0, unit)
        allowed, part = _worth_clipping(shares, plan), shares.part(which)
        return private_norm_bound(sizes, scaled.weight, unit, allowed, part, plan.public.relation, run.rng)


def _worth_clipping(shares: BudgetSplit, plan: NewtonPlan) -> float:
    """How many rows may be clipped.

    A row more that is clipped costs at most its excess; a lower threshold saves noise in proportion to the total
    noise and to the root of the number of columns. The number balances the two.
    """
    columns = plan.public.columns + plan.problem.fit_intercept
    return CLIPPED_ROWS * shares.whole.deviation(mechanisms.clipped_sum(plan.public.relation)) * math.sqrt(columns)


def enough_rows(budget: Budget, public: Public) -> bool:
    """Whether the longest rows can be told from noise while they are few; else the lowest limits are used."""
    if budget.is_infinite:
        return True
    part = mechanisms.Gaussian(1.0 / (math.sqrt(NORM_BOUND_SHARE) * budget.gaussian_mu()))
    return noticeable(part, public.relation) <= LONG_ROWS_AT_LEAST * public.rows


def default_steps(budget: Budget, public: Public, columns: int) -> int:
    """Directions of little curvature need many steps and collect noise in each: the noise level decides.

    Some steps are needed anyhow, unless the noise is about as large as the gradients.
    """
    unit = mechanisms.clipped_sum(public.relation)
    noise = mechanisms.additive(budget, 1.0).deviation(unit) * math.sqrt(columns) / public.rows
    return max(FEWEST_STEPS, round(max(STEPS.at(noise), FEW_STEPS.at(noise))))


def least_shrinkage(problem: Problem) -> float:
    """By how much the threshold may fall halfway. Residuals shrink; slopes of labels grow where labels are rare, and
    these few rows, which may be too few to be seen, must not be clipped.
    """
    return 1.0 if problem.loss.classification else 0.5


def quiet_hessian(share: float, budget: Budget, public: Public, columns: int) -> bool:
    """Whether the Hessian of rows of typical length would stand out of its noise."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) <= NOISIEST_HESSIAN


def _root_curvatures(scaled: ScaledProblem, norms: FloatArray, w: FloatArray, clip: float) -> FloatArray:
    """The roots of the rows' curvatures, in units of their bound.

    A gradient that is clipped no longer changes with the weights, so that its row has no curvature.
    """
    loss, factor = scaled.problem.loss, np.empty(norms.size)
    for start in range(0, norms.size, BLOCK):  # temporaries of a block, not of the table
        block = slice(start, start + BLOCK)
        margins, y = margins_of(scaled.X[block], w), scaled.y[block]
        clipped = np.abs(loss.slope(margins, y)) * norms[block] > clip
        curvature = np.clip(np.nan_to_num(loss.curvature(margins, y)) / loss.smoothness, 0.0, 1.0)
        factor[block] = np.sqrt(np.where(clipped, 0.0, curvature))
    return factor


def _safe_curvature(moment: SecondMoment) -> FloatArray:
    """The noisy Hessian in the metric, in units of the bound on the curvature; so large that steps do not overshoot.

    It is lifted by the edge of its noise. In directions of little curvature few rows have a say, and the mean of all
    directions keeps the steps short there.
    """
    values, vectors = np.linalg.eigh(moment.matrix)
    lifted = np.maximum(values + moment.noise_edge, max(float(values.mean()), LEAST_CURVATURE))
    return np.asarray((vectors * np.minimum(lifted, 1.0)) @ vectors.T)


def _halfway(steps: int) -> int:
    """The step before which threshold and curvature are learned anew. 0: never."""
    return steps // 2
