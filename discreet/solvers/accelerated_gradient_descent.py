"""DP-NAG: full-batch gradient descent with Nesterov's momentum; noisy gradients of clipped rows, as in `gd`.

Steps begin beyond the latest weights, in the direction of the last move. That is post-processing of what has been
released. Theorem and proof: docs/guarantees/accelerated-gd.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet._common.checks import number_in
from discreet._common.types import FloatArray
from discreet.privacy.random.generator import RandomGenerator
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers._shared.descents import curvature_bound
from discreet.solvers._shared.full_batch import FullBatchPlan, FullBatchSolver, NoisyGradient
from discreet.solvers.base import Capabilities

MOST_MOMENTUM = 0.999  # noise stays for 1 / (1 - momentum) steps; with 1 it would never fade


@dataclass(frozen=True)
class AcceleratedGradientDescent(FullBatchSolver):
    """Full-batch projected or proximal gradient descent with Nesterov's momentum.

    Where columns are correlated, plain steps are short in the directions of little variance; momentum goes about
    1 / (1 - momentum) times as far there, and so does the noise.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default from the size of the table and the budget, as for `gd`.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature; at most 1, which cannot diverge.
    momentum : float
        The part of the last move that the next step begins with; 0 is plain gradient descent.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "accelerated-gd"
    capabilities = Capabilities(pure=True, coupled=True, start=True, stored=True)

    steps: int | None = None
    clip: float | None = None
    step: float = 1.0
    momentum: float = 0.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        number_in("step", self.step, 0.0, 1.0, above=True)
        number_in("momentum", self.momentum, 0.0, MOST_MOMENTUM)
        super().__post_init__()

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        gradient, length = NoisyGradient(scaled, plan, self.clip), self.step / curvature_bound(scaled)
        w = scaled.start()
        ahead = w
        while True:
            moved = scaled.prox(ahead - length * gradient(ahead, rng), length)
            w, ahead = moved, moved + self.momentum * (moved - w)
            yield w
