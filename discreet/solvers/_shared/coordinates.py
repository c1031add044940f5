"""What the coordinate methods share: their loops, smoothness constants and clipping thresholds per coordinate.

Clipped sums of all coordinates over stored rows are functions of a block and of released moves of the weights. In
memory a margin is kept for each row and follows the moves. Where rows are read anew in every pass, the same additions
are made again, in the same order: margins, and with them the sums, have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import on_term_grid
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.problem import Problem
from discreet.problem.scaled_block import ScaledBlock
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan, unscaled
from discreet.solvers._shared.descents import (
    COORDINATE_CLIP,
    ClippingRule,
    NoiseRule,
    largest_entries,
    planned_threshold,
    typical_slope,
)
from discreet.solvers.base import Plan, Run, Solver
from discreet.solvers.plan import M, S


@dataclass
class Moves:
    """What has happened to the margins: each was multiplied by `keep` and moved by `push` times column j.

    `final` is added at the end and not kept: an intercept.
    """

    final: float
    columns: list[int] = field(default_factory=list)
    keep: list[float] = field(default_factory=list)
    push: list[float] = field(default_factory=list)

    def add(self, column: int, push: float, keep: float = 1.0) -> None:
        self.columns.append(column)
        self.keep.append(keep)
        self.push.append(push)

    def margins(self, columns: FloatArray) -> FloatArray:
        """The margins of rows whose columns are the rows of an array."""
        margins = np.zeros(columns.shape[1])
        for j, keep, push in zip(self.columns, self.keep, self.push, strict=True):
            if keep != 1.0:
                margins *= keep
            margins += push * columns[j]
        return margins + self.final if self.final else margins


@dataclass(frozen=True, eq=False)
class CoordinateSums:
    """The clipped gradient sums of all coordinates, in units: whole numbers, whose sums are exact.

    The margins follow from the moves, or are those of the weights `w`, if they are given.
    """

    moves: Moves
    clip: FloatArray
    unit: FloatArray
    w: FloatArray | None = None

    def __call__(self, block: ScaledBlock) -> FloatArray:
        from discreet.kernels.greedy import sums_dense

        X = block.X
        columns = np.ascontiguousarray(X.T)
        margins = self.moves.margins(columns) if self.w is None else X @ self.w
        slopes = np.ascontiguousarray(block.loss.slope(margins, block.y))
        sums, weight = np.empty(self.clip.size), np.empty(0) if block.weight is None else block.weight
        sums_dense(columns, slopes, weight, self.clip, self.unit, sums)
        return sums


def sums_of_squares(block: ScaledBlock, largest: FloatArray) -> FloatArray:
    """The weighted sums of the squared entries of all columns over the largest ones; rounded, so exact in any order."""
    squares = np.minimum(block.X**2 / largest, 1.0)
    return on_term_grid(squares if block.weight is None else block.weight[:, None] * squares).sum(axis=0)


# Tuned on public tables, and never read from rows: docs/defaults.md.
PASSES, FEWEST_PASSES, PURE_PASSES = NoiseRule(1.1, 0.6, 150.0), 10, 5
NOISIEST = 5.7  # the noise, in units of the gradient, from which on further steps do harm


class Loops(Protocol):
    """How many steps there are, in how many loops."""

    @property
    def steps(self) -> int: ...

    @property
    def outer(self) -> int: ...


def descend_in_loops(
    scaled: BlockwiseProblem,
    run: Run,
    state: CoordinateState,
    loops: Loops,
    advance: Callable[[int, int], int],
    average: bool,
    begin: Callable[[], None] = lambda: None,
) -> tuple[FloatArray, int]:
    """All planned steps in their outer loops, each of which begins at the mean of the one before or at its end.

    `advance(done, left)` makes some of the `left` steps of a loop and returns how many.
    """
    steps, outer, done = loops.steps, min(loops.outer, loops.steps), 0
    for loop in range(outer):
        end = steps * (loop + 1) // outer
        begin()
        while done < end:
            done += advance(done, end - done)
            run.report(done, steps, scaled, state.w)
        if average:
            state.restart(state.average())
    return state.w, steps


def smoothness_bounds(declared: tuple[float, ...] | None, scaled: BlockwiseProblem) -> FloatArray:
    """M_j: as declared, else the loss's smoothness times the second moment of the scaled columns."""
    if declared is not None:
        return np.asarray(declared, dtype=np.float64)
    moments = np.append(scaled.scaling.second_moment, np.ones(int(scaled.problem.fit_intercept)))
    return scaled.problem.loss.smoothness * moments


def default_steps(coordinates: int, public: Public, budget: Budget) -> float:
    """How many steps of single coordinates: more passes under less noise, fewer where nothing but noise is left.

    T steps add noise of about sqrt(T coordinates) / (rows mu) to a gradient of size 1 over all coordinates.
    """
    if budget.kind == "pure":
        return PURE_PASSES * coordinates
    if budget.is_infinite:
        return PASSES.most * coordinates
    unit = mechanisms.clipped_sum(public.relation)
    noise = mechanisms.additive(budget, 1.0).deviation(unit) * coordinates / public.rows
    clear = NOISIEST * public.rows * budget.gaussian_mu() / unit.l2
    return min(max(FEWEST_PASSES, PASSES.at(noise)) * coordinates, clear**2 / coordinates)


class CoordinateSolver(Solver[M, S]):
    """A solver that may be told the smoothness of each coordinate."""

    clip: float | None
    smoothness: tuple[float, ...] | None

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        """Declared constants are for the user's own columns, which are then used as they are."""
        if self.smoothness is None:
            return super()._plan_scaling(problem, public, budget)
        coordinates = public.columns + problem.fit_intercept
        if len(self.smoothness) != coordinates or not all(0.0 < m < math.inf for m in self.smoothness):
            raise ValueError(f"smoothness must hold {coordinates} positive numbers (the intercept's last).")
        if self.clip is None:
            raise ValueError("smoothness needs clip as well: pass the threshold C.")
        return unscaled(not problem.loss.classification)


def thresholds(
    clip: float | None,
    relative_noise: float,
    scaled: BlockwiseProblem,
    plan: Plan,
    bound: FloatArray,
    rule: ClippingRule = COORDINATE_CLIP,
    averaged: float = 1.0,
    entries: int = 1,
) -> FloatArray:
    """C_j = C sqrt(M_j / sum M); infinite where there is no noise and no threshold was asked for.

    `relative_noise` is the standard deviation of the noise on a mean of numbers clipped to 1; see `planned_threshold`.
    """
    if clip is None and plan.budget.is_infinite:
        return np.full(scaled.columns, np.inf)
    share = np.sqrt(bound / bound.sum())
    if clip is not None:
        return clip * share
    unit = typical_slope(plan.problem, scaled.scaling) * math.sqrt(float(bound.sum()) / plan.problem.loss.smoothness)
    # Beyond the largest entry that any scaled row can have, in units of its column's, nothing is left to clip.
    usual, lipschitz, most = unit * share, plan.problem.loss.lipschitz, math.inf
    if math.isfinite(lipschitz) and usual.any():
        largest = lipschitz * largest_entries(plan.problem, scaled.scaling)
        most = float((largest[usual > 0.0] / usual[usual > 0.0]).max()) or math.inf
    return min(planned_threshold(rule, relative_noise, plan, averaged, entries), most) * usual
