"""Whether a constant may predict as well as a model: one rule for every solver, before a run and after it.

The excess loss of noise grows with the variance that it adds to the scores, the gain of a model with the variance of
the scores themselves. Before a run the scores of a good model stand for the latter, after it those that were released:
docs/plans.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.constraints import AxisPolytope
from discreet.problem.problem import Problem
from discreet.solvers._shared.descents import planned_slope
from discreet.solvers.plan import LABEL_MARGIN, SCORES_BY_LABEL

if TYPE_CHECKING:
    from discreet.solvers.base import Solution
    from discreet.solvers.plan import Plan

# Where these come from: docs/defaults.md.
LEAST_SPREAD = 10.0  # of the scores, in units of the noise that no solver can avoid: below it a constant may do better
MANY_TIMES = 100.0  # more rows, or epsilon, than anybody can find are not counted
BIASED = 2.0  # how much of that solvers need whose bias does not vanish,
SHRUNK = 0.6  # and those that shrink their scores
LEAST_MEASURED = 0.4  # spread of scores that a run has measured: they save no more than 1/50 of log-loss
LARGEST_TOLD = math.sqrt(0.5)  # of a target's deviation: what columns tell of it, at most


class Scores(NamedTuple):
    """How far scores spread, and how far the noise moves them, in deviations of the target for regressions."""

    spread: float
    noise: float
    least: float = LEAST_SPREAD  # spread over noise

    @property
    def lacking(self) -> float:
        """By which factor the noise is too large for the spread; from 1 on, a constant may do better."""
        return self.least * self.noise / self.spread if self.spread > 0.0 else math.inf


def noise_of_scores(problem: Problem, noise: float, columns: int) -> float:
    """The standard deviation of the noise in a score, for columns of mean square 1 that are not correlated.

    `noise` is that of an entry of the mean of the rows' gradients, for gradients of length 1.
    """
    entries = columns + problem.fit_intercept
    slope = noise * entries * planned_slope(problem)
    return slope * math.sqrt(problem.loss.outputs) / problem.loss.usual_curvature


def largest_spread(problem: Problem) -> float:
    """That of the scores of a good model."""
    return LABEL_MARGIN * math.sqrt(problem.loss.outputs) if problem.loss.classification else LARGEST_TOLD


def planned_scores(plan: Plan, columns: int | None = None) -> Scores:
    """The scores of a good model, and the noise of a run that spends its whole budget on one mean of gradients."""
    public, problem = plan.public, plan.problem
    columns = public.columns if columns is None else columns
    unit = mechanisms.clipped_sum(public.relation, problem.loss.outputs * (columns + problem.fit_intercept))
    noise = mechanisms.additive(plan.budget, 1.0).deviation(unit) / public.rows
    takes = plan.solver.capabilities
    factor = SHRUNK if takes.shrinks else 1.0 if takes.consistent else BIASED
    return Scores(largest_spread(problem), noise_of_scores(problem, noise, columns), factor * LEAST_SPREAD)


def warn_before(plan: Plan) -> str | None:
    """Why a constant may do better whatever the rows are; None where they decide.

    Where single columns are chosen, or weights lie in a set with few corners, noise does not add up over all columns.
    Where the run itself measures how far scores may spread, it knows better.
    """
    if plan.solver.capabilities.selects or _measures_scores(plan) or isinstance(plan.problem.constraint, AxisPolytope):
        return None
    return outweighed(plan.problem, planned_scores(plan), plan.public.columns, plan.public.unit, other_means(plan))


def outweighed(problem: Problem, scores: Scores, columns: int, unit: str, means: list[str]) -> str | None:
    """What is said before a run; None where scores can spread far enough."""
    if scores.lacking < 1.0:
        return None
    label = "label" if problem.loss.classification else "target"
    return (
        f"the noise is likely to outweigh what {columns:,} columns can tell about the {label}, so that a constant may "
        f"predict better; {advice(scores.lacking, unit, means)}."
    )


def warn_after(solution: Solution) -> str | None:
    """Why a constant may do better than a model, from its own released numbers; None where nothing speaks for that."""
    plan = solution.plan
    if not plan.is_noisy or plan.settings.is_constant or plan.scaling_plan.method == "none":
        return None
    weights = spread_weights(solution.coef, solution.scaling)
    used = int(np.count_nonzero(np.abs(weights).sum(axis=0)))
    scores = planned_scores(plan, used)._replace(spread=spread_of(weights, plan.problem))
    if _measures_scores(plan) and scores.spread >= LEAST_MEASURED:
        return None
    return doubtful(scores, plan.public.unit, other_means(plan))


def _measures_scores(plan: Plan) -> bool:
    """Whether noisy counts tell the run how far its scores may spread."""
    return any(release.what == SCORES_BY_LABEL for release in plan.releases)


def doubtful(scores: Scores, unit: str, means: list[str]) -> str | None:
    """What is said after a run; None where the released scores spread far enough."""
    if scores.lacking < 1.0:
        return None
    return (
        f"the scores of this model spread by {scores.spread:.2g}, and noise may have made most of that, so that a "
        f"constant may predict better; {advice(scores.lacking, unit, means)}."
    )


def spread_weights(coef: FloatArray, scaling: ColumnScaling) -> FloatArray:
    """The coefficients of columns of mean square 1, one row for each output; of a target with deviation 1."""
    size = scaling.scale * np.sqrt(np.where(scaling.second_moment > 0.0, scaling.second_moment, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.atleast_2d(np.where(scaling.frozen, 0.0, coef * size)) / scaling.target_scale
        return np.asarray(weights - weights.mean(axis=0) if len(weights) > 1 else weights)


def spread_of(weights: FloatArray, problem: Problem) -> float:
    """The standard deviation of the scores, no more than that of a good model."""
    with np.errstate(over="ignore"):
        return float(np.fmin(np.linalg.norm(weights), largest_spread(problem)))


def other_means(plan: Plan) -> list[str]:
    """What helps beside rows and epsilon."""
    means = ["fewer columns"]
    if not plan.public.bounded:
        means.append("declared bounds")
    if not plan.chosen_because and plan.solver.name != "newton":
        means.append('solver="auto"')
    return means


def advice(factor: float, unit: str, means: list[str]) -> str:
    """What would help, in one line."""
    if factor < MANY_TIMES:
        return f"use about {max(factor, 1.1):.2g} times as many {unit}s or as large an epsilon, {', '.join(means)}"
    return f"use far more {unit}s, a far larger epsilon, {', '.join(means)}"
