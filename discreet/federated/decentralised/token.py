"""Step and clip of a token with gradient steps, chosen from public facts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.federated.decentralised.random_walk import Walk
from discreet.privacy.mechanisms import Gaussian, clipped_sum
from discreet.privacy.relation import Relation, relation_from

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.problem.problem import Problem

ROW_CLIP = 0.6  # in units of the slope times the norm of a row whose entries are uniform in [-1, 1]
SPREAD = 0.15  # guessed mean square of a scaled column
DISTANCE = 3.0  # guessed length of the best weights, for margins of the usual size


def token_settings(
    problem: Problem, columns: int, settings: dict[str, Any], budget: Budget, walk: Walk
) -> dict[str, Any]:
    """The settings with a step (gamma) and a clip, checked if given.

    Guarantee: the step is at most 2 / beta, beta being a bound on the curvature of every node's loss for rows with
    entries in [-1, 1]: then gradient steps are non-expansive. Single rows are clipped, so that losses stay convex.
    """
    dimension = columns + problem.fit_intercept
    clip = settings.get("clip")
    if clip is None:
        clip = ROW_CLIP * min(problem.loss.lipschitz, 1.0) * math.sqrt(1.0 + columns / 3.0)
    step = settings.get("gamma")
    if step is None:
        step = _step(problem, dimension, budget, walk, clip, settings.get("relation", Relation.REPLACE))
    check_step(step, problem, dimension)
    return settings | {"gamma": step, "clip": clip}


def longest_step(problem: Problem, dimension: int) -> float:
    """2 / beta: entries of rows lie in [-1, 1], so that the square of a row's norm is at most their number."""
    return 2.0 / (problem.loss.smoothness * dimension)


def check_step(step: float, problem: Problem, dimension: int) -> None:
    """Refuse a step of which it is not known that it is non-expansive."""
    longest = longest_step(problem, dimension)
    if not 0.0 < step <= longest:
        raise ValueError(
            f"gamma must be above 0 and at most {longest:.3g}: a step of the token must be non-expansive; got {step}."
        )


def _step(problem: Problem, dimension: int, budget: Budget, walk: Walk, clip: float, relation: Any) -> float:
    """The length for which what is left of the way and the noise add up to the least; no guarantee rests on it."""
    longest = longest_step(problem, dimension)
    if budget.is_infinite:
        return 0.5 * longest
    multiplier = float(walk.local.max()) / budget.gaussian_mu()
    deviation = Gaussian(multiplier).deviation(clipped_sum(relation_from(relation)) * clip)
    curvature, noise = SPREAD * problem.loss.smoothness, deviation * math.sqrt(dimension)

    def error(step: float) -> float:
        left = math.exp(-step * curvature * len(walk.stops))  # of the first distance; the noise fades alike
        return (DISTANCE * left) ** 2 + noise**2 * 0.5 * step / curvature * (1.0 - left**2)

    return min((0.5 * longest * 0.7**k for k in range(40)), key=error)
