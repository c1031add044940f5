"""A table whose columns belong to several holders, and what part of the held-out loss a model explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet import Budget, Problem
from discreet.federated.vertical import HolderFacts, VerticalSchedule, plan_vertical
from discreet.problem.losses import Loss
from discreet.problem.penalties import L2

FloatArray = npt.NDArray[np.float64]
PENALTY = L2(1e-4)


@dataclass(frozen=True, eq=False)
class Case:
    """A table, cut into columns of holders and into people that are fitted and people that are held out."""

    name: str
    loss: Loss
    columns: dict[str, list[int]]
    bounds: FloatArray  # (2, columns)
    X: FloatArray
    y: FloatArray
    held_out: FloatArray
    held_out_y: FloatArray
    y_bounds: tuple[float, float] | None

    @property
    def problem(self) -> Problem:
        return Problem(self.loss, PENALTY)

    @property
    def labels(self) -> str:
        return list(self.columns)[-1]

    def explained(self, coef: FloatArray, intercept: float) -> float:
        """How much of the held-out loss of the best constant is explained."""
        constant = Problem(self.loss).optimum(np.zeros((len(self.y), 1)), self.y).intercept
        losses = self.loss.value(self.held_out @ coef + intercept, self.held_out_y)
        return 1.0 - float(
            losses.mean() / self.loss.value(np.full(len(self.held_out_y), constant), self.held_out_y).mean()
        )

    def plan(self, epsilon: float) -> VerticalSchedule:
        """The plan of all holders, each with this epsilon."""
        n = len(self.y)
        facts = [
            HolderFacts(name, len(own), Budget(epsilon, 1.0 / n**2), tuple(self.bounds[:, own]))
            for name, own in self.columns.items()
        ]
        return plan_vertical(self.problem, facts, n, labels=self.labels, y_bounds=self.y_bounds)

    def exact(self, own: list[int]) -> float:
        """What the model of these columns explains without privacy."""
        best = self.problem.optimum(self.X[:, own], self.y)
        coef = np.zeros(self.X.shape[1])
        coef[own] = best.coef
        return self.explained(coef, float(best.intercept))
