"""Public sizes of gradients: thresholds at which they are clipped, and bounds on the curvature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.problem.blockwise import BlockwiseProblem
from discreet.solvers.base import Plan

if TYPE_CHECKING:
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem


def typical_slope(problem: Problem, scaling: ColumnScaling) -> float:
    """How large a slope usually is, from public or released numbers: the unit for clipping thresholds."""
    if problem.loss.classification:
        return float(min(problem.loss.lipschitz, np.sqrt(problem.loss.outputs)))
    return float(min(problem.loss.lipschitz, scaling.target_scale))


def planned_slope(problem: Problem) -> float:
    """`typical_slope` before the target's scale is known: for regressions in units of that scale."""
    return float(min(problem.loss.lipschitz, np.sqrt(problem.loss.outputs))) if problem.loss.classification else 1.0


def row_threshold(clip: float | None, factor: float, scaled: BlockwiseProblem, plan: Plan) -> float:
    """The clipping norm of a row's gradient: as asked, none without noise, else from typical sizes."""
    if clip is not None:
        return clip
    if plan.budget.is_infinite:
        return math.inf
    return factor * typical_slope(plan.problem, scaled.scaling) * math.sqrt(_mean_square_norm(scaled))


def curvature_bound(scaled: BlockwiseProblem) -> float:
    """beta: the largest eigenvalue of the Hessian is at most its trace."""
    return scaled.problem.loss.smoothness * _mean_square_norm(scaled)


def _mean_square_norm(scaled: BlockwiseProblem) -> float:
    return float(scaled.scaling.second_moment.sum()) + scaled.problem.fit_intercept
