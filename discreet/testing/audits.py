"""The audit of a solver in two arms: the claimed epsilon is accepted, half of the noise is rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._common.types import FloatArray
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.problem import Problem
from discreet.solvers import Plan, Solution, Solver
from discreet.testing.laws import broken, skipped
from discreet.testing.tables import neighbours

if TYPE_CHECKING:
    from discreet.testing.solvers import SolverCase

EPSILON, DELTA = 1.0, 0.1  # a large delta is attained by many runs, so that few are needed
CONFIDENCE = 1.0 - 1e-6  # that an audit accepts a solver that keeps its promise


class WeakerNoise(RandomGenerator):
    """A seeded generator whose noise, also the one that is rounded, is multiplied by a factor: a planted fault."""

    def __init__(self, seed: int, factor: float) -> None:
        super().__init__(seeded_generator(seed).bytes(32), secure=False)
        self.factor = factor

    def normal(self, size: Any, out: FloatArray | None = None) -> FloatArray:
        draws = super().normal(size, out)
        draws *= self.factor
        return draws

    def laplace(self, size: Any) -> FloatArray:
        return super().laplace(size) * self.factor

    def rounded_normal(self, scale: float, size: Any) -> FloatArray:
        return super().rounded_normal(scale * self.factor, size)

    def rounded_laplace(self, scale: float, size: Any) -> FloatArray:
        return super().rounded_laplace(scale * self.factor, size)

    def gumbel_argmax(self, scores: ArrayLike) -> int:
        return super().gumbel_argmax(np.asarray(scores) / self.factor)


def first_coefficient(solution: Solution) -> float:
    """The first coefficient, or how far it is ahead of the second."""
    coef = np.ravel(solution.coef)
    return float(coef[0] - (coef[1] if coef.size > 1 else 0.0))


@dataclass(frozen=True, eq=False)
class AuditCase:
    """Two neighbouring tables on which one row moves a solver as far as its sensitivity allows.

    Parameters
    ----------
    solver : Solver
        With settings that leave the row its full effect: a fixed clipping threshold, short steps, no averaging, no
        budget for scales.
    problem : Problem
        Without intercept, so that the one coefficient tells everything.
    first, second : Data
        The neighbouring tables; entries must lie in [-1, 1], which is declared.
    relation : Relation
        The relation by which they are neighbours.
    statistic : function, optional
        What the attacker looks at: a number of a Solution. By default the first coefficient.
    runs : int
        Runs on each table.
    weaker_plan : function, optional
        weaker_plan(plan, factor) is a plan with noise multiplied by a factor, for solvers that make their noise from
        uniform numbers. By default normal, Laplace and Gumbel draws are multiplied by it.
    """

    solver: Solver[Any, Any]
    problem: Problem
    first: Data
    second: Data
    relation: Relation = Relation.REPLACE
    statistic: Callable[[Solution], float] = first_coefficient
    runs: int = 2_000
    weaker_plan: Callable[[Plan[Any, Any], float], Plan[Any, Any]] | None = None

    def lower_bound(self, noise: float = 1.0, seed: int = 20) -> float:
        """A lower bound on epsilon, with all noise multiplied by a factor.

        Guarantee: with noise = 1 it exceeds the epsilon of a private solver with probability at most 1e-6.
        """
        rows, columns = self.first.X.shape
        y_bounds = None if self.problem.loss.classification else (-1.0, 1.0)
        public = Public.of(rows, columns, relation=self.relation, bounds=(-1.0, 1.0), y_bounds=y_bounds, public_n=rows)
        plan = self.solver.plan(self.problem, public, Budget(EPSILON, DELTA))
        if self.weaker_plan is not None:
            plan, noise = self.weaker_plan(plan, noise), 1.0
        rng = WeakerNoise(seed, noise)
        samples = [
            np.array([self.statistic(self.solver.solve(self.problem, data, plan, rng)) for _ in range(self.runs)])
            for data in (self.first, self.second)
        ]
        return epsilon_lower_bound(samples[0], samples[1], DELTA, CONFIDENCE)

    @classmethod
    def flipped_row(
        cls,
        solver: Solver[Any, Any],
        problem: Problem,
        relation: Relation = Relation.REPLACE,
        *,
        row: ArrayLike = (1.0,),
        rest: ArrayLike = (0.0,),
        rows: int = 3,
        runs: int = 2_000,
    ) -> AuditCase:
        """The usual worst case: the first row turns around, becomes null or is left out; all targets are 1.

        Parameters
        ----------
        row, rest : array-like
            Entries of the row that changes, and of each other row.
        rows : int
            How many rows there are.
        """
        X = np.tile(np.asarray(rest, dtype=np.float64), (rows, 1))
        X[0] = row
        first, second = neighbours(relation, X, np.ones(rows), np.ones(rows), -X[0], 0)
        return cls(solver, problem, first, second, relation, runs=runs)


def audit_finds_no_more_than_epsilon(case: SolverCase) -> None:
    """On neighbouring tables many runs show no larger epsilon than claimed; with half the noise they do."""
    if not case.audits:
        skipped("no audit was asked for: pass audits=[AuditCase.flipped_row(solver, problem)] with fitting settings")
    for audit in case.audits:
        found = audit.lower_bound()
        if found > EPSILON:
            broken(
                f"under the relation {audit.relation} an attacker shows epsilon >= {found:.3f} instead of {EPSILON} "
                f"(false alarms below {1.0 - CONFIDENCE:.0e}): too little noise, or too small a sensitivity"
            )
        weaker = audit.lower_bound(noise=0.5)
        if not weaker > EPSILON:
            broken(
                f"under the relation {audit.relation} half of the noise shows epsilon >= {weaker:.3f} only, so the "
                "audit is too weak: pass settings and tables with which one row has its full effect"
            )
