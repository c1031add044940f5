"""DP-CD: proximal coordinate descent with noisy, clipped coordinate gradients.

Every coordinate has its own step 1/M_j and its own clipping threshold C_j = C sqrt(M_j / sum M), so uneven
columns neither slow it down nor set each other's noise. Theorem and proof: docs/guarantees/cd.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet import mechanisms
from discreet.framed import Framed
from discreet.scales import Scaling
from discreet.solvers.base import Mechanism, Plan, Run, Solver, calibrated, moderate, one_of, positive
from discreet.solvers.coordinates import default_steps, scaling_for_declared, smoothness_bounds, thresholds
from discreet.solvers.screening import Screening
from discreet.sweeps import Sweeps

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem
    from discreet.randomness import RandomStream

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NOISELESS_TOLERANCE = 1e-9
NOISELESS_ROUNDS = 5_000


@dataclass(frozen=True)
class CoordinateDescent(Solver):
    """Proximal coordinate descent.

    Parameters
    ----------
    passes : float, optional
        Sweeps over the coordinates (fractions allowed); by default from the budget and the table's size.
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
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "cd"
    order: ClassVar[Literal["C", "F"]] = "F"
    needs_separable: ClassVar[bool] = True
    pure: ClassVar[bool] = True

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
        moderate("clip", self.clip)
        positive("step", self.step)
        positive("outer", self.outer, whole=True)
        positive("screening", self.screening, whole=True)
        one_of("sampling", self.sampling, ("cyclic", "uniform", "proportional"))

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        coordinates = public.columns + problem.fit_intercept
        if self.passes is not None:
            steps = max(1, round(self.passes * coordinates))
        else:
            steps = max(1, round(default_steps(coordinates, public, budget)))
        kind = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
        mechanism = calibrated(lambda z: kind(z, steps), scaling, budget, public)
        settings = {"passes": steps / coordinates, "steps": steps, "sampling": self.sampling, "outer": int(self.outer)}
        if self.screening is not None:
            settings["screening"] = int(self.screening)
        return mechanism, settings

    def _scaling(self, problem: Problem, public: Public, budget: Budget, target: bool) -> Scaling:
        if self.smoothness is None:
            return super()._scaling(problem, public, budget, target)
        return scaling_for_declared(self.smoothness, self.clip, problem, public)

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        mechanism = plan.mechanism
        assert isinstance(mechanism, (mechanisms.Gaussian, mechanisms.Laplace))
        bound = smoothness_bounds(self.smoothness, framed)
        noise_level = mechanism.deviation(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
        clip = thresholds(self.clip, noise_level, framed, plan, bound)
        sweeps = Sweeps(framed, clip, self.step / bound)
        if plan.budget.is_infinite and self.passes is None:
            return _until_optimal(framed, sweeps, bound, run)
        steps, outer = plan.settings["steps"], min(plan.settings["outer"], plan.settings["steps"])
        unit = mechanisms.clipped_sum(plan.public.relation, framed.outputs)
        spread = clip if plan.is_noisy else np.zeros(framed.columns)  # of the noise, over that of a unit sum
        deviation = mechanism.deviation(unit) * math.sqrt(framed.outputs) / plan.public.rows
        screening = Screening(self.screening, self.step / bound * spread * deviation)
        done = 0
        for loop in range(outer):
            end = steps * (loop + 1) // outer
            screening.restart(sweeps.w)
            while done < end:
                size = min(screening.active.size, end - done)
                coordinates = self._coordinates(run.rng, bound, screening.active, done, size)
                shape = (size,) if framed.outputs == 1 else (size, framed.outputs)
                noise = mechanism.noise(run.rng, unit, shape)
                noise *= spread[coordinates].reshape((size,) + (1,) * (noise.ndim - 1))
                sweeps.run(coordinates, noise)
                screening.watch(coordinates, sweeps)
                done += size
                run.report(done, steps, framed, sweeps.w)
            if self.average:
                sweeps.restart(sweeps.average())
        return sweeps.w, steps

    def _coordinates(self, rng: RandomStream, bound: FloatArray, active: IntArray, done: int, size: int) -> IntArray:
        """The next coordinates, by released numbers and the stream alone."""
        if self.sampling == "uniform":
            return active[rng.integers(active.size, size)]
        if self.sampling == "proportional":
            return active[rng.choice(bound[active] / bound[active].sum(), size)]
        return active[(done + np.arange(size, dtype=np.int64)) % active.size]


def _until_optimal(framed: Framed, sweeps: Sweeps, bound: FloatArray, run: Run) -> tuple[FloatArray, int]:
    """Without noise there is nothing to ration: sweep until the certificate is small."""
    from discreet.optimum import is_optimal

    order = np.arange(framed.columns, dtype=np.int64)
    silence = np.zeros((framed.columns, *framed.shape[:-1]))
    for done in range(1, NOISELESS_ROUNDS + 1):
        sweeps.run(order, silence)
        run.report(done, NOISELESS_ROUNDS, framed, sweeps.w)
        if done % 10 == 0 and is_optimal(framed, sweeps.w, NOISELESS_TOLERANCE, bound):
            break
    return sweeps.w, done * framed.columns
