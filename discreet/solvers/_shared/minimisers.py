"""For methods that release a minimiser: how long a row may be, from public facts, and minima within a proved distance.

Shared by output and objective perturbation, whose guarantees need to know how far from the minimiser they are.
Distances are in the norm of the penalty, sqrt(sum of l2_j w_j^2): a coordinate that is penalised more is known better.
Theorem and proof: docs/guarantees/output-perturbation.md. Quadratic models, made of released numbers, are minimised
exactly. Nothing here adds noise.

A start is fitted, without privacy, on a public table. A small table is overfitted easily, and an overfitted start would
be worse than none: a ridge is added, whose strength the table itself decides by cross-validation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.public_inputs import PublicModel
from discreet.data.rows import Data
from discreet.kernels.gradient import row_norms
from discreet.kernels.small_quadratic import minimise_quadratic
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.perturbations import OutputNoise, SphericalLaplace
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.losses import Loss
from discreet.problem.optimum import accelerated_steps, is_smooth, largest_curvature, lbfgs
from discreet.problem.penalties import PenaltyTerms
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledBlock, ScaledProblem, scale_problem
from discreet.scaling.plan import ScalingPlan
from discreet.scaling.public_scales import with_public_scales
from discreet.solvers._shared.descents import ClippingRule
from discreet.solvers.base import Solver, calibrated
from discreet.solvers.plan import M, S

SMALL_DECREMENT = 1e-10  # of the Newton steps where epsilon is infinite


@dataclass(frozen=True, eq=False)
class WithLinearTerm(ScaledProblem):
    """A scaled problem with a linear term <term, w> in its objective."""

    linear_term: FloatArray

    def value(self, w: FloatArray) -> float:
        return super().value(w) + float((self.linear_term * w).sum())

    def gradient(self, w: FloatArray) -> FloatArray:
        return super().gradient(w) + self.linear_term


def with_linear_term(scaled: ScaledProblem, linear_term: FloatArray) -> WithLinearTerm:
    """The same problem with a linear term in its objective."""
    return WithLinearTerm(
        **{field.name: getattr(scaled, field.name) for field in fields(scaled)}, linear_term=linear_term
    )


@dataclass(frozen=True)
class Restarts:
    """So many rounds of so many accelerated steps, each of which at least halves the distance to the minimiser."""

    rounds: int
    length: int

    @property
    def steps(self) -> int:
        return self.rounds * self.length


def restarts_for(smoothness: float, convexity: float, steepness: float, distance: float) -> Restarts:
    """How many steps certify a distance: `steepness` bounds the gradient of the smooth part at the minimiser.

    Guarantee: starting from the minimiser of the penalty, the certificate is below `distance` after these steps.
    """
    condition = smoothness / convexity
    halvings = math.log2(max(4.0 * condition * steepness / (math.sqrt(convexity) * distance), 2.0))
    return Restarts(math.ceil(halvings), math.ceil(4.0 * math.sqrt(condition)))


def row_curvature(loss: Loss, radius: float) -> float:
    """Smoothness of the mean loss, for rows of norm at most `radius`."""
    return loss.smoothness * radius**2


def clip_rows(scaled: ScaledProblem, radius: float, ridge: float) -> ScaledProblem:
    """The same problem with rows of norm at most `radius` and an l2 penalty of at least `ridge` everywhere.

    The entry 1 of the intercept stays, so that the model stays linear: the other entries give way. Each row is
    changed on its own.
    """
    penalty_terms = scaled.penalty_terms._replace(l2=np.maximum(scaled.penalty_terms.l2, ridge))
    # A little less than the radius allows, for what single precision rounds up.
    room = math.sqrt(radius**2 - scaled.problem.fit_intercept) * (1.0 - 4.0 * float(np.finfo(scaled.X.dtype).eps))
    inner = scaled.scaling.columns
    factor = np.minimum(1.0, room / row_norms(scaled.X[:, :inner]))
    X = scaled.X  # a copy of the solver's own, see ColumnScaling.matrix
    if sp.issparse(X):
        X.data *= np.repeat(factor, np.diff(X.indptr))
        X.data[X.indices == inner] = 1.0
    else:
        X[:, :inner] *= factor[:, None]
    return replace(scaled, X=X, penalty_terms=penalty_terms)


def minimum_within(scaled: ScaledProblem, radius: float, distance: float) -> FloatArray:
    """A point at most `distance` from the minimiser; rows have norm at most `radius`.

    Newton or quasi-Newton steps come first where they are possible. Whatever they give must pass the certificate,
    else the steps that cannot fail are made.
    """
    loss, convexity = scaled.problem.loss, float(scaled.penalty_terms.l2.min())
    mass = scaled.X.shape[0] / scaled.rows  # 1, unless the number of rows is private
    smoothness = mass * row_curvature(loss, radius)
    guess = _quick_guess(scaled, distance / math.sqrt(1.0 + smoothness / convexity))
    w, error = certified_step(scaled, guess, smoothness)
    if error <= distance:
        return w
    linear_term = float(np.linalg.norm(scaled.linear_term)) if isinstance(scaled, WithLinearTerm) else 0.0
    limit = restarts_for(smoothness, convexity, mass * loss.lipschitz * radius + linear_term, distance)
    w = scaled.start()
    for _ in range(limit.rounds):
        w, error = certified_step(scaled, _after(scaled, w, 1.0 / smoothness, limit.length), smoothness)
        if error <= distance:
            return w
    raise RuntimeError(f"no minimum was certified within {distance:g} in {limit.steps} steps; nothing is released.")


def minimising_steps(scaled: ScaledProblem) -> Iterator[FloatArray]:
    """The steps of `minimum_within` for a problem that is not strongly convex, without end. Nothing is certified."""
    w = _quick_guess(scaled, SMALL_DECREMENT)
    yield w
    yield from accelerated_steps(scaled, w, 1.0 / largest_curvature(scaled))


def certified_step(scaled: ScaledProblem, w: FloatArray, smoothness: float) -> tuple[FloatArray, float]:
    """One proximal gradient step, and a proved bound on its distance from the minimiser.

    Guarantee: the step leaves a subgradient of the objective at the new point; its norm, with each entry divided by
    the root of the l2 penalty, bounds the distance.
    """
    step = 1.0 / smoothness
    slope = scaled.gradient(w)
    moved = scaled.prox(w - step * slope, step)
    subgradient = (w - moved) / step - slope + scaled.gradient(moved)
    return moved, float(np.linalg.norm(subgradient / np.sqrt(scaled.penalty_terms.l2)))


def _quick_guess(scaled: ScaledProblem, decrement: float) -> FloatArray:
    """Where the problem is smooth: Newton steps to about this decrement, or L-BFGS if there are many weights."""
    from discreet.problem.optimum import LARGEST_NEWTON, is_smooth, lbfgs, newton

    if not is_smooth(scaled):
        return scaled.start()
    return newton(scaled, decrement) if scaled.outputs == 1 and scaled.columns <= LARGEST_NEWTON else lbfgs(scaled)


def _after(scaled: ScaledProblem, w: FloatArray, step: float, count: int) -> FloatArray:
    """The last of so many accelerated steps; without restarts, as the bound on their number is for those."""
    return next(islice(accelerated_steps(scaled, w, step, restarts=False), count - 1, None))


# Of shortened rows, in units of a typical norm, where noise is strong and where it is weak: docs/defaults.md. A ridge
# and noise grow with the square of the norm, so that it grows more slowly than a clipping threshold.
ROW_NORM, LONGEST_ROW = ClippingRule(0.13, 0.38), ClippingRule(0.42, 0.2)


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
        noise = _relative_noise(problem, public, budget)
        row_norm = min(ROW_NORM.at(noise), LONGEST_ROW.at(noise))
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


TOLERANCE = 1e-12  # of the gradient of a quadratic at its minimiser, in units of its linear part
FEW_STEPS = 200_000  # of Python, which take some ten milliseconds
SWEEPS = 10_000  # after which the minimiser is taken as it is


class QuadraticModel:
    """w' matrix w / 2 - linear . w + penalty(w) for one positive definite matrix and many linear parts."""

    def __init__(self, matrix: FloatArray, penalty_terms: PenaltyTerms) -> None:
        self.matrix, self.penalty_terms = np.ascontiguousarray(matrix), penalty_terms
        self._factor = self._cholesky() if penalty_terms.free and not penalty_terms.l1.any() else None

    def minimise(self, linear: FloatArray, start: FloatArray) -> FloatArray:
        """The minimiser; `start` only saves time."""
        if self._factor is not None:
            from scipy.linalg import cho_solve

            return np.asarray(cho_solve(self._factor, linear))
        w = np.clip(start, self.penalty_terms.low, self.penalty_terms.high)
        size = float(np.abs(linear).max(initial=0.0))
        rest = np.array(linear, dtype=np.float64)
        for column, value in zip(self.matrix.T, w, strict=True):
            rest -= column * value
        self._descend(rest, w, TOLERANCE * max(size, 1.0))
        return w

    def _descend(self, rest: FloatArray, w: FloatArray, tolerance: float) -> None:
        """A few sweeps in Python, which cost less than to compile anything; the rest of them compiled."""
        few = 0 if "discreet.kernels.quadratic" in sys.modules else FEW_STEPS // self.matrix.size
        done, enough = minimise_quadratic(self.matrix, rest, *self.penalty_terms, w, tolerance, few)
        if not enough:
            from discreet.kernels import quadratic

            quadratic.minimise_quadratic(self.matrix, rest, *self.penalty_terms, w, tolerance, SWEEPS - done)

    def _cholesky(self) -> tuple[FloatArray, bool]:
        from scipy.linalg import cho_factor

        ridged = self.matrix + np.diag(self.penalty_terms.l2)
        factor, lower = cho_factor(ridged)
        return np.asarray(factor), bool(lower)


# Strengths of the ridge in units of the loss's curvature, in scaled columns; the last one leaves little but a constant.
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e2)
FOLDS = 5
MANY_ROWS = 5_000  # from which one fold tells enough
ROUGH_STEPS, ROUGH_PROGRESS = 200, 1e-6  # a start need not be exact


def fitted_start(problem: Problem, public: Public) -> PublicModel | None:
    """The best ridge model of the public table, in the user's columns; None without a table or its target."""
    table = public.table
    if table is None or table.y is None:
        return None
    data = Data(table.X, np.asarray(table.y, dtype=np.float64))
    target = not problem.loss.classification
    centred = problem.fit_intercept and not public.sparse
    scaling = with_public_scales(identity_scaling(public.columns), public, centred, target)
    scaled = scale_problem(problem, data, scaling, data.rows, "C")
    losses = np.zeros(len(RIDGES))
    folds = np.arange(data.rows) % FOLDS
    for fold in range(1 if data.rows > MANY_ROWS else min(FOLDS, data.rows)):
        fitted, kept = _part(scaled, folds != fold), _part(scaled, folds == fold)
        losses += [_mean_loss(kept, _minimised(fitted, ridge)) for ridge in RIDGES]
    w = _minimised(scaled, RIDGES[int(np.argmin(losses))])
    return PublicModel(*scaled.to_user(w))


def _part(scaled: ScaledProblem, chosen: FloatArray) -> ScaledProblem:
    where = np.flatnonzero(chosen)
    return replace(scaled, X=scaled.X[where], y=scaled.y[where], rows=where.size)


def _mean_loss(scaled: ScaledProblem, w: FloatArray) -> float:
    return float(scaled.sum(partial(ScaledBlock.loss_sum, w=w))[0]) / scaled.rows


def _minimised(scaled: ScaledProblem, ridge: float) -> FloatArray:
    """About the minimiser of the objective with a ridge more.

    That of the intercept weighs as much as one row, so that labels which do not occur keep a probability.
    """
    terms, smoothness = scaled.penalty_terms, scaled.problem.loss.smoothness
    added = np.full(scaled.columns, ridge * smoothness)
    added[scaled.scaling.columns :] = smoothness / scaled.rows
    scaled = replace(scaled, penalty_terms=terms._replace(l2=terms.l2 + added))
    if is_smooth(scaled):
        return lbfgs(scaled, ROUGH_STEPS, ROUGH_PROGRESS)
    steps = accelerated_steps(scaled, scaled.nearest_to_zero(), 1.0 / largest_curvature(scaled))
    return next(islice(steps, ROUGH_STEPS, None))
