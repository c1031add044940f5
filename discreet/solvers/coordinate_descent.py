"""DP-CD: proximal coordinate descent with noisy, clipped coordinate gradients.

Every coordinate has its own step 1/M_j and its own clipping threshold C_j = C sqrt(M_j / sum M), so uneven
columns neither slow it down nor set each other's noise. Theorem and proof: docs/guarantees/cd.md.

Screening: coordinates that have settled leave the others their steps.

The test reads only iterates that have been released already, so it costs nothing; and since every step costs the
same whichever coordinate it moves, the next coordinates may depend on it (docs/guarantees/cd.md, "Screening").

DP-SCD makes coordinate steps in the dual problem, one dual variable per row, with noise on their common sum alone. The
dual variables are a private memory that is never released. Theorem and proof: docs/guarantees/dual-cd.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray, IndexArray, IntArray
from discreet.data.public import Public
from discreet.kernels.gradient import UNROUNDED
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.coordinate_state import CoordinateState, sweeps
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import batch_rows
from discreet.solvers._shared.coordinates import (
    CoordinateSolver,
    default_steps,
    descend_in_loops,
    smoothness_bounds,
    thresholds,
)
from discreet.solvers._shared.descents import (
    ClippingRule,
    Made,
    curvature_bound,
    descend,
    planned_threshold,
    row_entries,
    tail_length,
    typical_length,
    until_optimal,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
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
        visits = plan.settings.passes / 2.0
        clip = thresholds(self.clip, noise_level, scaled, plan, bound, averaged=visits)
        unit = mechanisms.clipped_sum(relation, scaled.outputs)
        return bound, clip, unit, plan.mechanism.grid(unit, scaled.outputs, rows)

    def _coordinates(self, rng: RandomGenerator, bound: FloatArray, active: IntArray, done: int, size: int) -> IntArray:
        """The next coordinates, by released numbers and the generator alone."""
        if self.sampling == "uniform":
            return active[rng.integers(active.size, size)]
        if self.sampling == "proportional":
            return active[rng.choice(bound[active] / bound[active].sum(), size)]
        return active[(done + np.arange(size, dtype=np.int64)) % active.size]


# Tuned on public tables, and never read from rows: docs/defaults.md.
PASSES, PROXIMITY = 40, 0.02  # over the rows; the pull towards an earlier iterate, in units of the curvature
LARGEST_DUAL = ClippingRule(0.066, 0.45)  # how large a dual variable may become in a run, in units of a typical slope
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64  # the larger of this share of the rows and this number is a batch
BLOCK_DRAWS = 1 << 17  # noise is drawn in blocks of about this many numbers

BatchGaussian = mechanisms.PoissonGaussian | mechanisms.Gaussian


@dataclass(frozen=True)
class DualSettings(Settings):
    """How often batches of rows are visited, and of which size."""

    passes: float
    batch: int
    batches: int
    steps: int


DualPlan = Plan[BatchGaussian, DualSettings]


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[BatchGaussian, DualSettings]):
    """Dual coordinate ascent on batches of rows.

    Parameters
    ----------
    passes : float, optional
        Expected number of times each row is used; a whole number for shuffled batches.
    batch_size : int, optional
        (Expected) size of a batch; by default all rows for Poisson batches under a budget in Gaussian or
        zero-concentrated DP, where samples cost as much as all rows do.
    batches : {"poisson", "shuffled"}
        Rows join each batch independently, or the rows are cut into batches in a new random order in every pass.
    clip : float, optional
        Norm to which the move of each row is clipped, in the solver's (scaled) columns.
    proximity : float, optional
        Weight of the pull towards an earlier iterate, in units of the curvature; it conditions the dual problem
        and stands for the penalty that the intercept does not have.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "dual-cd"
    capabilities = Capabilities(separable_only=True, single_output=True, compiled=("slope",), start=True)

    passes: float | None = None
    batch_size: int | None = None
    batches: str = "poisson"
    clip: float | None = None
    proximity: float | None = None
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        one_of("batches", self.batches, ("poisson", "shuffled"))
        positive("passes", self.passes, whole=self.batches == "shuffled")
        positive("batch_size", self.batch_size, whole=True)
        check_threshold("clip", self.clip)
        positive("proximity", self.proximity)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        if problem.penalty.strong_convexity <= 0.0:
            return "its dual problem needs an L2 penalty"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BatchGaussian, DualSettings]:
        n = public.rows
        if self.batches == "shuffled" and public.relation is Relation.ADD_REMOVE:
            raise ValueError('batches="shuffled" needs a public number of rows; use relation="replace" or "poisson".')
        # Shuffled batches are no samples: each row is in one batch of a pass.
        poisson, smallest = self.batches == "poisson", max(SMALLEST_BATCH, SMALLEST_RATE * n)
        batch = (
            batch_rows(self.batch_size, smallest, n, budget) if poisson else min(n, int(self.batch_size or smallest))
        )
        passes = self.passes if self.passes is not None else PASSES
        per_pass = math.ceil(n / batch)
        steps = int(passes) * per_pass if self.batches == "shuffled" else max(1, round(passes * n / batch))

        def make(multiplier: float) -> BatchGaussian:
            if self.batches == "shuffled":
                return mechanisms.Gaussian(multiplier, int(passes))
            return mechanisms.PoissonGaussian(multiplier, batch / n, steps)

        mechanism = calibrated(make, scaling_plan, budget, public)
        return mechanism, DualSettings(passes, batch, per_pass, steps)

    def _releases(self, plan: DualPlan) -> list[PlannedRelease]:
        relation, unit = plan.public.relation, "of the clipping threshold, on the sum"
        batch = "all rows" if plan.settings.batch == plan.public.rows else "a random batch"
        what = f"sums of the dual moves of {'a pass' if self.batches == 'shuffled' else batch}"
        return planned_releases(what, plan.mechanism.event, relation, mechanisms.clipped_sum(relation), unit)

    def _descend(self, scaled: ScaledProblem, plan: DualPlan, run: Run) -> tuple[FloatArray, int]:
        ascent = _Ascent(self, scaled, plan)
        if plan.budget.is_infinite and self.passes is None:
            return until_optimal(scaled, run, ascent.passes(run), every=10)
        made = (steps for batches in self._batches(run, plan, scaled) for steps in ascent.run(*batches, run))
        return descend(scaled, run, plan.settings.steps, made, self.average)

    def _batches(self, run: Run, plan: DualPlan, scaled: ScaledProblem) -> Iterator[tuple[IndexArray, IndexArray]]:
        """The batches of the run in blocks, drawn without a look at the rows."""
        mechanism, rows, batch, left = plan.mechanism, scaled.X.shape[0], plan.settings.batch, plan.settings.steps
        if isinstance(mechanism, mechanisms.Gaussian):  # shuffled
            cuts = np.minimum(np.arange(plan.settings.batches + 1, dtype=np.int64) * batch, rows)
            for _ in range(int(plan.settings.passes)):
                yield cuts, run.rng.permutation(rows)
            return
        block = max(1, BLOCK_DRAWS // scaled.columns)
        while left > 0:
            yield mechanism.batches(run.rng, rows, min(block, left))
            left -= block


class _Ascent:
    """Dual variables, their noisy sum, the weights and everything the kernels need, for one run."""

    def __init__(self, solver: DualCoordinateDescent, scaled: ScaledProblem, plan: DualPlan) -> None:
        self.scaled, self.done = scaled, 0
        self.first_averaged = plan.settings.steps - tail_length(plan.settings.steps)
        settings, self.mechanism, self.relation = plan.settings, plan.mechanism, plan.public.relation
        # The noise of the mean after the run, for moves of norm 1.
        noise = self.mechanism.scale(self._moved_by(1.0)) * math.sqrt(settings.steps) / (settings.passes * scaled.rows)
        largest = math.inf if plan.budget.is_infinite else typical_length(plan.problem, scaled.scaling)
        largest *= planned_threshold(LARGEST_DUAL, noise, plan, entries=row_entries(plan))
        self.clip = largest / settings.passes if solver.clip is None else solver.clip
        self.grid = self.mechanism.grid(self._moved_by(self.clip), scaled.columns, scaled.rows)
        self.batch, self.refresh = settings.batch, settings.batches
        smoothness = scaled.problem.loss.smoothness
        proximity = solver.proximity if solver.proximity is not None else PROXIMITY
        self.pull = np.full(scaled.columns, proximity * curvature_bound(scaled))
        size = _square_sums(scaled.X, 1.0 / (scaled.penalty_terms.l2 + self.pull))
        self.damping = 1.0 + smoothness * settings.batch / scaled.rows * size
        self.norms = scaled.norms()
        self.weight = scaled.kernel_weight
        self.w = np.array(scaled.start())
        self.centre = self.w.copy()
        self.alpha, self.v = np.zeros(scaled.X.shape[0]), np.zeros(scaled.columns)
        self.total = np.zeros(scaled.columns)

    def passes(self, run: Run) -> Iterator[FloatArray]:
        """The weights after each pass over all rows in a new random order, without end."""
        rows = self.scaled.X.shape[0]
        cuts = np.minimum(np.arange(self.refresh + 1, dtype=np.int64) * self.batch, rows)
        while True:
            for _ in self.run(cuts, run.rng.permutation(rows), run):
                pass
            yield self.w

    def run(self, indptr: IndexArray, indices: IndexArray, run: Run) -> Iterator[Made]:
        """One step per batch; the noise is drawn before the rows are looked at. Averaged steps are made apart."""
        steps = indptr.size - 1
        noise = self.grid.noise(run.rng, (steps, self.scaled.columns))
        cut = min(max(self.first_averaged - self.done, 0), steps)
        for begin, end in ((0, cut), (cut, steps)):
            if begin < end:
                self._steps(indptr[begin : end + 1], indices, noise[begin:end])
                yield Made(self.w, self.total, float(end - begin), end - begin)

    def _steps(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch, whose iterates are summed up in `total`."""
        from discreet.kernels import stochastic
        from discreet.kernels.lanes import arrays_of

        self.total[:] = 0.0
        scaled, c, loss = self.scaled, self.scaled.penalty_terms, self.scaled.problem.loss
        unit = self.grid.step or UNROUNDED
        rows = (self.norms, scaled.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise / unit)
        settings = (unit, self.clip, self.damping, self.pull, float(scaled.rows), self.done, self.refresh)
        state = (c.l1, c.l2, c.low, c.high, self.alpha, self.v, self.centre, self.w, self.total)
        stochastic.dual_steps(arrays_of(scaled.X), *rows, *settings, *state)
        self.done += indptr.size - 1

    def _moved_by(self, clip: float) -> Any:
        """How far one row moves a sum of moves of norm at most `clip`, as the mechanism takes it."""
        poisson = isinstance(self.mechanism, mechanisms.PoissonGaussian)
        return clip if poisson else mechanisms.clipped_sum(self.relation) * clip


def _square_sums(X: Any, factors: FloatArray) -> FloatArray:
    """The sum over the columns of factor times squared entry, row by row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X) @ factors, dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij,j->i", X, X, factors))
