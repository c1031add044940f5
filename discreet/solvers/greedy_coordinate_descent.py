"""DP-GCD: at every step the coordinate that promises most is chosen privately and moved.

Starts at zero and changes one coordinate a step, so the result is sparse and the noise grows with the number of
steps and the logarithm of the number of columns, not with the columns themselves. Theorem and proof:
docs/guarantees/greedy-cd.md.

The clipped gradient sums of all coordinates are kept while single ones move. Where bounds alone are known, the
smoothness of chosen columns is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, number_in, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import TERM_STEP, on_term_grid
from discreet.kernels.gradient import units_of
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.release import Kind, PlannedRelease, planned_releases
from discreet.problem.penalties import prox, prox_decrease_root, signed_subgradient_distance
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.coordinates import (
    CoordinateSolver,
    CoordinateSums,
    Moves,
    smoothness_bounds,
    sums_of_squares,
    thresholds,
)
from discreet.solvers._shared.descents import affordable_steps, until_optimal
from discreet.solvers.base import Capabilities, Run, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, SQUARED_RANGE, Plan, Settings

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator


class CoordinateGradients:
    """Weights, margins and all clipped coordinate sums; one output.

    Terms of coordinate j are rounded to multiples of unit[j] = grid_step * clip[j], so that `counts`, the sums in
    these units, are exact whatever the order of the rows and of the moves.

    Dense rows: a full pass per refresh. Sparse rows: a move touches the rows of its column only, so that an
    iteration costs their non-zeros instead of a pass over the table.
    """

    def __init__(self, scaled: ScaledProblem, clip: FloatArray, grid_step: float) -> None:
        self.scaled, self.clip, self.unit = scaled, clip, units_of(clip, grid_step)
        self.weight = scaled.kernel_weight
        self.rows = sp.csr_array(scaled.X) if sp.issparse(scaled.X) else None
        self.w = np.array(scaled.start(), dtype=np.float64)
        self.margins = self._first_margins()
        self.slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins, scaled.y))
        self.counts = np.empty(scaled.columns)
        self._refresh()

    @property
    def sums(self) -> FloatArray:
        """The clipped gradient sums."""
        return self.counts * self.unit

    def move(self, j: int, value: float) -> None:
        """Set coordinate j and bring everything else up to date."""
        from discreet.kernels import greedy

        change = value - self.w[j]
        self.w[j] = value
        X, loss, rows = self.scaled.X, self.scaled.problem.loss, self.rows
        if rows is None:
            self.margins += change * X[:, j]
            self.slopes = np.ascontiguousarray(loss.slope(self.margins, self.scaled.y))
            self._refresh()
            return
        greedy.move_sparse(
            X.indptr, X.indices, X.data, rows.indptr, rows.indices, rows.data, j, change, self.scaled.y, self.weight,
            loss.code, float(loss.parameter), self.clip, self.unit, self.margins, self.slopes, self.counts,
        )  # fmt: skip

    def _first_margins(self) -> FloatArray:
        """Column by column, as stored rows get theirs: the same bits."""
        if self.rows is not None:
            return np.ascontiguousarray(self.scaled.margins(self.w))
        return moves_to(self.w).margins(self.scaled.X.T)

    def _refresh(self) -> None:
        from discreet.kernels import greedy

        X = self.scaled.X
        if self.rows is None:
            greedy.sums_dense(X.T, self.slopes, self.weight, self.clip, self.unit, self.counts)
        else:
            greedy.sums_sparse(X.indptr, X.indices, X.data, self.slopes, self.weight, self.clip, self.unit, self.counts)


class StoredGradients:
    """The same for rows that are read block by block, a pass for each move; nothing is kept of a row."""

    def __init__(self, scaled: BlockwiseProblem, clip: FloatArray, grid_step: float) -> None:
        self.scaled, self.clip, self.unit = scaled, clip, units_of(clip, grid_step)
        self.w = np.array(scaled.start(), dtype=np.float64)
        self.moves = moves_to(self.w)
        self.counts = self._sums()

    @property
    def sums(self) -> FloatArray:
        """The clipped gradient sums."""
        return self.counts * self.unit

    def move(self, j: int, value: float) -> None:
        """Set coordinate j and sum up anew."""
        self.moves.add(j, value - self.w[j])
        self.w[j] = value
        self.counts = self._sums()

    def _sums(self) -> FloatArray:
        return self.scaled.sum(CoordinateSums(self.moves, self.clip, self.unit))


def moves_to(w: FloatArray) -> Moves:
    """From zero to these weights, column by column."""
    moves = Moves(final=0.0)
    for j in np.flatnonzero(w):
        moves.add(int(j), float(w[j]))
    return moves


Gradients = CoordinateGradients | StoredGradients


def gradients_of(scaled: BlockwiseProblem, clip: FloatArray, grid_step: float) -> Gradients:
    """The sums at the start, of rows in memory or of stored ones."""
    if isinstance(scaled, ScaledProblem):
        return CoordinateGradients(scaled, clip, grid_step)
    return StoredGradients(scaled, clip, grid_step)


class MeasuredSmoothness:
    """The smoothness of the columns that were measured so far; what is measured several times is averaged.

    Parameters
    ----------
    bound : array
        Bounds on the smoothness of all coordinates, by the bounds of their columns.
    """

    def __init__(self, bound: FloatArray, scaled: BlockwiseProblem, plan: GreedyPlan) -> None:
        if not isinstance(plan.mechanism, mechanisms.GumbelGreedy):
            raise TypeError("only Gumbel selections are followed by a measurement.")
        self.bound, self.scaled = bound, scaled
        self.mechanism = plan.mechanism.of_measurement
        self.sensitivity = mechanisms.bounded_fractions(1).rounded(TERM_STEP, 1)
        self.total, self.times = np.zeros(bound.size), np.zeros(bound.size)
        self.largest = _largest_squares(scaled)
        self.squares: FloatArray | None = None

    def measure(self, j: int, rng: RandomGenerator) -> float:
        """The smoothness of coordinate j, after one more release of its mean square.

        Below twice the noise an estimate says only "small": that floor keeps steps within twice the right length.

        Guarantee: costs one measurement of the plan's mechanism.
        """
        value = np.array([self._sum_of_squares(j)])
        self.total[j] += float(self.mechanism.release(rng, value, self.sensitivity)[0])
        self.times[j] += 1
        if j >= self.scaled.scaling.columns:  # the intercept, whose column is public
            return float(self.bound[j])
        noise = self.mechanism.deviation(self.sensitivity) / math.sqrt(self.times[j])
        mean = max(self.total[j] / self.times[j], 2.0 * noise) / self.scaled.rows * self.largest[j]
        return float(self.bound[j]) * min(1.0, mean)

    def _sum_of_squares(self, j: int) -> float:
        """Of stored rows one pass finds those of all columns, which do not change; they stay here until released."""
        if isinstance(self.scaled, ScaledProblem):
            return _sum_of_squares(self.scaled, j, self.largest[j])
        if self.squares is None:
            self.squares = self.scaled.sum(partial(sums_of_squares, largest=self.largest))
        return float(self.squares[j])


def _largest_squares(scaled: BlockwiseProblem) -> FloatArray:
    """The unit of the squares of each column, from public and released numbers: about the largest one of its bulk.

    Entries are clipped up to sqrt(2) beyond the bulk, where few are: they count as at its end.
    """
    scaling = scaled.scaling
    reach = np.maximum(scaling.high - scaling.shift, scaling.shift - scaling.low) / scaling.scale
    squares = np.where(np.isfinite(reach), 0.5 * reach**2, 1.0)
    return np.append(np.maximum(squares, 1.0), np.ones(int(scaled.problem.fit_intercept)))


def _sum_of_squares(scaled: ScaledProblem, j: int, largest: float) -> float:
    """The weighted sum of the squared entries of column j over the largest one, rounded: exact in any order."""
    X, weight = scaled.X, scaled.weight
    if sp.issparse(X):
        stored = slice(X.indptr[j], X.indptr[j + 1])
        values, rows = X.data[stored], X.indices[stored]
        weight = None if weight is None else weight[rows]
    else:
        values = X[:, j]
    squares = np.minimum(np.asarray(values, dtype=np.float64) ** 2 / largest, 1.0)
    return float(on_term_grid(squares if weight is None else weight * squares).sum())


# The default number of steps: docs/guarantees/greedy-cd.md, "Defaults".
FEWEST_STEPS, MOST_STEPS = 1, 50
SIGNAL = 2.0 / math.pi  # the mean of a product of signs, for normal numbers of a small correlation, in units of it
USUAL_CORRELATION = 0.5  # of a model with the target: it tells a quarter of the variance
USUAL_MEAN_SQUARE = 1.0 / 16.0  # of a column, over its squared range: a normal one whose range is four deviations
CLEAR = 2.0  # scales of the noise beyond log(columns): such a coordinate is chosen with probability 0.88
MOST_STEPS_PER_COLUMN = 2_000  # where epsilon is infinite
# Scores are computed of exact sums with at most 16 roundings, each 2^-53 of at most rows times half their sensitivity.
SCORE_ROUNDING = 2.0**-49

Greedy = mechanisms.GumbelGreedy | mechanisms.LaplaceGreedy


@dataclass(frozen=True)
class GreedySettings(Settings):
    """How many coordinates are chosen, and how."""

    steps: int
    rule: str
    signed: bool
    selection: str
    measures_columns: bool  # the mean square of a chosen column, from which its step length follows

    @property
    def passes_over_rows(self) -> int:
        return 1 + self.steps + self.measures_columns


GreedyPlan = Plan[Greedy, GreedySettings]


@dataclass(frozen=True)
class GreedyCoordinateDescent(CoordinateSolver[Greedy, GreedySettings]):
    """Proximal greedy coordinate descent.

    Parameters
    ----------
    steps : int, optional
        Number of coordinates to move; by default from the budget and the number of rows.
    clip : float, optional
        The one threshold C; a row's gradient in coordinate j is clipped to C sqrt(M_j / sum M), which gives
        every score the same sensitivity.
    step : float
        Step length in units of 1/M_j.
    rule : {"gs-s", "gs-r", "gs-q"}
        How promising a coordinate is: violation of optimality, length of its proximal step, or decrease.
    signed : bool
        With "gs-s": let coordinates inside their optimality interval score below zero, by how far inside they
        are, instead of all scoring zero. It separates signal from noise and costs nothing.
    selection : {"gumbel", "laplace"}
        Exponential mechanism, or the report-noisy-max of the thesis at its true cost (for comparison).
    learn_smoothness : bool
        Where the scales of the columns come from bounds alone, release the mean square of a chosen column with its
        entry: the bound on its smoothness is many times too large for sparse columns, and steps would be as much too
        short.
    least_entry : float
        An entry of fewer standard deviations of its noise than this does not move its coordinate; costs nothing.
    smoothness, scale_share : as for coordinate descent
    """

    name = "greedy-cd"
    capabilities = Capabilities(
        order="F", separable_only=True, single_output=True, selects=True, compiled=("slope",), start=True,
        stored=True, copied=True, consistent=False,
    )  # fmt: skip

    steps: int | None = None
    clip: float | None = None
    step: float = 1.0
    rule: str = "gs-s"
    signed: bool = True
    selection: str = "gumbel"
    learn_smoothness: bool = True
    least_entry: float = 4.0
    smoothness: tuple[float, ...] | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)
        one_of("rule", self.rule, ("gs-s", "gs-r", "gs-q"))
        one_of("selection", self.selection, ("gumbel", "laplace"))
        number_in("least_entry", self.least_entry, 0.0)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[Greedy, GreedySettings]:
        steps = int(self.steps) if self.steps is not None else _default_steps(public, budget)
        measures = self._measures(public, budget, scaling_plan)
        if self.selection == "laplace":
            mechanism: Greedy = calibrated(lambda z: mechanisms.LaplaceGreedy(z, steps), scaling_plan, budget, public)
        else:
            mechanism = calibrated(lambda z: mechanisms.GumbelGreedy(z, steps, measures), scaling_plan, budget, public)
        return mechanism, GreedySettings(steps, self.rule, self.signed, self.selection, measures)

    def _measures(self, public: Public, budget: Budget, scaling_plan: ScalingPlan) -> bool:
        """Whether mean squares of chosen columns are released: not where they are known, or nothing is noisy."""
        if not self.learn_smoothness or self.selection != "gumbel" or budget.is_infinite:
            return False
        return self.smoothness is None and least_mean_square(public, scaling_plan) > USUAL_MEAN_SQUARE

    def _releases(self, plan: GreedyPlan) -> list[PlannedRelease]:
        choice, entry = "choices of a coordinate", "mean gradients in the chosen coordinate"
        what: dict[Kind, str] = {"selection": choice, "pure": choice, "Gaussian": entry, "Laplace": entry}
        relation, steps, mechanism = plan.public.relation, plan.settings.steps, plan.mechanism
        one = 1.0 / plan.public.rows
        sensitivity = mechanisms.clipped_sum(relation) * one
        if not isinstance(mechanism, mechanisms.GumbelGreedy) or not mechanism.measured:
            return planned_releases(what, mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)
        pair = replace(mechanism, measured=False).event
        pairs = planned_releases(what, pair, relation, sensitivity, OF_THE_THRESHOLD)
        squares = replace(mechanism.of_measurement, count=steps).event
        told = "mean squares of the chosen column"
        return pairs + planned_releases(told, squares, relation, mechanisms.bounded_fractions(1) * one, SQUARED_RANGE)

    def _descend(self, scaled: BlockwiseProblem, plan: GreedyPlan, run: Run) -> tuple[FloatArray, int]:
        mechanism = plan.mechanism
        bound = smoothness_bounds(self.smoothness, scaled)
        unit_sensitivity = mechanisms.clipped_sum(plan.public.relation)
        clip = thresholds(self.clip, mechanism.deviation(unit_sensitivity) / plan.public.rows, scaled, plan, bound)
        grid = mechanism.grid(unit_sensitivity, 1, plan.public.rows)  # of sums in thresholds
        if plan.budget.is_infinite and self.steps is None and not isinstance(scaled, ScaledProblem):
            return until_optimal(scaled, run, (), most=0, bound=bound)  # own steps would be a pass each
        state = gradients_of(scaled, clip, grid.step)
        if plan.budget.is_infinite and self.steps is None:
            own_steps = self._exact_steps(scaled, state, bound)
            most = affordable_steps(scaled, most=MOST_STEPS_PER_COLUMN * scaled.columns)
            return until_optimal(scaled, run, own_steps, 10 * scaled.columns, most, bound)
        # C_j / sqrt(M_j) is the same for all j, so one number is the sensitivity of every score.
        allowance = 1.0 + scaled.rows * SCORE_ROUNDING
        score_sensitivity = unit_sensitivity * float((clip / np.sqrt(bound)).max() / scaled.rows * allowance)
        steps, deviation = plan.settings.steps, mechanism.deviation(unit_sensitivity)
        step_bound = MeasuredSmoothness(bound, scaled, plan) if plan.settings.measures_columns else None
        for t in range(steps):
            scores = self._scores(scaled, state, bound)
            j = mechanism.choose(run.rng, scores, score_sensitivity)
            if grid.is_exact:
                entry = float(state.sums[j])
            else:
                entry = float(grid.release(run.rng, state.counts[j : j + 1] * grid.step)[0] * clip[j])
            smooth = float(bound[j]) if step_bound is None else step_bound.measure(j, run.rng)
            if grid.is_exact or abs(entry) >= self.least_entry * deviation * clip[j]:
                self._move(scaled, state, smooth, j, entry)
            run.report(t + 1, steps, scaled, state.w)
        return state.w, steps

    def _scores(self, scaled: BlockwiseProblem, state: Gradients, bound: FloatArray) -> FloatArray:
        """Each is 1/sqrt(M_j)-Lipschitz in the mean gradient of its coordinate."""
        gradient, w, c = state.sums / scaled.rows, state.w, scaled.penalty_terms
        if self.rule == "gs-s":
            distance = signed_subgradient_distance(w, gradient, c)
            return (distance if self.signed else np.maximum(distance, 0.0)) / np.sqrt(bound)
        if self.rule == "gs-q":
            return prox_decrease_root(w, gradient, bound, c)
        return np.sqrt(bound) * np.abs(prox(w - gradient / bound, 1.0 / bound, c) - w)

    def _move(self, scaled: BlockwiseProblem, state: Gradients, smooth: float, j: int, entry: float) -> None:
        """A proximal step of coordinate j, of this smoothness, whose gradients sum up to `entry`."""
        step = self.step / smooth
        value = state.w[j] - step * entry / scaled.rows
        own = type(scaled.penalty_terms)(*(part[j : j + 1] for part in scaled.penalty_terms))
        state.move(j, float(prox(np.array([value]), step, own)[0]))

    def _exact_steps(self, scaled: BlockwiseProblem, state: Gradients, bound: FloatArray) -> Iterator[FloatArray]:
        """The weights after each step of the best coordinate, without noise and without end."""
        while True:
            best = int(np.argmax(self._scores(scaled, state, bound)))
            self._move(scaled, state, float(bound[best]), best, float(state.sums[best]))
            yield state.w


def least_mean_square(public: Public, scaling_plan: ScalingPlan) -> float:
    """The smallest mean square that the scales can tell from a smaller one, in units of the squared range; 1: none.

    Learned mean squares have a floor of twice their noise.
    """
    if scaling_plan.moments is None or not scaling_plan.measures_columns:
        return 1.0
    sensitivity = mechanisms.bounded_moments(public.relation, public.columns + scaling_plan.target)
    return 2.0 * scaling_plan.moments.deviation(sensitivity) / public.rows


def _default_steps(public: Public, budget: Budget) -> int:
    """As many coordinates as can be found if all matter as much; from public facts.

    T columns that together have a correlation of 1/2 with the target have correlations of 1 / (2 sqrt(T)) each, and the
    noise of a step grows with sqrt(2 T).
    """
    if budget.is_infinite:
        return MOST_STEPS
    level = mechanisms.clipped_sum(public.relation).l2 * (math.log(max(public.columns, 1)) + CLEAR)
    found = USUAL_CORRELATION * SIGNAL * public.rows * budget.gaussian_mu() / (math.sqrt(2.0) * level)
    return int(min(MOST_STEPS, max(FEWEST_STEPS, math.floor(found))))
