"""DP-Newton: few gradient steps in a metric that was learned privately once.

The second-moment matrix of the rows, released with noise, preconditions the gradient steps: few of them are enough, and
clipping and noise suit all directions. Each step minimises a quadratic model, penalty included, which costs nothing.
Halfway, a noisy Hessian replaces the bound on the curvature: where outcomes are rare, it is many times smaller. Theorem
and proof: docs/guarantees/newton.md.

The result is the mean of the iterates, shrunk towards the constant by what is known about their noise. How far each
direction is shrunk, and where the intercept then is, is post-processing of released numbers and costs nothing: step 4
of that page. With a log link, one noisy mean over the rows then moves the intercept: docs/guarantees/counts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet._common.checks import check_threshold, number_in, positive
from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid, takes_tensors
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.problem.losses import Squared
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_target, unscaled
from discreet.scaling.second_moment import check_columns
from discreet.solvers._shared.descents import descend, typical_slope, until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.newton import planning
from discreet.solvers.newton.calibration import with_best_scale
from discreet.solvers.newton.descent import Descent, only_constant
from discreet.solvers.plan import LABEL_MARGIN, TARGET_MARGIN

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.release import PlannedRelease
    from discreet.problem.losses import Loss
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
    from discreet.solvers._shared.minimisers import QuadraticModel

# Where these come from: docs/defaults.md.
NOTHING = 0.5  # probability, before the rows are read, that the columns tell nothing
SIGNALS = 2.0 ** np.arange(-10.0, 3.5, 0.5)  # variances of the scores, over the usual one, that are equally likely
STRENGTHS = 2.0 ** np.arange(-4.0, 12.0, 0.5)  # the same for variances of the weights over those of their noise
LEFT = 0.8  # of the weights: clipping has shortened them already, by a part that is not known
PROBIT = math.pi / 8.0  # a logistic function averaged over scores of variance v is one of score / sqrt(1 + v PROBIT)
MOST_DAMPED = 2.0  # variance of scores that the rule is undone for: at 1 / PROBIT = 2.5 nothing would be left to undo
CURVED = 0.1  # how wrong that rule may be about the intercept, times the variance of the scores
Link = Literal["identity", "logit", "log"]
SMALLEST_NOISE = 1e-300  # a variance that is 0 must not be divided by
FEW_STEPS = 5  # from the constant: they see the curvature of small scores alone
WEAK_NOISE = 0.05  # variance of the noise in scores of a log link, over the usual one, up to which they are believed
EXCESS = 8.0  # of a clipped gradient over its threshold, in usual gradients: counts have long tails
LEAST_LEFT = 0.01  # of the target's variance: nothing is explained completely, whatever the noise says

LEAST_ERROR, MOST_ERROR = 0.05, 0.5  # of an intercept that follows the released mean: more if scores vary more
LARGEST_MOVE = 3.0  # a factor of 20: what is further away is noise


@dataclass(frozen=True, eq=False)
class NoisyWeights:
    """Released weights of the columns, with the covariance of their noise."""

    slopes: FloatArray
    noise: FloatArray

    def expected(self, usual: float) -> FloatArray:
        """The mean of the weights without noise, given the noisy ones, under a prior that knows no column.

        Before the rows are read, all weights are 0 (with probability `NOTHING`), or normal around 0: with one variance
        for all directions, or with one that is in proportion to that of the noise. How large it is, is open, but the
        scores have no more variance than the largest of `SIGNALS`: noise must not pass for scores that nothing has.
        `usual` is the standard deviation that scores usually have.
        """
        return self._mean_of(self._posterior(usual))

    def expected_signal(self, usual: float) -> tuple[FloatArray, float]:
        """The same given that not all weights are 0, and the probability that they are."""
        posterior = self._posterior(usual)
        nothing = float(posterior.masses[0])
        masses = np.append(0.0, posterior.masses[1:])
        return self._mean_of(replace(posterior, masses=masses / max(masses.sum(), SMALLEST_NOISE))), nothing

    def _posterior(self, usual: float) -> Posterior:
        noises, vectors = np.linalg.eigh(self.noise)
        noises = np.maximum(noises, SMALLEST_NOISE)
        along = vectors.T @ self.slopes
        equal = np.outer(SIGNALS * usual**2 / along.size, np.ones(along.size))
        largest = float(SIGNALS[-1]) * usual**2 / float(noises.sum())
        strengths = np.append(STRENGTHS[largest > STRENGTHS], min(STRENGTHS[-1], largest))
        signals = np.vstack([np.zeros(along.size), equal, np.outer(strengths, noises)])
        parts = (NOTHING, 1), (0.5 * (1.0 - NOTHING), SIGNALS.size), (0.5 * (1.0 - NOTHING), strengths.size)
        prior = np.concatenate([np.full(size, mass / size) for mass, size in parts])
        total = signals + noises
        likelihood = np.log(prior) - 0.5 * (np.log(total) + along**2 / total).sum(axis=1)
        masses = np.exp(likelihood - likelihood.max())
        return Posterior(vectors, along, signals / total, masses / masses.sum())

    def _mean_of(self, posterior: Posterior) -> FloatArray:
        kept = np.minimum(posterior.masses @ posterior.kept / LEFT, 1.0)
        found = np.asarray(posterior.vectors @ (kept * posterior.along))
        return np.where(self.slopes == 0.0, 0.0, found)  # what a penalty has left out stays out


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the variances that weights may have; the first is 0.

    `kept` is the part of the noisy weights, `along` the eigenvectors of their noise, that each variance leaves.
    """

    vectors: FloatArray
    along: FloatArray
    kept: FloatArray
    masses: FloatArray


@dataclass(frozen=True)
class Estimate:
    """A number and the variance of its error."""

    value: float
    variance: float

    def combined(self, other: Estimate) -> float:
        """The mean of two estimates, weighted by the inverse of their variances."""
        if math.isinf(other.variance):
            return self.value
        share = other.variance / max(self.variance + other.variance, SMALLEST_NOISE)
        return share * self.value + (1.0 - share) * other.value


@dataclass(frozen=True, eq=False)
class Columns:
    """The means and covariances of the columns, as a noisy second moment with a last column of ones has them.

    `noise` is the standard deviation of the noise in each mean.
    """

    moment: FloatArray
    noise: float

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.moment[-1, :-1] / self.moment[-1, -1])

    def mean_of(self, w: FloatArray) -> float:
        """The mean of the scores of weights with an intercept."""
        return float(w[-1] + self.means @ w[:-1])

    def variance_of(self, slopes: FloatArray) -> float:
        """The variance of the scores."""
        within = float(slopes @ self.moment[:-1, :-1] @ slopes)
        return max(within - self.moment[-1, -1] * float(self.means @ slopes) ** 2, 0.0)

    def undamped(self, slopes: FloatArray) -> FloatArray:
        """Slopes of labels that few steps from the constant have found, as many steps would find them.

        The first steps see how labels change with the columns on average: the true slopes over sqrt(1 + v PROBIT), v
        being the variance of the true scores. That of the slopes found is v / (1 + v PROBIT).
        """
        found = min(self.variance_of(slopes), MOST_DAMPED)
        return slopes / math.sqrt(1.0 - PROBIT * found)

    def intercept_for(self, constant: Estimate, slopes: FloatArray, link: Link) -> Estimate:
        """The intercept with which the mean prediction is that of the constant.

        The mean of exp of normal scores of variance v is that of their mean, times exp(v / 2).
        """
        variance = 0.0 if link == "identity" else self.variance_of(slopes)
        at_means = (
            constant.value - 0.5 * variance if link == "log" else constant.value * math.sqrt(1 + PROBIT * variance)
        )
        value = at_means - float(self.means @ slopes)
        doubt = (CURVED * variance) ** 2 + self.noise**2 * float(slopes @ slopes)
        return Estimate(value, constant.variance + doubt)


def with_intercept(
    w: FloatArray, shrunk: FloatArray, noise: FloatArray, columns: Columns, constant: Estimate | None, link: Link,
    bias: float = 0.0,
) -> FloatArray:  # fmt: skip
    """Weights, intercept last, of which the slopes have been shrunk; the constant's score has a say in the intercept.

    `bias` says how far clipping may have moved the intercept.

    What the slopes lose takes the noise of the intercept along, so far as both have it in common.
    """
    common = np.linalg.lstsq(noise[:-1, :-1], noise[-1, :-1], rcond=None)[0]
    lost = float(common @ (w[:-1] - shrunk))
    own = Estimate(float(w[-1]) - lost, max(float(noise[-1, -1] - common @ noise[-1, :-1]), 0.0))
    if constant is None:
        return np.append(shrunk, own.value)
    own = Estimate(own.value, own.variance + bias**2)
    return np.append(shrunk, own.combined(columns.intercept_for(constant, shrunk, link)))


def averaged_noise(progress: FloatArray, steps: FloatArray, weights: FloatArray) -> FloatArray:
    """The variance, along each direction, of the weighted mean of the iterates.

    Step t adds noise of standard deviation `steps[t]`, and leaves the part 1 - progress of what it finds.
    """
    kept, variance = 1.0 - progress, np.zeros_like(progress)
    for t, deviation in enumerate(steps):
        in_mean = kept[:, None] ** np.arange(steps.size - t) @ weights[t:]
        variance += (deviation * in_mean) ** 2
    return variance


def part_of_the_way(progress: FloatArray, weights: FloatArray) -> FloatArray:
    """How far, along each direction, the weighted mean of the iterates has come from the start to the minimum."""
    return np.asarray(1.0 - (1.0 - progress)[:, None] ** np.arange(1, weights.size + 1) @ weights)


def settled(descent: Descent, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean of the iterates by these weights, shrunk; with a log link the intercept is measured, if planned.

    Guarantee: costs the planned share of the mean curvature, if there is one.
    """
    w = shrunk(descent, w, weights)
    if not descent.plan.problem.loss.log_link or descent.split.shares[planning.LABELS] == 0.0:
        return w
    variance = Columns(descent.metric.matrix, descent.mean_noise).variance_of(w[:-1])
    return calibrated_intercept(descent.scaled, w, variance, descent.split.part(planning.LABELS), descent.run.rng)


def shrunk(descent: Descent, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean of the iterates shrunk output by output; weights with bounds are left as they are."""
    scaled = descent.scaled
    if not descent.plan.is_noisy or not scaled.penalty_terms.free:
        return w
    origin = np.zeros_like(w) if scaled.origin is None else scaled.origin
    outputs = zip(np.atleast_2d(w), descent.models, constants(descent), np.atleast_2d(origin), strict=True)
    found = []
    for mean, model, constant, start in outputs:
        noise = noise_of(descent, model, mean, weights)
        found.append(settled_output(descent, mean, model, constant, start, noise))
    return np.reshape(found, w.shape)


def settled_output(
    descent: Descent, w: FloatArray, model: QuadraticModel, constant: Estimate | None, origin: FloatArray,
    noise: FloatArray,
) -> FloatArray:  # fmt: skip
    """The weights of one output, shrunk towards a public start or, without one, towards the constant."""
    problem, labels = descent.scaled.problem, descent.scaled.problem.loss.classification
    usual = usual_margin(descent)
    if not problem.fit_intercept:
        return origin + NoisyWeights(w - origin, noise).expected(usual)
    columns = Columns(descent.metric.matrix, descent.mean_noise)
    few = labels and descent.scaled.outputs == 1 and descent.plan.settings.steps <= FEW_STEPS
    damped = few and constant is not None and descent.scaled.origin is None
    slopes = NoisyWeights(w[:-1] - origin[:-1], noise[:-1, :-1])

    def completed(short: FloatArray) -> FloatArray:
        short = origin[:-1] + short
        slopes = columns.undamped(short) if damped else short
        if problem.loss.log_link:
            slopes = within_belief(slopes, noise[:-1, :-1], columns, usual)
        return with_intercept(w, slopes, noise, columns, constant, link_of(problem.loss), clipping_bias(descent))

    if descent.split.shares[planning.CALIBRATION] == 0.0:
        return completed(slopes.expected(usual))
    signal, nothing = slopes.expected_signal(usual)
    return with_best_scale(descent, descent.split.part(planning.CALIBRATION), completed(signal), columns, nothing)


def within_belief(slopes: FloatArray, noise: FloatArray, columns: Columns, usual: float) -> FloatArray:
    """Slopes of a log link, shortened until their scores vary no more than usual, unless the noise is weak.

    Predictions grow with the exponential of a score, and so does what noise does to the steps: a threshold that was
    learned too large leaves scores that no model has.
    """
    variance, doubt = columns.variance_of(slopes), float(np.trace(noise @ columns.moment[:-1, :-1]))
    most = usual**2 * max(1.0, WEAK_NOISE * usual**2 / max(doubt, SMALLEST_NOISE))
    return slopes * math.sqrt(min(1.0, most / max(variance, SMALLEST_NOISE)))


def clipping_bias(descent: Descent) -> float:
    """How far clipped gradients may have moved the intercept of a log link.

    Counts are skewed: nearly all of the gradients that are clipped pull the mean up. Their share is known in advance.
    """
    if not descent.scaled.problem.loss.log_link:
        return 0.0
    clipped = descent.clipped_rows / descent.scaled.rows if descent.plan.settings.learns_norm_bounds else 0.5
    return min(1.0, EXCESS * clipped * descent.scaled.scaling.target_scale)


def usual_margin(descent: Descent) -> float:
    """The standard deviation that scores usually have: those of a log link are logarithms, without a unit."""
    loss = descent.scaled.problem.loss
    if loss.classification:
        return LABEL_MARGIN
    return TARGET_MARGIN * (1.0 if loss.log_link else descent.scaled.scaling.target_scale)


def link_of(loss: Loss) -> Link:
    """How predictions follow from scores."""
    if loss.classification:
        return "logit"
    return "log" if loss.log_link else "identity"


def slope_variance(descent: Descent, w: FloatArray) -> float:
    """The mean square of the slopes: of labels that are even, or of what the weights leave of a target."""
    scaled = descent.scaled
    if scaled.problem.loss.classification:
        return 0.25
    whole = typical_slope(scaled.problem, scaled.scaling) ** 2
    if not scaled.problem.fit_intercept:
        return whole
    explained = Columns(descent.metric.matrix, descent.mean_noise).variance_of(w[:-1])
    return max(whole - explained, LEAST_LEFT * whole)


def noise_of(descent: Descent, model: QuadraticModel, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The covariance of the noise in the mean of the iterates of one output, that of sampled rows included."""
    scaled, metric, curvature = descent.scaled, descent.metric, descent.curvature
    bound = float(np.trace(model.matrix) / np.trace(metric.unwhitened(curvature.matrix)))
    sensitivity = mechanisms.clipped_sum(descent.relation) * descent.clip
    parts = (descent.split.part(planning.GRADIENTS + t) for t in range(weights.size))
    steps = np.array([part.deviation(sensitivity) for part in parts]) / scaled.rows
    variances = averaged_noise(curvature.progress, steps, weights)
    # The rows are a sample: their mean gradient varies, and the steps have followed it part of the way.
    followed = part_of_the_way(curvature.progress, weights) ** 2 * curvature.model / curvature.progress
    variances = (variances + slope_variance(descent, w) / scaled.rows * followed) / (bound * curvature.model) ** 2
    penalised = model.matrix + np.diag(scaled.penalty_terms.l2)
    shortened = np.linalg.solve(penalised, model.matrix)  # what the penalty leaves of every step
    back = shortened @ (metric.vectors / np.sqrt(metric.values)) @ curvature.vectors
    return np.asarray((back * variances) @ back.T)


def constants(descent: Descent) -> list[Estimate | None]:
    """The constant's score for each output: 0 for a target that was centred at its noisy mean, if the loss keeps means.

    Of the losses without a log link only the squared one does: its residuals add up to 0 at the optimum.
    """
    loss = descent.scaled.problem.loss
    if descent.constant is not None:
        pairs = zip(descent.constant.value, descent.constant.deviation, strict=True)
        return [Estimate(float(value), float(deviation) ** 2) for value, deviation in pairs]
    if not (isinstance(loss, Squared) or loss.log_link):
        return [None] * descent.scaled.outputs
    return [Estimate(0.0, descent.scaled.scaling.target_noise**2)]


def mean_curvature(
    scaled: BlockwiseProblem, w: FloatArray, mechanism: Gaussian, rng: RandomGenerator
) -> tuple[float, float] | None:
    """The mean over the rows of the curvature of their loss, and the standard deviation of its noise.

    None with weights, whose sum is not the public number of rows. It is planned only where all rows are there
    (`replace`), and there neighbours have weights both or neither.

    Guarantee: reads the rows only through one sum of numbers between 0 and 1, which costs one event of the mechanism.
    """
    bound, sensitivity = scaled.problem.loss.smoothness, mechanisms.bounded_fractions(1).rounded(TERM_STEP, 1)
    total, weighted = scaled.sum(partial(_curvature_sum, w=w, bound=bound))
    if weighted:
        return None
    released = float(mechanism.release(rng, np.array([total]), sensitivity)[0])
    return bound * released / scaled.rows, bound * mechanism.deviation(sensitivity) / scaled.rows


@takes_tensors
def _curvature_sum(block: ScaledBlock, w: FloatArray, bound: float) -> FloatArray:
    """The sum of the rows' curvatures, in units of their bound, and whether rows have weights."""
    part = np.clip(np.nan_to_num(block.loss.curvature(block.margins(w), block.y)) / bound, 0.0, 1.0)
    return np.array([on_term_grid(part).sum(), float(block.weight is not None)])


def calibrated_intercept(
    scaled: BlockwiseProblem, w: FloatArray, variance: float, mechanism: Gaussian, rng: RandomGenerator
) -> FloatArray:
    """The weights with the intercept, the last of them, moved to where the mean curvature is 1, as far as it is told.

    Clipping moves the intercept of skewed targets far more than noise does. At the optimum of either deviance, with the
    target in units of its mean, the mean curvature is 1, and an intercept that is too low or too high by t makes it
    exp(-t) or exp(t) times as large.

    `variance` is that of the scores: so wrong may the rule be by which the intercept follows from the released mean.

    Guarantee: costs one event of the mechanism; everything else is post-processing.
    """
    measured = mean_curvature(scaled, w, mechanism, rng)
    if measured is None:
        return w
    found, noise = measured
    level = max(found, noise)
    doubt = (noise / level) ** 2 + min(scaled.scaling.target_noise, 1.0) ** 2
    error = min(LEAST_ERROR + variance, MOST_ERROR)
    believed = error**2 / (error**2 + doubt)
    # The curvature of counts grows with the intercept, that of amounts falls.
    missing = -math.log(level) if scaled.problem.loss.target_power else math.log(level)
    moved = w.copy()
    moved[-1] += float(np.clip(believed * missing, -LARGEST_MOVE, LARGEST_MOVE))
    return moved


@dataclass(frozen=True)
class Newton(Solver[BudgetSplit, planning.NewtonSettings]):
    """Gradient steps preconditioned by a private second-moment matrix.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default more of them if the noise is weak.
    clip : float, optional
        Norm, in the metric, to which each row's gradient is clipped; learned privately by default.
    radius : float, optional
        Norm to which rows are clipped in the second-moment matrix, in the solver's (scaled) columns; learned
        privately by default. Where the metric is that of a public table, the norms of its rows are used instead.
    moment_share : float
        Share of the budget (after the scales) for the second-moment matrix.
    hessian_share : float
        Share for one noisy Hessian halfway, which then replaces the bound on the curvature; with several outputs, for
        one curvature of each. 0 leaves it out. It is left out, too, where the table is too small for it, and for
        losses whose curvature jumps.
    average : bool
        Return the average of the later iterates, weighted by their shares of the budget, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "newton"
    capabilities = Capabilities(shrinks=True, separable_only=True, start=True, persons=True, stored=True)

    steps: int | None = None
    clip: float | None = None
    radius: float | None = None
    moment_share: float = planning.MOMENT_SHARE
    hessian_share: float = planning.HESSIAN_SHARE
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        check_threshold("radius", self.radius)
        number_in("moment_share", self.moment_share, planning.LEAST_SHARE, planning.MOST_SHARE)
        number_in("hessian_share", self.hessian_share, 0.0, planning.MOST_SHARE)
        if self.moment_share + self.hessian_share > planning.MOST_SHARE:
            raise ValueError(
                f"moment_share and hessian_share may be {planning.MOST_SHARE} together, to leave some to the steps."
            )

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, planning.NewtonSettings]:
        shares, settings = planning.planned(self, problem, public, budget)
        if not any(shares):  # all is spent on the target's mean
            return BudgetSplit(1.0, shares), settings
        if not settings.is_constant:
            check_columns(self.name, public.columns)
        return calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public), settings

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        if planning.fits_constant(self, problem, public, budget):
            facts = facts_for_scales(public, problem.loss.log_link)
            return unscaled(False) if problem.loss.classification else plan_target(facts, budget)
        return super()._plan_scaling(problem, public, budget)

    def _releases(self, plan: planning.NewtonPlan) -> list[PlannedRelease]:
        return planning.releases_of(plan)

    def _descend(self, scaled: BlockwiseProblem, plan: planning.NewtonPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, Descent(self, scaled, plan, run).exact_steps(), every=5)
        if plan.settings.is_constant:
            return only_constant(scaled, plan, run), 0
        descent = Descent(self, scaled, plan, run)
        w, _ = descend(scaled, run, plan.settings.steps, descent.planned_steps(), self.average)
        return settled(descent, w, weights_of_iterates(self, plan)), plan.settings.steps


def weights_of_iterates(solver: Newton, plan: planning.NewtonPlan) -> FloatArray:
    """With which weight the iterate after each step is part of the result."""
    weights = np.array(plan.mechanism.shares[planning.GRADIENTS : planning.GRADIENTS + plan.settings.steps])
    weights[: plan.settings.steps // 2 if solver.average else -1] = 0.0
    return weights / weights.sum()
