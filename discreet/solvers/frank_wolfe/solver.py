"""DP Frank-Wolfe: at every step a vertex of the set is chosen privately and the weights move towards it.

Only the choices read the rows, so the noise grows with the logarithm of the number of vertices and the result
has at most one more non-zero a step. For the L1 ball, the simplex and lists of vertices. Theorem and proof:
docs/guarantees/frank-wolfe.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.validation import LARGEST_BOUND
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import VertexSelections
from discreet.privacy.release import Kind, PlannedRelease, planned_releases
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.constraints import AxisPolytope, Simplex
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import (
    ClippingRule,
    largest_entries,
    planned_threshold,
    typical_slope,
    until_optimal,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated, refused
from discreet.solvers.frank_wolfe.vertices import Hull, Path, Polytope, begin
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

FEWEST_STEPS, MOST_STEPS = 5, 300  # limits of the default number of steps: docs/defaults.md
NOISELESS_STEPS = 1_000  # where epsilon is infinite; accelerated steps follow them
LEVEL_ROUNDING = 2.0**-50  # of a level, for every row and term: exact sums are multiplied and added in doubles
ENTRY_CLIP = ClippingRule(0.3, 0.35)  # of entries of the rows' gradients; tuned on tables: docs/defaults.md


NOT_OF_STORED_ROWS = "without noise it needs all rows in memory for general vertices (FrankWolfe(steps=...) does not)"


@dataclass(frozen=True)
class FrankWolfeSettings(Settings):
    """How many vertices are chosen, and among how many."""

    steps: int
    schedule: str
    vertices: int

    @property
    def passes_over_rows(self) -> int:
        return 1 + self.steps


FrankWolfePlan = Plan[VertexSelections, FrankWolfeSettings]


@dataclass(frozen=True)
class FrankWolfe(Solver[VertexSelections, FrankWolfeSettings]):
    """Frank-Wolfe (conditional gradient) with private choices of the vertex.

    With infinite epsilon it makes 1,000 of its own steps, with the best vertices. As their error falls only as the
    inverse of their number, accelerated projected gradient steps then finish from there, to the optimum.

    Parameters
    ----------
    steps : int, optional
        Number of vertices to choose; by default from the budget, the number of rows and of vertices.
    clip : float, optional
        Threshold C for every entry of a row's gradient, in the solver's (scaled) columns.
    schedule : {"2/(t+2)", "constant"}
        Share of the way to the chosen vertex: 2/(t+2) at step t = 0, 1, ..., or ln(steps + 1)/steps at all steps.
    vertices : sequence of points, optional
        The set is their convex hull, in the user's columns; the problem must then have no constraint.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "frank-wolfe"
    capabilities = Capabilities(
        order="F", pure=True, single_output=True, selects=True, compiled=("slope",), stored=True, copied=True,
        freezes=False, consistent=False,
    )  # fmt: skip

    steps: int | None = None
    clip: float | None = None
    schedule: str = "2/(t+2)"
    vertices: tuple[tuple[float, ...], ...] | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        one_of("schedule", self.schedule, ("2/(t+2)", "constant"))
        if self.vertices is not None:
            object.__setattr__(self, "vertices", _checked(self.vertices))

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        if self.vertices is None and not isinstance(problem.constraint, AxisPolytope):
            return "it needs vertices: constraint=L1Ball(...), constraint=Simplex(...) or FrankWolfe(vertices=...)"
        if self.vertices is not None and problem.constraint is not None:
            return "its vertices replace the constraint, and both were given"
        if not isinstance(problem.penalty, Zero):
            return f"it has no step for the {problem.penalty.name} penalty (the constraint does its work)"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[VertexSelections, FrankWolfeSettings]:
        vertices = self._count_vertices(problem, public)
        steps = int(self.steps) if self.steps is not None else _default_steps(public, budget, vertices)
        kind: Literal["gaussian", "laplace"] = "laplace" if budget.kind == "pure" else "gaussian"
        intercept = kind if problem.fit_intercept else None
        mechanism = calibrated(lambda z: VertexSelections(z, steps, intercept), scaling_plan, budget, public)
        return mechanism, FrankWolfeSettings(steps, self.schedule, vertices)

    def _releases(self, plan: FrankWolfePlan) -> list[PlannedRelease]:
        entry = "mean gradients in the intercept"
        what: dict[Kind, str] = {"selection": "choices of a vertex", "Gaussian": entry, "Laplace": entry}
        sensitivity = mechanisms.clipped_sum(plan.public.relation) * (1.0 / plan.public.rows)
        return planned_releases(what, plan.mechanism.event, plan.public.relation, sensitivity, OF_THE_THRESHOLD)

    def _count_vertices(self, problem: Problem, public: Public) -> int:
        if self.vertices is None:
            constraint = problem.constraint
            return public.columns * (2 if isinstance(constraint, AxisPolytope) and constraint.symmetric else 1)
        if len(self.vertices[0]) != public.columns:
            raise ValueError(f"vertices have {len(self.vertices[0])} entries, but X has {public.columns} columns.")
        return len(self.vertices)

    def _descend(self, scaled: BlockwiseProblem, plan: FrankWolfePlan, run: Run) -> tuple[FloatArray, int]:
        polytope, steps = self._polytope(scaled), plan.settings.steps
        if plan.budget.is_infinite and self.steps is None:
            return self._until_optimal(scaled, polytope, plan, run)
        done = 0
        for done, path in enumerate(self._paths(scaled, polytope, plan, run), start=1):
            run.report(done, steps, scaled, path.w if run.trace is not None else _NOT_NEEDED)
        return path.w, done

    def _paths(self, scaled: BlockwiseProblem, polytope: Polytope, plan: FrankWolfePlan, run: Run) -> Iterator[Path]:
        """The state after each of the planned steps.

        Guarantee: all of them together cost the plan's mechanism.
        """
        mechanism, steps = plan.mechanism, plan.settings.steps
        clip = self.threshold(scaled, plan)
        # A level <s, G>, |s|_1 <= 1, moves by at most the largest move of an entry of the clipped sum G.
        sensitivity = mechanisms.clipped_sum(plan.public.relation) * clip
        grid = mechanism.intercept_grid(sensitivity, plan.public.rows)
        terms = scaled.scaling.columns if isinstance(polytope, Hull) else 1
        rounded = sensitivity.rounded(grid.step, 1) * (1.0 + plan.public.rows * terms * LEVEL_ROUNDING)
        scale = mechanism.scale(rounded)
        path = begin(scaled, polytope, clip, scale, grid.step)
        uniforms = mechanism.uniforms(run.rng, path.choice.uniforms)
        length = 1.0 / (scaled.problem.loss.smoothness * scaled.rows)
        for t in range(steps):
            share = 2.0 / (t + 2.0) if self.schedule == "2/(t+2)" else math.log(steps + 1.0) / steps
            chosen = path.choice.draw(uniforms[t])
            entry = grid.release(run.rng, np.array([path.intercept_sum()]))[0] if scaled.problem.fit_intercept else 0.0
            # The intercept's steps shrink with the others, which averages its noise.
            path.move(chosen, share, -share * length * float(entry))
            yield path

    def _until_optimal(
        self, scaled: BlockwiseProblem, polytope: Polytope, plan: FrankWolfePlan, run: Run
    ) -> tuple[FloatArray, int]:
        """The planned number of steps with the best vertices, and accelerated ones to the optimum.

        The error of Frank-Wolfe falls as the inverse of the number of steps only. A hull is a simplex in its
        barycentric coordinates, whose columns are the vertices' margins. Stored rows are read anew for every step:
        there, accelerated steps make the whole way.
        """
        if not isinstance(scaled, ScaledProblem):
            if isinstance(polytope, Hull):
                raise refused(self, NOT_OF_STORED_ROWS, scaled.problem, plan.budget, stored=True)
            return until_optimal(scaled, run, (), most=0)
        if isinstance(polytope, Hull):
            points = polytope.points
            best, done = self._until_optimal(_barycentric(scaled, points), Simplex(1.0), plan, run)
            return np.append(best[: len(points)] @ points, best[len(points) :]), done
        own_steps = (path.w for path in self._paths(scaled, polytope, plan, run))
        return until_optimal(scaled, run, own_steps, every=plan.settings.steps, most=plan.settings.steps)

    def _polytope(self, scaled: BlockwiseProblem) -> Polytope:
        """The set in the solver's columns."""
        if self.vertices is not None:
            return Hull(scaled.scaling.from_user(np.array(self.vertices)))
        constraint = scaled.problem.constraint
        if not isinstance(constraint, AxisPolytope):
            raise TypeError("Frank-Wolfe needs weights in an L1 ball or a simplex, or vertices.")
        return constraint.scaled(float(scaled.scaling.scale[0]))  # the same for all columns

    def threshold(self, scaled: BlockwiseProblem, plan: FrankWolfePlan) -> float:
        """C: as asked, none without noise, else from typical sizes, and never above what an entry can be."""
        if self.clip is not None:
            return self.clip
        if plan.budget.is_infinite:
            return math.inf
        scaling = scaled.scaling
        mechanism = plan.mechanism
        relative_noise = mechanism.scale(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
        intercept = float(scaled.problem.fit_intercept)  # its column is all ones
        largest = max(float(scaling.second_moment.max()), intercept) or 1.0
        typical = typical_slope(plan.problem, scaling) * math.sqrt(largest)
        most = scaled.problem.loss.lipschitz * (float(largest_entries(scaled.problem, scaling).max()) or 1.0)
        return min(planned_threshold(ENTRY_CLIP, relative_noise, plan) * typical, most)


_NOT_NEEDED = np.empty(0)


def _barycentric(scaled: ScaledProblem, points: FloatArray) -> ScaledProblem:
    """The same problem on the shares of the points in a convex combination."""
    extra = int(scaled.problem.fit_intercept)
    X = np.asarray(scaled.X[:, : scaled.scaling.columns] @ points.T)
    return ScaledProblem(
        problem=Problem(scaled.problem.loss, Zero(), Simplex(1.0), scaled.problem.fit_intercept),
        scaling=identity_scaling(len(points)),
        X=np.asfortranarray(np.hstack([X, np.ones((X.shape[0], extra))])),
        y=scaled.y,
        weight=scaled.weight,
        rows=scaled.rows,
        penalty_terms=Zero().penalty_terms(len(points) + extra),
    )


def _default_steps(public: Public, budget: Budget, vertices: int) -> int:
    """Where the error of too few steps, 1/T, meets that of the noise, which grows as sqrt(T) (T for pure DP).

    The curvature of the loss over the set, in units of its largest slope, is taken to be 1: it is not public.
    Beside a scan of 5 to 160 steps on three synthetic tables (epsilon = 1) it was 1 to 4 times the best number.
    """
    if budget.is_infinite:
        return NOISELESS_STEPS
    noise_per_row = mechanisms.clipped_sum(public.relation).l2 * math.log(2.0 + vertices)
    if budget.kind == "pure":
        best = math.sqrt(public.rows * budget.amount / noise_per_row)
    else:
        best = (public.rows * budget.gaussian_mu() / noise_per_row) ** (2.0 / 3.0)
    return int(min(MOST_STEPS, max(FEWEST_STEPS, round(best))))


def _checked(vertices: Any) -> tuple[tuple[float, ...], ...]:
    """A list of points, as numbers that can be compared and hashed."""
    points = np.asarray(vertices.toarray() if sp.issparse(vertices) else vertices, dtype=np.float64)
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"vertices must be a list of points of equal length; got shape {points.shape}.")
    if not (np.abs(points) <= LARGEST_BOUND).all():
        raise ValueError(f"vertices must be finite and at most {LARGEST_BOUND:g} in absolute value.")
    return tuple(tuple(map(float, point)) for point in points)
