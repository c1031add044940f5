"""DP-CD: proximal coordinate descent with noisy, clipped coordinate gradients.

Every coordinate has its own step 1/M_j and its own clipping threshold C_j = C sqrt(M_j / sum M), so uneven
columns neither slow it down nor set each other's noise. Theorem and proof: docs/guarantees/cd.md.

Screening: coordinates that have settled leave the others their steps.

The test reads only iterates that have been released already, so it costs nothing; and since every step costs the
same whichever coordinate it moves, the next coordinates may depend on it (docs/guarantees/cd.md, "Screening").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.coordinate_state import CoordinateState, sweeps
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.coordinates import (
    CoordinateSolver,
    default_steps,
    descend_in_loops,
    smoothness_bounds,
    thresholds,
)
from discreet.solvers._shared.descents import until_optimal
from discreet.solvers.base import Capabilities, Run, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

NOISE_ALONE = 2.0  # standard deviations that noise alone exceeds once in twenty tests


class Screening:
    """Tells settled coordinates from those still on their way.

    A coordinate has settled if its last `patience` steps carried it no further than noise alone would. It then goes
    back to where those steps began, which for a coordinate that does not matter is 0.

    Parameters
    ----------
    patience : int or None
        How many steps of a coordinate make a test; None screens nothing.
    noise : array
        Standard deviation of the noise in one step of each coordinate.
    """

    def __init__(self, patience: int | None, noise: FloatArray) -> None:
        self.patience, self.noise = patience, noise
        self.active: IntArray = np.arange(noise.size, dtype=np.int64)

    def restart(self, w: FloatArray) -> None:
        """Watch from here; `w` has one column per coordinate."""
        self.mark = w.copy()
        self.visits = np.zeros(self.noise.size, dtype=np.int64)

    def watch(self, coordinates: IntArray, state: CoordinateState) -> None:
        """The coordinates have just made one step each: those that have settled go back to where they began.

        When all have settled, all begin anew.
        """
        if self.patience is None:
            return
        w = state.w
        self.visits += np.bincount(coordinates, minlength=self.visits.size)
        due = self.visits >= self.patience
        moved = np.sqrt(((w - self.mark) ** 2).reshape(-1, self.noise.size).sum(axis=0))
        settled = due & (moved <= NOISE_ALONE * np.sqrt(self.visits) * self.noise)
        if settled.any():
            back = np.flatnonzero(settled)
            state.place(back, self.mark[..., back])
        self.mark[..., due] = w[..., due]
        self.visits[due] = 0
        self.active = self.active[~settled[self.active]]
        if self.active.size == 0:
            self.active = np.arange(self.noise.size, dtype=np.int64)


@dataclass(frozen=True)
class CoordinateDescentSettings(Settings):
    """How often coordinates are moved, and in which order."""

    passes: float
    steps: int
    sampling: str
    outer: int
    screening: int | None = None


CoordinateDescentPlan = Plan[mechanisms.Additive, CoordinateDescentSettings]


@dataclass(frozen=True)
class CoordinateDescent(CoordinateSolver[mechanisms.Additive, CoordinateDescentSettings]):
    """Proximal coordinate descent.

    Parameters
    ----------
    passes : float, optional
        Passes over the coordinates (fractions allowed); by default from the budget and the table's size.
    clip : float, optional
        The one threshold C; a row's gradient in coordinate j is clipped to C sqrt(M_j / sum M).
    step : float
        Step length in units of 1/M_j.
    sampling : {"cyclic", "uniform", "proportional"}
        The order of the coordinates; "proportional" draws them in proportion to M_j.
    average : bool
        Each of the `outer` loops ends at the average of its iterates (True) or at the last one (False).
    outer : int
        Number of outer loops.
    screening : int, optional
        After this many steps of a coordinate, test whether it has settled; settled coordinates leave their steps
        to the others. Costs nothing. For tables with many columns of which few matter.
    smoothness : sequence of float, optional
        Public coordinate-wise smoothness constants M_j in the user's columns (intercept last, if any); the
        columns are then neither scaled nor centred.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "cd"
    capabilities = Capabilities(order="F", pure=True, separable_only=True, compiled=("slope",), start=True)

    passes: float | None = None
    clip: float | None = None
    step: float = 1.0
    sampling: str = "cyclic"
    average: bool = True
    outer: int = 2
    screening: int | None = None
    smoothness: tuple[float, ...] | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("passes", self.passes)
        check_threshold("clip", self.clip)
        positive("step", self.step)
        positive("outer", self.outer, whole=True)
        positive("screening", self.screening, whole=True)
        one_of("sampling", self.sampling, ("cyclic", "uniform", "proportional"))

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, CoordinateDescentSettings]:
        coordinates = public.columns + problem.fit_intercept
        if self.passes is not None:
            steps = max(1, round(self.passes * coordinates))
        else:
            steps = max(1, round(default_steps(coordinates, public, budget)))
        kind: type[mechanisms.Additive] = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
        mechanism = calibrated(lambda z: kind(z, steps), scaling_plan, budget, public)
        screening = None if self.screening is None else int(self.screening)
        return mechanism, CoordinateDescentSettings(
            steps / coordinates, steps, self.sampling, int(self.outer), screening
        )

    def _releases(self, plan: CoordinateDescentPlan) -> list[PlannedRelease]:
        relation, outputs = plan.public.relation, plan.problem.loss.outputs
        sensitivity = mechanisms.clipped_sum(relation, outputs) * (1.0 / plan.public.rows)
        return planned_releases(
            "mean gradients in one coordinate", plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD
        )

    def _descend(self, scaled: ScaledProblem, plan: CoordinateDescentPlan, run: Run) -> tuple[FloatArray, int]:
        mechanism = plan.mechanism
        bound, clip, unit, grid = self.sizes(scaled, plan)
        state = CoordinateState(scaled, clip, self.step / bound, grid.step)
        if plan.budget.is_infinite and self.passes is None:
            return until_optimal(scaled, run, sweeps(state), every=10, bound=bound)
        spread = clip if plan.is_noisy else np.zeros(scaled.columns)  # of the noise, over that of a unit sum
        deviation = mechanism.deviation(unit) * math.sqrt(scaled.outputs) / plan.public.rows
        screening = Screening(self.screening, self.step / bound * spread * deviation)

        def advance(done: int, left: int) -> int:
            size = min(screening.active.size, left)
            coordinates = self._coordinates(run.rng, bound, screening.active, done, size)
            shape = (size,) if scaled.outputs == 1 else (size, scaled.outputs)
            state.run(coordinates, grid.noise(run.rng, shape))
            screening.watch(coordinates, state)
            return size

        def begin() -> None:
            screening.restart(state.w)

        return descend_in_loops(scaled, run, state, plan.settings, advance, self.average, begin)

    def sizes(
        self, scaled: BlockwiseProblem, plan: CoordinateDescentPlan
    ) -> tuple[FloatArray, FloatArray, mechanisms.Sensitivity, NoisyGrid]:
        """M_j and C_j, then the sensitivity and the grid of sums that are counted in thresholds; all public."""
        relation, rows = plan.public.relation, plan.public.rows
        bound = smoothness_bounds(self.smoothness, scaled)
        noise_level = plan.mechanism.deviation(mechanisms.clipped_sum(relation)) / rows
        clip = thresholds(self.clip, noise_level, scaled, plan, bound)
        unit = mechanisms.clipped_sum(relation, scaled.outputs)
        return bound, clip, unit, plan.mechanism.grid(unit, scaled.outputs, rows)

    def _coordinates(self, rng: RandomGenerator, bound: FloatArray, active: IntArray, done: int, size: int) -> IntArray:
        """The next coordinates, by released numbers and the generator alone."""
        if self.sampling == "uniform":
            return active[rng.integers(active.size, size)]
        if self.sampling == "proportional":
            return active[rng.choice(bound[active] / bound[active].sum(), size)]
        return active[(done + np.arange(size, dtype=np.int64)) % active.size]
