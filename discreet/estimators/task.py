"""Classification or regression? Three noisy counts decide, when nobody said which, or ask for the labels.

Looking at the target to see whether it holds only 0 and 1 would be a release without noise. The question is
therefore planned, paid for and answered like any other release. Proof: docs/guarantees/task.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.mechanisms import Additive, Sensitivity, additive, one_hot_counts

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation, Unit
    from discreet.solvers import Plan

Task = Literal["classification", "regression"]
Answer = Literal["classification", "regression", "codes"]
FALSE_CODES = 1e-6  # how often noise alone looks like codes other than 0 and 1: a person is then asked for nothing
LARGEST_CODE = 20  # whole numbers from 0 to this one may be codes of classes
SHARE = 0.02  # of the budget
MOSTLY_BINARY = 0.9  # fraction of rows with target 0 or 1 that makes a classification
EVEN = 0.5  # the threshold where noise leaves no better choice
SAFE_DEVIATIONS = 4.0  # of the noise, which falls below them once in 30,000 questions
SHRINK = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3)  # of the budget, given up in turn


@dataclass(frozen=True)
class TaskQuestion:
    """How the task will be decided: the mechanism, the public number of rows to divide by, and the relation.

    Where persons may have several rows, `rows` counts persons, and the rows of each count as one together.
    """

    mechanism: Additive
    rows: int
    relation: Relation
    unit: Unit = "row"

    @property
    def event(self) -> Any:
        return self.mechanism.event

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the three counts: every row is in one of them."""
        return one_hot_counts(self.relation, 1)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise of a count, as a fraction of the rows."""
        return self.mechanism.deviation(self.sensitivity) / self.rows

    @property
    def most_others(self) -> float:
        """So many rows that are neither 0 nor 1, by their noisy number, may be noise alone."""
        return self.mechanism.level(self.sensitivity, FALSE_CODES, 2)

    @property
    def threshold(self) -> float:
        """0.9, lowered towards one half where a table of zeros and ones might miss it through noise alone."""
        return max(EVEN, min(MOSTLY_BINARY, 1.0 - SAFE_DEVIATIONS * self.noise))

    @property
    def reliable(self) -> bool:
        """Whether the noise is small against the distance between the answers; a public fact."""
        return SAFE_DEVIATIONS * self.noise <= EVEN

    def ask(self, target: npt.NDArray[np.float64], rng: RandomGenerator) -> Answer:
        """Decide the task of a numeric target.

        Guarantee: reads the rows through three counts with noise, and costs exactly `event`.
        """
        return self.decide(code_counts(target), rng)

    def decide(self, counts: FloatArray, rng: RandomGenerator) -> Answer:
        """Decide the task from the numbers of rows that `code_counts` tells.

        "codes" says that the target may hold labels other than 0 and 1, of which a person must know.

        Guarantee: reads the rows through three counts with noise, and costs exactly `event`.
        """
        binary, codes, rest = self.mechanism.release(rng, counts, self.sensitivity)
        if binary > self.threshold * self.rows:
            return "classification" if codes + rest <= self.most_others else "codes"
        return "codes" if binary + codes > EVEN * self.rows else "regression"


def plan_question(budget: Budget, rows: int, relation: Relation, unit: Unit = "row") -> TaskQuestion:
    """Spend a fiftieth of the budget: of mu^2, or of epsilon if the budget is pure."""
    return TaskQuestion(additive(budget, SHARE), rows, relation, unit)


def code_counts(target: npt.NDArray[np.float64], weight: FloatArray | None = None) -> FloatArray:
    """How many rows, by weight, have a target of exactly 0 or 1, another small whole number, or anything else."""
    binary = (target == 0.0) | (target == 1.0)
    codes = (target == np.floor(target)) & (target >= 0.0) & (target <= LARGEST_CODE) & ~binary
    kinds = np.stack([binary, codes, ~binary & ~codes]).astype(np.float64)
    return np.asarray(kinds.sum(axis=1) if weight is None else kinds @ weight)


def binary_labels(target: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Label 1 for the value 1 and label 0 for every other one, row by row.

    An error instead would tell that a row with another value exists; more than noise hides are asked about.
    """
    return (target == 1.0).astype(np.int64)


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
