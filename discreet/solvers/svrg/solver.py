"""DP-SVRG: noisy gradients of all rows at anchors, and cheap steps around them on batches of differences.

The difference of a row's gradients at two near points is short, so that sums of differences need little noise.
Theorem and proof: docs/guarantees/svrg.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem, UnscaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.averaging import Made, descend
from discreet.solvers._shared.batch_steps import BATCHES_OF_A_FILE, batch_rows, full_table_steps
from discreet.solvers._shared.clipping import curvature_bound
from discreet.solvers._shared.noiseless import affordable_steps, until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings
from discreet.solvers.svrg.steps import MemorySteps, StoredSteps

# Tuned on public tables, and never read from rows: docs/defaults.md.
ANCHORS, MOST_INNER = 20, 40  # gradients over all rows, and the most steps after each
PATIENCE = 0.15  # how many steps the noise allows: see _default_inner
DIFFERENCE = 1.0  # clipping of differences of gradients, in units of their typical size
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64  # the larger of this share of the rows and this number is a batch


@dataclass(frozen=True)
class SVRGSettings(Settings):
    """How many gradients over all rows, and how many batches of which size after each."""

    anchors: int
    inner: int
    batch: int

    @property
    def passes_over_rows(self) -> int:
        return self.anchors * self.inner  # at the anchor itself, differences are 0


SVRGPlan = Plan[mechanisms.AnchoredGaussian, SVRGSettings]


@dataclass(frozen=True)
class SVRG(Solver[mechanisms.AnchoredGaussian, SVRGSettings]):
    """Proximal stochastic gradient descent with variance reduction.

    Parameters
    ----------
    anchors : int, optional
        Number of gradients over all rows.
    inner : int, optional
        Number of steps after each of them (default: from the number of rows and the budget).
    batch_size : int, optional
        Expected size of the Poisson batches of the inner steps; by default all rows under a budget in Gaussian or
        zero-concentrated DP, where samples cost as much as all rows do.
    anchor_share : float
        About which share of the descent's budget the gradients over all rows take.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    difference : float
        Norm to which each row's difference of gradients is clipped, in units of its typical size at that distance.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the iterates after the second half of the anchors instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "svrg"
    capabilities = Capabilities(coupled=True, compiled=("slope",), start=True, stored=True, copied=True)

    anchors: int | None = None
    inner: int | None = None
    batch_size: int | None = None
    anchor_share: float = 0.7
    clip: float | None = None
    difference: float = DIFFERENCE
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        for name in ("anchors", "inner", "batch_size"):
            positive(name, getattr(self, name), whole=True)
        for name in ("difference", "step", "anchor_share"):
            positive(name, getattr(self, name))
        check_threshold("clip", self.clip)
        if self.anchor_share >= 1.0:
            raise ValueError(f"anchor_share must be below 1; got {self.anchor_share!r}.")

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.AnchoredGaussian, SVRGSettings]:
        n, anchors = public.rows, int(self.anchors or ANCHORS)
        inner = int(self.inner or _default_inner(anchors, public, budget))
        batch = batch_rows(self.batch_size, max(SMALLEST_BATCH, SMALLEST_RATE * n), n, budget)
        ratio = mechanisms.anchored_ratio(public.relation, batch / n, inner, self.anchor_share)

        def make(multiplier: float) -> mechanisms.AnchoredGaussian:
            return mechanisms.AnchoredGaussian(multiplier, ratio, batch / n, anchors, inner)

        return calibrated(make, scaling_plan, budget, public), SVRGSettings(anchors, inner, batch)

    def _releases(self, plan: SVRGPlan) -> list[PlannedRelease]:
        relation, unit = plan.public.relation, mechanisms.clipped_sum(plan.public.relation)
        full, sampled = unit * (1.0 / plan.public.rows), unit * (1.0 / plan.settings.batch)
        of = "all rows" if plan.settings.batch == plan.public.rows else "a random batch"
        change = f"changes of the mean gradient of {of}"
        return planned_releases(
            "mean gradients of all rows", plan.mechanism.full.event, relation, full, OF_THE_THRESHOLD
        ) + planned_releases(change, plan.mechanism.sampled.event, relation, sampled, OF_THE_THRESHOLD)

    def _warnings(self, plan: SVRGPlan) -> list[str]:
        rate = plan.settings.batch / plan.public.rows
        return [BATCHES_OF_A_FILE.format(rate=rate)] if plan.public.stored and rate < 1.0 else []

    def _descend(self, scaled: ScaledProblem | UnscaledProblem, plan: SVRGPlan, run: Run) -> tuple[FloatArray, int]:
        exact = plan.budget.is_infinite and self.anchors is None and self.inner is None
        if exact and not isinstance(scaled, ScaledProblem):
            return until_optimal(scaled, run, full_table_steps(scaled, self.step / curvature_bound(scaled)))
        descent = (
            MemorySteps(self, scaled, plan) if isinstance(scaled, ScaledProblem) else StoredSteps(self, scaled, plan)
        )
        if exact:
            passes = 1.0 + plan.settings.inner * plan.settings.batch / scaled.rows
            most = affordable_steps(scaled, passes)
            return until_optimal(scaled, run, descent.loops(run), every=1, most=most)
        anchors, inner = plan.settings.anchors, plan.settings.inner
        made = (Made(w, descent.total / inner) for w in islice(descent.loops(run), anchors))
        return descend(scaled, run, anchors, made, self.average)[0], anchors * (1 + inner)


def _default_inner(anchors: int, public: Public, budget: Budget) -> int:
    """As many steps as the noise allows: over a loop, that of the differences adds up like their number."""
    if budget.is_infinite:
        return MOST_INNER
    unit_sensitivity = mechanisms.clipped_sum(public.relation).l2
    allowed = PATIENCE * public.rows * budget.gaussian_mu() / (unit_sensitivity * math.sqrt(2.0 * anchors))
    return int(min(max(allowed, 1.0), MOST_INNER))
