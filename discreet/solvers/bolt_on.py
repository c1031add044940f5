"""Bolt-on noise: ordinary stochastic gradient descent for a fixed number of passes, then noise once on its result.

One row can move the result only so far, because steps on a convex smooth loss bring two runs no farther apart. Theorem
and proof: docs/guarantees/bolt-on.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet import mechanisms
from discreet.framed import Framed
from discreet.mechanisms import stability
from discreet.mechanisms.perturbations import SphericalLaplace
from discreet.penalties import Coefficients
from discreet.relation import Relation
from discreet.scales import Scaling
from discreet.solvers.base import Mechanism, Plan, Run, Solver, calibrated, moderate, positive
from discreet.solvers.batch_steps import BatchSteps
from discreet.solvers.certified_minimum import row_curvature, shortened
from discreet.solvers.gradient_descent import until_optimal
from discreet.solvers.lots import partition
from discreet.solvers.output_perturbation import default_ridge
from discreet.solvers.short_rows import radius_of, unbounded_slope

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

PASSES = 10
SMALLEST_LOT = 16


@dataclass(frozen=True)
class BoltOn(Solver):
    """Stochastic gradient descent without noise, and noise on its result.

    Parameters
    ----------
    passes : int, optional
        Number of passes over the rows.
    lots : int, optional
        Number of lots into which the rows are cut, one step each; by default as few as the step allows.
    journey : float, optional
        Sum of the lengths of all steps. A longer one comes closer to the optimum and needs more noise, in proportion;
        the default weighs the two by public facts.
    step : float
        Largest step length in units of 1/beta, beta being a public bound on the curvature; must be below 2.
    row_norm : float, optional
        Norm to which rows are shortened, in units of the root of the number of (scaled) columns.
    ridge : float
        Least l2 penalty of a coordinate, intercept included, in the solver's (scaled) columns. The noise of long
        journeys falls with it.
    average : bool
        Return the average over the second half of the passes instead of the last iterate.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "bolt-on"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    passes: int | None = None
    lots: int | None = None
    journey: float | None = None
    step: float = 1.0
    row_norm: float | None = None
    ridge: float = 0.0
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("passes", self.passes, whole=True)
        positive("lots", self.lots, whole=True)
        moderate("journey", self.journey)
        moderate("step", self.step)
        moderate("row_norm", self.row_norm)
        moderate("ridge", self.ridge or None)
        if self.step >= 2.0:
            raise ValueError(f"step must be below 2, or one row could move the result far; got {self.step!r}.")

    def refusal(self, problem: Problem, budget: Budget) -> str | None:
        return super().refusal(problem, budget) or unbounded_slope(problem)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        kind: Any = SphericalLaplace if budget.kind == "pure" else mechanisms.Gaussian
        mechanism = calibrated(kind, scaling, budget, public)
        if budget.is_infinite:
            return mechanism, {}
        assert isinstance(mechanism, (mechanisms.Gaussian, SphericalLaplace))
        radius = radius_of(problem, public, budget, self.row_norm)
        # Stopping after a journey t is worth a ridge of 1 / t: the rule of output perturbation serves both.
        journey = self.journey or 1.0 / default_ridge(problem, public, radius, mechanism)
        longest = self.step / row_curvature(problem.loss, radius)
        lot_rows, lots = self._lots(public.rows, journey / longest)
        passes = int(self.passes or max(PASSES, math.ceil(journey / (longest * lots))))
        return mechanism, {
            "row_norm": radius, "passes": passes, "lots": lots, "lot_rows": lot_rows,
            "journey": journey, "step": min(longest, journey / (passes * lots)),
        }  # fmt: skip

    def _lots(self, rows: int, steps: float) -> tuple[int, int]:
        """The size of a lot and the number of lots, for about so many steps in all."""
        wanted = self.lots or min(math.ceil(steps / (self.passes or PASSES)), max(1, rows // SMALLEST_LOT))
        lot_rows = math.ceil(rows / wanted)
        return lot_rows, math.ceil(rows / lot_rows)

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(framed, run)
        mechanism, settings = plan.mechanism, plan.settings
        assert isinstance(mechanism, (mechanisms.Gaussian, SphericalLaplace))
        light, gain = lightened(framed, settings["journey"])
        light = shortened(light, settings["row_norm"], self.ridge)
        rows, relation = framed.X.shape[0], plan.public.relation
        parts = partition(relation, rows, settings["lots"], settings["lot_rows"], run.rng)
        noise = mechanism.noise(run.rng, self.sensitivity(light, plan), framed.shape)
        w = framed.prox((self.walk(light, plan, parts) + noise) * gain, 0.0)  # back into the set, which is free
        steps = settings["passes"] * settings["lots"]
        run.report(steps, steps, framed, w)
        return w, steps

    def walk(self, framed: Framed, plan: Plan, parts: Sequence[IndexArray]) -> FloatArray:
        """The passes over the (shortened) rows. Not private: the result has no noise yet."""
        settings, loss = plan.settings, plan.problem.loss
        limit = loss.lipschitz * settings["row_norm"]  # no gradient exceeds it but by rounding
        if plan.public.relation is Relation.ADD_REMOVE:
            room = 2.0 * settings["lot_rows"] / (settings["step"] * row_curvature(loss, settings["row_norm"]))
            framed = replace(framed, weight=stability.thinned(framed.weight, framed.X.shape[0], parts, room))
        steps = BatchSteps(framed, limit, settings["step"], settings["lot_rows"])
        batches = np.append(0, np.cumsum([part.size for part in parts])), np.concatenate(parts)
        silence = np.zeros((len(parts), *framed.shape))
        averaged = _averaged(settings["passes"])
        for left in range(settings["passes"], 0, -1):
            if left == averaged:
                steps.total[:] = 0.0
            steps.run(*batches, silence)
        return steps.total / (averaged * len(parts)) if self.average else steps.w

    def sensitivity(self, framed: Framed, plan: Plan) -> mechanisms.Sensitivity:
        """How far the end of the walk can move."""
        settings, loss = plan.settings, plan.problem.loss
        shrink = 1.0 / (1.0 + settings["step"] * float(framed.coefficients.l2.min(initial=math.inf)))
        end = stability.path_end(
            plan.public.relation, loss, settings["row_norm"], settings["step"], settings["lot_rows"], shrink,
            settings["lots"], settings["passes"], _averaged(settings["passes"]) if self.average else 0,
        )  # fmt: skip
        start, steps = framed.start(), settings["passes"] * settings["lots"]
        farthest = float(np.linalg.norm(start)) + steps * settings["step"] * loss.lipschitz * settings["row_norm"]
        rounding = stability.rounding_of(farthest, steps, start.size)
        return mechanisms.Sensitivity(end.l2 + rounding, end.l1)


def _averaged(passes: int) -> int:
    """The passes of the second half."""
    return passes - passes // 2


def lightened(framed: Framed, journey: float) -> tuple[Framed, FloatArray]:
    """The same problem with columns divided so that no l2 penalty exceeds 1 / journey.

    Its weights times the second result are the old ones. A journey is too short to learn about weights that are
    penalised more than that, and noise of the common size would make their penalty huge.
    """
    c = framed.coefficients
    gain = 1.0 / np.sqrt(np.maximum(1.0, journey * c.l2))
    if not framed.problem.separable:
        gain = np.ones_like(gain)  # projections need one scale for all columns
    X = framed.X  # a copy of the solver's own, see Frame.matrix
    if sp.issparse(X):
        X.data *= gain[X.indices]
    else:
        X *= gain
    lighter = Coefficients(c.l1 * gain, c.l2 * gain**2, c.low / gain, c.high / gain)
    return replace(framed, X=X, coefficients=lighter), gain
