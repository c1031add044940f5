"""Output perturbation: minimise to a certified distance, then add noise once.

Rows are clipped to a public norm and every coordinate gets an l2 penalty, so that one row can move the minimiser
only so far. Theorem and proof: docs/guarantees/output-perturbation.md.

Bolt-on noise is the same for ordinary stochastic gradient descent of a fixed number of passes. One row can move its
result only so far, because steps on a convex smooth loss bring two runs no farther apart: docs/guarantees/bolt-on.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import OutputNoise
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.penalties import PenaltyTerms
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import BatchSteps, assign_rows, full_table_steps
from discreet.solvers._shared.descents import TailAverage, curvature_bound, tail_length, until_optimal
from discreet.solvers._shared.minimisers import (
    MinimiserRelease,
    calibrated_output_noise,
    clip_rows,
    default_ridge,
    minimising_steps,
    minimum_within,
    radius_of,
    restarts_for,
    row_curvature,
    unbounded_slope,
)
from discreet.solvers.base import Capabilities, Run, Solver
from discreet.solvers.plan import COEFFICIENT, Plan, Settings

TOLERANCE = 1e-3  # how much the error of the minimiser may add to the sensitivity


@dataclass(frozen=True)
class OutputPerturbationSettings(Settings):
    """The strongly convex problem whose minimiser is released."""

    row_norm: float  # to which rows are shortened; infinite without noise
    ridge: float  # least l2 penalty of a coordinate
    steps: int  # the most that the minimiser may need


OutputPerturbationPlan = Plan[OutputNoise, OutputPerturbationSettings]


@dataclass(frozen=True)
class OutputPerturbation(MinimiserRelease[OutputNoise, OutputPerturbationSettings]):
    """Minimise as well as one can, then add noise to the result, once.

    Parameters
    ----------
    row_norm : float, optional
        Norm to which rows are clipped, in units of the root of the number of (scaled) columns.
    ridge : float, optional
        Least l2 penalty of a coordinate, intercept included, in the solver's (scaled) columns. The default weighs
        its bias against the noise, which falls with it; both are public.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "output-perturbation"
    capabilities = Capabilities(pure=True, consistent=False)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        reason = super().why_incompatible(problem, budget) or unbounded_slope(problem)
        if reason is not None:
            return reason
        if problem.penalty.strong_convexity == 0.0:
            return "it needs an l2 penalty (alpha > 0 and l1_ratio < 1), without which one row can move the optimum far"
        if not problem.separable and problem.penalty.penalty_terms(1).l1.any():
            return "it has no form for an l1 penalty together with a constraint that is not separable"
        return None

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[OutputNoise, OutputPerturbationSettings]:
        mechanism = calibrated_output_noise(scaling_plan, budget, public)
        if budget.is_infinite:
            return mechanism, OutputPerturbationSettings(math.inf, 0.0, 0)
        radius = radius_of(problem, public, budget, self.row_norm)
        ridge = self.ridge or default_ridge(problem, public, radius, mechanism)
        gradient = perturbations.gradient_sum(public.relation, problem.loss, radius)
        steepness = problem.loss.lipschitz * radius
        distance = _distance(gradient.l2, public.rows, ridge)
        limit = restarts_for(row_curvature(problem.loss, radius), ridge, steepness, distance)
        return mechanism, OutputPerturbationSettings(radius, ridge, limit.steps)

    def _releases(self, plan: OutputPerturbationPlan) -> list[PlannedRelease]:
        dimension = plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)
        event, sensitivity = plan.mechanism.event, self.planned_sensitivity(plan)
        return planned_releases("minimiser", event, plan.public.relation, sensitivity, COEFFICIENT, dimension)

    def planned_sensitivity(self, plan: OutputPerturbationPlan) -> mechanisms.Sensitivity:
        """How far the minimiser can move if no l2 penalty exceeds the planned ridge."""
        return sensitivity_of(plan, plan.settings.ridge)[0] * (1.0 / math.sqrt(plan.settings.ridge))

    def _descend(self, scaled: ScaledProblem, plan: OutputPerturbationPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, minimising_steps(scaled))
        mechanism, settings = plan.mechanism, plan.settings
        scaled = clip_rows(scaled, settings.row_norm, settings.ridge)
        sensitivity, distance = sensitivity_of(plan, float(scaled.penalty_terms.l2.min()))
        root = np.sqrt(scaled.penalty_terms.l2)
        minimum = minimum_within(scaled, settings.row_norm, distance)
        w = mechanism.release(run.rng, minimum * root, sensitivity) / root
        # How many steps it took depends on the rows: the number that is reported is the one that was planned.
        run.report(settings.steps, settings.steps, scaled, w)
        return w, settings.steps


def sensitivity_of(plan: OutputPerturbationPlan, convexity: float) -> tuple[mechanisms.Sensitivity, float]:
    """How far the found minimum can move in the norm of the penalty, and how far from the minimiser it may be."""
    rows = plan.public.rows
    gradient = perturbations.gradient_sum(plan.public.relation, plan.problem.loss, plan.settings.row_norm)
    distance = _distance(gradient.l2, rows, convexity)
    return perturbations.minimiser(gradient, convexity, rows, distance), distance


def _distance(gradient: float, rows: int, convexity: float) -> float:
    """An error of the minimiser that adds the tolerated part to its sensitivity, in the norm of the penalty."""
    return 0.5 * TOLERANCE * gradient / (rows * math.sqrt(convexity))


# Where these come from: docs/defaults.md.
PASSES = 10  # over the rows
SMALLEST_BATCH = 16  # rows: fewer would raise the sensitivity, which falls with their number


@dataclass(frozen=True)
class BoltOnSettings(Settings):
    """The steps, and the length of rows from which follows how far one row can move their end."""

    row_norm: float  # to which rows are shortened; infinite without noise
    passes: int
    batches: int
    batch_rows: int
    total_step_length: float
    step: float


BoltOnPlan = Plan[OutputNoise, BoltOnSettings]


@dataclass(frozen=True)
class BoltOn(Solver[OutputNoise, BoltOnSettings]):
    """Stochastic gradient descent without noise, and noise on its result.

    Parameters
    ----------
    passes : int, optional
        Number of passes over the rows.
    batches : int, optional
        Number of batches into which the rows are cut, one step each; by default as few as the step allows.
    total_step_length : float, optional
        Sum of the lengths of all steps. A longer one comes closer to the optimum and needs more noise, in proportion;
        the default weighs the two by public facts.
    step : float
        Largest step length in units of 1/beta, beta being a public bound on the curvature; must be below 2.
    row_norm : float, optional
        Norm to which rows are clipped, in units of the root of the number of (scaled) columns.
    ridge : float
        Least l2 penalty of a coordinate, intercept included, in the solver's (scaled) columns. It lowers the
        noise of a large total step length.
    average : bool
        Return the average over the second half of the passes instead of the last iterate.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "bolt-on"
    capabilities = Capabilities(pure=True, compiled=("slope",), start=True, consistent=False)

    passes: int | None = None
    batches: int | None = None
    total_step_length: float | None = None
    step: float = 1.0
    row_norm: float | None = None
    ridge: float = 0.0
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("passes", self.passes, whole=True)
        positive("batches", self.batches, whole=True)
        check_threshold("total_step_length", self.total_step_length)
        check_threshold("step", self.step)
        check_threshold("row_norm", self.row_norm)
        check_threshold("ridge", self.ridge or None)
        if self.step >= 2.0:
            raise ValueError(f"step must be below 2, or one row could move the result far; got {self.step!r}.")

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        return super().why_incompatible(problem, budget) or unbounded_slope(problem)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[OutputNoise, BoltOnSettings]:
        mechanism = calibrated_output_noise(scaling_plan, budget, public)
        if budget.is_infinite:
            return mechanism, BoltOnSettings(math.inf, 0, 0, 0, math.inf, 0.0)
        radius = radius_of(problem, public, budget, self.row_norm)
        # Stopping after a total_step_length t is worth a ridge of 1 / t: the rule of output perturbation serves both.
        total_step_length = self.total_step_length or 1.0 / default_ridge(problem, public, radius, mechanism)
        longest = self.step / row_curvature(problem.loss, radius)
        batch_rows, batches = self._batches(public.rows, total_step_length / longest)
        passes = int(self.passes or max(PASSES, math.ceil(total_step_length / (longest * batches))))
        step = min(longest, total_step_length / (passes * batches))
        return mechanism, BoltOnSettings(radius, passes, batches, batch_rows, total_step_length, step)

    def _releases(self, plan: BoltOnPlan) -> list[PlannedRelease]:
        dimension = plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)
        what, event, end = "end of the gradient steps", plan.mechanism.event, self._end(plan, self.ridge)
        return planned_releases(what, event, plan.public.relation, end, COEFFICIENT, dimension)

    def _end(self, plan: BoltOnPlan, ridge: float) -> mechanisms.Sensitivity:
        """How far one row moves the end of the steps, in exact arithmetic, if no l2 penalty is below the ridge."""
        settings = plan.settings
        shrink, averaged = 1.0 / (1.0 + settings.step * ridge), tail_length(settings.passes) if self.average else 0
        return perturbations.path_end(
            plan.public.relation, plan.problem.loss, settings.row_norm, settings.step, settings.batch_rows, shrink,
            settings.batches, settings.passes, averaged,
        )  # fmt: skip

    def _batches(self, rows: int, steps: float) -> tuple[int, int]:
        """The size of a batch and the number of batches, for about so many steps in all."""
        wanted = self.batches or min(math.ceil(steps / (self.passes or PASSES)), max(1, rows // SMALLEST_BATCH))
        batch_rows = math.ceil(rows / wanted)
        return batch_rows, math.ceil(rows / batch_rows)

    def _descend(self, scaled: ScaledProblem, plan: BoltOnPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, full_table_steps(scaled, self.step / curvature_bound(scaled)))
        mechanism, settings = plan.mechanism, plan.settings
        light, gain = with_lighter_penalty(scaled, settings.total_step_length)
        light = clip_rows(light, settings.row_norm, self.ridge)
        rows, relation = scaled.X.shape[0], plan.public.relation
        parts = assign_rows(relation, rows, settings.batches, settings.batch_rows, run.rng)
        end = mechanism.release(run.rng, self.noiseless_passes(light, plan, parts), self.sensitivity(light, plan))
        w = scaled.prox(end * gain, 0.0)  # back into the set: a function of what is released
        steps = settings.passes * settings.batches
        run.report(steps, steps, scaled, w)
        return w, steps

    def noiseless_passes(self, scaled: ScaledProblem, plan: BoltOnPlan, parts: Sequence[IndexArray]) -> FloatArray:
        """The passes over the (clipped) rows. Not private: the result has no noise yet."""
        settings, loss = plan.settings, plan.problem.loss
        limit = loss.lipschitz * settings.row_norm  # no gradient exceeds it but by rounding
        if plan.public.relation is Relation.ADD_REMOVE:
            room = 2.0 * settings.batch_rows / (settings.step * row_curvature(loss, settings.row_norm))
            scaled = replace(scaled, weight=perturbations.thinned(scaled.weight, scaled.X.shape[0], parts, room))
        steps = BatchSteps(scaled, limit, settings.step, settings.batch_rows)
        batches = np.append(0, np.cumsum([part.size for part in parts])), np.concatenate(parts)
        zero_noise = np.zeros((len(parts), *scaled.shape))
        average = TailAverage(settings.passes, scaled.shape)
        for _ in range(settings.passes):
            steps.run(*batches, zero_noise)
            average.add(steps.total / len(parts))
        return average.mean() if self.average else steps.w

    def sensitivity(self, scaled: ScaledProblem, plan: BoltOnPlan) -> mechanisms.Sensitivity:
        """How far the end of the passes can move."""
        settings, loss = plan.settings, plan.problem.loss
        end = self._end(plan, float(scaled.penalty_terms.l2.min(initial=math.inf)))
        start, steps = scaled.start(), settings.passes * settings.batches
        farthest = float(np.linalg.norm(start)) + steps * settings.step * loss.lipschitz * settings.row_norm
        rounding = perturbations.rounding_of(farthest, steps, start.size)
        return mechanisms.Sensitivity(end.l2 + rounding, end.l1)


def with_lighter_penalty(scaled: ScaledProblem, total_step_length: float) -> tuple[ScaledProblem, FloatArray]:
    """The same problem with columns divided so that no l2 penalty exceeds 1 / total_step_length.

    Its weights times the second result are the old ones. So many steps are too few to learn about weights that are
    penalised more than that, and noise of the common size would make their penalty huge.
    """
    c = scaled.penalty_terms
    gain = 1.0 / np.sqrt(np.maximum(1.0, total_step_length * c.l2))
    if not scaled.problem.separable:
        gain = np.ones_like(gain)  # projections need one scale for all columns
    X = scaled.X  # a copy of the solver's own, see ColumnScaling.matrix
    if sp.issparse(X):
        X.data *= gain[X.indices]
    else:
        X *= gain
    lighter = PenaltyTerms(c.l1 * gain, c.l2 * gain**2, c.low / gain, c.high / gain)
    origin = None if scaled.origin is None else scaled.origin / gain
    return replace(scaled, X=X, penalty_terms=lighter, origin=origin), gain
