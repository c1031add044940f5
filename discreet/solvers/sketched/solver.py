"""DP-SkGD: descent that moves a random set of coordinates a step, drawn by any unbiased diagonal sketch.

One coordinate a step is coordinate descent, all of them a clipped gradient step; blocks lie between. A set of
size m costs one release, with noise larger by sqrt(m), so at equal passes all sketches have equal noise; they
differ in how far a step may go. Theorem and proof: docs/guarantees/sketched.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.kernels.gradient import units_of
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.coordinate_state import CoordinateState, noise_in_units
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.scaling.plan import ScalingPlan, plan_scaling
from discreet.solvers._shared.coordinates import (
    CoordinateSolver,
    default_steps,
    descend_in_loops,
    smoothness_bounds,
    thresholds,
)
from discreet.solvers._shared.descents import COORDINATE_CLIP, GRADIENT_CLIP, until_optimal
from discreet.solvers.base import Capabilities, Run, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings
from discreet.solvers.sketched.sketches import (
    Independent,
    Nice,
    Partition,
    Sets,
    Singletons,
    Sketch,
    complete_partition,
)


class BlockState(CoordinateState):
    """Coordinate descent whose steps move sets of coordinates; one output."""

    def run_sets(self, sets: Sets, noise: FloatArray, limit: FloatArray) -> None:
        """One step per set; noise[e], in limits, is added to the clipped gradient sum of sets.members[e].

        A row's gradient in a set, with entries divided by their limits, is cut to length 1. Sets of one
        coordinate, whose limits are the thresholds, are steps of coordinate descent: its kernel runs them.
        """
        from discreet.kernels import coordinate

        count = sets.starts.size - 1
        if count == sets.members.size:
            self.run(sets.members, noise)
            return
        scaled, X, c, loss = self.scaled, self.scaled.X, self.scaled.penalty_terms, self.scaled.problem.loss
        units = noise_in_units(noise, limit, self.grid_step)
        rows = (scaled.y, self.weight, loss.code, float(loss.parameter), sets.starts, sets.members, units)
        settings = (limit, units_of(limit, self.grid_step), self.step, c.l1, c.l2, c.low, c.high, float(scaled.rows))
        state = (self.w, self.margins, self.total, self.since, self.count)
        if sp.issparse(X):
            coordinate.sets_sparse(X.indptr, X.indices, X.data, *rows, *settings, *state)
        else:
            coordinate.sets_dense(X.T, *rows, *settings, *state)
        self.count += count


def limit_support(scaled: ScaledProblem, most: int) -> ScaledProblem:
    """Keep the `most` largest scaled entries of each row (the intercept is not counted) and drop the others.

    Which entries stay depends on the row alone; every row goes the same way, whether it is too long or not.
    """
    columns = scaled.scaling.columns
    if most >= columns:
        return scaled
    if sp.issparse(scaled.X):
        return replace(scaled, X=_limit_sparse(scaled.X, columns, most))
    X = scaled.X.copy(order="F")
    inner = X[:, :columns]
    smaller = np.argsort(-np.abs(inner), axis=1, kind="stable")[:, most:]
    np.put_along_axis(inner, smaller, 0.0, axis=1)
    return replace(scaled, X=X)


def _limit_sparse(X: sp.csc_array, columns: int, most: int) -> sp.csc_array:
    column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    counted = column < columns
    row, size = X.indices[counted], np.abs(X.data[counted])
    order = np.lexsort((column[counted], -size, row))
    begins = np.searchsorted(row[order], row[order], side="left")
    kept = np.ones(X.data.size, dtype=bool)
    kept[np.flatnonzero(counted)[order]] = np.arange(order.size) - begins < most
    limited = sp.csc_array((np.where(kept, X.data, 0.0), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    limited.eliminate_zeros()
    return limited


SKETCHES = ("single", "importance", "nice", "independent", "blocks", "full")
SIZE = 8  # coordinates in a set: docs/defaults.md
LARGE_SET = 4  # from this mean size on, defaults are those of gradient descent rather than coordinate descent
LARGE_SET_STEP = 1.5  # of large sets, in units of the step that is safe for sure


@dataclass(frozen=True)
class SketchedSettings(Settings):
    """How often sets of coordinates are moved, and how large they are."""

    passes: float
    steps: int
    sketch: str
    mean_size: float
    outer: int


class SketchSizes(NamedTuple):
    """The public numbers of the steps: M_j and v_j, the step length in 1/v_j, thresholds and noise."""

    sketch: Sketch
    bound: FloatArray
    curvature: FloatArray
    step: float
    clip: FloatArray
    grid: NoisyGrid


SketchedPlan = Plan[mechanisms.Gaussian, SketchedSettings]


@dataclass(frozen=True)
class SketchedDescent(CoordinateSolver[mechanisms.Gaussian, SketchedSettings]):
    """Proximal descent on random sets of coordinates.

    Parameters
    ----------
    sketch : {"single", "importance", "nice", "independent", "blocks", "full"}
        One coordinate, uniformly or in proportion to its smoothness (the same thing unless `smoothness` is
        declared: scaled columns have the same smoothness); `size` coordinates; every coordinate by its own coin,
        `size` on average before empty sets are drawn again; one block of `blocks`; all.
    size : int, optional
        For "nice" and "independent"; by default 8, or all coordinates if there are fewer.
    blocks : tuple of tuples of int, optional
        For "blocks": a partition of the columns, numbered from 0. The intercept comes after the last column
        and has a block of its own unless it is listed.
    block_sampling : {"uniform", "proportional"}
        For "blocks": all alike, or in proportion to the sum of a block's smoothness constants.
    passes : float, optional
        How often each coordinate moves, on average; by default from the sketch, the rows and the budget.
    steps : int, optional
        Number of steps, instead of `passes`.
    clip : float, optional
        The one threshold C. It gives coordinate j the threshold C_j = C sqrt(M_j / sum M); a row's gradient in a
        set is clipped to a ball around the box of the thresholds.
    step : float, optional
        Step length in units of 1/v_j, v_j being M_j times what moving several coordinates at once demands; below
        2 it is safe. By default 1, or 1.5 for sets of 4 and more.
    noise : {"equalised", "isotropic"}
        The shape of the ball and of the noise: in proportion to each coordinate's threshold, or the same for all
        coordinates of a set.
    omega : int, optional
        Public bound on the non-zeros of a row (the intercept not counted): allows longer steps. Columns are
        then not centred, and of longer rows only the largest entries are kept.
    average, outer, smoothness, scale_share : as for coordinate descent
    """

    name = "sketched"
    capabilities = Capabilities(order="F", separable_only=True, single_output=True, compiled=("slope",), start=True)

    sketch: str = "nice"
    size: int | None = None
    blocks: tuple[tuple[int, ...], ...] | None = None
    block_sampling: str = "uniform"
    passes: float | None = None
    steps: int | None = None
    clip: float | None = None
    step: float | None = None
    noise: str = "equalised"
    omega: int | None = None
    average: bool = True
    outer: int = 2
    smoothness: tuple[float, ...] | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        one_of("sketch", self.sketch, SKETCHES)
        one_of("block_sampling", self.block_sampling, ("uniform", "proportional"))
        one_of("noise", self.noise, ("equalised", "isotropic"))
        for name in ("passes", "step"):
            positive(name, getattr(self, name))
        check_threshold("clip", self.clip)
        for name in ("size", "steps", "omega", "outer"):
            positive(name, getattr(self, name), whole=True)
        if self.passes is not None and self.steps is not None:
            raise ValueError("passes and steps say the same; give one of them.")
        if (self.blocks is None) == (self.sketch == "blocks"):
            raise ValueError('blocks and sketch="blocks" need each other.')
        if self.size is not None and self.sketch not in ("nice", "independent"):
            raise ValueError(f'size is for sketch="nice" and "independent", not for {self.sketch!r}.')

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Gaussian, SketchedSettings]:
        coordinates = public.columns + problem.fit_intercept
        known = np.ones(coordinates) if self.smoothness is None else np.asarray(self.smoothness, dtype=np.float64)
        sketch = self._sketch(public.columns, problem.fit_intercept, known)
        if not (sketch.probabilities() > 0.0).all():
            raise ValueError("smoothness is so uneven that some coordinates would never be drawn; sample uniformly.")
        if self.steps is not None:
            steps = int(self.steps)
        elif self.passes is not None:
            steps = max(1, round(self.passes * coordinates / sketch.mean_size))
        else:
            steps = self._default_steps(sketch, problem, public, budget)
        mechanism = calibrated(lambda z: mechanisms.Gaussian(z, steps), scaling_plan, budget, public)
        passes = steps * sketch.mean_size / coordinates
        return mechanism, SketchedSettings(passes, steps, self.sketch, sketch.mean_size, int(self.outer))

    def _releases(self, plan: SketchedPlan) -> list[PlannedRelease]:
        relation, size = plan.public.relation, plan.settings.mean_size
        sensitivity = mechanisms.clipped_sum(relation) * (size**0.5 / plan.public.rows)
        what = "mean gradients in a set of coordinates"
        return planned_releases(what, plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def _default_steps(self, sketch: Sketch, problem: Problem, public: Public, budget: Budget) -> int:
        """As many as coordinate descent takes, or fewer where rows and budget leave them nothing but noise.

        Shorter steps are made up for by their number: a set of m coordinates whose steps are m times shorter
        goes as far as one coordinate.
        """
        single = default_steps(sketch.coordinates, public, budget)
        inflation = sketch.inflation(self._support(sketch.coordinates, problem.fit_intercept))
        return max(1, round(single * float(inflation.mean()) / sketch.mean_size))

    def _sketch(self, columns: int, intercept: bool, bound: FloatArray) -> Sketch:
        d = bound.size
        if self.sketch == "full":
            return Partition((tuple(range(d)),))
        if self.blocks is not None:  # that is, sketch="blocks"
            blocks = complete_partition(self.blocks, columns, intercept)
            return Partition(blocks, bound if self.block_sampling == "proportional" else None)
        if self.sketch in ("single", "importance"):
            return Singletons(d, bound if self.sketch == "importance" else None)
        size = min(d, SIZE if self.size is None else int(self.size))
        if self.sketch == "independent":
            return Independent(d, size)
        return Nice(d, size) if size < d else Partition((tuple(range(d)),))

    def _support(self, coordinates: int, intercept: bool) -> int:
        """The most non-zeros of a scaled row, the intercept's 1 among them."""
        return coordinates if self.omega is None else min(coordinates, int(self.omega) + intercept)

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        if self.smoothness is not None or self.omega is None:
            return super()._plan_scaling(problem, public, budget)
        target = not problem.loss.classification
        return plan_scaling(public, budget, self.scale_share, False, target)  # a centred zero is not a zero

    def _descend(self, scaled: ScaledProblem, plan: SketchedPlan, run: Run) -> tuple[FloatArray, int]:
        if self.omega is not None:
            scaled = limit_support(scaled, int(self.omega))
        sizes = self.sizes(scaled, plan)
        sketch, bound, clip, grid = sizes.sketch, sizes.bound, sizes.clip, sizes.grid
        state = BlockState(scaled, clip, sizes.step / sizes.curvature, grid.step)
        per_pass = max(1, round(scaled.columns / sketch.mean_size))
        if plan.budget.is_infinite and self.passes is None and self.steps is None:
            return until_optimal(scaled, run, self._passes(state, sketch, per_pass, run), every=10, bound=bound)

        def advance(done: int, left: int) -> int:
            sets = sketch.draw(run.rng, min(per_pass, left))
            noise = grid.noise(run.rng, sets.members.size)
            state.run_sets(sets, noise, row_limits(sets, clip, self.noise))
            return min(per_pass, left)

        return descend_in_loops(scaled, run, state, plan.settings, advance, self.average)

    def sizes(self, scaled: BlockwiseProblem, plan: SketchedPlan) -> SketchSizes:
        """All public numbers of the steps."""
        mechanism, intercept = plan.mechanism, scaled.problem.fit_intercept
        bound = smoothness_bounds(self.smoothness, scaled)
        sketch = self._sketch(scaled.scaling.columns, intercept, bound)
        inflation = sketch.inflation(self._support(scaled.columns, intercept))
        unit = mechanisms.clipped_sum(plan.public.relation)
        # Steps that are shorter by the inflation average the noise of as many more of them.
        noise_level = mechanism.deviation(unit) / plan.public.rows * np.sqrt(sketch.mean_size / inflation.mean())
        large = sketch.mean_size >= LARGE_SET
        rule = GRADIENT_CLIP if large else COORDINATE_CLIP  # the length of a long vector varies little
        step = self.step if self.step is not None else LARGE_SET_STEP if large else 1.0
        kept = (max(1.0, plan.settings.steps * sketch.mean_size / (2.0 * scaled.columns)), round(sketch.mean_size))
        clip = thresholds(self.clip, float(noise_level), scaled, plan, bound, rule, *kept if large else kept[:1])
        grid = mechanism.grid(unit, sketch.largest_size, plan.public.rows)
        return SketchSizes(sketch, bound, bound * inflation, step, clip, grid)

    def _passes(self, state: BlockState, sketch: Sketch, per_pass: int, run: Run) -> Iterator[FloatArray]:
        """The weights after each pass of random sets, without noise and without end."""
        while True:
            sets = sketch.draw(run.rng, per_pass)
            state.run_sets(sets, np.zeros(sets.members.size), row_limits(sets, state.clip, self.noise))
            yield state.w


def row_limits(sets: Sets, clip: FloatArray, kind: str) -> FloatArray:
    """The unit of each member of each set: a row's gradient is cut to length 1 in it, and noise is scaled by it.

    The ball of a set is the smallest of its shape (own unit per coordinate, or one for all) around the box of the
    thresholds, so a set clips no more than its coordinates would one by one.
    """
    own = clip[sets.members]
    if np.isinf(clip).any() or sets.members.size == sets.starts.size - 1:
        return own
    if kind == "equalised":
        return own * sets.spread(np.sqrt(sets.sizes))
    largest = sets.spread(np.maximum.reduceat(own, sets.starts[:-1]))
    # Squares of tiny thresholds would vanish, and the noise with them; shares of the largest do not.
    share = np.divide(own, largest, out=np.zeros_like(own), where=largest > 0.0)
    return largest * sets.spread(np.sqrt(np.add.reduceat(share**2, sets.starts[:-1])))
