"""DP-GCD: at every step the coordinate that promises most is chosen privately and moved.

Starts at zero and changes one coordinate a step, so the result is sparse and the noise grows with the number of
steps and the logarithm of the number of columns, not with the columns themselves. Theorem and proof:
docs/guarantees/greedy-cd.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet import mechanisms
from discreet.framed import Framed
from discreet.gradients import CoordinateGradients
from discreet.penalties import prox, signed_subgradient_distance
from discreet.scales import Scaling
from discreet.solvers.base import Mechanism, Plan, Run, Solver, calibrated, moderate, one_of, positive
from discreet.solvers.coordinates import scaling_for_declared, smoothness_bounds, thresholds

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]

FEWEST_STEPS, MOST_STEPS = 5, 50
NOISELESS_TOLERANCE = 1e-9
NOISELESS_STEPS = 100_000


@dataclass(frozen=True)
class GreedyCoordinateDescent(Solver):
    """Proximal greedy coordinate descent.

    Parameters
    ----------
    steps : int, optional
        Number of coordinates to move; by default from the budget and the number of rows.
    clip : float, optional
        The one threshold C; a row's gradient in coordinate j is clipped to C sqrt(M_j / sum M), which gives
        every score the same sensitivity.
    step : float
        Step length in units of 1/M_j.
    rule : {"gs-s", "gs-r", "gs-q"}
        How promising a coordinate is: violation of optimality, length of its proximal step, or decrease.
    signed : bool
        With "gs-s": let coordinates inside their optimality interval score below zero, by how far inside they
        are, instead of all scoring zero. It separates signal from noise and costs nothing.
    selection : {"gumbel", "laplace"}
        Exponential mechanism, or the report-noisy-max of the thesis at its true cost (for comparison).
    smoothness, scale_share : as for coordinate descent
    """

    name: ClassVar[str] = "greedy-cd"
    order: ClassVar[Literal["C", "F"]] = "F"
    needs_separable: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    single_output: ClassVar[bool] = True
    selects: ClassVar[bool] = True

    steps: int | None = None
    clip: float | None = None
    step: float = 1.0
    rule: str = "gs-s"
    signed: bool = True
    selection: str = "gumbel"
    smoothness: tuple[float, ...] | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        moderate("clip", self.clip)
        positive("step", self.step)
        one_of("rule", self.rule, ("gs-s", "gs-r", "gs-q"))
        one_of("selection", self.selection, ("gumbel", "laplace"))

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        steps = int(self.steps) if self.steps is not None else _default_steps(public, budget)
        kind = mechanisms.GumbelGreedy if self.selection == "gumbel" else mechanisms.LaplaceGreedy
        mechanism = calibrated(lambda z: kind(z, steps), scaling, budget, public)
        return mechanism, {"steps": steps, "rule": self.rule, "signed": self.signed, "selection": self.selection}

    def _scaling(self, problem: Problem, public: Public, budget: Budget, target: bool) -> Scaling:
        if self.smoothness is None:
            return super()._scaling(problem, public, budget, target)
        return scaling_for_declared(self.smoothness, self.clip, problem, public)

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        mechanism = plan.mechanism
        assert isinstance(mechanism, (mechanisms.GumbelGreedy, mechanisms.LaplaceGreedy))
        bound = smoothness_bounds(self.smoothness, framed)
        unit = mechanisms.clipped_sum(plan.public.relation)
        clip = thresholds(self.clip, mechanism.deviation(unit) / plan.public.rows, framed, plan, bound)
        state = CoordinateGradients(framed, clip)
        if plan.budget.is_infinite and self.steps is None:
            return self._until_optimal(framed, state, bound, run)
        # C_j / sqrt(M_j) is the same for all j, so one number is the sensitivity of every score.
        score_sensitivity = unit * float((clip / np.sqrt(bound)).max() / framed.rows) if plan.is_noisy else None
        steps = plan.settings["steps"]
        for t in range(steps):
            scores = self._scores(framed, state, bound)
            j = mechanism.choose(run.rng, scores, score_sensitivity)
            noise = float(mechanism.noise(run.rng, unit * clip[j], 1)[0]) if plan.is_noisy else 0.0
            self._move(framed, state, bound, j, noise)
            run.report(t + 1, steps, framed, state.w)
        return state.w, steps

    def _scores(self, framed: Framed, state: CoordinateGradients, bound: FloatArray) -> FloatArray:
        """Each is 1/sqrt(M_j)-Lipschitz in the mean gradient of its coordinate."""
        gradient, w, c = state.sums / framed.rows, state.w, framed.coefficients
        if self.rule == "gs-s":
            distance = signed_subgradient_distance(w, gradient, c)
            return (distance if self.signed else np.maximum(distance, 0.0)) / np.sqrt(bound)
        move = prox(w - gradient / bound, 1.0 / bound, c) - w
        if self.rule == "gs-r":
            return np.sqrt(bound) * np.abs(move)
        penalty = c.l1 * (np.abs(w + move) - np.abs(w)) + 0.5 * c.l2 * ((w + move) ** 2 - w**2)
        decrease = -(gradient * move + 0.5 * bound * move**2 + penalty)
        return np.sqrt(2.0 * np.maximum(decrease, 0.0))

    def _move(self, framed: Framed, state: CoordinateGradients, bound: FloatArray, j: int, noise: float) -> None:
        step = self.step / bound[j]
        value = state.w[j] - step * (state.sums[j] + noise) / framed.rows
        own = type(framed.coefficients)(*(part[j : j + 1] for part in framed.coefficients))
        state.move(j, float(prox(np.array([value]), step, own)[0]))

    def _until_optimal(
        self, framed: Framed, state: CoordinateGradients, bound: FloatArray, run: Run
    ) -> tuple[FloatArray, int]:
        """Without noise there is nothing to ration: move the best coordinate until the certificate is small."""
        from discreet.optimum import is_optimal

        done = 0
        for done in range(1, NOISELESS_STEPS + 1):
            self._move(framed, state, bound, int(np.argmax(self._scores(framed, state, bound))), 0.0)
            run.report(done, NOISELESS_STEPS, framed, state.w)
            if done % (10 * framed.columns) == 0 and is_optimal(framed, state.w, NOISELESS_TOLERANCE, bound):
                break
        return state.w, done


def _default_steps(public: Public, budget: Budget) -> int:
    """More steps for more signal: the square root of rows times mu, within limits."""
    if budget.is_infinite:
        return MOST_STEPS
    signal = public.rows * budget.gaussian_mu()
    return int(min(MOST_STEPS, max(FEWEST_STEPS, round(signal**0.5))))
