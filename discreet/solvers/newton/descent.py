"""One run of Newton: the metric, the clipping threshold and the curvature it has released, and its gradient steps.

Everything it asks of the rows is a sum over blocks of them, so that a table in memory and one in a file give the same
result. What it asks of a block are functions of the block and of numbers that are public or have been released: they
may be computed on another machine, so none of them knows the run, its generator or its ledger. Order, noise and proof
of the releases: docs/guarantees/newton.md.

The metric is that of a public table where a private second moment would be noisier: docs/guarantees/newton.md, "A
public metric".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data, takes_tensors
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.problem.scaled_block import (
    of_each_row,
    person_gradient_norms,
    person_gradient_sum,
    person_gradients,
    summed_weights,
)
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
from discreet.scaling import second_moment
from discreet.scaling.second_moment import Metric, SecondMoment, norm_counts, private_norm_bound
from discreet.solvers._shared.descents import Made, planned_slope, typical_slope
from discreet.solvers._shared.minimisers import QuadraticModel
from discreet.solvers.newton import planning
from discreet.solvers.newton.calibration import ConstantScore, learn_label_scores
from discreet.solvers.plan import LABEL_MARGIN, TARGET_MARGIN

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicTable
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.problem import Problem
    from discreet.solvers.base import Run
    from discreet.solvers.newton.solver import Newton


class PublicMetric(NamedTuple):
    """A metric, and the second moments of the public rows along its directions."""

    metric: Metric
    moments: FloatArray


def public_metric(scaled: BlockwiseProblem, table: PublicTable, noise: float) -> PublicMetric:
    """The second moment S of the scaled public rows, lifted by (1/m + noise) trace(S), m being the public rows.

    For columns that are alike, the smallest eigenvalue of a sample covariance from m rows of p columns is about
    (1 - sqrt(p/m))^2 of the true one; with p/m more it is at least half of it, whatever m is, so that steps do not
    overshoot. `noise` is `unresolved`: in directions of less variance the rows tell less than the noise hides.
    """
    rows = public_rows(scaled, table)
    product = rows.T @ rows / table.rows
    moment = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)
    values, vectors = np.linalg.eigh(moment)
    values = np.maximum(values, 0.0)
    lift = (1.0 / table.rows + noise) * float(np.trace(moment))
    return PublicMetric(Metric(values + lift, vectors), values)


def unresolved(problem: Problem, public: Public, budget: Budget) -> float:
    """The variance of a direction, over that of all columns together, below which noise hides its weight.

    The noise of a gradient in the metric has variance (slope nu)^2 p in every direction, nu being that of the mean of
    gradients of norm 1; the weight of a direction of variance s then has the noise (slope nu)^2 p / (smoothness^2 s).
    It equals the usual square of a weight, usual^2 / trace(S), at s = (slope nu / (smoothness usual))^2 p trace(S).
    """
    columns = public.columns + problem.fit_intercept
    usual = LABEL_MARGIN if problem.loss.classification else TARGET_MARGIN
    unit = mechanisms.additive(budget, 1.0).deviation(mechanisms.clipped_sum(public.relation)) / public.rows
    return columns * (planned_slope(problem) * unit / (problem.loss.usual_curvature * usual)) ** 2


def public_rows(scaled: BlockwiseProblem, table: PublicTable) -> Any:
    """The public rows in the columns of the solver."""
    return scaled.scaling.matrix(Data(table.X, np.zeros(table.rows)), "C", scaled.problem.fit_intercept)


def largest_eigenvalue(
    total: FloatArray, radius: float, rows: int, mechanism: Gaussian, rng: RandomGenerator
) -> tuple[float, float]:
    """The largest eigenvalue of the mean of outer products of rows no longer than the radius, and its noise.

    Guarantee: costs one event of the mechanism, under every relation: docs/guarantees/newton.md, "A public metric".
    """
    columns = total.shape[0]
    # Computed eigenvalues are off by at most a small multiple of columns * 2^-53 of the largest one, rows * radius^2.
    sensitivity = mechanisms.bounded_fractions(1) * (radius**2 * (1.0 + 2.0**-46 * columns * rows))
    top = np.linalg.eigvalsh(total)[-1:].astype(np.float64)
    return float(mechanism.release(rng, top, sensitivity)[0]) / rows, mechanism.deviation(sensitivity) / rows


NormsOf = Callable[[ScaledBlock], FloatArray]  # one norm per row of a block, or per person
# Tuned on public tables, and never read from rows: docs/defaults.md.
LONG_ROWS = 0.05  # fraction of the rows that the second moment may clip at most
UNCLIPPED = (
    0.25  # of the bound on the curvature: half of the rows are clipped, and growing scores leave half of the rest
)
UNLEARNED_RADIUS = math.sqrt(0.5)  # in usual norms, where rows are too few to learn it: steps stay safe
SMALLEST_SLOPE = 1e-12  # of a row that its label leaves no gradient: norms are not divided by less
CLIPPED_ROWS = 6.0  # gradients that may be clipped, in units of the total noise: fewer would not pay for the noise


def plain_norms(block: ScaledBlock) -> FloatArray:
    """The Euclidean norms of the rows."""
    return block.norms


def gradient_norms(block: ScaledBlock, w: FloatArray, metric: Metric, label_free: bool = False) -> FloatArray:
    """The norms, in the metric, by which gradients are clipped: of the rows, or of persons.

    Label-free ones are those that the gradient of either label has at most.
    """
    if block.persons is not None:
        return person_gradient_norms(person_gradients(block, w), metric.norms)
    slopes = slope_norms(block.slopes(w))
    return (np.maximum(slopes, largest_slopes(block, w)) if label_free else slopes) * metric.norms_of(block)


def largest_slopes(block: ScaledBlock, w: FloatArray) -> FloatArray:
    """The larger slope of the two labels that each row may have: 1 or more where its margin is not finite."""
    margins = block.margins(w)
    ones = np.ones(margins.size)
    both = np.stack([np.abs(block.loss.slope(margins, ones)), np.abs(block.loss.slope(margins, -ones))])
    return np.nan_to_num(both, nan=block.loss.lipschitz).max(axis=0)


@takes_tensors
def gradient_sum(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, step: float, label_free: bool = False
) -> FloatArray:
    """The sum of the gradients, clipped in the metric and rounded to multiples of the step."""
    if block.persons is not None:
        return person_gradient_sum(block, w, metric.norms, clip, step)
    norms = metric.norms_of(block)
    if label_free:  # the norms only grow, so that no term is longer than the threshold
        own = np.maximum(slope_norms(block.slopes(w)), SMALLEST_SLOPE)
        norms = np.asarray(norms) * np.maximum(largest_slopes(block, w) / own, 1.0)
    return block.gradient_sum(w, norms, clip, step)


@takes_tensors
def counts_of_norms(block: ScaledBlock, norms: NormsOf, unit: float) -> FloatArray:
    """The weighted number of rows, or of persons, by their norm."""
    found = norms(block)
    weight = block.weight if found.size == block.y.size else summed_weights(block)
    return norm_counts(found, weight, unit)


@takes_tensors
def largest_norm(block: ScaledBlock, norms: NormsOf) -> FloatArray:
    """The largest norm. Not private."""
    return np.array([norms(block).max()])


@takes_tensors
def clipped_moment(
    block: ScaledBlock, radius: float, table_rows: int | None, metric: Metric | None = None
) -> FloatArray:
    """The sum of the outer products of the rows, in the metric if there is one, shortened to the radius."""
    norms = block.norms if metric is None else block.mapped_norms(metric.whitening)
    return second_moment.clipped_second_moment(block, norms, radius, block.weight, table_rows, metric)


@takes_tensors
def hessian(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, radius: float, table_rows: int | None,
    label_free: bool = False,
) -> FloatArray:  # fmt: skip
    """The same of the rows in the metric, times the roots of their curvatures."""
    factor, norms = root_curvatures(block, w, metric, clip, label_free), metric.norms_of(block)
    return second_moment.clipped_second_moment(block, norms, radius, block.weight, table_rows, metric, factor)


def curved_norms(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, label_free: bool = False
) -> FloatArray:
    """The norms of the rows in the metric, times the roots of their curvatures."""
    return root_curvatures(block, w, metric, clip, label_free) * metric.norms_of(block)


def root_curvatures(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, label_free: bool = False
) -> FloatArray:
    """The roots of the rows' curvatures, in units of their bound.

    A gradient that is clipped no longer changes with the weights, so that its row has no curvature; where persons
    have several rows, the person's gradient is the one that is clipped. With label-free norms the factor by which a
    row is clipped does not depend on its label, and the mean over the labels of what it changes is 0: the curvature
    is clipped like the gradient.
    """
    margins = block.margins(w)
    if label_free:
        kept = clip / np.maximum(gradient_norms(block, w, metric, True), clip) if np.isfinite(clip) else 1.0
        curvature = np.nan_to_num(block.curvatures_at(margins)) / block.loss.smoothness
        return np.sqrt(np.clip(kept * curvature, 0.0, 1.0))
    if block.persons is None:
        clipped = np.abs(block.slopes_at(margins)) * metric.norms_of(block) > clip
    else:
        clipped = of_each_row(gradient_norms(block, w, metric) > clip, block)
    curvature = np.clip(np.nan_to_num(block.curvatures_at(margins)) / block.loss.smoothness, 0.0, 1.0)
    return np.sqrt(np.where(clipped, 0.0, curvature))


def slope_norms(slopes: FloatArray) -> FloatArray:
    """The absolute value of each row's slope; with several outputs the Euclidean norm of its slopes."""
    return np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)


@takes_tensors
def curvature_sum(block: ScaledBlock, w: FloatArray, table_rows: int | None) -> FloatArray:
    """The weighted sum over rows of their curvatures, each row shortened to the bound on its norm.

    With `table_rows`, the public number of rows, entries are cut towards 0 to multiples of a power of two: sums of up
    to 8 times as many rows are then exact.
    """
    bound = planning.row_curvature_bound(block.loss)
    rows = np.clip(np.nan_to_num(block.loss.curvature(block.margins(w), block.y)), 0.0, bound)
    rows *= (bound / np.maximum(np.linalg.norm(rows, axis=1), bound))[:, None]
    if block.weight is not None:
        rows *= block.weight[:, None]
    if table_rows is not None:
        unit = math.ldexp(1.0, math.ceil(math.log2(max(table_rows, 1))) + math.ceil(math.log2(bound)) - 49)
        rows = np.trunc(rows / unit) * unit
    return np.asarray(rows.sum(axis=0))


class Descent:
    """The state of a run: everything in it but `scaled` has been released, or is public."""

    least_radius = 1.0  # of the Hessian, in usual norms: rows without curvature say nothing about the others
    label_free = False  # whether rows are clipped by norms that do not depend on their labels

    def __init__(self, solver: Newton, scaled: BlockwiseProblem, plan: planning.NewtonPlan, run: Run) -> None:
        self.solver, self.scaled, self.plan, self.run = solver, scaled, plan, run
        self.split, self.relation = plan.mechanism, plan.public.relation
        self.metric = self._learn_metric()
        self.models = self._models(np.full(scaled.outputs, planning.first_curvature(scaled.problem.loss)))
        self.w, self.clip = scaled.start(), math.inf
        self.constant = self._learn_constant()

    def planned_steps(self) -> Iterator[Made]:
        """The planned steps, their iterates weighted by their shares of the budget.

        Before the first and the middle one they learn what is needed for those to come.
        """
        for t, share in enumerate(self.split.shares[planning.GRADIENTS :]):
            if t == 0:
                # Before the start: there all slopes are equal, and where labels are rare theirs must not be clipped.
                self.clip = self._learn_clip(planning.CLIP)
                if self.constant is not None and self.scaled.origin is None:
                    self.w[..., -1] = self.constant.value if self.scaled.outputs > 1 else self.constant.value[0]
            elif t == self.plan.settings.halfway:
                if self.split.shares[planning.NEW_CLIP] > 0.0:
                    self.clip = self._new_clip()
                if self.split.shares[planning.HESSIAN] > 0.0:
                    self.models = self._new_models()
            self._move(self._noisy_gradient(t))
            yield Made(self.w, share * self.w, share)

    def exact_steps(self) -> Iterator[FloatArray]:
        """The weights after each step without end, epsilon being infinite: no noise, and nothing is clipped."""
        while True:
            self._move(self._noisy_gradient(0))
            yield self.w

    def _move(self, gradient: FloatArray) -> None:
        """Minimise the quadratic model around the current weights, output by output."""
        outputs = zip(self.models, np.atleast_2d(self.w), np.atleast_2d(gradient), strict=True)
        moved = [model.minimise(model.matrix @ w - slope, w) for model, w, slope in outputs]
        self.w = np.reshape(moved, self.scaled.shape)

    def _models(self, curvatures: FloatArray) -> list[QuadraticModel]:
        """The metric times the curvature of each output."""
        matrix = self.metric.matrix
        made = {h: QuadraticModel(h * matrix, self.scaled.penalty_terms) for h in set(curvatures.tolist())}
        return [made[h] for h in curvatures.tolist()]

    def _noisy_gradient(self, t: int) -> FloatArray:
        """The mean of the gradients at the current weights, clipped in the metric, with noise that is white in it.

        Guarantee: costs the planned share of one gradient step.
        """
        scaled = self.scaled
        grid = self._gradient_grid(t)
        # Half a step of the rows' grid is at most half a step in the metric.
        step = 0.0 if grid.is_exact else 2.0 ** math.floor(math.log2(grid.step * math.sqrt(self.metric.values.min())))
        total = scaled.sum(partial(gradient_sum, **self._here, step=step))
        if not grid.is_exact:
            total = self.metric.unwhiten(grid.release(self.run.rng, self.metric.whiten(total)))
        return total / scaled.rows

    def _gradient_grid(self, t: int) -> NoisyGrid:
        """The grid and the noise of gradient step t in the metric.

        Rows are rounded before their sum is taken into the metric, where it is rounded again: two steps per entry. The
        change of coordinates itself adds at most 2 * columns more: docs/guarantees/newton.md.
        """
        columns, condition = self.scaled.columns, self.metric.condition
        entries = self.scaled.outputs * columns
        if not self.plan.is_noisy:
            return mechanisms.Gaussian(0.0).grid(mechanisms.clipped_sum(self.relation), entries)
        norm_error = 1.0 + condition * columns**1.5 * 2.0**-50  # of the norms by which the rows are clipped
        sensitivity = mechanisms.clipped_sum(self.relation, entries) * (self.clip * norm_error)
        part = self.split.part(planning.GRADIENTS + t)
        return part.grid(sensitivity, entries, 4.0 * self.scaled.rows * condition, loose=2.0 + 2.0 * columns)

    def _learn_metric(self) -> Metric:
        """Two releases: a bound on the norms of the rows, and their second moment."""
        if self.plan.settings.public_metric:
            return self._checked_public_metric()
        radius = self.solver.radius
        if radius is None:
            radius = self._learn_radius(planning.RADIUS, plain_norms)
        total = self.scaled.sum(partial(clipped_moment, radius=radius, table_rows=self._table_rows))
        moment = self._release(total, radius, planning.MOMENT)
        metric = Metric.from_second_moment(moment)
        self._keep_curvature(
            planning.likely_values(moment) / metric.values, moment.deviation / math.sqrt(2.0)
        )  # off the diagonal
        return metric

    def _keep_curvature(self, along: FloatArray, mean_noise: float) -> None:
        """How large the second moment is along each direction, in the metric, and how uncertain the columns' means."""
        along = np.minimum(along, 1.0)
        self.mean_noise, self.mean_square = mean_noise, float(along.sum())
        self.curvature = planning.Curvature(
            np.eye(along.size), np.ones(along.size), np.maximum(UNCLIPPED * along, 1e-3)
        )

    def _learn_constant(self) -> ConstantScore | None:
        """One release, if it is planned: the counts of the labels."""
        if self.split.shares[planning.LABELS] == 0.0 or not self.scaled.problem.loss.classification:
            return None
        return learn_label_scores(self.scaled, self.split.part(planning.LABELS), self.relation, self.run.rng)

    def _checked_public_metric(self) -> Metric:
        """Two releases: a bound on the norms of the rows in the public metric, and their largest second moment there.

        Where the rows are longer than the public table says, the metric is enlarged until steps do not overshoot.
        """
        table = self.plan.public.table
        if table is None:
            raise RuntimeError("a public metric was planned without a public table.")
        noise = unresolved(self.plan.problem, self.plan.public, self.plan.budget)
        found = public_metric(self.scaled, table, noise)
        # A radius that the caller chose is not one in this metric, and no budget is planned to learn another.
        if self.plan.settings.learns_norm_bounds and self.solver.radius is None:
            radius = self._learn_radius(planning.RADIUS, found.metric.norms_of)
        else:
            radius = float(np.quantile(found.metric.norms(public_rows(self.scaled, table)), 1.0 - LONG_ROWS))
        moments = partial(clipped_moment, metric=found.metric, radius=radius, table_rows=self._table_rows)
        part, rng = self.split.part(planning.MOMENT), self.run.rng
        top, noise = largest_eigenvalue(self.scaled.sum(moments), radius, self.scaled.rows, part, rng)
        metric = Metric(found.metric.values * max(1.0, 0.5 * (top + noise)), found.metric.vectors)
        self._keep_curvature(found.moments / metric.values, 1.0 / math.sqrt(table.rows))
        return metric

    def _new_models(self) -> list[QuadraticModel]:
        """Those of the second half."""
        return self._learn_curvatures() if self.scaled.outputs > 1 else self._learn_hessian()

    def _learn_hessian(self) -> list[QuadraticModel]:
        """The Hessian in the metric, after a bound on the norms of the rows times their root curvatures."""
        radius = self._learn_radius(planning.CURVATURE_RADIUS, partial(curved_norms, **self._here))
        radius = max(radius, self.least_radius * math.sqrt(self.scaled.columns))
        total = self.scaled.sum(partial(hessian, **self._here, radius=radius, table_rows=self._table_rows))
        moment = self._release(total, radius, planning.HESSIAN)
        self.curvature = planning.safe_curvature(moment)
        matrix = self.scaled.problem.loss.smoothness * self.metric.unwhitened(self.curvature.matrix)
        return [QuadraticModel(matrix, self.scaled.penalty_terms)]

    def _learn_curvatures(self) -> list[QuadraticModel]:
        """With several outputs a curvature for each, so large that steps do not overshoot; at most its bound.

        The mean of the rows' curvatures is released, lifted by about as much as the lowest of as many normal numbers
        lies below 0, and multiplied by `COUPLING`.

        Guarantee: costs the planned share of the Hessian.
        """
        scaled, loss, part = self.scaled, self.scaled.problem.loss, self.split.part(planning.HESSIAN)
        sensitivity = mechanisms.clipped_sum(self.relation, loss.outputs) * planning.row_curvature_bound(loss)
        total = scaled.sum(partial(curvature_sum, w=self.w, table_rows=self._table_rows))
        mean = part.release(self.run.rng, total, sensitivity) / scaled.rows
        lift = math.sqrt(2.0 * math.log(loss.outputs)) * part.deviation(sensitivity) / scaled.rows
        found = np.clip(planning.COUPLING * (mean + lift), 0.0, loss.smoothness)
        return self._models(np.maximum(found, planning.LEAST_CURVATURE * loss.smoothness))

    @property
    def _here(self) -> dict[str, Any]:
        """Where gradients and curvatures of the rows are asked for, and how they are clipped."""
        return {"w": self.w, "metric": self.metric, "clip": self.clip, "label_free": self.label_free}

    @property
    def _table_rows(self) -> int | None:
        """The public number of rows, by which rows are rounded; None: no noise, and no rounding."""
        return self.scaled.rows if self.plan.is_noisy else None

    def _release(self, total: FloatArray, radius: float, which: int) -> SecondMoment:
        """A sum of outer products with the noise of its share of the budget."""
        part = self.split.part(which)
        return second_moment.release(total, radius, self.scaled.rows, part, self.relation, self.run.rng)

    def _learn_radius(self, which: int, norms: NormsOf) -> float:
        """The radius of a second moment, from noisy counts of norms."""
        unit = math.sqrt(self.scaled.columns)
        if self.plan.budget.is_infinite:
            return float(self.scaled.max(partial(largest_norm, norms=norms))[0])
        if not self.plan.settings.learns_norm_bounds:
            return UNLEARNED_RADIUS * unit
        allowed = min(LONG_ROWS * self.scaled.rows, self.clipped_rows)
        counts = self.scaled.sum(partial(counts_of_norms, norms=norms, unit=unit))
        part, rng = self.split.part(which), self.run.rng
        return private_norm_bound(counts, unit, allowed, part, self.relation, rng, self.scaled.rows)

    def _learn_clip(self, which: int) -> float:
        """The clipping threshold of the gradients, from noisy counts of their norms at the current weights."""
        if self.solver.clip is not None:
            return self.solver.clip
        if self.plan.budget.is_infinite:
            return math.inf
        unit = math.sqrt(self.scaled.columns) * typical_slope(self.plan.problem, self.scaled.scaling)
        if not self.plan.settings.learns_norm_bounds:
            return self._usual_clip()
        norms = partial(gradient_norms, w=self.w, metric=self.metric, label_free=self.label_free)
        counts = self.scaled.sum(partial(counts_of_norms, norms=norms, unit=unit))
        part, rng = self.split.part(which), self.run.rng
        return private_norm_bound(counts, unit, self.clipped_rows, part, self.relation, rng, self.scaled.rows)

    def _usual_clip(self) -> float:
        """The median size of a gradient at the start, as released numbers tell it."""
        usual = math.sqrt(max(self.mean_square, 1.0)) * typical_slope(self.plan.problem, self.scaled.scaling)
        return planning.first_slope(self.plan.problem) * usual

    def _new_clip(self) -> float:
        """The threshold for the second half."""
        return max(self._learn_clip(planning.NEW_CLIP), self.clip * planning.least_shrinkage(self.scaled.problem))

    @property
    def clipped_rows(self) -> float:
        """How many rows may be clipped.

        A row more that is clipped costs at most its excess; a lower threshold saves noise in proportion to the total
        noise and to the root of the number of weights. The number balances the two.
        """
        noise = self.split.whole.deviation(mechanisms.clipped_sum(self.relation))
        return CLIPPED_ROWS * noise * math.sqrt(self.scaled.outputs * self.scaled.columns)


def only_constant(scaled: BlockwiseProblem, plan: planning.NewtonPlan, run: Run) -> FloatArray:
    """Weights that predict the constant alone: the labels' shares, or the mean to which the target was shifted."""
    w = scaled.start()
    if plan.mechanism.shares[planning.LABELS] > 0.0:
        found = learn_label_scores(scaled, plan.mechanism.part(planning.LABELS), plan.public.relation, run.rng).value
        w[..., -1] = found if scaled.outputs > 1 else found[0]
    run.report(1, 1, scaled, w)
    return w
