"""Classification or regression? One noisy count decides, when nobody said which.

Looking at the target to see whether it holds only 0 and 1 would be a release without noise. The question is
therefore planned, paid for and answered like any other release. Proof: docs/guarantees/task.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.privacy import accounting
from discreet.privacy.mechanisms import Additive, additive, counted_rows

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation
    from discreet.solvers import Plan

Task = Literal["classification", "regression"]
SHARE = 0.02  # of the budget
MOSTLY_BINARY = 0.9  # fraction of rows with target 0 or 1 that makes a classification
EVEN = 0.5  # the threshold where noise leaves no better choice
SAFE_DEVIATIONS = 3.0  # of the noise, which exceeds them once in 700 questions
SHRINK = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3)  # of the budget, given up in turn


@dataclass(frozen=True)
class TaskQuestion:
    """How the task will be decided: the mechanism, and the public number of rows to divide by."""

    mechanism: Additive
    rows: int

    @property
    def event(self) -> Any:
        return self.mechanism.event

    @property
    def noise(self) -> float:
        """Standard deviation of the noise, as a fraction of the rows."""
        return self.mechanism.deviation(counted_rows()) / self.rows

    @property
    def threshold(self) -> float:
        """0.9, lowered towards one half where a table of zeros and ones might miss it through noise alone."""
        return max(EVEN, min(MOSTLY_BINARY, 1.0 - SAFE_DEVIATIONS * self.noise))

    @property
    def reliable(self) -> bool:
        """Whether the noise is small against the distance between the answers; a public fact."""
        return SAFE_DEVIATIONS * self.noise <= EVEN

    def ask(self, target: npt.NDArray[np.float64], rng: RandomGenerator) -> Task:
        """Decide the task of a numeric target.

        Guarantee: reads the rows through one count with noise, and costs exactly `event` under every relation.
        """
        return self.decide(binary_count(target), rng)

    def decide(self, binary: int, rng: RandomGenerator) -> Task:
        """Decide the task from the number of rows whose target is exactly 0 or 1.

        Guarantee: reads the rows through one count with noise, and costs exactly `event` under every relation.
        """
        count = self.mechanism.release(rng, np.array([float(binary)]), counted_rows())
        return "classification" if count[0] > self.threshold * self.rows else "regression"


def plan_question(budget: Budget, rows: int) -> TaskQuestion:
    """Spend a fiftieth of the budget: of mu^2, or of epsilon if the budget is pure."""
    return TaskQuestion(additive(budget, SHARE), rows)


def binary_count(target: npt.NDArray[np.float64]) -> int:
    """How many rows have a target of exactly 0 or 1."""
    return int(np.count_nonzero((target == 0.0) | (target == 1.0)))


def binary_labels(target: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Labels 0 and 1 for a target that is mostly so; other values go to the nearer label, row by row.

    An error instead would tell that such a row exists.
    """
    return (target > 0.5).astype(np.int64)


def plan_beside(
    question: TaskQuestion, budget: Budget, relation: Relation, plan_with: Callable[[Budget], Plan]
) -> Plan:
    """The plan of a model that fits the whole budget together with the question; `plan_with` plans for a budget.

    What the question leaves is known in closed form, so that one plan is enough, except for sampled plans, whose
    costs do not add up in mu: their part of the budget is lowered until the accountant agrees.

    Guarantee: the composition of the question and of the plan fits `budget`.
    """
    if budget.is_infinite:
        return plan_with(budget)
    for shrink in SHRINK:
        plan = plan_with(budget.part((1.0 - SHARE) * (1.0 - shrink)))
        if accounting.fits(accounting.compose([question.event, plan.event]), budget, relation):
            return plan
    raise ValueError("no budget is left for the model beside the question about the task; pass the task.")


def covers_either(events: list[Any], budget: Budget) -> bool:
    """Whether plans that each fit the budget beside the question also do when the answer picks one of them.

    Not always: of two privacy profiles that cross, each answer might pick the one that is worse there. It
    holds if the plans cost the same or are ordered, as they are in mu, rho and pure epsilon.
    """
    if budget.is_infinite or budget.kind != "approximate" or all(event == events[0] for event in events):
        return True
    leaves = [leaf for event in events for leaf, _ in accounting.flatten(event)]
    return all(type(leaf).__name__ == "GaussianDpEvent" for leaf in leaves)
