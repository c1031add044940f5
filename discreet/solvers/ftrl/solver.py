"""DP-FTRL: follow the regularised leader of noisy running sums of gradients; every pass reads each row once.

No sampling and no secrecy of the order is needed, so that the rows may come as a stream (stream.py).
Theorem and proof: docs/guarantees/ftrl.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.aggregation import Kind, RunningSumGaussian, row_norm
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import assign_rows
from discreet.solvers._shared.noiseless import until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.ftrl.leaf_loop import LeafLoop
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

LEAVES, EPOCHS = 128, 8  # updates in a pass, and passes: docs/defaults.md
NOISELESS_EPOCHS = 400  # the most passes where epsilon is infinite


@dataclass(frozen=True)
class FTRLSettings(Settings):
    """How many updates a pass makes, of how many rows each, and how many passes there are."""

    leaves: int
    leaf_rows: int
    epochs: int


FTRLPlan = Plan[RunningSumGaussian, FTRLSettings]


@dataclass(frozen=True)
class FTRL(Solver[RunningSumGaussian, FTRLSettings]):
    """Follow the regularised leader.

    With infinite epsilon each update reads the whole table, up to 400 times. The error of the average may fall as
    slowly as the inverse of their number, so that accelerated gradient steps finish from there, to the optimum.

    Parameters
    ----------
    leaves : int, optional
        Number of updates in one pass; each uses an equal part of the rows.
    epochs : int, optional
        Number of passes, each with fresh noise.
    aggregation : {"square-root", "tree"}
        How the noise of the running sums is correlated; the square root needs less, the tree less memory.
    shuffle : bool
        Put the rows into a random order, anew for every pass; False takes them as they come.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Length of an update in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the latest half of the iterates or more, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "ftrl"
    capabilities = Capabilities(start=True)

    leaves: int | None = None
    epochs: int | None = None
    aggregation: Kind = "square-root"
    shuffle: bool = True
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("leaves", self.leaves, whole=True)
        positive("epochs", self.epochs, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)
        one_of("aggregation", self.aggregation, ("square-root", "tree"))

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[RunningSumGaussian, FTRLSettings]:
        if public.relation is Relation.ADD_REMOVE and not self.shuffle:
            raise ValueError('shuffle=False needs a public place for every row; use relation="replace" or "zero_out".')
        # Without noise there is no better leaf than the whole table; the error falls as the inverse of the updates.
        default_leaves, default_epochs = (1, NOISELESS_EPOCHS) if budget.is_infinite else (LEAVES, EPOCHS)
        leaf_rows = math.ceil(public.rows / (self.leaves or default_leaves))
        leaves, epochs = math.ceil(public.rows / leaf_rows), int(self.epochs or default_epochs)

        def make(multiplier: float) -> RunningSumGaussian:
            return RunningSumGaussian(multiplier, self.aggregation, leaves, epochs)

        return calibrated(make, scaling_plan, budget, public), FTRLSettings(leaves, leaf_rows, epochs)

    def _releases(self, plan: FTRLPlan) -> list[PlannedRelease]:
        relation, length = plan.public.relation, row_norm(self.aggregation, plan.settings.leaves)
        # The last running sum of a pass is that of all rows; its noise is `length` times that of a node.
        sensitivity = mechanisms.clipped_sum(relation) * (length**2 / plan.public.rows)
        what = "running mean gradients, a pass each"
        return planned_releases(what, plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def _descend(self, scaled: ScaledProblem, plan: FTRLPlan, run: Run) -> tuple[FloatArray, int]:
        loop = LeafLoop(self, plan, scaled, lambda _: run.rng)
        leader, updates = loop.leader, plan.settings.leaves * plan.settings.epochs
        if plan.budget.is_infinite and self.leaves is None and self.epochs is None:
            own_steps = (leader.average.mean() for _ in self.follow(loop, run.rng))
            return until_optimal(scaled, run, own_steps)
        for done, _ in enumerate(self.follow(loop, run.rng), start=1):
            if done % plan.settings.leaves == 0:
                run.report(done, updates, scaled, leader.w)
        return (leader.average.mean() if self.average else leader.w), updates

    def follow(self, loop: LeafLoop, rng: RandomGenerator) -> Iterator[IndexArray]:
        """Run the loop's plan; yields the rows of each leaf after the leader has followed them.

        Guarantee: all iterates together cost the plan's mechanism.
        """
        return loop.read(loop.scaled, self._leaves(loop, rng))

    def _leaves(self, loop: LeafLoop, rng: RandomGenerator) -> Iterator[tuple[IndexArray, bool]]:
        """The leaves of all passes; every pass has a tree of its own."""
        plan, scaled = loop.plan, loop.scaled
        for _ in range(plan.settings.epochs):
            loop.start_tree(plan.mechanism.begin(scaled.shape))
            for rows in self._parts(plan, scaled.X.shape[0], rng):
                yield rows, True

    def _parts(self, plan: FTRLPlan, rows: int, rng: RandomGenerator) -> list[IndexArray]:
        """Which rows each leaf holds; every row is in exactly one, chosen without looking at any row."""
        settings, relation = plan.settings, plan.public.relation
        return assign_rows(relation, rows, settings.leaves, settings.leaf_rows, rng, self.shuffle)
