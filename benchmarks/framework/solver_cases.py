"""The problems on which all solvers are compared: rows in a fixed split, objective, optimum, other forms of it.

A data set takes part with `facts["solvers"]`: its penalty, whether bounds of all columns might be known, what the
papers report, and another way to load it where its rows are prepared for the papers' experiments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import Problem
from discreet.privacy.budget import Budget
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Loss
from discreet.problem.optimum import Optimum
from discreet.problem.penalties import L2
from discreet.solvers import Solver
from framework import registry

FloatArray = npt.NDArray[np.float64]
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its rows, split into those that are fitted and those that are held out."""

    name: str
    problem: Problem
    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    best: Optimum

    @property
    def loss(self) -> Loss:
        return self.problem.loss

    def declared(self) -> dict[str, Any]:
        """What a user might know of the table: its extremes, rounded outwards. Reads the rows, so not private."""
        X, y = np.vstack([self.X, self.X_test]), np.concatenate([self.y, self.y_test])
        known: dict[str, Any] = {"bounds": (outwards(X.min(axis=0), np.floor), outwards(X.max(axis=0), np.ceil))}
        if not self.loss.classification:
            known["y_bounds"] = (float(outwards(y.min(), np.floor)), float(outwards(y.max(), np.ceil)))
        return known

    def error(self, X: FloatArray, coef: FloatArray, intercept: Any) -> float:
        """Relative error of the training objective, whatever form of the problem a solver was given."""
        return self.problem.objective(X, self.y, coef, intercept) / self.best.value - 1.0

    def score(self, X: FloatArray, coef: FloatArray, intercept: Any) -> float:
        """Accuracy or R^2 on the rows held out."""
        margins = X @ coef + intercept
        if self.loss.classification:
            return float(np.mean(np.where(margins > 0.0, 1.0, -1.0) == self.y_test))
        return 1.0 - float(np.mean((margins - self.y_test) ** 2) / np.var(self.y_test))

    def constant(self) -> tuple[FloatArray, float]:
        """No weights and the best intercept: what a model must beat to be of use."""
        mean = float(self.y.mean())
        intercept = math.log((1.0 + mean) / (1.0 - mean)) if self.loss.classification else mean
        return np.zeros(self.X.shape[1]), intercept


def outwards(values: Any, rounding: Callable[[Any], Any]) -> FloatArray:
    """Rounded to one significant digit, down or up."""
    values = np.asarray(values, dtype=np.float64)
    unit = 10.0 ** np.floor(np.log10(np.where(values == 0.0, 1.0, np.abs(values))))
    return rounding(np.round(values / unit, 9)) * unit


@lru_cache(maxsize=2)  # of a process
def open_case(name: str) -> Case:
    """The rows in a fixed random split, and the optimum of the part that is fitted."""
    dataset = registry.datasets()[name]
    facts = dataset.facts["solvers"]
    X, y = facts.get("load", dataset.load)()
    order = np.random.default_rng(0).permutation(len(y))
    cut = round(TEST_SHARE * len(y))
    test, train = order[:cut], order[cut:]
    problem = Problem(dataset.facts["loss"], facts["penalty"])
    best = problem.optimum(X[train], y[train], tolerance=1e-9)
    return Case(name, problem, X[train], y[train], X[test], y[test], best)


def forms(case: Case) -> Iterator[tuple[str, Problem]]:
    """The problem as it is, then what stands in for its penalty where a solver asks for something else."""
    yield "", case.problem
    coef = case.best.coef
    radius = 2.0 ** math.ceil(math.log2(np.abs(coef).sum()))
    yield f"L1 ball of radius {radius:g}", Problem(case.loss, constraint=L1Ball(radius))
    strength = float(f"{2.0 * case.problem.penalty.value(coef) / (coef @ coef):.0e}")
    yield f"L2 penalty {strength:g}", Problem(case.loss, L2(strength))


def form_for(solver: Solver, case: Case, budget: Budget) -> tuple[str, Problem] | str:
    """The first form that the solver takes, or why it takes none (the reason for the problem as it is)."""
    reasons = []
    for note, problem in forms(case):
        reason = solver.why_incompatible(problem, budget)
        if reason is None:
            return note, problem
        reasons.append(reason)
    return reasons[0]
