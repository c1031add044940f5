"""Newton steps whose releases give standard errors: a plan of its own, for `inference=True`.

It is `newton` with four differences. Entries are clipped at declared bounds only; rows of labels are clipped by norms
that do not depend on their label; there is no check of the scores, and later steps get more of the budget; at the end
the second moment of the clipped gradients is released. Proof: docs/guarantees/inference.md, statistics:
docs/inference.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.checks import number_in
from discreet._common.exceptions import IncompatibleSolverError
from discreet._common.types import FloatArray
from discreet.inference.estimate import estimate, expected_hessian
from discreet.inference.released import InferenceReleases
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.release import planned_releases
from discreet.problem.losses import Logistic, Squared
from discreet.problem.losses.log_link import LogLink
from discreet.scaling import second_moment
from discreet.scaling.second_moment import check_columns
from discreet.solvers._shared.descents import descend, until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated, refused
from discreet.solvers.newton import planning
from discreet.solvers.newton.descent import Descent, largest_slopes, slope_norms
from discreet.solvers.newton.solver import Newton, settled, weights_of_iterates
from discreet.solvers.plan import SQUARED_LENGTH

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.release import PlannedRelease
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
    from discreet.scaling.plan import ScalingPlan
    from discreet.scaling.second_moment import Metric, SecondMoment
    from discreet.solvers._shared.minimisers import QuadraticModel

# Where these come from: docs/defaults.md.
MEAT_SHARE = 0.05  # for the second moment of the gradients
MARGIN = 2.0  # by which thresholds of targets exceed what the noise would like: skewed errors move clipped coefficients
LOG_MARGIN = 3.0  # the same with a log link, where errors are always skewed
# Of labels, whose gradients clipping does not bend: how many times more rows may be clipped than the noise would like,
# and at most which part of all.
SHORTENED, MOST_SHORTENED = 6.0, 0.5
ROBUST_SHORTENED, MOST_ROBUST_SHORTENED = 40.0, 0.9
GROWTH = 1.4  # of the share from step to step: early steps only lead to where the later ones begin
MOST_ROWS = 10**12  # up to which the least number of rows is looked for
REFUSED = "no interval can be given: "


@dataclass(frozen=True)
class InferenceSettings(planning.NewtonSettings):
    """Those of newton, whether clipping is robust, and the share of the second moment of the gradients."""

    robust: bool = False
    meat_share: float = MEAT_SHARE


InferencePlan = planning.Plan[BudgetSplit, planning.NewtonSettings]


@dataclass(frozen=True)
class NewtonInference(Newton):
    """Newton steps whose releases give standard errors.

    Parameters
    ----------
    robust : bool, default=False
        Whether more rows are clipped, for less noise: the coefficients of targets are then of Huber's kind, those of
        labels weigh rows by how far they can move them. Else they are the usual ones.
    meat_share : float, default=0.05
        Share of the budget for the second moment of the gradients.
    """

    name = "newton-inference"
    capabilities = Capabilities(separable_only=True, stored=True, opens=True)

    robust: bool = False
    meat_share: float = MEAT_SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        number_in("hessian_share", self.hessian_share, planning.LEAST_SHARE, planning.MOST_SHARE)
        number_in("meat_share", self.meat_share, planning.LEAST_SHARE, 0.5)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why no intervals are given for this problem under this budget; None if they are."""
        free = problem.penalty_terms(1) if problem.penalty.separable else None
        reasons = {
            "several classes are not covered by docs/inference.md": problem.loss.outputs > 1,
            f"the {problem.loss.name} loss is not covered by docs/inference.md": not isinstance(
                problem.loss, Logistic | Squared | LogLink
            ),
            "robust intervals with a log link are not covered by docs/inference.md": self.robust
            and problem.loss.log_link,
            "constraints are not covered by docs/inference.md": problem.constraint is not None,
            f"the {problem.penalty.name} penalty is not covered by docs/inference.md": free is None
            or bool((free.l1 > 0.0).any())
            or not free.free,
        }
        found = next((reason for reason, holds in reasons.items() if holds), None)
        found = found or super().why_incompatible(problem, budget)
        return None if found is None else REFUSED + found

    def plan(self, problem: Problem, public: Public, budget: Budget) -> InferencePlan:
        if (reason := self.why_incompatible(problem, budget)) is not None:
            told = str(refused(self, reason, problem, budget)).partition(": ")[2]
            raise IncompatibleSolverError(told.replace("; use one", "; without intervals, use one"))
        if (reason := self.why_refused(problem, public, budget)) is not None:
            raise IncompatibleSolverError(f"{REFUSED}{reason}.")
        return super().plan(problem, public, budget)

    def why_refused(self, problem: Problem, public: Public, budget: Budget) -> str | None:
        """Why public facts allow no intervals; None if they do."""
        if (reason := self.why_incompatible(problem, budget)) is not None:
            return reason.removeprefix(REFUSED)
        if public.table is not None or public.has_start:
            return "public tables and starts are not covered by docs/inference.md"
        if public.persons:
            return "persons with several rows are not covered by docs/inference.md"
        if self.finds_enough(problem, public, budget):
            return None
        least = self.least_rows(problem, public, budget)
        told = "no number of rows is enough" if least is None else f"at least {least:,} are needed"
        return f"{public.rows:,} rows are too few for {public.columns:,} columns at this budget, {told}"

    def finds_enough(self, problem: Problem, public: Public, budget: Budget) -> bool:
        """Whether thresholds and the Hessian stand out of their noise: a public fact."""
        if budget.is_infinite:
            return True
        learned = planning.norm_bound_share(budget, public) <= planning.NORM_BOUND_SHARE
        columns = public.columns + problem.fit_intercept
        part = planning.first_curvature(problem.loss) / problem.loss.smoothness
        return learned and planning.quiet_hessian(self.hessian_share, budget, public, columns, part)

    def least_rows(self, problem: Problem, public: Public, budget: Budget) -> int | None:
        """From how many rows on intervals are given for such a table at this budget; None: never."""

        def enough(rows: int) -> bool:
            if budget.delta == public.rows**-2.0:  # the usual one, which falls with the rows
                return self.finds_enough(problem, replace(public, rows=rows), replace(budget, delta=rows**-2.0))
            return self.finds_enough(problem, replace(public, rows=rows), budget)

        high = 2
        while not enough(high):
            high *= 2
            if high > MOST_ROWS:
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        return Solver._plan_scaling(self, problem, public, budget)  # not only a constant, however few the rows are

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, InferenceSettings]:
        check_columns(self.name, public.columns)
        columns = public.columns + problem.fit_intercept
        steps = int(self.steps) if self.steps else planning.default_steps(problem, budget, public, columns)
        steps = max(steps, 2)  # before the second one the Hessian is released
        labels = planning.label_shares(problem, public, budget)[0] if problem.loss.classification else 0.0
        bounds = planning.NORM_BOUND_SHARE
        shares = planning.shares_of(self, steps, bounds, self.hessian_share, labels, 0.0, 1, GROWTH)
        if problem.loss.classification:
            shares = planning.with_share(shares, planning.CLIP, 0.0)
        shares = (*((1.0 - self.meat_share) * np.array(shares)).tolist(), self.meat_share)
        facts = steps, True, planning.halfway(steps), self.moment_share, self.hessian_share, None
        settings = InferenceSettings(*facts, self.robust, self.meat_share)
        return calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public), settings

    def _releases(self, plan: InferencePlan) -> list[PlannedRelease]:
        part = plan.mechanism.part(len(plan.mechanism.shares) - 1)
        columns, relation = plan.public.columns + plan.problem.fit_intercept, plan.public.relation
        matrix = mechanisms.outer_products(relation, columns) * (1.0 / plan.public.rows)
        what = "second-moment matrix of the gradients"
        return planning.releases_of(of_steps(plan)) + planned_releases(
            what, part.event, relation, matrix, SQUARED_LENGTH
        )

    def _descend(self, scaled: BlockwiseProblem, plan: InferencePlan, run: Run) -> tuple[FloatArray, int]:
        inner = of_steps(plan)
        if plan.budget.is_infinite and self.steps is None:
            descent = InferenceDescent(self, scaled, inner, run)
            w, steps = until_optimal(scaled, run, descent.exact_steps(), every=5)
            descent.look_at(w)
        else:
            descent, steps = InferenceDescent(self, scaled, inner, run), plan.settings.steps
            mean, _ = descend(scaled, run, steps, descent.planned_steps(), self.average)
            w = settled(descent, mean, weights_of_iterates(self, inner))
        run.released = descent.released(plan.mechanism.part(len(plan.mechanism.shares) - 1))
        return w, steps


def of_steps(plan: InferencePlan) -> InferencePlan:
    """The plan without its last release, the second moment of the gradients: it is as those of newton are."""
    split = plan.mechanism
    return replace(plan, mechanism=BudgetSplit(split.multiplier, split.shares[:-1]))


class InferenceDescent(Descent):
    """A run of newton that keeps what it has released, and clips labels by label-free norms."""

    least_radius = 0.25

    def __init__(self, solver: NewtonInference, scaled: BlockwiseProblem, plan: InferencePlan, run: Run) -> None:
        self.solver: NewtonInference = solver
        self.label_free = scaled.problem.loss.classification
        self.points: list[FloatArray] = []
        self.gradients: list[FloatArray] = []
        self.moments: dict[int, SecondMoment] = {}
        usual = LOG_MARGIN if scaled.problem.loss.log_link else MARGIN
        self.margin = 1.0 if self.label_free or solver.robust else usual
        super().__init__(solver, scaled, plan, run)

    def look_at(self, w: FloatArray) -> None:
        """Without noise: the gradient at the optimum alone."""
        self.w = w
        self.points, self.gradients = [], []
        self._noisy_gradient(0)

    def released(self, part: mechanisms.Gaussian) -> InferenceReleases:
        """What standard errors are computed from.

        Guarantee: costs the planned Hessian, and one event of the mechanism for the second moment of the gradients.
        """
        first = self.plan.settings.halfway if len(self.points) > 1 else 0
        points, gradients = np.array(self.points[first:]), np.array(self.gradients[first:])
        noise = np.array([self._deviation(t) for t in range(first, len(self.points))])
        moment = self.moments[planning.MOMENT]
        found = InferenceReleases(points, gradients, noise, self.metric, moment, moment)
        self.w = found.mean_weights
        self._learn_hessian()
        found = replace(found, hessian=self.moments[planning.HESSIAN])
        problem = self.scaled.problem
        self.w = estimate(found, problem.loss, problem.fit_intercept).w
        total = self.scaled.sum(partial(gradient_moment, **self._here, table_rows=self._table_rows))
        clip = self.clip if math.isfinite(self.clip) else 1.0
        meat = second_moment.release(total, clip, self.scaled.rows, part, self.relation, self.run.rng)
        return replace(found, meat=meat)

    def _deviation(self, t: int) -> float:
        """Of the noise of the gradient of step t, in the metric."""
        if not self.plan.is_noisy:
            return 0.0
        sensitivity = mechanisms.clipped_sum(self.relation) * self.clip
        return self.split.part(planning.GRADIENTS + t).deviation(sensitivity) / self.scaled.rows

    def _noisy_gradient(self, t: int) -> FloatArray:
        gradient = super()._noisy_gradient(t)
        self.points.append(self.w.copy())
        self.gradients.append(gradient.copy())
        return gradient

    def _release(self, total: FloatArray, radius: float, which: int) -> SecondMoment:
        self.moments[which] = super()._release(total, radius, which)
        return self.moments[which]

    def _new_models(self) -> list[QuadraticModel]:
        """As curved as normal rows would be at the current weights, doubled so that steps do not overshoot."""
        problem, moment = self.scaled.problem, self.moments[planning.MOMENT].matrix
        curved = np.trace(expected_hessian(moment, self.w, problem.loss, problem.fit_intercept))
        level = planning.CAUTION * float(curved) / max(float(np.trace(moment)), 1e-12)
        bound = problem.loss.smoothness
        return self._models(np.clip([level], planning.LEAST_CURVATURE * bound, bound))

    def _learn_clip(self, which: int) -> float:
        if which == planning.CLIP and self.label_free and self.solver.clip is None and self.plan.is_noisy:
            return self._usual_clip()  # the first steps need no better one, as it bends no gradient
        return super()._learn_clip(which)

    def _new_clip(self) -> float:
        """That of the gradients which the estimate is made of: learned anew, as it defines what is estimated."""
        found = self._learn_clip(planning.NEW_CLIP)
        return found if self.solver.clip is not None else self.margin * found

    @property
    def clipped_rows(self) -> float:
        """How many rows may be clipped; of labels more, if their model is to be relied on."""
        if not self.label_free:
            return super().clipped_rows
        times, most = (SHORTENED, MOST_SHORTENED)
        if self.solver.robust:
            times, most = (ROBUST_SHORTENED, MOST_ROBUST_SHORTENED)
        return min(times * super().clipped_rows, most * self.scaled.rows)


def gradient_moment(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, label_free: bool, table_rows: int | None
) -> FloatArray:
    """The sum of the outer products of the rows' gradients in the metric, weighted and clipped as in a step.

    A row's gradient of norm at most the threshold is multiplied by its weight: the sum is as in Lemma A.
    """
    slopes, norms = slope_norms(block.slopes(w)), np.asarray(metric.norms_of(block))
    bound = np.maximum(slopes, largest_slopes(block, w)) if label_free else slopes
    size = bound * norms
    usable = np.isfinite(size)
    kept = np.where(usable, 1.0, 0.0)
    if math.isfinite(clip):
        kept *= clip / np.fmax(np.where(usable, size, clip), clip)
    factor = np.where(usable, np.nan_to_num(slopes), 0.0) * kept
    if block.weight is not None:
        factor = factor * block.weight
    if math.isinf(clip):
        return block.outer_products(factor, 0.0, metric.whitening)
    norms = np.where(usable, norms, 1.0)  # of rows that add nothing: no product with infinity
    return second_moment.clipped_second_moment(block, norms, clip, None, table_rows, metric, factor)
