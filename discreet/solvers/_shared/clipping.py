"""Public sizes of gradients: thresholds at which they are clipped, which follow the noise, and bounds on the curvature.

The noise level is a public fact, so a default that is tight where noise is strong and loose where it is weak costs
nothing. The form is derived, the numbers are tuned on public tables and are not theory (docs/defaults.md); no guarantee
depends on them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers.plan import Plan


class NoiseRule(NamedTuple):
    """min(most, factor / noise^power).

    For clipping thresholds, in units of a typical gradient: a lower one lowers the noise in proportion and adds a
    bias that does not fade with more rows.
    """

    factor: float
    power: float
    most: float

    def at(self, relative_noise: float) -> float:
        """The default where a mean of numbers clipped to 1 is released with noise of this standard deviation."""
        return self.most if relative_noise == 0.0 else min(self.most, self.factor * relative_noise**-self.power)


COORDINATE_CLIP = NoiseRule(0.16, 0.45, 4.0)  # single entries of the rows' gradients
GRADIENT_CLIP = NoiseRule(0.13, 0.35, 2.0)  # whole gradients, summed over all rows
BATCH_CLIP = NoiseRule(0.126, 0.235, 1.0)  # whole gradients, summed over few rows


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


def averaged_noise(steps: int, averaged: int, memory: float) -> float:
    """Noise in the mean of the last iterates, over the noise of a single step that goes all the way.

    A step keeps the part `memory` of the earlier error and adds (1 - memory) times its own noise. The factors of the
    noises of all steps in the mean are summed as squares.
    """
    first = steps - averaged  # iterates are numbered from 1; those after `first` are averaged
    later = np.arange(1, steps + 1)
    begin = np.maximum(later, first + 1) - later
    powers = np.power(memory, begin) - np.power(memory, steps + 1 - later)
    return float(np.sqrt((powers**2).sum()) / averaged)
