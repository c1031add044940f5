"""The sums over rows that may change, for one law of the noise: theorems 3 and 4 of docs/guarantees/harm.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.fairness.harm.flip_curves import BallCurve, FlipCurve, NoiseCurve
from discreet.fairness.harm.margin_profiles import LABELS
from discreet.fairness.harm.planned_noise import ScoreNoise
from discreet.fairness.harm.result import GroupChange
from discreet.fairness.quantities import Quantity
from discreet.privacy import mechanisms
from discreet.privacy.budget import budget_from

if TYPE_CHECKING:
    from discreet.fairness.harm.at_plan import HarmQuestion
    from discreet.solvers import Plan

FAILURES = 10.0 ** -np.arange(0.5, 12.0, 0.5)  # tried for the mean, where only quantiles of the noise are known


class HarmSums:
    """The sums of theorems 3 and 4 for one law of the noise."""

    def __init__(self, question: HarmQuestion, noise: ScoreNoise) -> None:
        self.question, self.noise = question, noise
        self._known: dict[FlipCurve, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def of(self, statement: Quantity, plan: Plan) -> GroupChange:
        """How much one statement can change, and how much of that can be seen."""
        question = self.question

        def down(curve: FlipCurve) -> float:
            return 0.0 - statement.change_within(*self.sides(curve)[:2])[0]

        def up(curve: FlipCurve) -> float:
            return statement.change_within(*self.sides(curve)[:2])[1]

        def either(curve: FlipCurve) -> float:
            return statement.absolute_change(self.sides(curve)[2])

        if question.mode == "expected":
            most = float(np.abs(statement.weights).sum())
            low, high, change = (self.mean(part, most) for part in (down, up, either))
        else:
            failure = question.failure / len(question.statements)
            low, high = (self.bound(part, 0.5 * failure) for part in (down, up))
            change = min(max(low, high), self.bound(either, failure))
        label = statement.label if statement.within_label else None
        changed = self.changed(statement.group, label)
        seen = self.seen(statement, plan)
        return GroupChange(statement.group, label, statement.rows, change, -low, high, changed, *seen)

    def aggregate(self, groups: list[float]) -> float:
        """How much the mean over groups of the absolute values can change, given the changes of the groups."""
        weights = np.mean([np.abs(statement.weights) for statement in self.question.statements], axis=0)

        def sum_of(curve: FlipCurve) -> float:
            return float((weights * self.sides(curve)[2]).sum())

        if self.question.mode == "expected":
            return self.mean(sum_of, float(weights.sum()))
        return min(self.bound(sum_of, self.question.failure), float(np.mean(groups)))

    def sides(self, curve: FlipCurve) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss, gain and both together, per label and group."""
        if curve not in self._known:
            margins, groups = self.question.margins, self.question.groups
            found = [[margins.sides(label, group, curve) for group in groups] for label in LABELS]
            loss, gain, total = np.moveaxis(np.array(found), -1, 0).copy()
            self._known[curve] = loss, gain, total
        return self._known[curve]

    def bound(self, sum_of: Callable[[FlipCurve], float], failure: float) -> float:
        """What a weighted sum over the rows that change exceeds with probability at most `failure`."""
        reach = self.noise.per_distance * self.noise.law.radius(failure)
        curves: list[FlipCurve] = [BallCurve(reach)]
        if self.noise.deviation:
            curves.append(self._gaussian(failure))
        return min(map(sum_of, curves))

    def mean(self, sum_of: Callable[[FlipCurve], float], most: float) -> float:
        """A bound on the mean of a weighted sum over the rows that change, whose weights add up to `most`."""
        if self.noise.deviation:
            return sum_of(self._gaussian(None))
        return min(self.bound(sum_of, failure) + failure * most for failure in FAILURES.tolist())

    def _gaussian(self, failure: float | None) -> NoiseCurve:
        assert self.noise.deviation is not None
        return NoiseCurve(
            self.noise.deviation, self.noise.per_distance * getattr(self.noise.law, "error", 0.0), failure
        )

    def changed(self, group: str | None, label: int | None) -> float:
        """The expected part of the predictions for a group, or a label of it, that the noise changes."""
        own = np.zeros_like(self.question.cells)
        places = slice(None) if group is None else list(self.question.groups).index(group)
        labels = slice(None) if label is None else label
        own[labels, places] = self.question.cells[labels, places]
        own /= own.sum()
        return self.mean(lambda curve: float((own * self.sides(curve)[2]).sum()), 1.0)

    def seen(self, statement: Quantity, plan: Plan) -> tuple[float, float | None]:
        """The smallest differences that stand out from sampling, and from the noise of a private evaluation."""
        from scipy.special import ndtri

        question = self.question
        known = [[question.margins.accuracy(label, group) for group in question.groups] for label in LABELS]
        right = np.array([[0.5 if part is None else part for part in row] for row in known])
        quantile = -float(ndtri(0.5 * question.failure))
        squares = statement.weights**2 / question.cells
        visible = quantile * math.sqrt(float((squares * right * (1.0 - right)).sum()))
        if question.evaluation_epsilon is None:
            return visible, None
        counted = int(sum(question.groups.values()))
        budget = budget_from(question.evaluation_epsilon, None, counted)
        counts = mechanisms.one_hot_counts(plan.public.relation, 1)
        sigma = mechanisms.additive(budget, 1.0).deviation(counts)
        shares = 2.0 * sigma**2 * (right**2 + (1.0 - right) ** 2) / question.cells
        return visible, quantile * math.sqrt(float((squares * shares).sum()))
