"""What the coordinate methods share: their loops, smoothness constants and clipping thresholds per coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan, unscaled
from discreet.solvers._shared.clipping import COORDINATE_CLIP, NoiseRule, typical_slope
from discreet.solvers.base import Plan, Run

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


def scaling_for_declared(
    declared: tuple[float, ...], clip: float | None, problem: Problem, public: Public
) -> ScalingPlan:
    """Declared constants are for the user's own columns, which are then used as they are."""
    coordinates = public.columns + problem.fit_intercept
    if len(declared) != coordinates or not all(0.0 < m < math.inf for m in declared):
        raise ValueError(f"smoothness must hold {coordinates} positive numbers (the intercept's last).")
    if clip is None:
        raise ValueError("smoothness needs clip as well: pass the threshold C.")
    return unscaled(not problem.loss.classification)


def thresholds(
    clip: float | None,
    relative_noise: float,
    scaled: BlockwiseProblem,
    plan: Plan,
    bound: FloatArray,
    rule: NoiseRule = COORDINATE_CLIP,
) -> FloatArray:
    """C_j = C sqrt(M_j / sum M); infinite where there is no noise and no threshold was asked for.

    `relative_noise` is the standard deviation of the noise on a mean of numbers clipped to 1.
    """
    if clip is None and plan.budget.is_infinite:
        return np.full(scaled.columns, np.inf)
    share = np.sqrt(bound / bound.sum())
    if clip is not None:
        return clip * share
    unit = typical_slope(plan.problem, scaled.scaling) * math.sqrt(float(bound.sum()) / plan.problem.loss.smoothness)
    return rule.at(relative_noise) * unit * share
