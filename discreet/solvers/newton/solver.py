"""DP-Newton: few gradient steps in a metric that was learned privately once.

The second-moment matrix of the rows, released with noise, preconditions the gradient steps: few of them are enough, and
clipping and noise suit all directions. Each step minimises a quadratic model, penalty
included, which costs nothing. Halfway, a noisy Hessian replaces the bound on the curvature: where outcomes are rare, it
is many times smaller. Theorem and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.checks import check_threshold, number_in, positive
from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.planned_release import PlannedRelease
from discreet.privacy.relation import Relation
from discreet.problem.blockwise import BlockwiseProblem
from discreet.problem.losses import ClassWeighted
from discreet.scaling.norm_bound import noticeable
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_target, unscaled
from discreet.scaling.second_moment import check_columns, noise_edge
from discreet.scaling.shares import hides_target
from discreet.solvers._shared.averaging import TailAverage
from discreet.solvers._shared.clipping import planned_slope
from discreet.solvers._shared.constant_score import counts_labels, learn_label_scores, wanted_share
from discreet.solvers._shared.noise_rules import NoiseRule
from discreet.solvers._shared.noiseless import until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.newton.calibration import check_share
from discreet.solvers.newton.descent import Descent
from discreet.solvers.newton.log_intercept import CALIBRATION_SHARE, calibrated_intercept
from discreet.solvers.newton.public_metric import EIGENVALUE_SHARE, uses_public_metric
from discreet.solvers.newton.releases import GRADIENTS, LABELS, MOMENT, releases_of, with_share
from discreet.solvers.newton.settling import settled
from discreet.solvers.newton.several_outputs import quiet_curvatures
from discreet.solvers.newton.shrinkage import Columns
from discreet.solvers.newton.start import first_curvature, first_slope, is_free
from discreet.solvers.plan import LABEL_MARGIN, TARGET_MARGIN, Plan, Settings

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.losses import Loss
    from discreet.problem.problem import Problem


# Tuned on public tables (electricity, california, adult, acsincome), and never read from rows: docs/defaults.md.
STEPS, FEW_STEPS, FEWEST_STEPS = NoiseRule(0.6, 0.5, 30.0), NoiseRule(0.6, 1.0, 14.0), 4
FEWEST_LABEL_STEPS = 2  # the same for labels, which a single step follows part of the way only
STEPS_SHARE = 0.5  # of the budget: about what scales and limits leave to the steps of small tables
GROWTH, MOST_GROWTH = 1.2, 100.0  # of the share from step to step, and in all: early steps need not be exact
MOST_LABELS = 0.5  # of the budget, for the counts of the labels; if they need more, they get all of it
NORM_BOUND_SHARE, MOST_NORM_BOUND_SHARE = 0.03, 0.1  # for each of the up to four histograms of sizes
MOMENT_SHARE = 0.1  # for the second-moment matrix
HESSIAN_SHARE = 0.03  # for the Hessian halfway
LEAST_SHARE, MOST_SHARE = 1e-6, 0.8  # of the moment, and of both together
NOISIEST_HESSIAN = 0.5  # the edge of its noise, over the bound on the curvature; noisier ones are left out
LONG_RESIDUALS = 2.5  # what all but a few residuals keep below, in units of the usual one; normal ones: 2 to 3
FULL_BIN = 0.25  # of the rows, in the fullest bin of a histogram of sizes: it must stand out of the noise


@dataclass(frozen=True)
class NewtonSettings(Settings):
    """The gradient steps, and what is learned beside them."""

    steps: int  # 0: the model is a constant
    learns_norm_bounds: bool  # from noisy counts of lengths; else usual lengths are used
    halfway: int  # the step before which threshold and curvature are learned anew; 0: never
    moment_share: float
    hessian_share: float
    public_metric: bool | None = field(default=None, metadata={"digest": "if given"})

    @property
    def is_constant(self) -> bool:
        return self.steps == 0


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
        privately by default. Where the metric is that of a public table, the norms of its rows are used instead.
    moment_share : float
        Share of the budget (after the scales) for the second-moment matrix.
    hessian_share : float
        Share for one noisy Hessian halfway, which then replaces the bound on the curvature; with several outputs, for
        one curvature of each. 0 leaves it out. It is left out, too, where the table is too small for it, and for
        losses whose curvature jumps.
    average : bool
        Return the average of the later iterates, weighted by their shares of the budget, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "newton"
    capabilities = Capabilities(separable_only=True, start=True, persons=True, stored=True)

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
        number_in("moment_share", self.moment_share, LEAST_SHARE, MOST_SHARE)
        number_in("hessian_share", self.hessian_share, 0.0, MOST_SHARE)
        if self.moment_share + self.hessian_share > MOST_SHARE:
            raise ValueError(
                f"moment_share and hessian_share may be {MOST_SHARE} together, to leave some to the steps."
            )

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, NewtonSettings]:
        if self.fits_constant(problem, public, budget):
            nothing = NewtonSettings(0, False, 0, 0.0, 0.0)
            if not problem.loss.classification:
                return BudgetSplit(1.0, (0.0,) * GRADIENTS), nothing  # all is spent on the target's mean
            shares = tuple(float(k == LABELS) for k in range(GRADIENTS))
            mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
            return mechanism, nothing
        check_columns(self.name, public.columns)
        columns = public.columns + problem.fit_intercept
        steps = int(self.steps) if self.steps is not None else default_steps(problem, budget, public, columns)
        limit = norm_bound_share(budget, public)
        learned = limit <= MOST_NORM_BOUND_SHARE
        smooth = not problem.loss.discontinuous_curvature
        wanted = learned and smooth and self._quiet(problem.loss, public, budget, columns)
        hessian = self.hessian_share if wanted else 0.0
        counted = self._counts_labels(problem, public, budget)
        labels = min(wanted_share(public, budget), MOST_LABELS) if counted else 0.0
        if self._calibrates(problem, public, budget):
            labels = CALIBRATION_SHARE
        # Counts of scores by label speak for a scale of labels that all weigh the same.
        plain = problem.loss.outputs == 1 and not isinstance(problem.loss, ClassWeighted)
        check = check_share(public, budget) if counted and plain and not public.has_start else 0.0
        shares = self._shares(steps, limit if learned else 0.0, hessian, labels, check, problem.loss.outputs)
        known = uses_public_metric(public, budget, columns, self.moment_share)
        if known:  # only its largest eigenvalue is looked at
            shares = with_share(shares, MOMENT, min(shares[MOMENT], EIGENVALUE_SHARE))
        mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
        moment, halfway = EIGENVALUE_SHARE if known else self.moment_share, _halfway(steps)
        hessian = hessian if halfway else 0.0
        return mechanism, NewtonSettings(steps, learned, halfway, moment, hessian, True if known else None)

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        if self.fits_constant(problem, public, budget):
            facts = facts_for_scales(public, problem.loss.log_link)
            return unscaled(False) if problem.loss.classification else plan_target(facts, budget)
        return super()._plan_scaling(problem, public, budget)

    def fits_constant(self, problem: Problem, public: Public, budget: Budget) -> bool:
        """Whether the constant alone needs so much of the budget that nothing can be told about the columns.

        A public start tells something about them already.
        """
        asked = (self.steps, self.clip, self.radius, self.scale_share)
        if any(setting is not None for setting in asked) or self.why_incompatible(problem, budget) is not None:
            return False
        if public.has_start or budget.is_infinite or not problem.fit_intercept:
            return False
        if not problem.loss.classification:
            return hides_target(facts_for_scales(public, problem.loss.log_link), budget)
        return self._counts_labels(problem, public, budget) and wanted_share(public, budget) > MOST_LABELS

    def _counts_labels(self, problem: Problem, public: Public, budget: Budget) -> bool:
        """Whether the labels are counted; weights with bounds are left where the gradients put them."""
        return not budget.is_infinite and counts_labels(problem) and is_free(problem.penalty_terms(public.columns))

    def _calibrates(self, problem: Problem, public: Public, budget: Budget) -> bool:
        """Whether the intercept of a log link is measured at the end: if all rows are there, and all count the same."""
        free = problem.fit_intercept and is_free(problem.penalty_terms(public.columns))
        complete = public.relation is Relation.REPLACE and not public.persons
        return not budget.is_infinite and problem.loss.log_link and free and complete

    def _releases(self, plan: NewtonPlan) -> list[PlannedRelease]:
        return releases_of(plan)

    def _quiet(self, loss: Loss, public: Public, budget: Budget, columns: int) -> bool:
        """Whether the Hessian, or with several outputs the curvature of each, stands out of its noise."""
        if loss.outputs == 1:
            part = first_curvature(loss) / loss.smoothness
            return quiet_hessian(self.hessian_share, budget, public, columns, part)
        return quiet_curvatures(self.hessian_share, budget, public.rows, public.relation, loss)

    def _shares(
        self, steps: int, limit: float, hessian: float, labels: float, check: float = 0.0, outputs: int = 1
    ) -> tuple[float, ...]:
        """Shares of the budget in the order of the releases, summing to 1; what is not learned costs 0.

        The labels' share is taken first, then that of the check; the others are of what they leave. The curvatures of
        several outputs have a bound that is known, the Hessian of one has not.
        """
        later = _halfway(steps) > 0
        before = (
            limit if self.radius is None else 0.0,
            self.moment_share,
            limit if self.clip is None else 0.0,
            limit if self.clip is None and later and limit == NORM_BOUND_SHARE else 0.0,
            limit if hessian > 0.0 and later and outputs == 1 else 0.0,
            hessian if later else 0.0,
        )
        growing = min(GROWTH, MOST_GROWTH ** (1.0 / steps)) ** np.arange(steps)
        check *= 1.0 - labels
        left = 1.0 - labels - check
        others = left * np.array(before)
        return (*others.tolist(), labels, check, *((left - others.sum()) * growing / growing.sum()).tolist())

    def _descend(self, scaled: BlockwiseProblem, plan: NewtonPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, Descent(self, scaled, plan, run).exact_steps(), every=5)
        steps, shares = plan.settings.steps, plan.mechanism.shares
        if plan.settings.is_constant:
            return only_constant(scaled, plan, run), 0
        descent, average = Descent(self, scaled, plan, run), TailAverage(steps, scaled.shape)
        for t in range(steps):
            descent.step(t)
            average.add(descent.w, shares[GRADIENTS + t])
            run.report(t + 1, steps, scaled, descent.w)
        w = settled(descent, average.mean() if self.average else descent.w, weights_of_iterates(self, plan))
        if plan.problem.loss.log_link and shares[LABELS] > 0.0:
            variance = Columns(descent.metric.matrix, descent.mean_noise).variance_of(w[:-1])
            w = calibrated_intercept(scaled, w, variance, plan.mechanism.part(LABELS), run.rng)
        return w, steps


def weights_of_iterates(solver: Newton, plan: NewtonPlan) -> FloatArray:
    """With which weight the iterate after each step is part of the result."""
    weights = np.array(plan.mechanism.shares[GRADIENTS:])
    weights[: plan.settings.steps // 2 if solver.average else -1] = 0.0
    return weights / weights.sum()


def only_constant(scaled: BlockwiseProblem, plan: NewtonPlan, run: Run) -> FloatArray:
    """Weights that predict the constant alone: the labels' shares, or the mean to which the target was shifted."""
    w = scaled.start()
    if plan.mechanism.shares[LABELS] > 0.0:
        found = learn_label_scores(scaled, plan.mechanism.part(LABELS), plan.public.relation, run.rng).value
        w[..., -1] = found if scaled.outputs > 1 else found[0]
    run.report(1, 1, scaled, w)
    return w


def norm_bound_share(budget: Budget, public: Public) -> float:
    """The share of the budget with which a histogram shows where most rows are, as far as possible a few of them."""
    if budget.is_infinite:
        return NORM_BOUND_SHARE
    whole = mechanisms.Gaussian(1.0 / budget.gaussian_mu())
    return max(NORM_BOUND_SHARE, (noticeable(whole, public.relation) / (FULL_BIN * public.rows)) ** 2)


def default_steps(problem: Problem, budget: Budget, public: Public, columns: int) -> int:
    """Directions of little curvature need many steps and collect noise in each: the noise level decides.

    T steps share the budget, so that the noise of each is sqrt(T) times that of a single one. The steps of a squared
    loss undo the noise of those before them: each may move scores by half of what is usual. Labels lose their curvature
    as scores grow, and nothing is undone: all steps together, sqrt(T) sqrt(T) of that noise, may move them by what is
    usual.
    """
    noise, moved = noise_level(budget, public, columns), moved_by_noise(problem, budget, public, columns)
    most = max(STEPS.at(noise), FEW_STEPS.at(noise))
    if moved == 0.0:
        return round(most)
    if problem.loss.classification:
        return max(FEWEST_LABEL_STEPS, round(min(LABEL_MARGIN * math.sqrt(STEPS_SHARE) / moved, most)))
    return max(FEWEST_STEPS, round(min((0.5 * TARGET_MARGIN / moved) ** 2, most)))


def noise_level(budget: Budget, public: Public, columns: int) -> float:
    """The noise of a mean of vectors of norm 1 with the whole budget, over all columns."""
    unit = mechanisms.clipped_sum(public.relation)
    return mechanisms.additive(budget, 1.0).deviation(unit) * math.sqrt(columns) / public.rows


def moved_by_noise(problem: Problem, budget: Budget, public: Public, columns: int) -> float:
    """How far the noise of a single step with the whole budget moves scores."""
    clip = math.sqrt(columns) * planned_slope(problem) * first_slope(problem)
    return clip * noise_level(budget, public, columns) / problem.loss.usual_curvature


def quiet_hessian(share: float, budget: Budget, public: Public, columns: int, part: float = 1.0) -> bool:
    """Whether the Hessian of rows of typical length, being this part of its bound, would stand out of its noise."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) <= part * NOISIEST_HESSIAN


def _halfway(steps: int) -> int:
    """The step before which threshold and curvature are learned anew. 0: never."""
    return steps // 2
