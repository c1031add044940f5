"""The problems on which all solvers are compared: tables, objectives, optima and what the papers report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from stored_tables import load_benchmark

from discreet import Problem
from discreet.data.synthetic import sparse_regression, standardised
from discreet.privacy.budget import Budget
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Loss, Squared
from discreet.problem.optimum import Optimum
from discreet.problem.penalties import L1, L2, Penalty
from discreet.solvers import Solver

FloatArray = npt.NDArray[np.float64]
TEST_SHARE = 0.2
FEW_COLUMNS = 20  # up to which a user may be expected to know the bounds of every column


@dataclass(frozen=True)
class Recipe:
    """A problem by name; its table is made when asked for. `papers` holds what others report."""

    name: str
    table: Callable[[], tuple[FloatArray, FloatArray]]
    loss: Loss
    penalty: Penalty
    papers: dict[str, tuple[float, float]] = field(default_factory=dict)  # what -> (epsilon, relative error)


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its rows, split into those that are fitted and those that are held out."""

    recipe: Recipe
    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    best: Optimum

    @property
    def problem(self) -> Problem:
        return Problem(self.recipe.loss, self.recipe.penalty)

    @property
    def declarable(self) -> bool:
        return self.X.shape[1] <= FEW_COLUMNS

    def declared(self) -> dict[str, Any]:
        """What a user might know of the table: its extremes, rounded outwards. Reads the rows, so not private."""
        X, y = np.vstack([self.X, self.X_test]), np.concatenate([self.y, self.y_test])
        known: dict[str, Any] = {"bounds": (outwards(X.min(axis=0), np.floor), outwards(X.max(axis=0), np.ceil))}
        if not self.recipe.loss.classification:
            known["y_bounds"] = (float(outwards(y.min(), np.floor)), float(outwards(y.max(), np.ceil)))
        return known

    def error(self, X: FloatArray, coef: FloatArray, intercept: Any) -> float:
        """Relative error of the training objective, whatever form of the problem a solver was given."""
        return self.problem.objective(X, self.y, coef, intercept) / self.best.value - 1.0

    def score(self, X: FloatArray, coef: FloatArray, intercept: Any) -> float:
        """Accuracy or R^2 on the rows held out."""
        margins = X @ coef + intercept
        if self.recipe.loss.classification:
            return float(np.mean(np.where(margins > 0.0, 1.0, -1.0) == self.y_test))
        return 1.0 - float(np.mean((margins - self.y_test) ** 2) / np.var(self.y_test))

    def constant(self) -> tuple[FloatArray, float]:
        """No weights and the best intercept: what a model must beat to be of use."""
        mean = float(self.y.mean())
        intercept = math.log((1.0 + mean) / (1.0 - mean)) if self.recipe.loss.classification else mean
        return np.zeros(self.X.shape[1]), intercept


def outwards(values: Any, rounding: Callable[[Any], Any]) -> FloatArray:
    """Rounded to one significant digit, down or up."""
    values = np.asarray(values, dtype=np.float64)
    unit = 10.0 ** np.floor(np.log10(np.where(values == 0.0, 1.0, np.abs(values))))
    return rounding(np.round(values / unit, 9)) * unit


def stored(name: str, labels: bool, scaled: bool = False) -> Callable[[], tuple[FloatArray, FloatArray]]:
    def table() -> tuple[FloatArray, FloatArray]:
        X, y = load_benchmark(name)
        return standardised(X) if scaled else X, 2.0 * y - 1.0 if labels else y

    return table


def sparse_table() -> tuple[FloatArray, FloatArray]:
    X, y, _ = sparse_regression(rows=1_250)  # 1,000 are left to fit
    return X, y


def recipes() -> list[Recipe]:
    """In the order of the page. The papers print no regularisation strengths: these are ours."""
    weak, lasso = L2(1e-4), L1(1e-3)
    paper_cd, paper_sgd = "DP-CD, tuned", "DP-SGD, tuned"
    return [
        Recipe(
            "electricity-raw",
            stored("electricity", True),
            Logistic(),
            weak,
            {paper_cd: (1.0, 2.0e-3), paper_sgd: (1.0, 0.1484)},
        ),
        Recipe(
            "electricity-standardised",
            stored("electricity", True, scaled=True),
            Logistic(),
            weak,
            {paper_cd: (1.0, 1.3e-3), paper_sgd: (1.0, 4.0e-3)},
        ),
        Recipe(
            "california-raw",
            stored("california", False),
            Squared(),
            lasso,
            {paper_cd: (1.0, 1.24e-2), paper_sgd: (1.0, 0.1068)},
        ),
        Recipe(
            "california-standardised",
            stored("california", False, scaled=True),
            Squared(),
            lasso,
            {paper_cd: (1.0, 7e-4), paper_sgd: (1.0, 4.2e-3)},
        ),
        Recipe("adult", stored("adult", True), Logistic(), weak),
        Recipe("acsincome_co", stored("acsincome_co", True), Logistic(), weak),
        Recipe("meltingpoint", stored("meltingpoint", False), Squared(), L2(1e-3)),
        Recipe(
            "sparse-lasso",
            sparse_table,
            Squared(),
            L1(0.4),
            {paper_cd: (10.0, 0.2498), paper_sgd: (10.0, 0.7551)},
        ),
    ]


def open_case(recipe: Recipe) -> Case:
    """The rows in a fixed random split, and the optimum of the part that is fitted."""
    X, y = recipe.table()
    order = np.random.default_rng(0).permutation(len(y))
    cut = round(TEST_SHARE * len(y))
    test, train = order[:cut], order[cut:]
    best = Problem(recipe.loss, recipe.penalty).optimum(X[train], y[train], tolerance=1e-9)
    return Case(recipe, X[train], y[train], X[test], y[test], best)


def forms(case: Case) -> Iterator[tuple[str, Problem]]:
    """The problem as it is, then what stands in for its penalty where a solver asks for something else."""
    yield "", case.problem
    coef = case.best.coef
    radius = 2.0 ** math.ceil(math.log2(np.abs(coef).sum()))
    yield f"L1 ball of radius {radius:g}", Problem(case.recipe.loss, constraint=L1Ball(radius))
    strength = float(f"{2.0 * case.recipe.penalty.value(coef) / (coef @ coef):.0e}")
    yield f"L2 penalty {strength:g}", Problem(case.recipe.loss, L2(strength))


def form_for(solver: Solver, case: Case, budget: Budget) -> tuple[str, Problem] | str:
    """The first form that the solver takes, or why it takes none (the reason for the problem as it is)."""
    reasons = []
    for note, problem in forms(case):
        reason = solver.why_incompatible(problem, budget)
        if reason is None:
            return note, problem
        reasons.append(reason)
    return reasons[0]
