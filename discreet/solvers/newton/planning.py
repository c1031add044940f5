"""What newton decides from public facts: its releases, their shares of the budget, its steps and how long they are.

The curvature of the model that a step minimises is so large that steps do not overshoot: before the first step it
follows from the problem alone, then from noisy second moments. Rules and derivations: docs/guarantees/newton.md, "The
plan" and steps 1 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.losses import ClassWeighted
from discreet.problem.losses.scalar import every_label
from discreet.scaling.plan import facts_for_scales, hides_target
from discreet.scaling.second_moment import noise_edge, noticeable
from discreet.solvers._shared.descents import NoiseRule, planned_slope
from discreet.solvers._shared.label_counts import counts_labels
from discreet.solvers.newton.calibration import check_share, wanted_share
from discreet.solvers.plan import (
    LABEL_MARGIN,
    OF_THE_THRESHOLD,
    SCORES_BY_LABEL,
    SQUARED_LENGTH,
    TARGET_MARGIN,
    Plan,
    Settings,
)

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.losses import Loss
    from discreet.problem.problem import Problem
    from discreet.scaling.second_moment import SecondMoment
    from discreet.solvers.newton.solver import Newton

# The releases of a run in their order, which is the place of their shares in the plan's BudgetSplit.
RADIUS = 0  # counts of the norms of the rows
MOMENT = 1  # the second-moment matrix of the rows
CLIP = 2  # counts of the norms of the gradients, before the first step
NEW_CLIP = 3  # the same halfway
CURVATURE_RADIUS = 4  # counts of the norms of the rows times their root curvatures, halfway
HESSIAN = 5  # the Hessian, halfway; with several outputs the mean curvature of each
LABELS = 6  # counts of the labels; with a log link the mean curvature, at the end
CALIBRATION = 7  # counts of the scores by label, after the last step
GRADIENTS = 8  # the first of the gradient steps
# Tuned on public tables, and never read from rows: docs/defaults.md.
LEAST_CURVATURE = 0.05  # in units of its bound: no step is more than 20 times as long as one that is safe everywhere
MEDIAN_RESIDUAL = 0.6745  # of normal residuals, in standard deviations
CAUTION = 2.0  # steps are so much shorter than usual curvatures allow, since curvatures grow along with a fit
# The Hessian of the softmax loss is a graph's Laplacian, the curvatures being its degrees: it is at most twice the
# diagonal matrix of them. One-against-the-rest losses have no other entries, and a margin of 2 for directions that
# have more curvature than the mean of all.
COUPLING = 2.0
# Tuned on public tables (electricity, california, adult, acsincome), and never read from rows: docs/defaults.md.
STEPS, FEW_STEPS, FEWEST_STEPS = NoiseRule(0.6, 0.5, 30.0), NoiseRule(0.6, 1.0, 14.0), 4
FEWEST_LABEL_STEPS = 2  # the same for labels, which a single step follows part of the way only
STEPS_SHARE = 0.5  # of the budget: about what scales and limits leave to the steps of small tables
GROWTH, MOST_GROWTH = 1.2, 100.0  # of the share from step to step, and in all: early steps need not be exact
MOST_LABELS = 0.5  # of the budget, for the counts of the labels; if they need more, they get all of it
NORM_BOUND_SHARE, MOST_NORM_BOUND_SHARE = 0.03, 0.1  # for each of the up to four histograms of sizes
MOMENT_SHARE = 0.1  # for the second-moment matrix
HESSIAN_SHARE = 0.03  # for the Hessian halfway
EIGENVALUE_SHARE = 0.03  # after the scales, for the largest eigenvalue in a public metric
LEAST_SHARE, MOST_SHARE = 1e-6, 0.8  # of the moment, and of both together
NOISIEST_HESSIAN = 0.5  # the edge of its noise, over the bound on the curvature; noisier ones are left out
LONG_RESIDUALS = 2.5  # what all but a few residuals keep below, in units of the usual one; normal ones: 2 to 3
CALIBRATION_SHARE = 0.05  # of the budget, for the intercept of a log link
FULL_BIN = 0.25  # of the rows, in the fullest bin of a histogram of sizes: it must stand out of the noise


@dataclass(frozen=True, eq=False)
class Curvature:
    """The curvature of the model in the metric, in units of its bound: eigenvectors and values.

    `progress` is the part of the way to the minimum that a step goes along each of them: what is expected of the
    gradients' curvature, over that of the model.
    """

    vectors: FloatArray
    model: FloatArray
    progress: FloatArray

    @property
    def matrix(self) -> FloatArray:
        return np.asarray((self.vectors * self.model) @ self.vectors.T)


def likely_values(moment: SecondMoment) -> FloatArray:
    """What the eigenvalues would be without noise.

    Within the edge of the noise it is the noise that orders them, and only their mean says where they lie.
    """
    values, edge = np.linalg.eigvalsh(moment.matrix), moment.noise_edge
    return np.maximum(values - edge, max(float(np.minimum(values, edge).mean()), 0.0))


def safe_curvature(moment: SecondMoment) -> Curvature:
    """The noisy Hessian in the metric, in units of the bound on the curvature; so large that steps do not overshoot.

    It is lifted by the edge of its noise. In directions of little curvature few rows have a say, and the mean of all
    directions keeps the steps short there. The progress is that of the Hessian without noise, or half of the way where
    the noise hides it.
    """
    values, vectors = np.linalg.eigh(moment.matrix)
    lifted = np.maximum(values + moment.noise_edge, max(float(values.mean()), LEAST_CURVATURE))
    model = np.minimum(lifted, 1.0)
    return Curvature(vectors, model, np.clip(values / model, 0.5, 1.0))


def first_curvature(loss: Loss) -> float:
    """That of the model before any is learned: its bound, or less where that is far from usual."""
    return min(loss.smoothness, CAUTION * loss.usual_curvature)


def first_slope(problem: Problem) -> float:
    """The median of the slopes at the start, in units of a usual one: those of labels at margin 0, or residuals."""
    loss = problem.loss
    if not loss.classification:
        return MEDIAN_RESIDUAL
    slopes = np.reshape(loss.slope(*every_label(loss)), (max(loss.outputs, 2), -1))
    return float(np.linalg.norm(slopes, axis=1).max()) / planned_slope(problem)


def least_shrinkage(problem: Problem) -> float:
    """By how much the threshold may fall halfway.

    Residuals shrink; slopes of labels grow where labels are rare, and these few rows, which may be too few to be seen
    in the counts, must not be clipped.
    """
    return 1.0 if problem.loss.classification else 0.5


def row_curvature_bound(loss: Loss) -> float:
    """The norm to which the curvatures of a row, one per output, are shortened; no row of these losses exceeds it.

    Each curvature is at most the smoothness. Those of the softmax loss are p (1 - p) <= 1/4 and sum to less than 1, so
    that their squares sum to less than 1/4.
    """
    return 0.5 if loss.name == "multinomial" else loss.smoothness * math.sqrt(loss.outputs)


@dataclass(frozen=True)
class NewtonSettings(Settings):
    """The gradient steps, and what is learned beside them."""

    steps: int  # 0: the model is a constant
    learns_norm_bounds: bool  # from noisy counts of lengths; else usual lengths are used
    halfway: int  # the step before which threshold and curvature are learned anew; 0: never
    moment_share: float
    hessian_share: float
    public_metric: bool | None = field(default=None, metadata={"digest": "if given"})

    @property
    def is_constant(self) -> bool:
        return self.steps == 0


NewtonPlan = Plan[BudgetSplit, NewtonSettings]


def releases_of(plan: NewtonPlan) -> list[PlannedRelease]:
    """The releases in plain words, from the parts of the split that draw their noise."""
    columns, relation = plan.public.columns + plan.problem.fit_intercept, plan.public.relation
    counts = mechanisms.one_hot_counts(relation, 1)
    matrix = mechanisms.outer_products(relation, columns) * (1.0 / plan.public.rows)
    gradient = mechanisms.clipped_sum(relation) * (1.0 / plan.public.rows)
    moment = ("second-moment matrix of the rows", matrix, SQUARED_LENGTH)
    if plan.settings.public_metric:
        largest = mechanisms.bounded_fractions(1) * (1.0 / plan.public.rows)
        moment = ("largest second moment of the rows in the public metric", largest, SQUARED_LENGTH)
    before: dict[int, tuple[str, mechanisms.Sensitivity, str]] = {
        RADIUS: ("counts of row lengths", counts, "rows per count"),
        MOMENT: moment,
        CLIP: ("counts of gradient lengths", counts, "rows per count"),
        NEW_CLIP: ("counts of gradient lengths", counts, "rows per count"),
        CURVATURE_RADIUS: ("counts of row lengths by curvature", counts, "rows per count"),
        HESSIAN: ("Hessian of the loss", matrix, SQUARED_LENGTH),
        LABELS: ("counts of labels", counts, "rows per count"),
        CALIBRATION: (SCORES_BY_LABEL, counts, "rows per count"),
    }
    if plan.problem.loss.log_link:
        fraction = mechanisms.bounded_fractions(1) * (1.0 / plan.public.rows)
        before[LABELS] = ("mean curvature, for the intercept", fraction, "of the largest that a row may have")
    if plan.problem.loss.outputs > 1:
        before[HESSIAN] = ("mean curvature of each output", gradient, "of the largest that a row may have")
    step = ("mean gradients of all rows", gradient, OF_THE_THRESHOLD)
    planned: list[PlannedRelease] = []
    for k, share in enumerate(plan.mechanism.shares):
        if share > 0.0:
            what, sensitivity, unit = before.get(k, step)
            planned += planned_releases(what, plan.mechanism.part(k).event, relation, sensitivity, unit)
    return planned


def with_share(shares: tuple[float, ...], which: int, share: float) -> tuple[float, ...]:
    """The shares if one release has another share: the rest stays divided as it was."""
    rest = (1.0 - share) / (1.0 - shares[which])
    return tuple(share if k == which else rest * other for k, other in enumerate(shares))


def planned(
    solver: Newton, problem: Problem, public: Public, budget: Budget
) -> tuple[tuple[float, ...], NewtonSettings]:
    """The shares of the releases in their order, and the settings."""
    if fits_constant(solver, problem, public, budget):
        # Of a target all is spent on its mean, which the scales learn; of labels on their counts.
        shares = tuple(float(k == LABELS and problem.loss.classification) for k in range(GRADIENTS))
        return shares, NewtonSettings(0, False, 0, 0.0, 0.0)
    columns = public.columns + problem.fit_intercept
    steps = int(solver.steps) if solver.steps is not None else default_steps(problem, budget, public, columns)
    bound_share = norm_bound_share(budget, public)
    learned = bound_share <= MOST_NORM_BOUND_SHARE
    smooth = not problem.loss.discontinuous_curvature
    middle = halfway(steps)
    wanted = middle > 0 and learned and smooth and _quiet(solver, problem.loss, public, budget, columns)
    hessian = solver.hessian_share if wanted else 0.0
    labels, check = label_shares(problem, public, budget)
    shares = shares_of(solver, steps, bound_share if learned else 0.0, hessian, labels, check, problem.loss.outputs)
    known = uses_public_metric(public, budget, columns, solver.moment_share)
    if known:  # only its largest eigenvalue is looked at
        shares = with_share(shares, MOMENT, min(shares[MOMENT], EIGENVALUE_SHARE))
    moment = EIGENVALUE_SHARE if known else solver.moment_share
    return shares, NewtonSettings(steps, learned, middle, moment, hessian, True if known else None)


def label_shares(problem: Problem, public: Public, budget: Budget) -> tuple[float, float]:
    """The shares of the counts of the labels, or of the mean curvature of a log link, and of the scores by label."""
    free = problem.penalty_terms(public.columns).free  # weights with bounds are left where the gradients put them
    complete = public.relation is Relation.REPLACE and not public.persons
    if not budget.is_infinite and problem.loss.log_link and problem.fit_intercept and free and complete:
        return CALIBRATION_SHARE, 0.0
    if not _counts_labels(problem, public, budget):
        return 0.0, 0.0
    # Counts of scores by label speak for a scale of labels that all weigh the same.
    plain = problem.loss.outputs == 1 and not isinstance(problem.loss, ClassWeighted)
    check = check_share(public, budget) if plain and not public.has_start else 0.0
    return min(wanted_share(public, budget), MOST_LABELS), check


def fits_constant(solver: Newton, problem: Problem, public: Public, budget: Budget) -> bool:
    """Whether the constant alone needs so much of the budget that nothing can be told about the columns.

    A public start tells something about them already.
    """
    asked = (solver.steps, solver.clip, solver.radius, solver.scale_share)
    if any(setting is not None for setting in asked) or solver.why_incompatible(problem, budget) is not None:
        return False
    if public.has_start or budget.is_infinite or not problem.fit_intercept:
        return False
    if not problem.loss.classification:
        return hides_target(facts_for_scales(public, problem.loss.log_link), budget)
    return _counts_labels(problem, public, budget) and wanted_share(public, budget) > MOST_LABELS


def _counts_labels(problem: Problem, public: Public, budget: Budget) -> bool:
    """Whether the labels are counted; weights with bounds are left where the gradients put them."""
    return not budget.is_infinite and counts_labels(problem) and problem.penalty_terms(public.columns).free


def shares_of(
    solver: Newton, steps: int, bound_share: float, hessian: float, labels: float, check: float, outputs: int,
    growth: float = GROWTH,
) -> tuple[float, ...]:  # fmt: skip
    """Shares of the budget in the order of the releases, summing to 1; what is not learned costs 0.

    The labels' share is taken first, then that of the check; the others are of what they leave. The curvatures of
    several outputs have a bound that is known, the Hessian of one has not.
    """
    later = halfway(steps) > 0
    before = (
        bound_share if solver.radius is None else 0.0,
        solver.moment_share,
        bound_share if solver.clip is None else 0.0,
        bound_share if solver.clip is None and later and bound_share == NORM_BOUND_SHARE else 0.0,
        bound_share if hessian > 0.0 and outputs == 1 else 0.0,
        hessian,
    )
    growing = min(growth, MOST_GROWTH ** (1.0 / steps)) ** np.arange(steps)
    check *= 1.0 - labels
    left = 1.0 - labels - check
    others = left * np.array(before)
    return (*others.tolist(), labels, check, *((left - others.sum()) * growing / growing.sum()).tolist())


def norm_bound_share(budget: Budget, public: Public) -> float:
    """The share of the budget with which a histogram shows where most rows are, as far as possible a few of them."""
    if budget.is_infinite:
        return NORM_BOUND_SHARE
    whole = mechanisms.Gaussian(1.0 / budget.gaussian_mu())
    return max(NORM_BOUND_SHARE, (noticeable(whole, public.relation) / (FULL_BIN * public.rows)) ** 2)


def default_steps(problem: Problem, budget: Budget, public: Public, columns: int) -> int:
    """Directions of little curvature need many steps and collect noise in each: the noise level decides.

    T steps share the budget, so that the noise of each is sqrt(T) times that of a single one. The steps of a squared
    loss undo the noise of those before them: each may move scores by half of what is usual. Labels lose their curvature
    as scores grow, and nothing is undone: all steps together, sqrt(T) sqrt(T) of that noise, may move them by what is
    usual.
    """
    noise, moved = noise_level(budget, public, columns), moved_by_noise(problem, budget, public, columns)
    most = max(STEPS.at(noise), FEW_STEPS.at(noise))
    if moved == 0.0:
        return round(most)
    if problem.loss.classification:
        return max(FEWEST_LABEL_STEPS, round(min(LABEL_MARGIN * math.sqrt(STEPS_SHARE) / moved, most)))
    return max(FEWEST_STEPS, round(min((0.5 * TARGET_MARGIN / moved) ** 2, most)))


def noise_level(budget: Budget, public: Public, columns: int) -> float:
    """The noise of a mean of vectors of norm 1 with the whole budget, over all columns."""
    unit = mechanisms.clipped_sum(public.relation)
    return mechanisms.additive(budget, 1.0).deviation(unit) * math.sqrt(columns) / public.rows


def moved_by_noise(problem: Problem, budget: Budget, public: Public, columns: int) -> float:
    """How far the noise of a single step with the whole budget moves scores."""
    clip = math.sqrt(columns) * planned_slope(problem) * first_slope(problem)
    return clip * noise_level(budget, public, columns) / problem.loss.usual_curvature


def _quiet(solver: Newton, loss: Loss, public: Public, budget: Budget, columns: int) -> bool:
    """Whether the Hessian, or with several outputs the curvature of each, stands out of its noise."""
    if loss.outputs == 1:
        part = first_curvature(loss) / loss.smoothness
        return quiet_hessian(solver.hessian_share, budget, public, columns, part)
    return quiet_curvatures(solver.hessian_share, budget, public, loss)


def quiet_hessian(share: float, budget: Budget, public: Public, columns: int, part: float = 1.0) -> bool:
    """Whether the Hessian of rows of typical length, being this part of its bound, would stand out of its noise."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) <= part * NOISIEST_HESSIAN


def quiet_curvatures(share: float, budget: Budget, public: Public, loss: Loss) -> bool:
    """Whether the curvatures of balanced outputs would be told from the bound of the loss."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.clipped_sum(public.relation) * row_curvature_bound(loss)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    lift = math.sqrt(2.0 * math.log(loss.outputs)) * deviation
    return COUPLING * lift < loss.smoothness


def uses_public_metric(public: Public, budget: Budget, columns: int, share: float) -> bool:
    """Whether the noise of the private second moment would exceed the sampling error of the public one.

    Both are sizes of the largest eigenvalue of an error, for scaled columns of mean square 1.
    """
    if public.table is None or budget.is_infinite:
        return False
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    noise = noise_edge(columns, mechanisms.additive(budget, share).deviation(sensitivity) / public.rows)
    ratio = columns / public.table.rows
    return noise > 2.0 * math.sqrt(ratio) + ratio  # the edge of the spectrum of a sample covariance, less 1


def hidden_part(share: float, budget: Budget, public: Public, columns: int) -> float:
    """The edge of the noise's eigenvalues over the trace of the second moment, for rows of typical length.

    Scaled columns have mean square 1, so that the trace is the number of columns. An eigenvalue is seen if it exceeds
    the edge, so a direction is if it holds more than this part of the rows' squared length.
    """
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) / columns


def halfway(steps: int) -> int:
    """The step before which threshold and curvature are learned anew. 0: never."""
    return steps // 2
