"""The exponential mechanism: one exact draw from the density exp(-rate * sum of losses) on a bounded set.

For few columns. Whether it can be drawn is known from public facts, before a row is read.

Draws from the density exp(-energy) are exact, for a convex energy on a set that is covered by cells. Cells are boxes
without overlap, made from public facts, in unit coordinates: the weights fill a unit set (a box, a Euclidean ball or an
L1 ball), the intercept fills [-1, 1]. On each cell the tangent at its centre lies below the energy, so exp(-tangent)
lies above the density: a product of exponentials that is drawn from in closed form. A draw is kept with probability
exp(tangent - energy), and only if it lies in the set. Theorem and proof: docs/guarantees/exponential.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.checks import check_threshold
from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import PointSelection, Sensitivity
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.constraints import Box, Constraint, L1Ball, L2Ball, SetAroundZero
from discreet.problem.losses import Loss, Squared
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated, refused
from discreet.solvers.plan import Plan, Settings

BALL_ROOM = 10  # a grid may have so many times more cells than are allowed, as most of them miss the ball


MOST_PIECES = 1e7  # along an axis: bounds the search for the best number
MOST_COLUMNS = 32  # far beyond what can be sampled, and within what NumPy's grids can hold


def box_excess(shape: SetAroundZero, columns: int) -> float:
    """How much larger the support of the unit box can be than that of the unit set."""
    return columns / float(shape.supports(np.ones(columns)))


@dataclass(frozen=True, eq=False)
class Cells:
    """Boxes given by their centres and half-widths, both of shape (cells, dimensions)."""

    centres: FloatArray
    halves: FloatArray

    @property
    def count(self) -> int:
        return self.centres.shape[0]


def covering(shape: SetAroundZero, columns: int, intercept: bool, pieces: int, slack: float, most: int) -> Cells | None:
    """Cells of side 2 / pieces or less that cover the unit set and lie within (1 + slack) times it.

    None if they are more than `most`. Cells that stick out of the set further than the slack are halved in every
    direction until they do not; those without a point of the set are dropped.
    """
    sides = pieces if intercept else 1
    if columns > MOST_COLUMNS:
        return None
    if pieces**columns * sides > (most if isinstance(shape, Box) else BALL_ROOM * most):
        return None
    cells: Cells | None = _grid(pieces, columns)
    if not isinstance(shape, Box):
        cells = _refined(shape, _grid(pieces, columns), slack, most // sides)
    if cells is None or cells.count * sides > most:
        return None
    return _product(cells, _grid(pieces, 1)) if intercept else cells


def _grid(pieces: int, dimensions: int) -> Cells:
    axis = (2.0 * np.arange(pieces) + 1.0) / pieces - 1.0
    centres = np.stack(np.meshgrid(*[axis] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
    return Cells(centres, np.full(centres.shape, 1.0 / pieces))


def _refined(shape: SetAroundZero, cells: Cells, slack: float, most: int) -> Cells | None:
    """Halve what straddles the surface, until it sticks out by no more than the slack."""
    kept: list[Cells] = []
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=cells.centres.shape[1])))
    while cells.count:
        size = np.abs(cells.centres)
        near, far = shape.gauge(np.maximum(size - cells.halves, 0.0)), shape.gauge(size + cells.halves)
        done = far <= 1.0 + slack
        split = ~done & (near < 1.0)
        kept.append(Cells(cells.centres[done & (near < 1.0)], cells.halves[done & (near < 1.0)]))
        if sum(part.count for part in kept) + int(split.sum()) > most:
            return None
        moved = cells.centres[split, None] + corners * cells.halves[split, None]
        halves = np.broadcast_to(0.5 * cells.halves[split, None], moved.shape)
        cells = Cells(moved.reshape(-1, size.shape[1]), halves.reshape(-1, size.shape[1]))
    return Cells(np.concatenate([part.centres for part in kept]), np.concatenate([part.halves for part in kept]))


def _product(cells: Cells, axis: Cells) -> Cells:
    """Every cell with every interval of one more axis, which comes last."""
    centres = np.column_stack([np.repeat(cells.centres, axis.count, axis=0), np.tile(axis.centres, (cells.count, 1))])
    halves = np.column_stack([np.repeat(cells.halves, axis.count, axis=0), np.tile(axis.halves, (cells.count, 1))])
    return Cells(centres, halves)


def log_tries(weight: float, ratio: float, slack: float, columns: int, pieces: int) -> float:
    """The logarithm of a bound on the expected number of tries, from the theorem.

    `weight` is the largest exponent that all rows can add up to, `ratio` the curvature of the loss over its range.
    """
    return 0.5 * weight * ratio / pieces**2 + slack * (weight + columns)


def best_pieces(weight: float, ratio: float, dimensions: int) -> int:
    """The number of pieces per axis that minimises cells + tries, both of which read all rows."""
    largest = math.ceil(min(max(2.0, math.sqrt(0.5 * weight * ratio) + 1.0), MOST_PIECES))  # more are refused
    pieces = np.arange(1, largest + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        work = pieces**dimensions + np.exp(0.5 * weight * ratio / pieces**2)
    return int(np.argmin(work)) + 1


BLOCK_ENTRIES = 1 << 19  # margins held at once
LARGEST_BATCH = 256  # tries made at once


@dataclass(frozen=True, eq=False)
class Energy:
    """rate * sum over rows of weight * loss(<x, u> + offset, y), at many points u at once."""

    X: FloatArray
    offset: FloatArray
    y: FloatArray
    weight: FloatArray | None
    loss: Loss
    rate: float

    def values(self, points: FloatArray) -> FloatArray:
        """The energy at each row of `points`."""
        return np.concatenate([self._total(self.loss.value(m, self.y)) for _, m in self._margins(points)])

    def tangents(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The energy and its gradient at each row of `points`."""
        values, gradients = np.empty(points.shape[0]), np.empty(points.shape)
        for block, margins in self._margins(points):
            values[block] = self._total(self.loss.value(margins, self.y))
            slopes = self.loss.slope(margins, self.y)
            gradients[block] = self.rate * ((slopes if self.weight is None else slopes * self.weight) @ self.X)
        return values, gradients

    def _margins(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of points, with the margins of all rows: an array (points, rows)."""
        length = max(1, BLOCK_ENTRIES // max(1, self.X.shape[0]))
        for start in range(0, points.shape[0], length):
            block = slice(start, start + length)
            yield block, points[block] @ self.X.T + self.offset

    def _total(self, losses: FloatArray) -> FloatArray:
        return self.rate * (losses.sum(axis=1) if self.weight is None else losses @ self.weight)


class CellSampler:
    """Draws points of the set with density proportional to exp(-energy), by rejection from its envelope.

    Guarantee: in real arithmetic the law is exact, whatever the cells; they only decide how long it takes.
    """

    def __init__(self, energy: Energy, cells: Cells, inside: Callable[[FloatArray], npt.NDArray[np.bool_]]) -> None:
        self.energy, self.cells, self.inside = energy, cells, inside
        self.values, self.gradients = energy.tangents(cells.centres)
        self.cumulative = np.cumsum(self._masses())

    def _masses(self) -> FloatArray:
        """The mass of the envelope over each cell, up to a common factor; the largest is 1."""
        drop = 2.0 * np.abs(self.gradients) * self.cells.halves
        # Integral of exp(-g s) over |s| <= h, as its largest value times a mean in (0, 1] times 2 h.
        means = np.where(drop > 0.0, -np.expm1(-drop) / np.where(drop > 0.0, drop, 1.0), 1.0)
        logs = -self.values + (0.5 * drop + np.log(means * self.cells.halves)).sum(axis=1)
        return np.asarray(np.exp(logs - logs.max()))

    def propose(self, rng: RandomGenerator, count: int) -> tuple[FloatArray, FloatArray]:
        """Points from the envelope, and the energy of the tangent there."""
        cell = self._choose(rng, count)
        gradient, half = self.gradients[cell], self.cells.halves[cell]
        move = exponential_on_interval(gradient, half, rng.uniform(gradient.shape))
        return self.cells.centres[cell] + move, self.values[cell] + (gradient * move).sum(axis=1)

    def _choose(self, rng: RandomGenerator, count: int) -> IntArray:
        levels = rng.uniform(count) * self.cumulative[-1]
        return np.minimum(np.searchsorted(self.cumulative, levels, side="right"), self.cells.count - 1)

    def draw(self, rng: RandomGenerator, count: int = 1) -> FloatArray:
        """Independent points, as the rows of an array; the tries have no limit: giving up would depend on the rows."""
        kept, missing, batch = [], count, min(4 * count, LARGEST_BATCH)
        while missing > 0:
            points, tangent = self.propose(rng, batch)
            gap = self.energy.values(points) - tangent
            accepted = (np.log(rng.uniform(batch)) <= -gap) & self.inside(points)
            kept.append(points[accepted][:missing])
            missing -= len(kept[-1])
            batch = min(2 * batch, LARGEST_BATCH)
        return np.concatenate(kept)


def exponential_on_interval(rate: FloatArray, half: FloatArray, uniform: FloatArray) -> FloatArray:
    """Draws s in [-half, half] with density proportional to exp(-rate * s), from uniform draws."""
    drop = 2.0 * np.abs(rate) * half
    flat = drop < 1e-12  # there the density differs from a constant by less than a rounding error of it
    share = np.where(flat, uniform, -np.log1p(uniform * np.expm1(-drop)) / np.where(flat, 1.0, drop))
    return np.asarray(np.where(rate >= 0.0, 1.0, -1.0) * half * (2.0 * share - 1.0))


LABEL_REACH, TARGET_REACH = 2.0, 1.0  # what the weights of scaled columns seldom exceed
TARGET_SPREADS = 4.0  # regression targets are clipped at so many of their scales
SURFACE_TRIES = 4.0  # logarithm of the share of tries that may be lost outside a ball; fewer would need more cells
MOST_CELLS = 1_000_000  # bounds memory
MOST_WORK = 2e8  # rows * (cells + tries); 1e8 take about two seconds
SEARCH_WORK, SEARCH_SLACK = 1e7, 0.5  # rows * cells, and the slack of the cells, where epsilon is infinite
SMALLEST_RANGE = 1e-6  # of a row's losses over the region, in units of the largest
GRID = 2.0**30  # of the released points, in each direction


@dataclass(frozen=True)
class ExponentialSettings(Settings):
    """The cells of the exact sampler, and how long a draw may take."""

    pieces: int  # intervals per direction, whose products are the cells
    slack: float
    cells: int
    most_expected_tries: float


ExponentialPlan = Plan[PointSelection, ExponentialSettings]


@dataclass(frozen=True)
class ExponentialMechanism(Solver[PointSelection, ExponentialSettings]):
    """One draw from the exponential mechanism, by an exact sampler.

    With infinite epsilon it takes the best centre of as many cells as can be looked at in a second. Their width limits
    its accuracy, so that accelerated projected gradient steps finish from there, to the optimum.

    Parameters
    ----------
    reach : float, optional
        The weights are sought in the constraint and within [-reach, reach] (a ball: up to this norm), in the
        solver's (scaled) columns and, for regressions, in units of the target's scale; so is the intercept. The
        default, 2 for labels and 1 for regressions, needs a bounded constraint.
    row_size : float
        Rows are clipped until no margin in the set exceeds that of a row with all entries equal to this.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "exponential"
    capabilities = Capabilities(pure=True, single_output=True, selects=True, consistent=False)

    reach: float | None = None
    row_size: float = 1.0
    scale_share: float | None = None

    def __post_init__(self) -> None:
        check_threshold("reach", self.reach)
        check_threshold("row_size", self.row_size)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        constraint = problem.constraint
        if not isinstance(problem.penalty, Zero):
            return f"it has no form for the {problem.penalty.name} penalty (the constraint does its work)"
        if constraint is not None and not isinstance(constraint, (Box, L2Ball, L1Ball)):
            return f"it has no form for the {constraint.name} constraint"
        if self.reach is None and not _is_bounded(constraint):
            return "it needs a bounded set: constraint=L2Ball(...), L1Ball(...) or Box(...)"
        if isinstance(constraint, Box) and not constraint.contains(np.zeros(constraint.low.size), 0.0):
            return "its box must contain 0"
        if not (problem.loss.classification or isinstance(problem.loss, Squared)):
            return f"how long a draw takes has no public bound for the {problem.loss.name} loss"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[PointSelection, ExponentialSettings]:
        mechanism = calibrated(PointSelection, scaling_plan, budget, public)
        if budget.is_infinite:
            return mechanism, ExponentialSettings(1, 0.0, 1, 0.0)
        shape, columns, extra = unit_set(problem, public.columns), public.columns, problem.fit_intercept
        weight = public.rows * mechanism.rate(mechanisms.clipped_sum(public.relation))
        ratio = self._curvature_ratio(problem, shape, columns) * box_excess(shape, columns) ** 2
        slack = 0.0 if isinstance(shape, Box) else SURFACE_TRIES / (weight + columns)
        pieces = best_pieces(weight, ratio, columns + extra)
        tries = math.exp(min(log_tries(weight, ratio, slack, columns, pieces), 700.0))
        cells = covering(shape, columns, extra, pieces, slack, MOST_CELLS)
        if cells is None or public.rows * (cells.count + tries) > MOST_WORK:
            reason = f"an exact draw for {public.rows} rows and {columns} columns would take too long under this budget"
            raise refused(self, reason, problem, budget)
        return mechanism, ExponentialSettings(pieces, slack, cells.count, tries)

    def _releases(self, plan: ExponentialPlan) -> list[PlannedRelease]:
        return planned_releases("draw of the coefficients", plan.mechanism.event, plan.public.relation)

    def largest_margin(self, problem: Problem, shape: SetAroundZero, columns: int) -> float:
        """In the largest region, for regressions in units of the target's scale."""
        reach = self.reach or (LABEL_REACH if problem.loss.classification else TARGET_REACH)
        return reach * (self.row_size * float(shape.supports(np.ones(columns))) + problem.fit_intercept)

    def _curvature_ratio(self, problem: Problem, shape: SetAroundZero, columns: int) -> float:
        """A bound on smoothness * (largest margin)^2 / (range of the loss), for every set within the reach."""
        if not problem.loss.classification:
            return 2.0  # the range of the squared loss is at least half the square of the margin
        margin = self.largest_margin(problem, shape, columns)
        return problem.loss.smoothness * margin**2 / loss_range(problem.loss, margin, 0.0)

    def _descend(self, scaled: ScaledProblem, plan: ExponentialPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, [best_centre(scaled, self.region(scaled))])
        region = self.region(scaled)
        point = plan.mechanism.draw(run.rng, *self.density(scaled, region, plan))
        w = region.weights(np.round(point * GRID) / GRID)  # digits beyond the grid are not released
        run.report(1, 1, scaled, w)
        return w, 1

    def region(self, scaled: ScaledProblem) -> Region:
        """The part of the set that is within reach, from the released scales."""
        problem, scaling, c = scaled.problem, scaled.scaling, scaled.penalty_terms
        labels = problem.loss.classification
        reach = (self.reach or LABEL_REACH) if labels else (self.reach or TARGET_REACH) * scaling.target_scale
        low, high = np.clip(c.low, -reach, reach), np.clip(c.high, -reach, reach)
        if isinstance(problem.constraint, (L1Ball, L2Ball)):
            radius = min(reach, problem.constraint.radius * float(scaling.scale[0]))
            low[: scaling.columns], high[: scaling.columns] = -radius, radius
        return Region(unit_set(problem, scaling.columns), scaling.columns, 0.5 * (low + high), 0.5 * (high - low))

    def density(
        self, scaled: ScaledProblem, region: Region, plan: ExponentialPlan
    ) -> tuple[Callable[[float], CellSampler], Sensitivity]:
        """The samplers of the density exp(-rate * energy), one for each rate, and the sensitivity of the energy.

        The points are in the unit coordinates of the region.
        """
        settings, loss = plan.settings, scaled.problem.loss
        X, margin = region.clip_rows(_dense(scaled), self.row_size)
        y, largest = _clipped_target(scaled)
        sensitivity = mechanisms.clipped_sum(plan.public.relation) * loss_range(loss, margin, largest)
        intercept = scaled.problem.fit_intercept
        cells = covering(region.shape, region.inner, intercept, settings.pieces, settings.slack, MOST_CELLS)
        if cells is None:
            raise RuntimeError("the planned cells do not fit the region; plan again.")

        def sampler_at(rate: float) -> CellSampler:
            energy = Energy(X * region.half, X @ region.middle, y, scaled.weight, loss, rate)
            return CellSampler(energy, cells, region.contains)

        return sampler_at, sensitivity


@dataclass(frozen=True, eq=False)
class Region:
    """Weights middle + half * u, where the first `inner` entries of u fill a unit set and the rest [-1, 1]."""

    shape: SetAroundZero
    inner: int
    middle: FloatArray
    half: FloatArray

    def weights(self, point: FloatArray) -> FloatArray:
        return self.middle + self.half * point

    def contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(self.shape.gauge(points[:, : self.inner]) <= 1.0)

    def clip_rows(self, X: FloatArray, row_size: float) -> tuple[FloatArray, float]:
        """The rows, each clipped on its own, and the largest margin that they can have in the region."""
        inner, farthest = X[:, : self.inner], np.abs(self.middle) + self.half
        room = row_size * float(self.shape.supports(farthest[: self.inner]))
        size = self.shape.supports(inner * farthest[: self.inner])
        inner *= (room / np.maximum(size, room or 1.0))[:, None]
        return X, room + float(farthest[self.inner :].sum())


def best_centre(scaled: ScaledProblem, region: Region) -> FloatArray:
    """The weights of least energy among the centres of cells, which is where an infinite rate leads. Not private.

    The error falls as the square of the width of the cells, so slowly with the number of columns.
    """
    problem, dimensions = scaled.problem, region.middle.size
    pieces = max(1, int((SEARCH_WORK / scaled.X.shape[0]) ** (1.0 / dimensions)))
    cells = covering(region.shape, region.inner, problem.fit_intercept, pieces, SEARCH_SLACK, MOST_CELLS)
    inside = cells.centres[region.contains(cells.centres)] if cells is not None else np.empty((0, dimensions))
    if not len(inside):
        return scaled.start()
    X = _dense(scaled)
    energy = Energy(X * region.half, X @ region.middle, scaled.y, scaled.weight, problem.loss, 1.0 / scaled.rows)
    return region.weights(inside[np.argmin(energy.values(inside))])


def _dense(scaled: ScaledProblem) -> FloatArray:
    """A copy of the rows in double precision."""
    return np.array(scaled.X.toarray() if sp.issparse(scaled.X) else scaled.X, dtype=np.float64)


def loss_range(loss: Loss, margin: float, target: float) -> float:
    """A bound on the difference of a row's losses at two margins in [-margin, margin], for |targets| <= target.

    Guarantee: a convex loss is largest at an end. One whose slope keeps its sign is least at the other end; every
    other one is at least 0. It is never taken to be less than a fixed fraction of the losses themselves, so that their
    rounding errors stay small against it.
    """
    if not loss.classification:
        return float(loss.value(np.array([margin]), np.array([-target]))[0])
    both = [loss.value(np.array([-margin, margin]), np.full(2, label)) for label in (-1.0, 1.0)]
    ranges = [ends.max() - (ends.min() if loss.monotone else 0.0) for ends in both]
    return float(max(*ranges, SMALLEST_RANGE * max(ends.max() for ends in both)))


def _clipped_target(scaled: ScaledProblem) -> tuple[FloatArray, float]:
    """Targets within a few of their scales, and the largest of them that is possible; labels as they are."""
    if scaled.problem.loss.classification:
        return scaled.y, 0.0
    scaling = scaled.scaling
    farthest = max(scaling.target_high - scaling.target_shift, scaling.target_shift - scaling.target_low)
    largest = min(farthest, TARGET_SPREADS * scaling.target_scale)
    return np.clip(scaled.y, -largest, largest), largest


def unit_set(problem: Problem, columns: int) -> SetAroundZero:
    """The unit set of the constraint's form; in one dimension all sets are intervals."""
    if columns == 1 or not isinstance(problem.constraint, (L1Ball, L2Ball)):
        return Box(-1.0, 1.0)
    return type(problem.constraint)(1.0)


def _is_bounded(constraint: Constraint | None) -> bool:
    if isinstance(constraint, Box):
        return bool(np.isfinite(constraint.low).all() and np.isfinite(constraint.high).all())
    return isinstance(constraint, (L1Ball, L2Ball))
