"""The problems of the papers: rows, objective, optimum, and the facts that their methods take as given.

Not private: smoothness constants, largest entries and optima are read from the rows, as the papers do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet import Budget, Problem
from discreet.data.public import clip_columns
from discreet.data.rows import Data
from discreet.problem.optimum import Optimum
from framework import registry

LEAST_MOMENT = 1e-12  # of an empty column


@dataclass(frozen=True, eq=False)
class PaperProblem:
    """Rows and objective, without an intercept, as the papers have it."""

    name: str
    X: Any
    y: np.ndarray
    problem: Problem
    epsilon: float = 1.0

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def data(self) -> Data:
        return Data(self.X, self.y)

    @cached_property
    def best(self) -> Optimum:
        return self.problem.optimum(self.X, self.y, tolerance=1e-9)

    def budget(self, epsilon: float | None = None) -> Budget:
        """The papers' (epsilon, 1/n^2)."""
        return Budget(self.epsilon if epsilon is None else epsilon, 1.0 / self.rows**2)

    @cached_property
    def smoothness(self) -> np.ndarray:
        """M_j, exactly."""
        squares = self.X.multiply(self.X).mean(axis=0) if sp.issparse(self.X) else (self.X**2).mean(axis=0)
        return self.problem.loss.smoothness * np.maximum(np.asarray(squares).ravel(), LEAST_MOMENT)

    @cached_property
    def beta(self) -> float:
        """The largest eigenvalue of the Hessian's bound, c X'X / n."""
        singular = sp.linalg.svds(self.X, k=1, return_singular_vectors=False) if min(self.X.shape) > 1 else [1.0]
        return self.problem.loss.smoothness * float(singular[0]) ** 2 / self.rows

    @cached_property
    def largest(self) -> float:
        """The largest entry: with it as the bound of every column, all columns are scaled alike, that is not at all."""
        return float(abs(self.X).max())

    def error(self, coef: np.ndarray, intercept: Any = 0.0, X: Any = None) -> float:
        """(F(w) - F*) / F*; infinite where a run left the numbers."""
        value = self.problem.objective(self.X if X is None else X, self.y, coef, intercept)
        return value / self.best.value - 1.0 if math.isfinite(value) else math.inf

    def error_of(self, solution: Any) -> float:
        """The same for a solution, whose model clips columns to the ranges that it has learned."""
        low, high = solution.scaling.low, solution.scaling.high
        bounded = not sp.issparse(self.X) and bool(np.isfinite(low).any() or np.isfinite(high).any())
        X = clip_columns(self.X, low, high) if bounded else self.X
        return self.error(solution.w, solution.intercept, X)

    @cached_property
    def error_at_zero(self) -> float:
        return self.error(np.zeros(self.columns))


@lru_cache(maxsize=4)  # of a process; the tables are a few megabytes each
def paper_problem(name: str) -> PaperProblem:
    """The problem of a data set that has `loss` and `penalty` among its facts."""
    dataset = registry.datasets()[name]
    X, y = dataset.load()
    facts = dataset.facts
    problem = Problem(facts["loss"], facts["penalty"], fit_intercept=False)
    return PaperProblem(name, X, np.asarray(y, dtype=np.float64), problem, facts.get("epsilon", 1.0))
