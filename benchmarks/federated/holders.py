"""A table whose rows belong to many holders, what a model is judged by, and what both contestants are planned with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.federated import FederatedPlan, plan_federated
from discreet.federated.simulation import Parts
from discreet.problem import L2, Logistic, Problem

FloatArray = npt.NDArray[np.float64]
ALPHA = 1e-4
PROBLEM = Problem(Logistic(), L2(ALPHA))
TEST_SHARE = 0.2
EPSILON = 1.0
Scores = list[tuple[float, float]]  # log-loss and accuracy of each run


@dataclass(frozen=True, eq=False)
class HolderTable:
    """Rows that are fitted, in the order of what decides who holds them, rows that are held out, and public bounds."""

    name: str
    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    low: FloatArray
    high: FloatArray

    def parts(self, clients: int) -> Parts:
        """Neighbouring rows, nearly equally many for each client: no two clients see the same kind of rows."""
        width = len(str(clients - 1))
        pieces = np.array_split(np.arange(self.y.size), clients)
        return {f"holder {i:0{width}d}": piece for i, piece in enumerate(pieces)}

    def judge(self, coef: FloatArray, intercept: float) -> tuple[float, float]:
        """Log-loss and accuracy on the rows that were held out."""
        margins = self.y_test * (self.X_test @ coef + intercept)
        return float(np.logaddexp(0.0, -margins).mean()), float((margins > 0.0).mean())

    @cached_property
    def without_privacy(self) -> tuple[float, float]:
        """What the minimiser of the pooled rows reaches."""
        from sklearn.linear_model import LogisticRegression

        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        model = LogisticRegression(C=1.0 / (ALPHA * self.y.size), max_iter=5_000)
        model.fit((self.X - centre) / half, self.y)
        coef = model.coef_[0] / half
        return self.judge(coef, float(model.intercept_[0] - coef @ centre))

    @cached_property
    def constant(self) -> tuple[float, float]:
        """What the class frequencies reach."""
        share = float((self.y > 0.0).mean())
        return self.judge(np.zeros(self.X.shape[1]), float(np.log(share / (1.0 - share))))


def planned(table: HolderTable, clients: int, rounds: int, **settings: Any) -> FederatedPlan:
    """A plan with nothing tuned."""
    facts = {"epsilon": EPSILON, "rounds": rounds, "model": "central", "dropouts": 0} | settings
    return plan_federated(PROBLEM, table.X.shape[1], (table.low, table.high), clients, **facts)


def split(name: str, X: FloatArray, y: FloatArray, key: FloatArray, low: FloatArray, high: FloatArray) -> HolderTable:
    """Rows in the order of what decides who holds them; a fifth is held out."""
    order = np.argsort(key, kind="stable")
    X, y = X[order].astype(np.float64), 2.0 * y[order].astype(np.float64) - 1.0
    held_out = np.random.default_rng(0).uniform(size=y.size) < TEST_SHARE
    return HolderTable(name, X[~held_out], y[~held_out], X[held_out], y[held_out], low, high)
