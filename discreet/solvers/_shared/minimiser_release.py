"""How long a row may be, from public facts: instead of clipped gradients, for methods that release a minimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet._common.checks import check_threshold
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.perturbations import OutputNoise, SphericalLaplace
from discreet.problem.problem import Problem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.clipping import NoiseRule
from discreet.solvers.base import Solver, calibrated
from discreet.solvers.plan import M, S

ROW_NORM = NoiseRule(0.13, 0.38, 1.5)  # of shortened rows, in units of a typical norm; tuned: docs/defaults.md


@dataclass(frozen=True)
class MinimiserRelease(Solver[M, S]):
    """What the solvers that release a minimiser share: the length of rows and the least penalty of a coordinate."""

    row_norm: float | None = None
    ridge: float | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        check_threshold("row_norm", self.row_norm)
        check_threshold("ridge", self.ridge)


def calibrated_output_noise(scaling_plan: ScalingPlan, budget: Budget, public: Public) -> OutputNoise:
    """The noise on a vector that is released once: Gaussian, or spherical Laplace for a pure budget."""

    def make(multiplier: float) -> OutputNoise:
        return SphericalLaplace(multiplier) if budget.kind == "pure" else mechanisms.Gaussian(multiplier)

    return calibrated(make, scaling_plan, budget, public)


def radius_of(problem: Problem, public: Public, budget: Budget, row_norm: float | None) -> float:
    """The norm to which rows are shortened, the 1 of the intercept included.

    `row_norm` is in units of the root of the number of columns, which is the typical norm, since scaled columns
    have mean square 1.
    """
    if row_norm is None:
        row_norm = ROW_NORM.at(_relative_noise(problem, public, budget))
    return math.sqrt(row_norm**2 * public.columns + problem.fit_intercept)


def unbounded_slope(problem: Problem) -> str | None:
    """Why a loss cannot be used by methods that need a bound on its slope; None if it can."""
    if math.isfinite(problem.loss.lipschitz):
        return None
    return f"the slope of the {problem.loss.name} loss has no bound (the Huber loss, as in HuberRegressor, has one)"


def _relative_noise(problem: Problem, public: Public, budget: Budget) -> float:
    """Length of the noise on a mean of unit vectors, if the whole budget went into it."""
    dimension = problem.loss.outputs * (public.columns + problem.fit_intercept)
    length = mechanisms.additive(budget, 1.0).multiplier * math.sqrt(dimension)
    if budget.kind == "pure":  # a Gamma radius grows with the dimension, not with its root
        length *= math.sqrt(dimension)
    return length * mechanisms.clipped_sum(public.relation).l2 / public.rows


WEIGHTS_GUESS = 1.0  # squared norm of the weights, in units of the margin at which a slope changes


def default_ridge(problem: Problem, public: Public, radius: float, mechanism: OutputNoise) -> float:
    """The r that minimises (weights guessed) r / 2 + curvature / 2 * E ||noise||^2 / dimension, noise being as 1 / r.

    In units of the loss's own curvature and of the margin lipschitz / smoothness at which its slope changes.
    """
    dimension = problem.loss.outputs * (public.columns + problem.fit_intercept)
    unit = mechanisms.clipped_sum(public.relation)
    noise = mechanism.multiplier * unit.l2 * radius**2 / public.rows
    if isinstance(mechanism, SphericalLaplace):
        noise *= math.sqrt(dimension + 1.0)
    return float(problem.loss.smoothness * (2.0 * noise**2 / WEIGHTS_GUESS) ** (1.0 / 3.0))
