"""What the coordinate methods share: smoothness constants and clipping thresholds per coordinate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet import mechanisms
from discreet.scales import Scaling, unscaled
from discreet.solvers.base import Plan, typical_slope
from discreet.solvers.noise_rules import COORDINATE_CLIP, NoiseRule

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.framed import Framed
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]

# Fixed once, with an eye on public tables, and never read from rows.
PASSES, FEWEST_PASSES, PURE_PASSES = NoiseRule(1.1, 0.6, 150.0), 10, 5
NOISIEST = 5.7  # the noise, in units of the gradient, from which on further steps do harm; a rule of thumb


def smoothness_bounds(declared: tuple[float, ...] | None, framed: Framed) -> FloatArray:
    """M_j: as declared, else the loss's smoothness times the second moment that the frame promises."""
    if declared is not None:
        return np.asarray(declared, dtype=np.float64)
    moments = np.append(framed.frame.second_moment, np.ones(int(framed.problem.fit_intercept)))
    return framed.problem.loss.smoothness * moments


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


def scaling_for_declared(declared: tuple[float, ...], clip: float | None, problem: Problem, public: Public) -> Scaling:
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
    framed: Framed,
    plan: Plan,
    bound: FloatArray,
    rule: NoiseRule = COORDINATE_CLIP,
) -> FloatArray:
    """C_j = C sqrt(M_j / sum M); infinite where there is no noise and no threshold was asked for.

    `relative_noise` is the standard deviation of the noise on a mean of numbers clipped to 1.
    """
    if clip is None and plan.budget.is_infinite:
        return np.full(framed.columns, np.inf)
    share = np.sqrt(bound / bound.sum())
    if clip is not None:
        return clip * share
    unit = typical_slope(plan.problem, framed.frame) * math.sqrt(float(bound.sum()) / plan.problem.loss.smoothness)
    return rule.at(relative_noise) * unit * share
