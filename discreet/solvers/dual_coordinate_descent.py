"""DP-SCD: coordinate steps in the dual problem, one dual variable per row; noise on their common sum alone.

The dual variables are a private memory that is never released. Theorem and proof: docs/guarantees/dual-cd.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet import mechanisms
from discreet.framed import Framed
from discreet.relation import Relation
from discreet.scales import Scaling
from discreet.solvers.base import (
    Mechanism,
    Plan,
    Run,
    Solver,
    calibrated,
    moderate,
    one_of,
    positive,
)
from discreet.solvers.gradient_descent import curvature_bound, row_threshold, until_optimal
from discreet.solvers.noise_rules import NoiseRule

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

PASSES, PROXIMITY = 40, 0.02
TRAVEL = NoiseRule(0.066, 0.45, 2.0)  # how far a dual variable may get in a run, in units of a typical slope
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64
BLOCK_DRAWS = 1 << 17  # noise is drawn in blocks of about this many numbers


@dataclass(frozen=True)
class DualCoordinateDescent(Solver):
    """Dual coordinate ascent on lots of rows.

    Parameters
    ----------
    passes : float, optional
        Expected number of times each row is used; a whole number for shuffled lots.
    batch_size : int, optional
        (Expected) size of a lot.
    lots : {"poisson", "shuffled"}
        Rows join each lot independently, or the rows are cut into lots in a new random order in every pass.
    clip : float, optional
        Norm to which the move of each row is clipped, in the solver's (scaled) columns.
    proximity : float, optional
        Weight of the pull towards an earlier iterate, in units of the curvature; it conditions the dual problem
        and stands for the penalty that the intercept does not have.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "dual-cd"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    single_output: ClassVar[bool] = True

    passes: float | None = None
    batch_size: int | None = None
    lots: str = "poisson"
    clip: float | None = None
    proximity: float | None = None
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        one_of("lots", self.lots, ("poisson", "shuffled"))
        positive("passes", self.passes, whole=self.lots == "shuffled")
        positive("batch_size", self.batch_size, whole=True)
        moderate("clip", self.clip)
        positive("proximity", self.proximity)

    def refusal(self, problem: Problem, budget: Budget) -> str | None:
        if problem.penalty.strong_convexity <= 0.0:
            return "its dual problem needs an L2 penalty"
        return super().refusal(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        n = public.rows
        if self.lots == "shuffled" and public.relation is Relation.ADD_REMOVE:
            raise ValueError('lots="shuffled" needs a public number of rows; use relation="replace" or "poisson".')
        batch = min(n, int(self.batch_size or max(SMALLEST_BATCH, SMALLEST_RATE * n)))
        passes = self.passes if self.passes is not None else PASSES
        per_pass = math.ceil(n / batch)
        steps = int(passes) * per_pass if self.lots == "shuffled" else max(1, round(passes * n / batch))

        def make(multiplier: float) -> Mechanism:
            if self.lots == "shuffled":
                return mechanisms.Gaussian(multiplier, int(passes))
            return mechanisms.PoissonGaussian(multiplier, batch / n, steps)

        mechanism = calibrated(make, scaling, budget, public)
        return mechanism, {"passes": passes, "batch": batch, "lots": per_pass, "steps": steps}

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.passes is None:
            return until_optimal(framed, run)
        steps = plan.settings["steps"]
        ascent = _Ascent(self, framed, plan)
        for indptr, indices in self._lots(run, plan, framed):
            ascent.run(indptr, indices, run)
            run.report(ascent.done, steps, framed, ascent.w)
        return (ascent.total / (steps - steps // 2) if self.average else ascent.w), steps

    def _lots(self, run: Run, plan: Plan, framed: Framed) -> Iterator[tuple[IndexArray, IndexArray]]:
        """The lots of the run in blocks, drawn without a look at the rows."""
        rows, batch, left = framed.X.shape[0], plan.settings["batch"], plan.settings["steps"]
        if self.lots == "shuffled":
            cuts = np.minimum(np.arange(plan.settings["lots"] + 1, dtype=np.int64) * batch, rows)
            for _ in range(int(plan.settings["passes"])):
                yield cuts, run.rng.permutation(rows)
            return
        block = max(1, BLOCK_DRAWS // framed.columns)
        while left > 0:
            yield run.rng.poisson_batches(rows, batch / plan.public.rows, min(block, left))
            left -= block


class _Ascent:
    """Dual variables, their noisy sum, the weights and everything the kernels need, for one run."""

    def __init__(self, solver: DualCoordinateDescent, framed: Framed, plan: Plan) -> None:
        self.framed, self.done, self.half = framed, 0, plan.settings["steps"] // 2
        settings, mechanism = plan.settings, plan.mechanism
        unit = _deviation(mechanism, plan)
        noise = unit * math.sqrt(settings["steps"]) / (settings["passes"] * framed.rows)  # of the mean, after the run
        travel = TRAVEL.at(noise)
        self.clip = row_threshold(solver.clip, travel / settings["passes"], framed, plan)
        self.deviation = unit * self.clip if plan.is_noisy else 0.0
        self.refresh = settings["lots"]
        smoothness = framed.problem.loss.smoothness
        proximity = solver.proximity if solver.proximity is not None else PROXIMITY
        self.pull = np.full(framed.columns, proximity * curvature_bound(framed))
        size = _square_sums(framed.X, 1.0 / (framed.coefficients.l2 + self.pull))
        self.damping = 1.0 + smoothness * settings["batch"] / framed.rows * size
        self.norms = framed.norms()
        self.weight = framed.kernel_weight
        self.w = np.array(framed.start())
        self.centre = self.w.copy()
        self.alpha, self.v = np.zeros(framed.X.shape[0]), np.zeros(framed.columns)
        self.total = np.zeros(framed.columns)

    def run(self, indptr: IndexArray, indices: IndexArray, run: Run) -> None:
        """One step per lot; the noise is drawn before the rows are looked at."""
        from discreet.kernels import dual

        framed, c, loss = self.framed, self.framed.coefficients, self.framed.problem.loss
        noise = run.rng.normal((indptr.size - 1, framed.columns))
        noise *= self.deviation
        rows = (self.norms, framed.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise)
        settings = (self.clip, self.damping, self.pull, float(framed.rows), self.done, self.half, self.refresh)
        state = (c.l1, c.l2, c.low, c.high, self.alpha, self.v, self.centre, self.w, self.total)
        if sp.issparse(framed.X):
            dual.lots_sparse(framed.X.indptr, framed.X.indices, framed.X.data, *rows, *settings, *state)
        else:
            dual.lots_dense(framed.X, *rows, *settings, *state)
        self.done += indptr.size - 1


def _deviation(mechanism: Mechanism, plan: Plan) -> float:
    """Standard deviation of the noise on a sum of moves of norm at most 1."""
    if isinstance(mechanism, mechanisms.PoissonGaussian):
        return mechanism.scale(1.0)
    assert isinstance(mechanism, mechanisms.Gaussian)
    return mechanism.scale(mechanisms.clipped_sum(plan.public.relation))


def _square_sums(X: Any, coefficients: FloatArray) -> FloatArray:
    """The sum over the columns of coefficient times squared entry, row by row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X) @ coefficients, dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij,j->i", X, X, coefficients))
