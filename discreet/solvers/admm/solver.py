"""Private consensus ADMM (Douglas-Rachford splitting): proximal steps of every row and of the penalty.

Takes every penalty with a proximal map, separable or not. Theorem and proof: docs/guarantees/admm.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, check_threshold, number_in, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.clipping import curvature_bound
from discreet.solvers._shared.full_batch import (
    FullBatchPlan,
    FullBatchSettings,
    FullBatchSolver,
    Move,
    NoisyGradient,
    iterates,
)
from discreet.solvers.admm.row_duals import HiddenDuals, NoisyDuals, RemoteDuals
from discreet.solvers.base import Capabilities
from discreet.solvers.plan import OF_THE_THRESHOLD

TAKEN = Capabilities(pure=True, coupled=True, single_output=True, compiled=("proximal_slope",), start=True, stored=True)
FORMS = {"hidden-duals": HiddenDuals, "noisy-duals": NoisyDuals}


@dataclass(frozen=True)
class ADMM(FullBatchSolver):
    """Consensus ADMM with one copy of the weights per row, of which one number per row is kept.

    Parameters
    ----------
    rounds : int, optional
        Number of rounds; by default from the size of the table and the budget, as `gd` chooses its steps.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    gamma : float
        Length of the proximal steps in units of 1/beta, beta being a public bound on the curvature, for which a second
        derivative of the loss above 1 counts as 1. Without noise the rounds converge for every length.
    relaxation : float
        Half the part of the way that the dual variables go in a round; above 0, below 1 to converge. 1/2 is plain ADMM.
    form : {"hidden-duals", "noisy-duals"}
        Who adds the noise. By default the dual variables are exact, private and never released, and each round releases
        one noisy sum. "noisy-duals" is the form of the papers: every row adds the noise to its own message, which holds
        against whoever sees all messages, and the mean is sqrt(n) times as noisy.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "admm"

    rounds: int | None = None
    clip: float | None = None
    gamma: float = 1.9
    relaxation: float = 0.5
    form: str = "hidden-duals"
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("rounds", self.rounds, whole=True)
        check_threshold("clip", self.clip)
        number_in("gamma", self.gamma, SMALLEST_THRESHOLD, LARGEST_THRESHOLD)
        number_in("relaxation", self.relaxation, 0.0, 1.0, above=True)
        one_of("form", self.form, tuple(FORMS))

    @property
    def steps(self) -> int | None:  # type: ignore[override]
        """Its rounds, by the name that they have in other solvers."""
        return self.rounds

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return replace(TAKEN, workers=self.form == "hidden-duals")

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, FullBatchSettings]:
        if self.form == "noisy-duals" and public.relation is Relation.ADD_REMOVE:
            raise ValueError('form="noisy-duals" shows how many rows send messages; use relation="replace".')
        return super()._decide(problem, public, budget, scaling_plan)

    def _releases(self, plan: FullBatchPlan) -> list[PlannedRelease]:
        if self.form == "hidden-duals":
            return super()._releases(plan)
        relation, columns = plan.public.relation, plan.public.columns + plan.problem.fit_intercept
        sensitivity = mechanisms.clipped_sum(relation, columns)
        return planned_releases("gradients of every row", plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def noisy_gradient(self, scaled: BlockwiseProblem, plan: FullBatchPlan) -> NoisyGradient:
        """What a round releases."""
        kind = FORMS[self.form] if scaled.gives_blocks else RemoteDuals
        return kind(scaled, plan, self.clip, self.step_length(scaled), self.relaxation)

    def step_length(self, scaled: BlockwiseProblem) -> float:
        """No length diverges, so a kink in the loss need not shorten the steps: its slopes still change by about 1."""
        return self.gamma * max(1.0, scaled.problem.loss.smoothness) / curvature_bound(scaled)

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        gamma, gradient = self.step_length(scaled), self.noisy_gradient(scaled, plan)
        start = scaled.prox(scaled.start(), gamma)
        return iterates(gradient, rng, start, self._consensus(scaled, gamma))

    def _consensus(self, scaled: BlockwiseProblem, gamma: float) -> Move:
        """The other half of a round: the mean of the duals, from released numbers alone, then the penalty's step."""
        mean, share = np.array(scaled.start()), 2.0 * self.relaxation

        def move(w: FloatArray, gradient: FloatArray) -> FloatArray:
            mean[...] = (1.0 - share) * mean + share * (w - gamma * gradient)
            return scaled.prox(mean, gamma)

        return move
