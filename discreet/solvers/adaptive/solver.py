"""Gradient steps whose budget follows what has been released: labels first, then a direction, then its scale.

The budget is divided into equal releases, and only that is planned. What the next one is asked follows from those
before: counts of the labels as long as these promise to save more log-loss than gradient steps would, then gradients,
which find a direction; the last ones look at its scores, one column, and tell where they lie and how sharply they
separate the labels. Where the counts say that nothing else will be seen, all releases go to them and the model is a
constant. Theorem and proof: docs/guarantees/adaptive.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, cast

import numpy as np

from discreet._common.checks import check_threshold
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.losses import ClassWeighted
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import Made, curvature_bound, descend, until_optimal
from discreet.solvers._shared.full_batch import FullBatchSettings, NoisyGradient, default_steps, iterates
from discreet.solvers._shared.label_counts import GRID, counted_labels, counts_labels, label_shares
from discreet.solvers.adaptive.scores import (
    Direction,
    Expected,
    LabelledScores,
    ScoreBins,
    counts_by_label,
    counts_of_scores,
    first_edges,
    place_of,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, SCORES_BY_LABEL, Plan

# Where these come from: docs/defaults.md.
PLACE, TABLE = 0.05, 0.15  # of the budget, for where the scores lie and for the table of them by label
STEP = 1.9  # in units of the inverse of a bound on the curvature
TOLD = 0.25  # of the entropy of the labels, which columns usually explain


AdaptivePlan = Plan[BudgetSplit, FullBatchSettings]


@dataclass(frozen=True)
class AdaptiveDescent(Solver[BudgetSplit, FullBatchSettings]):
    """Gradient descent for labels that counts labels first and measures the scale of its scores at the end.

    Parameters
    ----------
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "adaptive"
    capabilities = Capabilities(shrinks=True, separable_only=True, persons=True, stored=True)

    clip: float | None = None
    scale_share: float | None = None

    def __post_init__(self) -> None:
        check_threshold("clip", self.clip)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why this solver cannot take this problem under this budget; None if it can."""
        if not counts_labels(problem) or isinstance(problem.loss, ClassWeighted):
            return "it is for the logistic and the multinomial loss, with an intercept and without class weights"
        if problem.constraint is not None or not problem.penalty_terms(1).free:
            return "it multiplies coefficients by a number, which a set may not allow"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, FullBatchSettings]:
        steps = default_steps(public, budget)
        shares = (*[(1.0 - PLACE - TABLE) / steps] * steps, PLACE, TABLE)
        mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
        return mechanism, FullBatchSettings(steps)

    def _releases(self, plan: AdaptivePlan) -> list[PlannedRelease]:
        relation, dimension = plan.public.relation, plan.problem.loss.outputs * (plan.public.columns + 1)
        gradient = mechanisms.clipped_sum(relation, dimension) * (1.0 / plan.public.rows)
        counts = mechanisms.one_hot_counts(relation, 1)
        steps = ("mean gradients of all rows, or counts of labels", gradient, OF_THE_THRESHOLD)
        last = [("counts of scores", counts, "rows per count"), (SCORES_BY_LABEL, counts, "rows per count")]
        return [
            release
            for k, (what, sensitivity, unit) in enumerate([*[steps] * plan.settings.steps, *last])
            for release in planned_releases(what, plan.mechanism.part(k).event, relation, sensitivity, unit)
        ]

    def _descend(self, scaled: BlockwiseProblem, plan: AdaptivePlan, run: Run) -> tuple[FloatArray, int]:
        start, length = scaled.start(), STEP / curvature_bound(scaled)
        one: Any = replace(cast(Any, plan), mechanism=plan.mechanism.part(0))  # as a plan of such steps has it
        gradient = NoisyGradient(scaled, one, self.clip)

        def steps(w: FloatArray) -> Iterator[FloatArray]:
            return iterates(gradient, run.rng, w, lambda v, slope: scaled.prox(v - length * slope, length))

        if plan.budget.is_infinite:
            return until_optimal(scaled, run, steps(start))
        answers = Answers(scaled, plan, run)
        labels = answers.labels()
        start[..., -1] = labels.constant
        if labels.asked == answers.releases:
            run.report(1, 1, scaled, start)
            return start, plan.settings.steps
        left = plan.settings.steps - labels.asked
        w, _ = descend(scaled, run, left, (Made(v, v) for v in islice(steps(start), left)), average=True)
        return answers.with_scale(w, labels), plan.settings.steps


@dataclass(frozen=True, eq=False)
class Labels:
    """The shares of the labels, as far as noisy counts tell them, and how many releases were spent on these.

    `shares` and `spreads` are as counted, `probable` holds for each label the probabilities of the shares of a grid.
    """

    asked: int
    shares: FloatArray
    spreads: FloatArray
    rows: float

    @property
    def probable(self) -> FloatArray:
        """How probable each share is given the noisy one, if all shares of so many labels were equally likely."""
        exponent = -0.5 * ((SHARES - self.shares[:, None]) / self.spreads[:, None]) ** 2
        exponent += (self.shares.size - 2) * np.log1p(-SHARES)
        mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))

    @property
    def constant(self) -> FloatArray:
        """The log-odds of the second of two labels, or the centred logarithms of the shares of several."""
        logs = np.log(np.maximum(self.probable @ SHARES, 0.5 / self.rows))
        return logs[1] - logs[0] if logs.size == 2 else logs - logs.mean()

    def best_number(self, options: FloatArray, gradients: FloatArray, noise: float) -> int:
        """Of these numbers of counts, each with a part of the budget for gradients, the one that saves most log-loss.

        `noise` is that of the direction by the whole budget, in units of its length.
        """
        probable, several = self.probable, self.shares.size
        entropy = float((probable @ -(SHARES * np.log(SHARES))).sum())
        mean, square = probable @ SHARES, probable @ SHARES**2
        doubt, counted = 1.0 / (square - mean**2), 1.0 / (self.asked * self.spreads**2)  # by what one more tells
        left = 1.0 / (doubt + np.outer(options - self.asked, counted))
        lost = (1.0 - 1.0 / several) * (left / (2.0 * (mean - square))).sum(axis=1)
        seen = gradients / (gradients + noise**2)
        return int(options[np.argmax(TOLD * entropy * seen - lost)])


SHARES = (np.arange(GRID) + 0.5) / GRID


class Answers:
    """What the equal releases of a plan are asked, one after the other."""

    def __init__(self, scaled: BlockwiseProblem, plan: AdaptivePlan, run: Run) -> None:
        self.scaled, self.plan, self.rng = scaled, plan, run.rng
        self.mechanism, self.relation = plan.mechanism.part(0), plan.public.relation
        self.releases = math.floor(1.0 / plan.mechanism.shares[0])  # of this size in the whole budget
        self.counts = mechanisms.one_hot_counts(self.relation, 1)
        # Columns that have faded count for less.
        self.columns = max(1.0, float(scaled.scaling.second_moment[~scaled.scaling.frozen].sum()))

    def labels(self) -> Labels:
        """Count the labels until further counts would save less log-loss than gradients.

        Guarantee: costs as many releases of the mechanism as it says; the sums are those of one histogram.
        """
        counted = self.scaled.sum(counted_labels)
        steps = self.plan.settings.steps
        options = np.append(np.arange(1.0, steps), self.releases)
        gradients = np.append(steps - options[:-1], 0.0) / self.releases
        noisy, asked, wanted = np.zeros(counted.size - 1), 0, 1
        while asked < wanted:
            more = min(wanted - asked, max(asked, 1))
            found = self.mechanism.together(more).release(self.rng, counted[:-1], self.counts)
            noisy, asked = (asked * noisy + more * found) / (asked + more), asked + more
            labels = self._labels(noisy, asked, weighted=counted[-1] != 0.0)
            later = options >= asked
            wanted = labels.best_number(options[later], gradients[later], self._lost_direction(labels))
        return labels

    def _labels(self, noisy: FloatArray, asked: int, weighted: bool) -> Labels:
        deviation = self.mechanism.together(asked).deviation(self.counts)
        shares, spreads, rows = label_shares(noisy, deviation, self.scaled.rows, self.relation, weighted)
        return Labels(asked, shares, spreads, rows)

    def _lost_direction(self, labels: Labels) -> float:
        """The noise of a direction by the whole budget, over its length."""
        whole = self.plan.mechanism.whole.deviation(mechanisms.clipped_sum(self.relation))
        return whole / self.scaled.rows * self.columns

    def with_scale(self, w: FloatArray, labels: Labels) -> FloatArray:
        """The weights with the scale, and of two labels the intercept, that noisy counts of their scores speak for.

        Guarantee: costs `place` and `table` releases of the mechanism; each reads the rows through one histogram.
        """
        slopes, several = np.where(self.scaled.scaling.frozen, 0.0, w[..., :-1]), w.ndim > 1
        norm = float(np.linalg.norm(slopes))
        if norm == 0.0:  # nothing was seen in any column
            return np.concatenate([slopes, np.broadcast_to(labels.constant, (*w.shape[:-1],))[..., None]], axis=-1)
        own = (w[..., -1:] - labels.constant[:, None]) if several else np.zeros(1)
        direction = Direction(np.concatenate([slopes, own], axis=-1) / norm, 0.0, 1.0)
        expected = None if several else Expected(float(w[-1]), norm, float(labels.constant))
        direction = self._placed(direction, labels, expected)
        part = self.plan.mechanism.part(-1)
        noise = part.deviation(self.counts) / labels.rows
        bins = ScoreBins.for_noise(noise, folded=several)
        counts = self.scaled.sum(partial(counts_by_label, direction=direction, bins=bins))
        noisy = part.release(self.rng, counts, self.counts).reshape(-1, 2) / labels.rows
        share = None if several else (float(labels.shares[1]), float(labels.spreads[1]))
        ridge, lasso = self._penalty(direction, labels)
        level, slope = LabelledScores(noisy, noise, labels.rows, bins, share).line(ridge, lasso)
        found = slope / direction.width * direction.w
        found[..., -1] += labels.constant if several else level - slope * direction.centre / direction.width
        return found

    def _placed(self, direction: Direction, labels: Labels, expected: Expected | None) -> Direction:
        """The same direction with the place and the width of its scores."""
        edges = first_edges(self.columns)
        part = self.plan.mechanism.part(-2)
        counts = self.scaled.sum(partial(counts_of_scores, direction=direction, edges=edges))
        shares = part.release(self.rng, counts, self.counts) / labels.rows
        centre, width = place_of(shares, part.deviation(self.counts) / labels.rows, labels.rows, edges, expected)
        if direction.w.ndim > 1:  # leads are counted by their size
            return Direction(direction.w, 0.0, math.hypot(centre, width))
        return Direction(direction.w, centre, width)

    def _penalty(self, direction: Direction, labels: Labels) -> tuple[float, float]:
        """The penalty of a slope: the objective divides losses by the public number of rows, shares by their own."""
        terms, unit = self.scaled.penalty_terms, self.scaled.rows / labels.rows
        w = direction.w / direction.width
        return unit * float((terms.l2 * w**2).sum()), unit * float((terms.l1 * np.abs(w)).sum())
